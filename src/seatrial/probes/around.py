"""Everything that is read once before and once after a repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import Readings
from seatrial.probes.group_limits import GroupLimits, limits_between, read_limits
from seatrial.probes.link_counters import links_between, read_links
from seatrial.probes.system import Snapshot, pressure_between, read_pressure, seen_between, snapshot


class Around(Frozen):
    """The state at one moment."""

    system: Snapshot
    pressure: Mapping[str, int]
    limits: GroupLimits
    links: Readings


def look_around(cpus: Sequence[int]) -> Around:
    """The current state. Never fails: what cannot be read is missing."""
    return Around(snapshot(cpus), read_pressure(), read_limits(), read_links())


def seen_around(before: Around, after: Around, cpus: Sequence[int], programs_s: float | None) -> dict[str, Any]:
    """What a repeat's record has of the time in between (system.py, pressure.py, link_counters.py and
    group_limits.py in probes/). `programs_s`: the CPU time of its programs, None if it is not known."""
    seen = seen_between(before.system, after.system, cpus, programs_s)
    if pressure := pressure_between(before.pressure, after.pressure):
        seen["pressure"] = pressure
    if links := links_between(before.links, after.links):
        seen["links"] = links
    return seen | limits_between(before.limits, after.limits)
