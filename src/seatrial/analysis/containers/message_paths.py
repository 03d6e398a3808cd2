"""How the messages of a repeat go from rank to rank, and from where its files come, as far as its record tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.model.results.record import RepeatRecord

_OPEN_MPI = re.compile(r"mca_(?P<kind>pml|btl|mtl)_(?P<name>\w+)\.so")
_UCX = re.compile(r"libuct_(?P<name>\w+)\.so")
_BESIDE = frozenset({"self", "rdma"})
"""Modules that carry nothing between ranks."""
_MPI = re.compile(r"lib(?:mpi|mpich|mpi_cray|mpi_intel)\.so")
_WORKS = "yes"
_COPIES_ONCE = re.compile(r"\((?:cma|knem|xpmem)\)")


class MessagePaths(Frozen):
    """`cross_memory`: whether ranks can read each other's memory ("yes", "no (why)"); `single_copy`: how Open MPI
    copies large messages ("1 (cma)"); `modules`: what the MPI library loaded to carry messages; `library`: the build id
    of libmpi; `root`: the type of the container's root file system. None: not recorded, () : none known."""

    cross_memory: str | None = None
    single_copy: str | None = None
    modules: tuple[str, ...] = ()
    library: str | None = None
    root: str | None = None

    @property
    def copies_once(self) -> bool | None:
        """Whether large messages are copied once, from memory to memory; None: not known."""
        if self.cross_memory is None or not self.cross_memory.startswith(_WORKS):
            return None if self.cross_memory is None else False
        return self.single_copy is None or _COPIES_ONCE.search(self.single_copy) is not None

    @property
    def copying(self) -> str:
        """The same in words."""
        if self.cross_memory is None:
            return "not recorded"
        if self.cross_memory.startswith(_WORKS) and not self.copies_once:
            return f"possible, but the library does not use it: {bare(self.single_copy)}"
        return self.cross_memory

    @property
    def is_user_space(self) -> bool:
        """Whether a process serves the root file system."""
        return self.root is not None and self.root.startswith("fuse")


def bare(mechanism: str | None) -> str:
    """An enumeration's value without its number: "cma" of "1 (cma)"."""
    found = re.search(r"\((.+)\)$", mechanism or "")
    return found[1] if found else mechanism or ""


def paths_of(records: Iterable[RepeatRecord]) -> MessagePaths:
    """The paths of an experiment, from its first repeat that succeeded: they do not change between repeats."""
    record = next((one for one in records if one.outcome.is_ok), None)
    return MessagePaths() if record is None else _paths(record.seen)


def _paths(seen: Mapping[str, Any]) -> MessagePaths:
    notes, libs, container = (_mapping(seen.get(name)) for name in ("notes", "libs", "container"))
    root = str(container.get("root", ""))
    return MessagePaths(
        _text(notes.get("transport_cross_memory")),
        _text(notes.get("transport_single_copy")),
        modules_of([*libs, *(seen.get("added_libs") or ())]),
        next((str(build_id) for name, build_id in libs.items() if _MPI.match(name)), None),
        root.partition(" ")[0] or None,
    )


def modules_of(libraries: Iterable[object]) -> tuple[str, ...]:
    """The modules of Open MPI and UCX that carry messages, among loaded libraries: "btl vader", "uct cma"."""
    found = set()
    for library in map(str, libraries):
        if (match := _OPEN_MPI.match(library)) and match["name"] not in _BESIDE:
            found.add(f"{match['kind']} {match['name']}")
        elif (match := _UCX.match(library)) and match["name"] not in _BESIDE:
            found.add(f"uct {match['name']}")
    return tuple(sorted(found))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
