"""From points to experiments that can run: environments are found and programs are built before any repeat, or ahead of
a run, all that a study needs, each once; a failure stops no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from seatrial.engine.kinds import KINDS
from seatrial.engine.listener import Listener
from seatrial.engine.node_settings import with_settings
from seatrial.engine.ready import Ready, Refused
from seatrial.engine.starting import why_no_copies
from seatrial.environments.build import Built, Environment, build
from seatrial.environments.chosen import Environments, absent_environment
from seatrial.errors import BuildError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.copies import COPIES
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.container import BROUGHT
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import VM
from seatrial.model.results.sample import Outcome
from seatrial.model.secrets import masked_parameters
from seatrial.model.spelling import settings
from seatrial.places.contained import Contained
from seatrial.places.containers.fitted import Containers
from seatrial.places.rank_helpers import make_helpers
from seatrial.plan.points import Point


def prepare(
    points: Sequence[Point], environments: Environments, machine_key: str, listener: Listener
) -> tuple[Ready | Refused, ...]:
    """Build every program once, in the order of the points; a point whose program cannot be built is refused."""
    return tuple(
        {item.experiment.id: item for item in prepared_points(points, environments, machine_key, listener)}.values()
    )


class Preparation:
    """Points are prepared one after another; what they share is built, hashed and looked up once.

    Without `builds`, only programs that must report what identifies their experiments are built; none can be run.
    """

    def __init__(
        self, environments: Environments, machine_key: str, listener: Listener, *, builds: bool = True
    ) -> None:
        self._kinds = {declared: kind(environments, machine_key, listener, builds) for declared, kind in KINDS.items()}

    def of(self, point: Point) -> Ready | Refused:
        """The experiment of a point, with its program built or found."""
        chosen = point.environment
        if not chosen.machine_settings:
            return self._of(point)
        bare = replace(point, environment=replace(chosen, machine_settings=()))
        return with_settings(self._of(bare), chosen)

    def _of(self, point: Point) -> Ready | Refused:
        kind = self._kinds[type(point.benchmark.program)]
        if (why := not_in_a_container(point, runs_in_images=kind.runs_in_images)) is not None:
            return kind.refused(point, Outcome.unsupported("container", why), absent_environment(point.environment))
        if (why := _not_in_a_guest(point)) is not None:
            return kind.refused(point, Outcome.unsupported(VM, why), absent_environment(point.environment))
        if (why := why_no_copies(point)) is not None:
            return kind.refused(point, Outcome.unsupported(COPIES, why), absent_environment(point.environment))
        return kind.identify(point, point.benchmark.program)


def _not_in_a_guest(point: Point) -> str | None:
    """Why a program cannot be measured in the guest that its point chooses; None if it can, or chooses none."""
    if point.environment.vm is None:
        return None
    program = point.benchmark.program
    if program.source is None:
        return "only programs of seatrial are brought into guests"
    if program.library is not None:
        return f"its {program.library} library is found on this machine, not in the guest"
    if getattr(program, "starts_containers", False) or point.environment.container is not None:
        return "containers in a guest were never tried"
    if "folder" in point.parameters:
        return "its folder is one of this machine"
    if point.is_profiled or point.probes:
        return "its probes read this machine, not the guest"
    if len(point.hosts) > 1:
        return "ranks in a guest run in one guest only"
    return None


def not_in_a_container(point: Point, *, runs_in_images: bool) -> str | None:
    """Why a program cannot be measured in the container that its point chooses; None if it can, or chooses none.
    `runs_in_images`: programs of its kind are looked up there."""
    if point.environment.container is None:
        return None
    program = point.benchmark.program
    if program.source is None and not runs_in_images:
        return (
            "programs of this kind are not looked up in images; run it by its path there with the benchmark command, "
            "in a study file"
        )
    if program.source is None and point.environment.container_build == BROUGHT:
        return f"an application of an image uses the C library of the image, not environment.container_build={BROUGHT}"
    if program.library == "gpu":
        return "GPU programs are not started in containers"
    if program.library is not None and point.environment.container_build == BROUGHT:
        return f"its {program.library} library is that of the image; it is not brought with the host's C library"
    return None


def prepared_points(
    points: Sequence[Point], environments: Environments, machine_key: str, listener: Listener, *, builds: bool = True
) -> list[Ready | Refused]:
    """The same, one for each point: two points may be one experiment (`auto` and the value that it resolves to). See
    `Preparation` for `builds`."""
    preparation = Preparation(environments, machine_key, listener, builds=builds)
    prepared = [preparation.of(point) for point in points]
    refuse_secret_differences(prepared)
    return prepared


def refuse_secret_differences(prepared: Sequence[Ready | Refused]) -> None:
    """Raise UsageError for two points that only a masked word distinguishes: they would be one experiment."""
    first: dict[str, Ready | Refused] = {}
    for item in prepared:
        other = first.setdefault(item.experiment.id, item)
        masked = item.experiment.parameters != item.point.parameters
        if (
            masked
            and masked_parameters(other.point.parameters) == masked_parameters(item.point.parameters)
            and (other.point.parameters != item.point.parameters)
        ):
            raise UsageError(
                f"two points of {item.point.benchmark.name} differ only in an argument that is masked as a secret: "
                f"{settings(item.experiment.parameters)}",
                "write it in a file, or under a name that does not suggest a secret",
            )


def lacking(benchmark: Benchmark, environment: Environment | BuildError) -> str | None:
    """What is missing on this machine to run a benchmark's program, as text; None if it has or can build it."""
    return KINDS[type(benchmark.program)].missing(benchmark.program, environment, has_ranks=benchmark.ranks == "mpi")


class BuiltAhead(Frozen):
    """The result for one program in one environment. `benchmarks` are those that it measures; `environment` is an
    error if the chosen environment is not available. `container`: that of the environment, if it has one."""

    benchmarks: tuple[str, ...]
    choice: EnvironmentChoice
    environment: Environment | BuildError
    result: Built | BuildError
    container: Contained | None = None


def build_helpers(points: Sequence[Point], *, with_profiler: bool = False) -> BuildError | None:
    """Build the helper programs for the ranks of these points, and the MPI profiler if a point needs it or
    `with_profiler` is set. Returns the error if that fails."""
    try:
        make_helpers(
            for_ranks=any(point.benchmark.ranks == "mpi" for point in points),
            with_profiler=with_profiler or any(point.is_profiled for point in points),
        )
    except BuildError as problem:
        return problem
    return None


def build_points(
    points: Iterable[Point], environments: Environments, announce: Callable[[str], None]
) -> Iterator[BuiltAhead]:
    """Build the programs of these points, in order; `announce` gets the benchmark's name before a compiler starts.

    Points that cannot run on this machine are built too: another node may run them. Settings and variables do not
    affect builds on the host, and programs installed by the site are not built. In the container of a point its program
    also describes itself, which decides where it is built; ranks are not tried.
    """
    needed: dict[tuple[Path, EnvironmentChoice, bool], dict[str, Point]] = {}
    for point in points:
        source = point.benchmark.program.source
        if source is not None and not_in_a_container(point, runs_in_images=False) is None:
            key = (source, _choice(point), point.benchmark.ranks == "mpi")
            needed.setdefault(key, {}).setdefault(point.benchmark.name, point)
    containers = Containers()
    for (source, choice, _), asked in needed.items():
        first = next(iter(asked.values()))
        yield _built(source, replace(first, environment=choice), tuple(asked), environments, containers, announce)


def _choice(point: Point) -> EnvironmentChoice:
    """What of the environment of a point affects the build of its program."""
    choice = replace(point.environment, mpi_settings=(), vm=None, machine_settings=())
    if point.benchmark.ranks != "mpi":
        choice = replace(choice, mpi=None, container_mpi=None)
    if _is_in_a_container(point):
        return choice
    return EnvironmentChoice(compiler=choice.compiler, flags=choice.flags, mpi=choice.mpi)


def _is_in_a_container(point: Point) -> bool:
    starts_it = getattr(point.benchmark.program, "starts_containers", False)
    return point.environment.container is not None and not starts_it


def _built(
    source: Path,
    point: Point,
    names: tuple[str, ...],
    environments: Environments,
    containers: Containers,
    announce: Callable[[str], None],
) -> BuiltAhead:
    """One program, in the environment of the point."""
    choice, building = point.environment, partial(announce, names[0])
    environment = environments.of(choice, with_mpi=point.benchmark.ranks == "mpi")
    try:
        if _is_in_a_container(point):
            fitted = containers.without_ranks(
                point, environment, environments.isa, lambda own, start: build(own, source, building, start)
            )
            return BuiltAhead(names, choice, fitted.environment, fitted.built, fitted.container)
        if isinstance(environment, BuildError):
            return BuiltAhead(names, choice, environment, environment)
        return BuiltAhead(names, choice, environment, build(environment, source, building))
    except BuildError as problem:
        return BuiltAhead(names, choice, environment, problem)
