"""Whether the loader can preload our library into a program (ld.so(8), LD_PRELOAD).

A statically linked program does not use the loader, a setuid program ignores preloading, and a program for another
architecture cannot load the library. The attempt does no harm in any of these cases.
"""

from __future__ import annotations

import platform
import shutil
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_HEADER = struct.Struct("<HHIQQQIHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_INTERPRETER = 3
_PROGRAM, _POSITION_INDEPENDENT = 2, 3
_MACHINES = {"x86_64": 62, "aarch64": 183}
_MOST_SEGMENTS = 4096


def programs_among(command: Sequence[str], variables: Mapping[str, str]) -> list[Path]:
    """The executable files among the words of a command, including the launcher, each once."""
    found: dict[Path, None] = {}
    for word in command:
        path = shutil.which(word, path=variables.get("PATH"))
        if path is not None:
            found.setdefault(Path(path))
    return list(found)


def why_not_preloaded(program: Path) -> str | None:
    """Why no library can be preloaded into this program; None if it can, or if its file does not show it."""
    try:
        mode = program.stat().st_mode
        with program.open("rb") as stream:
            ident = stream.read(16)
            if ident[:4] != b"\x7fELF":
                return None
            if ident[4:6] != b"\x02\x01":
                return "it is not a 64-bit program"
            kind, machine, _, _, segments, _, _, _, size, count = _HEADER.unpack(stream.read(_HEADER.size))
            stream.seek(segments)
            table = stream.read(min(count, _MOST_SEGMENTS) * size) if size == _SEGMENT.size else b""
    except (OSError, struct.error, ValueError):
        return None
    if machine != _MACHINES.get(platform.machine(), machine):
        return "it is for another processor architecture"
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "it runs with another user's rights"
    kinds = {segment[0] for segment in _SEGMENT.iter_unpack(table)}
    if kind in (_PROGRAM, _POSITION_INDEPENDENT) and kinds and _INTERPRETER not in kinds:
        return "it is linked statically"
    return None
