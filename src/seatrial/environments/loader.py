"""The shared libraries that the loader finds for a program, without running the program, and those of this machine.

Whether the loader can preload our library into a program (ld.so(8), LD_PRELOAD): a statically linked program does not
use the loader, a setuid program ignores preloading, and a program for another architecture cannot load the library. The
attempt does no harm in any of these cases.
"""

from __future__ import annotations

import fnmatch
import platform
import re
import shutil
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from seatrial.environments.asking import ask, ask_once
from seatrial.errors import BuildError, ParseError
from seatrial.model.frozen import Frozen

_IDENT = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_INTERPRETER = 3  # PT_INTERP
_PROGRAM, _POSITION_INDEPENDENT = 2, 3
_MACHINES = {"x86_64": 62, "aarch64": 183}
_MOST_SEGMENTS = 4096
_LISTED = re.compile(r"^\s*(\S+) => (\S.*?) \(0x[0-9a-f]+\)$", re.MULTILINE)


class ElfHead(Frozen):
    """The head of an ELF-64 file (System V gABI): its type, its machine, and (type, offset, bytes) of its segments."""

    kind: int
    machine: int
    segments: tuple[tuple[int, int, int], ...]


def elf_head(stream: BinaryIO) -> ElfHead:
    """The head of a file that was just opened. Raises ValueError if it is not a little-endian 64-bit ELF file."""
    start = stream.read(_HEADER.size)
    if len(start) < _HEADER.size or not start.startswith(_IDENT):
        raise ValueError("it is not a little-endian 64-bit ELF file")
    kind, machine, _, _, table, _, _, _, size, number, *_ = _HEADER.unpack(start)
    if size != _SEGMENT.size or number > _MOST_SEGMENTS:
        raise ValueError("its header is not that of a program or shared object")
    stream.seek(table)
    segments = stream.read(size * number)
    if len(segments) < size * number:
        raise ValueError("it is cut off")
    return ElfHead(kind, machine, tuple((one[0], one[2], one[5]) for one in _SEGMENT.iter_unpack(segments)))


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
    """The loader of a program; None also for other content. Raises OSError."""
    try:
        return interpreter(program)
    except ParseError:
        return None


def interpreter(path: Path) -> str | None:
    """The dynamic loader that a program names (System V ABI, "Program Interpreter"); None: it is linked statically, or
    a shared library.

    Raises ParseError for any other content, OSError if it cannot be read.
    """
    with path.open("rb") as stream:
        try:
            head = elf_head(stream)
        except ValueError as error:
            raise ParseError("ELF", None, str(path), f"not a program or shared library ({error})") from error
        for kind, offset, length in head.segments:
            if kind == _INTERPRETER and length > 1:
                stream.seek(offset)
                return stream.read(min(length, 4096)).rstrip(b"\0").decode("utf-8", "surrogateescape")
    return None


def programs_among(command: Sequence[str], variables: Mapping[str, str]) -> list[Path]:
    """The executable files among the words of a command, including the launcher, each once."""
    found = (shutil.which(word, path=variables.get("PATH")) for word in command)
    return [Path(path) for path in dict.fromkeys(found) if path is not None]


def why_not_preloaded(program: Path) -> str | None:
    """Why no library can be preloaded into this program; None if it can, or if its file does not show it."""
    try:
        mode = program.stat().st_mode
        with program.open("rb") as stream:
            ident = stream.read(len(_IDENT))
            if ident[:4] == _IDENT[:4] and ident != _IDENT:
                return "it is not a 64-bit program"
            stream.seek(0)
            head = elf_head(stream)
    except (OSError, ValueError):
        return None
    if head.machine != _MACHINES.get(platform.machine(), head.machine):
        return "it is for another processor architecture"
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "it runs with another user's rights"
    kinds = {kind for kind, _, _ in head.segments}
    if head.kind in (_PROGRAM, _POSITION_INDEPENDENT) and kinds and _INTERPRETER not in kinds:
        return "it is linked statically"
    return None


_BELOW_ROOT = ("lib", "lib64", "lib/intel64")
_FOLDERS = ("/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/usr/lib", "/opt/intel/oneapi/mkl/latest/lib")
_CACHED = re.compile(r"^\s+\S+ \([^)]*\) => (/.*)$", re.MULTILINE)


def library_files(
    names: Sequence[str], roots: Sequence[str], variables: Mapping[str, str], alternatives: Sequence[str] = ()
) -> Iterator[tuple[Path, str]]:
    """(file that has one of the names, where it was found), best first; a file may appear more than once.

    First the folders of LD_LIBRARY_PATH, then those below the variables in `roots` (set by modules), then the loader's
    cache and the usual folders, with the folders in them that match `alternatives`. `names` may have wildcards; the
    first ones are preferred within a folder.
    """
    for folder in filter(None, variables.get("LD_LIBRARY_PATH", "").split(":")):
        yield from ((path, "LD_LIBRARY_PATH") for path in _in_folder(Path(folder), names))
    for root in filter(variables.get, roots):
        for below in _BELOW_ROOT:
            yield from ((path, root) for path in _in_folder(Path(variables[root]) / below, names))
    cached = _in_loader_cache()
    for name in names:
        matches = re.compile(f".*/{fnmatch.translate(name)}").match
        yield from ((Path(path), "the loader's cache") for path in cached if matches(path))
    for usual in _usual_folders():
        yield from ((path, str(usual)) for path in _in_folder(usual, names))
        for alternative in alternatives:
            for beside in sorted(usual.glob(alternative)):
                yield from ((path, str(beside)) for path in _in_folder(beside, names))


def _usual_folders() -> Iterator[Path]:
    """The default library folders, Debian's for this architecture first."""
    yield from map(Path, (f"/usr/lib/{platform.machine()}-linux-gnu", *_FOLDERS))


def _in_folder(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        yield from sorted(folder.absolute().glob(name))


def _in_loader_cache() -> list[str]:
    """The files that `ldconfig -p` lists (ldconfig(8)); none without such a cache."""
    ldconfig = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if ldconfig is None:
        return []
    try:
        return _CACHED.findall(ask_once([ldconfig, "-p"]).stdout)
    except BuildError:
        return []
