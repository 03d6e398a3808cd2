"""The options of `seatrial profile`; the command is loaded when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.options import (
    RESULTS,
    Format,
    FormatOption,
    ResultsOption,
    quiet_option,
)


def profile(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="the command to profile, such as mpirun -n 8 ./app"),
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
        int,
        typer.Option("--rows", metavar="N", help="rows of each thread's table of calls, 64 B each; a power of two"),
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
        Path | None,
        typer.Option("--tables", metavar="DIR", help="run nothing; read the tables of an earlier run"),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE.html", help="also write an HTML page")] = None,
    results: ResultsOption = RESULTS,
    quiet: Annotated[bool, quiet_option("no profile, only problems; it is stored, and in the page or JSON")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """The program is not modified or rebuilt; the profile is printed on stderr."""
    from seatrial.cli.profile import print_include_folder, profile_command

    if is_include:
        print_include_folder()
        return
    status = profile_command(
        command or (),
        results,
        io_every=io_every,
        wait_every=wait_every,
        trace=trace,
        paths=paths,
        rows=rows,
        has_counters=has_counters,
        has_openmp=has_openmp,
        tables=tables,
        output=output,
        quiet=quiet,
        as_json=output_format is Format.JSON,
    )
    raise typer.Exit(status)
