"""A root of nothing but one static program of a few instructions, to try runtimes with."""

from __future__ import annotations

import platform
import struct
from pathlib import Path

PROGRAM = "/bin/succeed"
STATUS = 42
"""The exit status of the program, which no runtime uses itself."""

_ADDRESS = 0x400000
_HEADERS_B = 64 + 56
_MACHINES = {
    # mov edi, STATUS; mov eax, 231 (exit_group); syscall
    "x86_64": (62, b"\xbf" + struct.pack("<I", STATUS) + b"\xb8\xe7\x00\x00\x00\x0f\x05"),
    # mov x0, #STATUS; mov x8, #94 (exit_group); svc #0
    "aarch64": (183, struct.pack("<III", 0xD2800000 | STATUS << 5, 0xD2800BC8, 0xD4000001)),
}
_FOLDERS = (
    *("bin", "dev", "etc", "home", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp", "usr", "var"),
)
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/succeed\n",
    "etc/group": "root:x:0:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/resolv.conf": "",
    "etc/os-release": "ID=tiny\n",
}


def static_program(before: bytes = b"") -> bytes | None:
    """An ELF-64 file that exits with STATUS, after these instructions (System V ABI, "Object Files"); None for an
    unknown architecture."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return None
    machine, ends = known
    code = before + ends
    size = _HEADERS_B + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, _ADDRESS + _HEADERS_B, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _ADDRESS, _ADDRESS, size, size, 0x1000)
    return ident + header + segment + code


_TIMED = {
    # clock_gettime(CLOCK_MONOTONIC, sp - 16); write(1, sp - 16, 16); exit_group(STATUS)
    "x86_64": b"\xb8\xe4\x00\x00\x00\xbf\x01\x00\x00\x00\x48\x8d\x74\x24\xf0\x0f\x05"
    b"\xb8\x01\x00\x00\x00\xbf\x01\x00\x00\x00\xba\x10\x00\x00\x00\x0f\x05",
    "aarch64": struct.pack(
        *("<10I", 0xD2800020, 0xD10043E1, 0xD2800E28, 0xD4000001),
        *(0xD2800020, 0xD10043E1, 0xD2800202, 0xD2800808, 0xD4000001, 0xD503201F),
    ),
}
"""The first instructions of the program that writes the time (Linux, clock_gettime(2), write(2))."""


def timed_program() -> bytes | None:
    """An ELF-64 file that writes the time at its first instructions, as the 16 bytes of a timespec of CLOCK_MONOTONIC,
    to its standard output, and exits with STATUS; None for an unknown architecture."""
    return static_program(_TIMED.get(platform.machine(), b""))


_HOLDING = {
    # write(1, getpid(), 4); read(0, sp - 16, 1); exit_group(STATUS)
    "x86_64": b"\xb8\x27\x00\x00\x00\x0f\x05\x89\x44\x24\xf0\x48\x8d\x74\x24\xf0"
    b"\xb8\x01\x00\x00\x00\xbf\x01\x00\x00\x00\xba\x04\x00\x00\x00\x0f\x05"
    b"\xb8\x00\x00\x00\x00\xbf\x00\x00\x00\x00\xba\x01\x00\x00\x00\x0f\x05",
    "aarch64": struct.pack(
        *("<13I", 0xD2801588, 0xD4000001, 0xD10043E1, 0xB9000020),
        *(0xD2800020, 0xD2800082, 0xD2800808, 0xD4000001),
        *(0xD2800000, 0xD2800022, 0xD28007E8, 0xD4000001, 0xD503201F),
    ),
}
"""The first instructions of the program that holds a container (Linux, getpid(2), write(2), read(2))."""


def holding_program() -> bytes | None:
    """An ELF-64 file that writes its process id, 4 bytes in the order of this machine, to its standard output, waits
    for the end of its standard input, and exits with STATUS; None for an unknown architecture."""
    return None if platform.machine() not in _HOLDING else static_program(_HOLDING[platform.machine()])


def write_root(folder: Path) -> bool:
    """Write the root into an existing folder; False if no program is known for this processor. Raises OSError."""
    program = static_program()
    if program is None:
        return False
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="ascii")
    path = folder / PROGRAM.lstrip("/")
    path.write_bytes(program)
    path.chmod(0o755)
    return True
