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
    "bin",
    "dev",
    "etc",
    "home",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
)
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/succeed\n",
    "etc/group": "root:x:0:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/resolv.conf": "",
    "etc/os-release": "ID=tiny\n",
}


def static_program() -> bytes | None:
    """An ELF-64 file that exits with STATUS (System V ABI, "Object Files"); None for an unknown architecture."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return None
    machine, code = known
    size = _HEADERS_B + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, _ADDRESS + _HEADERS_B, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _ADDRESS, _ADDRESS, size, size, 0x1000)
    return ident + header + segment + code


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
