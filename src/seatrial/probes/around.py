"""Everything that is read once before and once after a repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.machine.files import FileTree
from seatrial.machine.sysfs.devices import read_link_counters
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import LINK_COUNTERS, CounterKind, LinkCounter, Readings, counters_between
from seatrial.probes.group_limits import GroupLimits, limits_between, read_limits
from seatrial.probes.system import Snapshot, pressure_between, read_pressure, seen_between, snapshot

_ROOT = Path("/")


def read_links(root: Path = _ROOT) -> Readings:
    """The counters now. Empty without network hardware; never fails."""
    return read_link_counters(FileTree(root))


def links_between(before: Readings, after: Readings) -> list[dict[str, Any]]:
    """The counters that grew, errors first: port, counter, kind and number (None: unknown)."""
    return [_grown(change.port, change.counter, change.grew_by) for change in counters_between(before, after)]


def _grown(port: str, counter: LinkCounter, grew_by: int | None) -> dict[str, Any]:
    return {"port": port, "counter": counter.name, "kind": counter.kind.value, "grew_by": grew_by}


def links_of_nodes(noted: object) -> list[dict[str, Any]] | None:
    """The same as `links_between`, with `host`, from the note `links` of a program with ranks on several nodes; None
    without it. Counters of no known meaning, and what cannot be read, are left out."""
    if not isinstance(noted, Sequence):
        return None
    order = list(CounterKind)
    found = []
    for entry in noted:
        counter = LINK_COUNTERS.get(entry.get("counter", "")) if isinstance(entry, dict) else None
        grew_by = entry.get("grew_by") if counter is not None else None
        if counter is None or not isinstance(grew_by, int | None):
            continue
        host, port = (str(entry.get(key, "")) for key in ("host", "port"))
        found.append({"host": host, **_grown(port, counter, grew_by)})
    return sorted(found, key=lambda one: order.index(CounterKind(one["kind"])))


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
