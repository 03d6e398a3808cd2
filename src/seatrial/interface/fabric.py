"""Describe a fabric from the output of its tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.fabric.dumps import FABRIC_READERS, read_fabric
from seatrial.fabric.parts import Text
from seatrial.interface.machines import Dumps, read_dump
from seatrial.model.machine.fabric import Fabric


def is_fabric(sources: Iterable[tuple[str, str | Path]]) -> bool:
    """Whether any of these (kind, file) describes a fabric."""
    return any(kind in FABRIC_READERS for kind, _ in sources)


def discover_fabric(dumps: Dumps) -> Fabric:
    """Describe a fabric: its switches, nodes, links, levels and what is wrong with it.

    `dumps` maps a kind (ibnetdiscover, iblinkinfo, slurm-topology) to a file with that tool's output, or is a sequence
    of (kind, file): several files of one kind are the parts of one dump, in their order.

    Raises UsageError for a file that is missing or damaged, and for files of several kinds.
    """
    sources = tuple(dumps.items() if isinstance(dumps, Mapping) else dumps)
    kinds = dict.fromkeys(kind for kind, _ in sources)
    if len(kinds) != 1 or not is_fabric(sources):
        raise UsageError(
            f"one fabric from {', '.join(kinds) or 'nothing'}: these do not describe one and the same",
            f"give the files of one kind ({', '.join(sorted(FABRIC_READERS))}), and other kinds in a second command",
        )
    read = [read_dump(kind, str(file)) for kind, file in sources]
    return read_fabric(next(iter(kinds)), [Text(dump.name, dump.data, dump.pick) for dump in read])
