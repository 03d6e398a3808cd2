"""`seatrial profile`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from seatrial.cli.output import message, print_painted, style_of, write_file
from seatrial.errors import UsageError
from seatrial.interface.profile import ProfileResult, profile, profile_of_tables
from seatrial.interface.regions import include_folder
from seatrial.model.units import parse_bytes, parse_seconds
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text

_STDERR = 2


def profile_command(
    command: Sequence[str],
    results: Path,
    *,
    io_every: str,
    wait_every: int,
    trace: str | None,
    paths: int,
    rows: int,
    has_counters: bool,
    has_openmp: bool,
    tables: Path | None,
    output: Path | None,
    quiet: bool = False,
    as_json: bool,
) -> int:
    """Profile a command, or read the tables of an earlier run; the exit status of CONTRACT. `quiet` prints problems
    only."""
    io_s, trace_B = parse_seconds(io_every), 0 if trace is None else parse_bytes(trace)
    if tables is not None and command:
        raise UsageError(
            "--tables reads the tables of an earlier run, but a command was also given", "give one of them"
        )
    if tables is not None:
        found = profile_of_tables(tables)
    else:
        stdout = _STDERR if as_json else None
        found = profile(
            command,
            results=results,
            io_s=io_s,
            wait_every=wait_every,
            trace_B=trace_B,
            paths=paths,
            rows=rows,
            has_counters=has_counters,
            has_openmp=has_openmp,
            stdout=stdout,
        )
    if as_json:
        _print_pieces(found.json())
    else:
        _print_text(found, quiet=quiet)
    if output is not None:
        write_file(output, profile_page(found.profiles))
        if not quiet:
            message(f"page: {output.resolve()}")
    return 0 if found.is_ok else 3


def print_include_folder() -> None:
    """The folder of `seatrial_regions.h`, for a compiler's -I."""
    sys.stdout.write(f"{include_folder()}\n")


def _print_text(found: ProfileResult, *, quiet: bool) -> None:
    if not quiet:
        for one in found.profiles:
            print_painted(profile_text(one, style_of(sys.stderr)))
        for line in found.trace.summary if found.trace is not None else ():
            message(f"trace: {line}")
    if not found.is_ok:
        message(f"\n{found.state}: {found.reason}")
    if found.folder is not None and not quiet:
        message(f"\nprofile: {found.folder} (profile.json, Parquet, tables); -o FILE.html writes a page")


def _print_pieces(pieces: Iterable[str]) -> None:
    """One JSON object on stdout, piece by piece."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.write("\n")
