"""Counters of energy in processors (RAPL), from Linux's powercap: /sys/class/powercap/intel-rapl:*, of AMD too.

Documentation/power/powercap/powercap.rst of Linux; a value about every millisecond (Intel SDM 3B, 15.10). Only root
can read them since CVE-2020-8694. The package does not contain the memory modules; psys is what the maker of the board
connected to it. `intel-rapl-mmio` has the counters of `intel-rapl` again, and so has perf (perf.py): a counter is
listed once, and read through the first that can.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from seatrial.machine.files import FileTree
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power import perf
from seatrial.probes.power.files import file_of, integer
from seatrial.probes.power.source import Reading, Sensor, Values

_FOLDER = "/sys/class/powercap"
_DOMAIN = re.compile(r"intel-rapl(?P<mmio>-mmio)?:\d+(?::\d+)?")
_PACKAGE = re.compile(r"package-\d+(?:-die-\d+)?")
_REFRESH_S = 1e-3
_MICRO = 1e-6
_MOST_CONSTRAINTS = 4


def sensors(tree: FileTree, opening: perf.Open | None = None) -> list[Sensor]:
    """The domains. `opening` opens an event of perf in place of the kernel."""
    found: dict[str, Sensor] = {}
    names = [name for name in tree.names(_FOLDER) if _DOMAIN.fullmatch(name)]
    for name in sorted(names, key=lambda name: ("-mmio" in name, name)):
        domain = tree.word(f"{_FOLDER}/{name}/name")
        if domain is None:
            continue
        parent = tree.word(f"{_FOLDER}/{name.rpartition(':')[0]}/name") if name.count(":") > 1 else None
        label = domain if parent is None else f"{parent}/{domain}"
        found.setdefault(label, _of_powercap(tree, f"{_FOLDER}/{name}", label))
    for label, event in perf.events(tree, opening).items():
        found[label] = _either(found.get(label), label, event)
    return list(found.values())


def _either(powercap: Sensor | None, label: str, event: perf.Event) -> Sensor:
    """The sensor of a counter that perf shows as well."""
    through_perf = replace(_sensor(label), read=event.read, note="is read through perf: powercap cannot be read")
    if powercap is None:
        return replace(through_perf, note="")
    fault = powercap.read().fault
    if not fault:
        return powercap
    also = through_perf.read().fault
    return replace(powercap, unusable=f"{fault}; {also}") if also else through_perf


def _of_powercap(tree: FileTree, folder: str, label: str) -> Sensor:
    largest = tree.integer(f"{folder}/max_energy_range_uj")
    file = file_of(tree, f"{folder}/energy_uj", _values, refused="cannot be read: only root may, on most systems")
    return replace(
        _sensor(label),
        read=file.read,
        file=file,
        modulus_J=None if not largest or largest <= 0 else largest * _MICRO,
        limit_W=_limit_W(tree, folder),
    )


def _limit_W(tree: FileTree, folder: str) -> float | None:
    """The long-term limit, if it is enabled."""
    if tree.integer(f"{folder}/enabled") == 0:
        return None
    for number in range(_MOST_CONSTRAINTS):
        if tree.word(f"{folder}/constraint_{number}_name") == "long_term":
            limit = tree.integer(f"{folder}/constraint_{number}_power_limit_uw")
            return limit * _MICRO if limit and limit > 0 else None
    return None


def _sensor(label: str) -> Sensor:
    return Sensor(
        f"rapl:{label}",
        _scope(label.rpartition("/")[2]),
        SourceKind.COUNTER,
        "the platform, as the maker of the board connected it" if label == "psys" else label,
        lambda: Reading(0.0),
        Supply.DC,
        refresh_s=_REFRESH_S,
        quantum=61e-6,  # 2^-14 J, the usual unit (Intel SDM 3B, MSR_RAPL_POWER_UNIT)
    )


def _scope(domain: str) -> Scope:
    if _PACKAGE.fullmatch(domain):
        return Scope.PACKAGE
    return Scope.MEMORY if domain == "dram" else Scope.PART


def _values(data: bytes, _: float) -> Values:
    value = integer(data)
    return {"fault": "reports no value"} if value is None else {"joules": value * _MICRO}
