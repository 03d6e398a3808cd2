"""Counters of this machine's network links, read once before and once after a repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.machine.files import FileTree
from seatrial.machine.sysfs.link_counters import read_link_counters
from seatrial.model.link_counters import Readings, counters_between

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
