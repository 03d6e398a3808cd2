"""Runs a program of this machine in a guest: what stands before the program on the command line of a repeat.

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
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from seatrial.errors import Exit, SeatrialError
from seatrial.places.guest.files import fetch, pack, unpack
from seatrial.places.guest.qemu import GuestError
from seatrial.places.guest.session import Channel, Connection, Streams

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
    with tempfile.TemporaryDirectory(dir=here, prefix=".fetched-") as private:
        fetched = Path(private, "all")
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
