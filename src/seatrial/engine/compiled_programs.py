"""The compiler and flags of the programs that a repeat started, in its notes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.environments.compiled import Compilation, compilation_of

_MOST_PROGRAMS = 8


def with_compilation(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes, with `compiler` and `flags` of each of the `programs` that states them. A file is read once."""
    programs = notes.get("programs")
    if not isinstance(programs, Mapping):
        return dict(notes)
    found: dict[str, Any] = {}
    for number, (name, entry) in enumerate(programs.items()):
        path = entry.get("path") if isinstance(entry, Mapping) else None
        stated = _stated(path) if isinstance(path, str) and number < _MOST_PROGRAMS else Compilation()
        said = {key: text for key, text in (("compiler", stated.compiler), ("flags", stated.flags)) if text}
        found[name] = {**entry, **said} if said else entry
    return {**notes, "programs": found}


def _stated(path: str) -> Compilation:
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):
        return Compilation()
    return _read(path, stat.st_size, stat.st_mtime_ns)


@cache
def _read(path: str, size: int, mtime_ns: int) -> Compilation:
    """Read again only if size or modification time change."""
    return compilation_of(Path(path))
