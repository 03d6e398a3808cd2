"""Servers: real ones, whose dumps are read in place, and our own samples; verdict, peak and sockets of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine.test_population_rules import judge

from seatrial.errors import UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.model.machine.machine import DeviceKind, Memory

TOPOLOGY = Path(__file__).resolve().parents[3] / "shared" / "data" / "topology"
OWN = Path(__file__).resolve().parents[1] / "data" / "machine" / "dmi"
GIB = 1 << 30

need_real = pytest.mark.skipif(
    not TOPOLOGY.is_dir(), reason="the third-party samples (shared/data/topology) are not here"
)

# name: verdict, peak in MB/s, sockets, then of each socket: channels, populated, modules, GiB, configured, rated
_Row = tuple[str, int | None, int, tuple[int | None, int | None, int, int, float | None, float | None]]
_REAL: dict[str, _Row] = {
    "dell-c6520_16of16_icx": ("balanced", 409_600, 2, (8, 8, 8, 512, 3200, 3200)),
    "dell-c6525_8of16_epyc": ("balanced", 204_800, 1, (8, 8, 8, 256, 3200, 3200)),
    "dell-r740_12of24_2400": ("balanced", 115_200, 1, (6, 6, 12, 384, 2400, 3200)),
    "dell-r740_12of24_balanced_2933": ("balanced", 281_568, 2, (6, 6, 6, 192, 2933, 3200)),
    "dell-r740_8of24_unbalanced": ("unbalanced", 153_600, 2, (6, 4, 4, 128, 2400, 3200)),
    "dell-r740_mixed-4x16+6x64": ("unbalanced", 115_200, 1, (6, 6, 10, 448, 2400, 2933)),
    "dell-r750_16of32_icx": ("balanced", 409_600, 2, (8, 8, 8, 128, 3200, 3200)),
    "dell-r7525_16of32_epyc_2666": ("balanced", 341_248, 2, (8, 8, 8, 256, 2666, 2666)),
    "dell-r7525_8of32_epyc": ("near-balanced", 204_800, 2, (8, 4, 4, 256, 3200, 3200)),
    "hpe-dl380g10_12of24_balanced": ("balanced", 255_936, 2, (6, 6, 6, 96, 2666, 2666)),
    "hpe-dl380g11_8of32_spr": ("near-balanced", 332_800, 2, (8, 4, 4, 128, 5200, 5600)),
    "hpe-dl385g10pv2_32of32_epyc": ("balanced", 409_600, 2, (8, 8, 16, 2048, 3200, 3200)),
    "lenovo-sr650_16of24_unbalanced": ("unbalanced", 170_624, 2, (6, 4, 8, 256, 2666, 2666)),
    "lenovo-sr650v2_12of32_icx": ("unbalanced", 255_936, 2, (8, 6, 6, 192, 2666, 3200)),
    "lenovo-sr650v2_16of32_icx": ("balanced", 341_248, 2, (8, 8, 8, 256, 2666, 3200)),
    "supermicro-x11dpi_12of16": ("balanced", 255_936, 2, (6, 6, 6, 192, 2666, 2666)),
}
_OWN: dict[str, _Row] = {
    "dl360g10_1of24_unbalanced": ("unbalanced", 23_464, 1, (6, 1, 1, 32, 2933, 3200)),
    "r640_8of24_unbalanced": ("unbalanced", 170_624, 2, (6, 4, 4, 64, 2666, 2666)),
    "r750_type17-only_unknown": ("unknown", None, 2, (None, None, 8, 256, 2933, 3200)),
    "r7625_24of24_balanced": ("balanced", 921_600, 2, (12, 12, 12, 768, 4800, 4800)),
    "romed8_8of8_one-smaller_unbalanced": ("unbalanced", 187_712, 1, (8, 8, 8, 240, 2933, 3200)),
    "sr665_8of32_near-balanced": ("near-balanced", 204_800, 2, (8, 4, 4, 256, 3200, 3200)),
    "x12dpi_16of20_balanced": ("balanced", 409_600, 2, (8, 8, 8, 256, 3200, 3200)),
}


def _check(memory: Memory, expected: _Row) -> None:
    verdict, peak_MBps, sockets, numbers = expected
    assert memory.verdict == verdict, memory.why
    assert memory.peak.value == (None if peak_MBps is None else peak_MBps * 1e6)
    channels, populated, dimms, gib, configured, rated = numbers
    for socket in memory.sockets:
        assert (socket.channels, socket.populated_channels, socket.dimms) == (channels, populated, dimms)
        assert (socket.capacity_bytes, socket.configured_MTps, socket.rated_MTps) == (gib * GIB, configured, rated)
    assert len(memory.sockets) == sockets


@need_real
@pytest.mark.parametrize("name", _REAL)
def test_real_servers(name: str) -> None:
    survey = read_dmidecode((TOPOLOGY / f"dmi_{name}.txt").read_bytes())
    _check(judge(survey), _REAL[name])
    machine = assemble([survey])
    _check(machine.memory, _REAL[name])
    assert len(machine.of_kind(DeviceKind.PACKAGE)) == _REAL[name][2]
    assert len(machine.of_kind(DeviceKind.MEMORY)) == sum(socket.dimms for socket in machine.memory.sockets)


@pytest.mark.parametrize("name", _OWN)
def test_own_servers(name: str) -> None:
    _check(judge(read_dmidecode((OWN / f"{name}.txt").read_bytes())), _OWN[name])


def test_every_own_sample_is_judged() -> None:
    assert {path.stem for path in OWN.glob("*.txt")} == set(_OWN)


@need_real
@pytest.mark.parametrize("name", ["dell-r740_8of24_unbalanced", "hpe-dl380g11_8of32_spr"])
def test_a_real_dump_cut_at_any_structure_is_refused(name: str) -> None:
    text = (TOPOLOGY / f"dmi_{name}.txt").read_text(encoding="utf-8", errors="replace")
    ends = [position for position in range(len(text)) if text.startswith("\n\n", position)]
    for end in ends[1:-1:9]:
        with pytest.raises(UsageError):
            read_dmidecode(text[:end].encode())


@need_real
def test_peak_has_its_derivation() -> None:
    memory = judge(read_dmidecode((TOPOLOGY / "dmi_dell-r740_8of24_unbalanced.txt").read_bytes()))
    assert memory.peak.derivation.startswith("8 populated channels x 8 B x 2400 MT/s configured")
    assert memory.peak.is_physical
