"""Which machine a command speaks of: `--from KIND=FILE[#n]`, as often as needed, and `--live`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import READERS, Dump, check_kind, survey_dumps
from seatrial.machine.live import survey_live
from seatrial.machine.readers.dump import MAX_BYTES
from seatrial.model.machine import Machine

_PICK = re.compile(r"(?P<file>.*)#(?P<pick>[0-9]{1,6})\Z", re.DOTALL)
_STDIN = "-"


@dataclass(frozen=True, slots=True)
class Sources:
    """What the command line names. Without a dump the machine is this one; with one, only `live` adds this one."""

    dumps: tuple[str, ...] = ()
    live: bool = False

    def machine(self) -> Machine:
        """One machine of all of them. Raises UsageError for a file that is absent or damaged; nothing is printed."""
        dumps = [_read(source) for source in self.dumps]
        surveys = survey_dumps(dumps)
        if self.live or not dumps:
            surveys = [*survey_live(), *surveys]
        return assemble(surveys)


def _read(source: str) -> Dump:
    """The dump that `KIND=FILE[#n]` names; FILE may be "-" for standard input."""
    kind, equals, name = source.partition("=")
    if not equals or not name:
        example = "seatrial discover --from nvidia-smi-topo=topo.txt"
        raise UsageError(
            f"--from {source!r} is not of the form KIND=FILE",
            f"for example: {example}; the kinds are {', '.join(sorted(READERS))}",
        )
    check_kind(kind)
    match = _PICK.match(name)
    if match is None or Path(name).exists():
        return Dump(kind, name, _bytes(name))
    return Dump(kind, match["file"], _bytes(match["file"]), int(match["pick"]))


def _bytes(name: str) -> bytes:
    """At most one byte more than any reader takes, so that an endless file ends in an error."""
    try:
        if name == _STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{name!r} cannot be read: {why}", "give the file with the tool's output") from error


def all_sources(dumps: Sequence[str] | None, live: bool) -> Sources:
    """The sources that a command's options name."""
    return Sources(tuple(dumps or ()), live)
