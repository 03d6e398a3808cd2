"""Counters of this machine's network links, read once before and once after a repeat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.machine.files import FileTree
from seatrial.machine.sysfs.network import read_link_counters
from seatrial.model.machine.links import LINK_COUNTERS, CounterKind, Readings, counters_between

_ROOT = Path("/")


def read_links(root: Path = _ROOT) -> Readings:
    """The counters now. Empty without network hardware; never fails."""
    return read_link_counters(FileTree(root))


def links_between(before: Readings, after: Readings) -> list[dict[str, Any]]:
    """The counters that grew, errors first: port, counter, kind and number (None: unknown)."""
    return [
        {
            "port": change.port,
            "counter": change.counter.name,
            "kind": change.counter.kind.value,
            "grew_by": change.grew_by,
        }
        for change in counters_between(before, after)
    ]


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
        found.append(
            {
                "host": str(entry.get("host", "")),
                "port": str(entry.get("port", "")),
                "counter": counter.name,
                "kind": counter.kind.value,
                "grew_by": grew_by,
            }
        )
    return sorted(found, key=lambda one: order.index(CounterKind(one["kind"])))
