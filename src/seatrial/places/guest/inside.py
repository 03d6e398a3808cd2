"""Runs a program of this machine in a guest: what stands before the program on the command line of a repeat. And files
that are brought into a guest, and fetched from it, as tar archives. What a guest sends is not trusted.

It brings the files that the command names and the guest does not have yet, runs the command there with our standard
streams, and fetches what it wrote into the folder of the repeat. If this process ends, so does the command.

    KIND PLACE THERE CONTROL [--folder HERE THERE]... [--library HERE]... [--set NAME VALUE]... -- COMMAND...

The first --folder is that of the repeat. With libraries, the first of which is the dynamic loader, the command is
started by this loader and uses no library of the guest.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from seatrial.errors import Exit, SeatrialError, UsageError
from seatrial.places.guest.qemu import GuestError
from seatrial.places.guest.session import Channel, Connection, Streams
from seatrial.processes.own_folder import own_folder

_MOST_OUT_B = 1 << 33


def pack(source: Path, name: str, leave_out: Collection[str] = ()) -> IO[bytes]:
    """A tar archive with a file or folder under this name. `leave_out`: entries of the folder. Raises UsageError."""
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever asked for it

    def ours(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return None if PurePosixPath(member.name).name in leave_out else member

    try:
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
            tar.add(source, name, filter=ours)
    except OSError as error:
        archive.close()
        raise UsageError(f"{source} cannot be brought into the guest: {error.strerror or error}") from error
    archive.seek(0)
    return archive


def unpack(guest: Connection, archive: IO[bytes], folder: str) -> None:
    """Unpack it in a folder of the guest. Raises GuestError."""
    with tempfile.TemporaryFile() as said:
        streams = Streams(archive.fileno(), said.fileno(), said.fileno())
        status = guest.run(["tar", "-x", "-o", "-f", "-", "-C", folder], streams, {}, "/")
        if status:
            raise GuestError(f"files cannot be brought into {folder} of the guest: {_said(said)}")


def fetch(guest: Connection, place: str, target: Path) -> None:
    """Write a file or folder of the guest to `target`, which must not be there. Raises GuestError, UsageError."""
    with tempfile.TemporaryFile() as archive, tempfile.TemporaryFile() as said:
        name = PurePosixPath(place)
        streams = Streams(None, archive.fileno(), said.fileno())
        status = guest.run(["tar", "-c", "-f", "-", "-C", str(name.parent), "--", name.name], streams, {}, "/")
        if status:
            raise GuestError(f"{place} of the guest cannot be fetched: {_said(said)}")
        archive.seek(0)
        unpack_fetched(archive, name.name, target)


def unpack_fetched(archive: IO[bytes], name: str, target: Path) -> None:
    """Write the files and folders of an archive from a guest to `target`, which must not be there.

    The guest is not trusted: links, devices and names outside are refused. Raises UsageError, GuestError.
    """
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is already there", "name another path for what is fetched, or remove it")
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or path.parts[:1] != (name,):
                    raise GuestError(f"the guest sent a file {member.name[:200]!r}, which was not asked for")
                place = target.joinpath(*path.parts[1:])
                if member.isdir():
                    place.mkdir()
                elif member.isreg() and member.size <= _MOST_OUT_B:
                    _write_file(tar, member, place)
                else:
                    raise GuestError(f"{member.name[:200]!r} of the guest is neither a file nor a folder")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise GuestError(f"what the guest sent is damaged: {error}", "try again") from error
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from error


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    source = tar.extractfile(member)
    assert source is not None  # noqa: S101 - it is a regular file
    with place.open("xb") as file:
        while piece := source.read(1 << 20):
            file.write(piece)
    place.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return " ".join(file.read(2000).decode("utf-8", "replace").split()) or "no reason given"


SEEN = "guest.json"
"""The file in the folder of a repeat."""
STATE = ("cat", "/proc/stat", "/proc/meminfo")
"""Prints what is read here."""
_TICKS_PER_S = 100
"""USER_HZ, which Linux has fixed on x86."""
_STEAL = re.compile(rb"^cpu(?: +\d+){7} +(\d+)", re.MULTILINE)
_MEMORY = re.compile(rb"^MemTotal: +(\d+) kB$", re.MULTILINE)
_KEYS = frozenset({"steal_s", "memory_before_B", "memory_after_B"})


def write_counters(directory: Path, before: bytes, after: bytes) -> None:
    """Keep what changed between two outputs of `STATE`. Raises OSError."""
    found: dict[str, float] = {}
    steal = [match and int(match[1]) for match in (_STEAL.search(before), _STEAL.search(after))]
    if steal[0] is not None and steal[1] is not None:
        found["steal_s"] = max(0, steal[1] - steal[0]) / _TICKS_PER_S
    for name, text in (("memory_before_B", before), ("memory_after_B", after)):
        if (match := _MEMORY.search(text)) is not None:
            found[name] = int(match[1]) * 1024
    (directory / SEEN).write_text(json.dumps(found))


def guest_counters(directory: Path) -> dict[str, float]:
    """What was kept; {} if nothing was, or it is damaged."""
    try:
        found = json.loads((directory / SEEN).read_bytes())
        return {name: float(value) for name, value in found.items() if name in _KEYS}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


_OURS = frozenset({"stdout", "stderr", SEEN})


@dataclass
class Request:
    """The arguments."""

    channel: Channel
    folders: list[tuple[str, str]] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Request:
        """Raises ValueError, IndexError."""
        found, rest = cls(Channel(*arguments[:4])), list(arguments[4:])
        while (option := rest.pop(0)) != "--":
            if option == "--library":
                found.libraries.append(rest.pop(0))
            else:
                first, second = rest.pop(0), rest.pop(0)
                if option == "--folder":
                    found.folders.append((first, second))
                else:
                    found.variables[first] = second
        found.command = rest
        return found

    def files(self) -> Iterator[tuple[Path, str]]:
        """The files of this machine that the command names, and where they are in the guest."""
        for word in self.command:
            for here, there in self.folders[1:]:
                if word.startswith(f"{there}/") and (file := Path(here + word[len(there) :])).is_file():
                    yield file, word
        for library in self.libraries:
            yield Path(library), self.place_of(library)

    def place_of(self, library: str) -> str:
        """Where a library is in the guest: in a folder for all of these together."""
        key = zlib.crc32("\0".join(self.libraries).encode("utf-8", "surrogateescape"))
        return f"{self.channel.there}/libraries-{key:08x}/{PurePosixPath(library).name}"

    def words(self) -> list[str]:
        """The command as it runs in the guest."""
        if not self.libraries:
            return self.command
        loader = self.place_of(self.libraries[0])
        return [loader, "--library-path", str(PurePosixPath(loader).parent), *self.command]


def main() -> None:
    """The exit status is that of the command."""
    try:
        status = _run(Request.of(sys.argv[1:]))
    except (SeatrialError, OSError) as error:
        sys.stderr.write(f"the guest: {error}\n")
        status = Exit.LAUNCHER
    sys.stdout.flush()
    os._exit(status)


def _run(request: Request) -> int:
    with request.channel.opened() as guest:
        _bring_missing(guest, dict(request.files()))
        here, there = request.folders[0] if request.folders else ("", request.channel.there)
        if here:
            with pack(Path(here), PurePosixPath(there).name, leave_out=_OURS) as archive:
                unpack(guest, archive, str(PurePosixPath(there).parent))
        before = output(guest, STATE)
        status = guest.run(request.words(), Streams(None, 1, 2), request.variables, there)
        after = output(guest, STATE)
        if here:
            _fetch_repeat(guest, there, Path(here))
            write_counters(Path(here), before, after)
            output(guest, ("rm", "-rf", "--", there))
    return status


def _bring_missing(guest: Connection, files: dict[Path, str]) -> None:
    """A file gets its name in the guest when all of it is there."""
    if not files:
        return
    script = 'for file; do test -e "$file" || echo "$file"; done'
    missing = set(output(guest, ("sh", "-c", script, "sh", *files.values())).decode().splitlines())
    for file, place in files.items():
        if place in missing:
            path = PurePosixPath(place)
            output(guest, ("mkdir", "-p", "--", str(path.parent)))
            with pack(file.resolve(), f".{path.name}.{os.getpid()}") as archive:
                unpack(guest, archive, str(path.parent))
            output(guest, ("mv", "--", f"{path.parent}/.{path.name}.{os.getpid()}", place))


def _fetch_repeat(guest: Connection, there: str, here: Path) -> None:
    """What the command wrote, without the streams of this process, which are in the same folder."""
    with own_folder(here, ".fetched-") as private:
        fetched = private / "all"
        fetch(guest, there, fetched)
        for entry in fetched.iterdir():
            if entry.name not in _OURS:
                target = here / entry.name
                if target.is_dir() and not target.is_symlink():
                    shutil.rmtree(target)
                entry.replace(target)


def output(guest: Connection, words: Sequence[str]) -> bytes:
    """What a short command of the guest prints. Raises GuestError if it fails."""
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
        status = guest.run(words, Streams(None, printed.fileno(), said.fileno()), {}, "/")
        for file in (printed, said):
            file.seek(0)
        if status:
            text = " ".join(said.read(2000).decode("utf-8", "replace").split())
            raise GuestError(f"{words[0]} in the guest: {text or f'exit status {status}'}")
        return printed.read()
