"""The shared libraries that the loader finds for a program, without running the program."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from pathlib import Path

from seatrial.environments.asking import ask
from seatrial.errors import BuildError

_INTERPRETER = 3  # PT_INTERP
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_LISTED = re.compile(r"^\s*(\S+) => (\S.*?) \(0x[0-9a-f]+\)$", re.MULTILINE)
_MOST_SEGMENTS = 256


def libraries_of(program: Path, variables: Mapping[str, str], loader: str | None = None) -> dict[str, str]:
    """Name -> path of the libraries that the loader finds for a program with these environment variables (glibc and
    musl: `LOADER --list PROGRAM`). Empty for scripts, static programs, and if the loader cannot list them. `loader` is
    for libraries, which name none."""
    try:
        loader = interpreter_of(program) or loader
        if loader is None:
            return {}
        answer = ask([loader, "--list", str(program)], environment=variables)
    except (OSError, BuildError):
        return {}
    return listed_libraries(answer.stdout)


def listed_libraries(text: str) -> dict[str, str]:
    """Name -> path of the libraries in what a loader lists."""
    return dict(_LISTED.findall(text))


def interpreter_of(program: Path) -> str | None:
    """The loader of an ELF-64 program (System V ABI, "Program Interpreter"), or None. Raises OSError."""
    with program.open("rb") as stream:
        start = stream.read(_HEADER.size)
        if len(start) < _HEADER.size or start[:6] != b"\x7fELF\x02\x01":
            return None
        fields = _HEADER.unpack(start)
        table, size, number = fields[4], fields[8], fields[9]
        if size != _SEGMENT.size or number > _MOST_SEGMENTS:
            return None
        stream.seek(table)
        segments = stream.read(size * number)
        for begin in range(0, len(segments) - size + 1, size):
            kind, _, offset, _, _, length, _, _ = _SEGMENT.unpack_from(segments, begin)
            if kind == _INTERPRETER and 1 < length <= 4096:
                stream.seek(offset)
                return stream.read(length).rstrip(b"\0").decode("utf-8", "surrogateescape")
    return None
