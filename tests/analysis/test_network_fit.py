"""SMPI's cost of messages, fitted: the measured one-way times come out again, and streams go as fast as measured."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from seatrial.analysis.network_fit import EAGER_B, ENVELOPE_B, fit_network, network_tables
from seatrial.errors import UsageError
from seatrial.report.profile.trace_export import host_file, platform_xml

SIZES = [1 << k for k in range(23)]
SMOOTH = {size: 4e-7 + size / 2e10 for size in SIZES}
STREAM = {size: size / (1.2e-7 + size / 2.5e10) for size in SIZES}
# A step at 4 KiB, times that fall, and a stream slower than the ping-pong, as shared machines give them.
ROUGH = {**SMOOTH, 32: 3.9e-7, 64: 4.8e-7, 4096: 2.7e-6, 8192: 2.6e-6, 16384: 2.8e-6, 32768: 3.2e-6, 65536: 3.9e-6}
ROUGH_STREAM = {**STREAM, 4096: 2.1e9, 8192: 4e9, 1 << 20: 9e9, 1 << 21: 8e9}


@pytest.mark.parametrize(("times", "stream"), [(SMOOTH, STREAM), (ROUGH, ROUGH_STREAM)])
@pytest.mark.parametrize("eager_B", [1024, EAGER_B, 1 << 24])
def test_measured_times_come_out_again(times: dict[int, float], stream: dict[int, float], eager_B: int) -> None:
    fit = fit_network(times, stream, eager_B)
    most = 0.0
    for size in SIZES:
        most = max(most, times[size])
        assert fit.one_way_s(size) == pytest.approx(most, rel=1e-4), size
    for parts in (fit.wire, fit.sender, fit.receiver):
        assert parts[0].above_B == 0 and all(a.above_B < b.above_B for a, b in pairwise(parts))
        for part, following in pairwise(parts):
            assert part.at(part.above_B + 1) > -1e-15 and part.at(following.above_B) > -1e-15
    assert all(part.at_zero_s >= 0 and part.s_per_B > 0 for part in fit.wire)


def test_between_sizes_it_is_near_the_line() -> None:
    fit = fit_network(SMOOTH, STREAM)
    for size in (3, 100, 3000, 40_000, 65_535, 65_536, 100_000, 3_000_000):
        assert fit.one_way_s(size) == pytest.approx(4e-7 + size / 2e10, rel=0.05), size
    assert fit.one_way_s(0) == pytest.approx(SMOOTH[1])
    assert fit.one_way_s(1 << 24) == pytest.approx((1 << 24) / 2e10, rel=0.2), (
        "beyond the last size as fast as a stream"
    )


def test_a_sender_is_as_fast_as_a_stream() -> None:
    fit = fit_network(SMOOTH, STREAM)
    for size in (1, 64, 1024, 16384):
        sender_s = next(p for p in reversed(fit.sender) if p.above_B < size or p.above_B == 0).at(size)
        assert sender_s == pytest.approx(size / STREAM[size]), size
    large = next(p for p in reversed(fit.wire) if p.above_B < (1 << 20) + ENVELOPE_B)
    assert large.s_per_B == pytest.approx(1 / STREAM[1 << 20], rel=1e-3), "a rendezvous shares the link"


def test_tables_that_are_none() -> None:
    with pytest.raises(UsageError, match=r"message sizes of mpi\.latency"):
        fit_network({8: 1e-6}, STREAM)
    with pytest.raises(UsageError, match=r"message sizes of mpi\.bandwidth"):
        fit_network(SMOOTH, {8: 0.0, 16: 1e9})
    with pytest.raises(UsageError, match="contain no sweeps"):
        network_tables([])


def test_the_platform_is_a_document_of_simgrid() -> None:
    root = ElementTree.fromstring(platform_xml(ROUGH, ROUGH_STREAM, 6).split("\n", 2)[2])
    settings = {prop.attrib["id"]: prop.attrib["value"] for prop in root.iter("prop")}
    (cluster,) = root.iter("cluster")
    assert cluster.attrib["radical"] == "0-5" and cluster.attrib["speed"] == "1Gf"
    assert settings["smpi/async-small-thresh"] == settings["smpi/send-is-detached-thresh"] == str(EAGER_B)
    for name in ("smpi/bw-factor", "smpi/lat-factor"):
        thresholds = [int(pair.split(":")[0]) for pair in settings[name].split(";")]
        assert thresholds == sorted(set(thresholds)) and thresholds[0] == 0
        assert all(float(pair.split(":")[1]) >= 0 for pair in settings[name].split(";"))
    assert host_file(3) == "core-0\ncore-1\ncore-2\n"
