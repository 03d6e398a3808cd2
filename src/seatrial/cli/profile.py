"""`seatrial profile`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import (
    RESULTS,
    Output,
    PageOption,
    ResultsOption,
    WaitQuietOption,
    message,
    print_painted,
    style_of,
    write_file,
)
from seatrial.errors import UsageError
from seatrial.interface.profile import ProfileResult, profile, profile_of_tables
from seatrial.model.secrets import masked_words
from seatrial.model.units import parse_bytes, parse_seconds
from seatrial.profiler.capture.run import INCLUDE

_STDERR = 2


class StatusOf(StrEnum):
    """Whose exit status `profile` ends with."""

    PROGRAM = "program"
    LAB = "lab"


@command("profile", context_settings={"allow_interspersed_args": False})
def _profile(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="the command to profile, such as mpirun -n 8 ./app")
    ] = None,
    io_every: Annotated[
        str, typer.Option("--io", metavar="TIME", help="sampling interval of each rank's input and output; 0s: off")
    ] = "200ms",
    wait_every: Annotated[
        int,
        typer.Option(
            "--wait",
            metavar="N",
            help="insert a barrier before every N-th collective, to measure waiting; 0: off",
            min=0,
        ),
    ] = 0,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="SIZE", help="record every call, up to SIZE per rank, for replay with SimGrid"),
    ] = None,
    paths: Annotated[
        int,
        typer.Option(
            "--paths",
            metavar="N",
            help="record the N innermost calls that led to each MPI call (15 ns, and 9 ns for each of them); 0: off",
        ),
    ] = 0,
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", help="rows of each thread's table of calls, 64 B each; a power of two")
    ] = 4096,
    has_counters: Annotated[
        bool,
        typer.Option(
            "--counters", help="count cycles, instructions, cache misses and floating-point operations of each rank"
        ),
    ] = False,
    has_openmp: Annotated[
        bool,
        typer.Option(
            "--openmp", help="record OpenMP regions and waiting threads, if the runtime has OMPT (LLVM, Intel)"
        ),
    ] = False,
    is_include: Annotated[
        bool, typer.Option("--include", help="print the folder of seatrial_regions.h, which names parts of a program")
    ] = False,
    tables: Annotated[
        Path | None, typer.Option("--tables", metavar="DIR", help="run nothing; read the tables of an earlier run")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="DIR", help="also write the rows as Parquet files to a folder")
    ] = None,
    whose: Annotated[
        StatusOf,
        typer.Option("--status", help="the exit status: of the program; or of seatrial, 3 for a program that failed"),
    ] = StatusOf.LAB,
    probes: Annotated[
        list[str] | None,
        typer.Option("--probe", metavar="NAME", help="measure beside the command: power (energy, power over time)"),
    ] = None,
    wait_quiet: WaitQuietOption = None,
    output: PageOption = None,
    results: ResultsOption = RESULTS,
    *,
    out: Annotated[
        Output,
        {
            "quiet": "no profile, only problems; it is stored, and in the page or JSON",
            "verbose": "also calls, sizes, call sites, ranks: all tables of the page",
        },
    ],
) -> int:
    """The program is not modified or rebuilt; the profile is printed on stderr."""
    if is_include:
        print(INCLUDE)
        return 0
    io_s, trace_B = parse_seconds(io_every), 0 if trace is None else parse_bytes(trace)
    if tables is not None and words:
        raise UsageError(
            "--tables reads the tables of an earlier run, but a command was also given", "give one of them"
        )
    if tables is not None:
        found = profile_of_tables(tables, parquet)
    else:
        found = profile(
            words or (),
            wait_quiet=wait_quiet,
            results=results,
            io=io_s,
            wait=wait_every,
            trace=trace_B,
            paths=paths,
            rows=rows,
            counters=has_counters,
            openmp=has_openmp,
            parquet=parquet,
            probes=probes or (),
            stdout=_STDERR if out.as_json else None,
        )
    if out.as_json:
        _print_pieces(found.json())
    else:
        _print_text(found, out, masked_words(words or ()))
    if output is not None:
        from seatrial.report.profile.page import profile_page

        write_file(output, profile_page(found.profiles))
        out.announce(f"page: {output.resolve()}")
    if whose is StatusOf.PROGRAM and found.exit_status is not None:
        return found.exit_status
    return 0 if found.is_ok else 3


def _print_text(found: ProfileResult, out: Output, command: Sequence[str]) -> None:
    from seatrial.report.profile.text import profile_text  # loaded after the command
    from seatrial.report.profile.words import without_mpi

    if not out.quiet:
        for one in found.profiles:
            print_painted(profile_text(one, style_of(sys.stderr), out.detail))
        for line in found.trace.summary if found.trace is not None else ():
            message(f"trace: {line}")
    if not found.is_ok:
        message(f"\n{found.state}: {found.reason}")
        if found.state == "unsupported" and command and not out.quiet:
            message(f"next: {without_mpi(command)}")
    if found.folder is not None and not out.quiet:
        message(f"\nprofile: {found.folder} (profile.json, tables); -v shows them, -o FILE.html writes a page")


def _print_pieces(pieces: Iterable[str]) -> None:
    """One JSON object on stdout, piece by piece."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.write("\n")
