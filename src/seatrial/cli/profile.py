"""`seatrial profile`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from seatrial.cli.output import message, write_file
from seatrial.errors import UsageError
from seatrial.interface.profile import ProfileResult, profile, profile_of_tables
from seatrial.profiler.capture.run import ProbeSettings
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text

_STDERR = 2


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """What was asked for on the command line. `tables`: a folder whose tables are read, with no command run."""

    command: tuple[str, ...]
    results: Path
    settings: ProbeSettings
    page: Path | None = None
    tables: Path | None = None


def profile_command(request: ProfileRequest, *, as_json: bool) -> int:
    """Run a command under the profiler, or read what an earlier one left; the exit status of CONTRACT."""
    if request.tables is not None and request.command:
        raise UsageError("--tables reads what an earlier run left, and a command was given too", "give one of them")
    if request.tables is not None:
        found = profile_of_tables(request.tables)
    else:
        found = profile(
            request.command,
            results=request.results,
            io_s=request.settings.io_s,
            wait_every=request.settings.wait_every,
            trace_B=request.settings.trace_B,
            stdout=_STDERR if as_json else None,
        )
    if as_json:
        _print_pieces(found.json())
    else:
        _print_text(found)
    if request.page is not None:
        write_file(request.page, profile_page(found.profiles))
        message(f"the page: {request.page.resolve()}")
    return 0 if found.is_ok else 3


def _print_text(found: ProfileResult) -> None:
    for one in found.profiles:
        message(profile_text(one, colour=sys.stderr.isatty()))
    for line in found.trace.summary if found.trace is not None else ():
        message(f"trace: {line}")
    if not found.is_ok:
        message(f"\n{found.state}: {found.reason}")
    if found.folder is not None:
        message(f"\nkept: {found.folder} (profile.json, Parquet, tables); -o FILE.html writes the page")


def _print_pieces(pieces: Iterable[str]) -> None:
    """One JSON object on stdout, as it is made."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.write("\n")
