"""Settings planted into the files of /sys: each is named, alone, and the healthy machine has none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine.machine_trees import CPU, two_sockets

from seatrial.analysis.rules import findings
from seatrial.machine.live import discover_live

THP = "sys/kernel/mm/transparent_hugepage/enabled"
SETTINGS = frozenset(
    {"huge-pages-never", "governor-not-performance", "boost-off", "clock-limited", "numa-balancing-on"}
)

PLANTED = {
    "huge pages off": ({THP: "always madvise [never]"}, "huge-pages-never"),
    "another governor on one CPU": ({f"{CPU}/cpu3/cpufreq/scaling_governor": "powersave"}, "governor-not-performance"),
    "no turbo": ({f"{CPU}/intel_pstate/no_turbo": "1"}, "boost-off"),
    "a lowered clock on one CPU": ({f"{CPU}/cpu3/cpufreq/scaling_max_freq": "3000000"}, "clock-limited"),
    "NUMA balancing": ({"proc/sys/kernel/numa_balancing": "1"}, "numa-balancing-on"),
}
HEALTHY: dict[str, dict[str, str]] = {
    "as made": {},
    "huge pages on request": {THP: "always [madvise] never"},
    "huge pages always": {THP: "[always] madvise never"},
    "the whole clock": {f"{CPU}/cpu3/cpufreq/scaling_max_freq": "3800000"},
    "turbo, balancing off": {f"{CPU}/intel_pstate/no_turbo": "0", "proc/sys/kernel/numa_balancing": "0"},
}


def rules(root: Path, files: dict[str, str]) -> set[str]:
    """The settings that are named on a machine with these files."""
    tree = two_sockets(root)
    for path, text in files.items():
        tree.write(path, text)
    return {finding.rule for finding in findings(discover_live(root), ())} & SETTINGS


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_setting_is_named(tmp_path: Path, name: str) -> None:
    files, rule = PLANTED[name]
    assert rules(tmp_path, files) == {rule}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_control_has_none(tmp_path: Path, name: str) -> None:
    assert rules(tmp_path, HEALTHY[name]) == set()
