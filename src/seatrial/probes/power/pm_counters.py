"""Counters of HPE Cray nodes: /sys/cray/pm_counters, with the node's own time of each value.

"452 W 1609877439893711 us" is a power, "170391 J 1609877439893711 us" an energy. `freshness` counts the updates of all
files together: a set that is read while it changes is not of one moment. `raw_scan_hz` are the updates a second (10).
HPE Cray EX System Monitoring Application Environment, "PM counters".
"""

from __future__ import annotations

import re
import time

from seatrial.machine.files import FileTree
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.files import file_of
from seatrial.probes.power.source import Sensor, Values

_FOLDER = "/sys/cray/pm_counters"
_VALUE = re.compile(rb"(-?\d+)\s*(W|J)(?:\s+(\d+)\s*us)?")
_FILE = re.compile(r"(?:(?P<part>cpu\d*|memory|accel\d+)_)?(?P<what>power|energy)")
_SCOPES = {"cpu": Scope.PACKAGE, "memory": Scope.MEMORY, "accel": Scope.DEVICE}
_USUAL_HZ = 10
_LONGEST_AGE_S = 3600.0


def sensors(tree: FileTree) -> list[Sensor]:
    """The counters; of a part that has its energy and its power, both."""
    hertz = tree.integer(f"{_FOLDER}/raw_scan_hz")
    refresh_s = 1.0 / (hertz if hertz and hertz > 0 else _USUAL_HZ)
    found = []
    names = tree.names(_FOLDER)
    has_each_cpu = any(re.match(r"cpu\d", name) for name in names)
    for name in names:
        if (match := _FILE.fullmatch(name)) is not None:
            part = match["part"] or ""
            is_sum = part == "cpu" and has_each_cpu  # of what is listed one by one
            is_counter = match["what"] == "energy"
            file = file_of(tree, f"{_FOLDER}/{name}", _values, same=tree.where(f"{_FOLDER}/freshness"))
            found.append(
                Sensor(
                    f"pm_counters:{name}",
                    Scope.PART if is_sum else _SCOPES[part.rstrip("0123456789")] if part else Scope.NODE,
                    SourceKind.COUNTER if is_counter else SourceKind.GAUGE,
                    part or "node",
                    file.read,
                    Supply.DC,
                    refresh_s=refresh_s,
                    quantum=1.0,
                    file=file,
                )
            )
    return found


def _values(data: bytes, at_s: float) -> Values:
    match = _VALUE.fullmatch(data.strip())
    if match is None:
        return {"fault": "reports no value"}
    read_s = at_s + time.time() - time.monotonic()
    age_s = read_s - int(match[3]) / 1e6 if match[3] else None
    if age_s is not None and not 0.0 <= age_s <= _LONGEST_AGE_S:  # another clock, or a tree that was recorded
        age_s = None
    return {"joules" if match[2] == b"J" else "watts": float(match[1]), "age_s": age_s}
