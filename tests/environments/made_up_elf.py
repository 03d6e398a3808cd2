"""Made-up shared libraries: just enough of an ELF file to be recognised, and nothing that could be loaded."""

from __future__ import annotations

import struct
from collections.abc import Sequence

X86_64, AARCH64 = 62, 183
_HEADERS_AT, _TABLES_AT, _BASE = 64, 256, 0x10000


def shared_object(
    defined: Sequence[str] = (),
    used: Sequence[str] = (),
    needed: Sequence[str] = (),
    soname: str = "",
    machine: int = X86_64,
) -> bytes:
    """The bytes of a library with these symbols."""
    strings = b"\0"

    def string(text: str) -> int:
        nonlocal strings
        at = len(strings)
        strings += text.encode() + b"\0"
        return at

    entries = [(1, string(name)) for name in needed] + ([(14, string(soname))] if soname else [])
    names = [*(("", 0),), *((name, 0) for name in used), *((name, 7) for name in defined)]
    symbols = b"".join(struct.pack("<IBBHQQ", string(name) if name else 0, 18, 0, at, 0, 0) for name, at in names)
    strings_at = _TABLES_AT + len(symbols)
    dynamic_at = strings_at + len(strings)
    entries += [(6, _BASE + _TABLES_AT), (5, _BASE + strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", tag, value) for tag, value in entries)
    size = dynamic_at + len(dynamic)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, _HEADERS_AT, size, 0, 64, 56, 2, 64, 4, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 4096)
    of_dynamic = struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, _BASE + dynamic_at, 0, len(dynamic), len(dynamic), 8)
    head = (ident + header + load + of_dynamic).ljust(_TABLES_AT, b"\0")
    return (
        head
        + symbols
        + strings
        + dynamic
        + b"".join(
            struct.pack("<IIQQQQIIQQ", 0, kind, 0, _BASE + at, at, length, link, 0, 8, entry)
            for kind, at, length, link, entry in (
                (0, 0, 0, 0, 0),
                (11, _TABLES_AT, len(symbols), 2, 24),
                (3, strings_at, len(strings), 0, 0),
                (6, dynamic_at, len(dynamic), 2, 16),
            )
        )
    )
