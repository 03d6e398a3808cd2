"""Nodes whose clock is off, or that use the results folder slowly."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from analysis.made_up_fleets import fleet
from analysis.made_up_folders import MadeUpFolder, noisy
from msgspec.structs import replace

from seatrial.analysis.screening.screen import screen_cluster
from seatrial.jobs.screen import screen
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.study.screen import ClockReading, FolderUse, Screen
from seatrial.report.screen.words import off_by
from seatrial.report.text.history import screen_text
from seatrial.store.claim import clock_seen

_NODES = ("n1", "n2", "n3", "n4")


def use(seed: int, ahead_s: float = 0.0, drift: float = 0.0, times: float = 1.0, error_s: float = 0.006) -> FolderUse:
    """Ten repeats, 3 s apart: latencies with heavy tails, clocks within their errors."""
    source = random.Random(seed)
    took = [source.lognormvariate(0.0, 0.7) * 1e-3 for _ in range(20)]
    clock = tuple(
        ClockReading(3.0 * k, ahead_s + 3.0 * k * drift + source.uniform(-1, 1) * error_s, error_s) for k in range(10)
    )
    return FolderUse([times * one for one in took[:10]], [times * one for one in took[10:]], clock)


def screened(own: Sequence[FolderUse], no_cpu: tuple[NoCpu, ...] = ()) -> Screen:
    given = fleet(random.Random(4), len(own), len(own))
    used = {f"n{k + 1}": one for k, one in enumerate(own)}
    return screen_cluster(replace(given, folder_use=used, no_cpu=no_cpu, switch_of={}))


@pytest.mark.parametrize(("ahead_s", "said"), [(3.0, "3 s ahead of"), (-0.5, "0.5 s behind")])
def test_a_clock_that_is_off_is_named_with_its_offset_and_error(ahead_s: float, said: str) -> None:
    found = screened([use(1), use(2), use(3, ahead_s), use(4)])
    (odd,) = found.odd
    assert (odd.what, odd.figure, odd.unit) == ("n3", "clock", "s") and odd.value == pytest.approx(ahead_s, abs=0.02)
    text = " ".join(screen_text(found).split())
    assert "1 odd in 4 nodes: node n3" in text and "of 10 files" not in text and "stamped on 10 files" in text
    assert off_by(odd).startswith("+" if ahead_s > 0 else "-") and off_by(odd).endswith("s") and "± " in text
    assert said.split()[2] in text


def test_a_server_whose_own_clock_is_off_accuses_no_node() -> None:
    assert not screened([use(k, 40.0) for k in range(4)]).odd
    (odd,) = screened([use(1, 40.0), use(2)]).odd
    assert odd.what == "n1", "the clock that stamps the files agrees with n2"
    found = screened([use(1), use(2, 3.0), use(3, 2.1)])
    assert {one.what for one in found.odd} == {"n2", "n3"}, "the median of three may be wrong"
    assert not screened([use(1, 9.0), use(2, 3.0)]).odd, "no two agree"


def test_a_clock_that_drifts_is_named_and_one_within_its_error_is_not() -> None:
    found = screened([use(1), use(2, drift=0.01), use(3), use(4)])
    assert {one.figure: one.what for one in found.odd} == {"clock": "n2", "clock drift": "n2"}
    (drift,) = [one for one in found.odd if one.figure == "clock drift"]
    assert drift.value == pytest.approx(0.01, abs=1e-3) and "gains" in drift.why
    assert not screened([use(1), use(2, drift=3e-4), use(3), use(4)]).odd, "0.3 ms/s is less than the error of 0.6 ms/s"


def test_readings_whose_error_is_large_name_nobody() -> None:
    assert not screened([use(1), use(2), use(3, 0.05, error_s=0.51), use(4)]).odd


def test_a_node_that_uses_the_folder_slowly_is_named_with_its_latency() -> None:
    found = screened([use(1), use(2), use(3, times=20.0), use(4)])
    assert {one.what for one in found.odd} == {"n3"}
    assert {one.figure for one in found.odd} == {
        f"{what} in the results folder" for what in ("making a folder", "writing a small file")
    }
    text = " ".join(screen_text(found).split())
    assert "ms where the others have" in text and "median of 10 repeats" in text
    busy = screened([use(1), use(2), use(3, times=20.0), use(4)], (NoCpu("n3", 0.5, "other processes"),))
    assert "had no CPU for part of the time, which may be why" in busy.odd[0].why


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("nfs4", "the results folder is on nfs4 on n3: look at the way to its server (nfsstat -c"),
        ("fuse.sshfs", "look at the process that serves it (findmnt"),
        ("lustre", "lctl get_param"),
        ("panfs", "the way to its servers"),
        ("ext4", "look at its device (iostat"),
        ("", "see on which file system"),
    ],
)
def test_the_remedy_is_that_of_the_file_system(kind: str, said: str) -> None:
    own = [use(1), use(2), replace(use(3, times=20.0), file_system=kind), use(4)]
    for odd in screened(own).odd:
        assert said in odd.remedy and ("nfsstat" in odd.remedy) == (kind == "nfs4")


def test_noise_of_latencies_names_nobody() -> None:
    assert not [seed for seed in range(300) if screened([use(seed * 8 + k) for k in range(4)]).odd]
    slow = [use(k, times=20.0) for k in range(4)]
    assert not screened(slow).odd, "a folder that is slow for all is no fault of a node"


def test_the_clock_of_a_stamp_is_between_the_two_times() -> None:
    seen = clock_seen(1000.0, 1000.04, 999_990_000_001)
    assert seen["clock_s"] == pytest.approx(0.025, abs=1e-6) and seen["clock_error_s"] == pytest.approx(0.025)
    assert clock_seen(1000.0, 1000.0, 999_000_000_000)["clock_error_s"] == pytest.approx(0.5), "whole seconds only"


@pytest.mark.parametrize(("prints", "named"), [("aaba", ["n3"]), ("aaaa", []), ("aabb", []), ("abcd", [])])
def test_a_node_that_computes_other_bits_is_named(prints: str, named: list[str], tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "results")
    for k, (node, bits) in enumerate(zip(_NODES, prints, strict=True)):
        made.add(noisy(1e9, 6, seed=k), host=node, seen={"notes": {"fingerprint": bits}})
    odd = [one for one in screen([made.folder.path]).odd if one.figure == "fingerprint"]
    assert [one.what for one in odd] == named
    assert all("gave other bits in 6 of 6 repeats; 3 nodes" in one.why for one in odd)


def test_what_repeats_saw_of_the_folder_is_screened(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "results")
    for k, node in enumerate(_NODES):
        seen = {"folder": {"claim_s": 1e-3, "write_s": 1e-3, "clock_s": 3.0 * (k == 1), "clock_error_s": 0.006}}
        seen["folder"] |= {"type": "fuse.sshfs", "claim_s": 0.05 if k == 2 else 1e-3}
        made.add(noisy(1e9, 6, seed=k), host=node, seen=seen)
    odd = {one.figure: one for one in screen([made.folder.path]).odd}
    assert (odd["clock"].what, odd["clock"].value) == ("n2", 3.0)
    slow = odd["making a folder in the results folder"]
    assert slow.what == "n3" and "on fuse.sshfs on n3" in slow.remedy
