"""The containers that points choose: found, tried and described before anything is measured in them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.asking import Reply, ask
from seatrial.environments.build import Built, Environment, build
from seatrial.environments.cached_files import Start, as_it_is, private_top
from seatrial.environments.chosen import Environments
from seatrial.environments.compiler import variables_with
from seatrial.environments.loaded_libraries import Once
from seatrial.environments.modules import Changes
from seatrial.errors import BuildError, ProtocolError
from seatrial.launch.local import LocalProgram, run_together
from seatrial.launch.mpi import GRACE_S, NoLauncherError
from seatrial.launch.ranks import rank_layout
from seatrial.model.benchmark.program import Hello, Layout, ProgramRecord, parse_record
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.container import BIND, BROUGHT, INSIDE, JOINED, OUTSIDE
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.environment.site import SiteContainer
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key
from seatrial.places.brought import Brought, bring_all, bring_mpi
from seatrial.places.contained import Contained, check_drivers, container_choice, started
from seatrial.places.containers.faults import OF_LIBRARIES, not_started, ranks_fault
from seatrial.places.containers.image import ContainerError, Image, ImageKind, image_of
from seatrial.places.containers.runtime import Runtime, folder_of_all_nodes, shared_folder
from seatrial.places.containers.runtimes import RUNTIMES, runtime_for
from seatrial.places.images.given import stated_by
from seatrial.places.images.tools_inside import ImageTools
from seatrial.places.rank_helpers import RANKS_PROBE, inside_probe, ranks_probe
from seatrial.plan.points import Point

_START_LIMIT_S = 60.0
_RANKS_LIMIT_S = 20.0
_LAUNCHERS = {
    MpiFamily.OPENMPI: ("mpirun.openmpi", "mpirun", "mpiexec"),
    MpiFamily.MPICH: ("mpiexec.hydra", "mpirun.mpich", "mpirun", "mpiexec"),
    MpiFamily.MVAPICH: ("mpiexec.hydra", "mpiexec"),
    MpiFamily.INTEL: ("mpiexec.hydra", "mpiexec"),
    MpiFamily.CRAY: ("mpiexec",),
}
_WORDS = {MpiFamily.OPENMPI: ("Open MPI", "OpenRTE", "PRRTE")}
_OF_HYDRA = ("HYDRA", "Intel(R) MPI")

Builder = Callable[[Environment, Start], Built]
"""Builds a program in an environment, with a way to start the compiler."""
_HERE: Start = as_it_is


class Fitted(Frozen):
    """A program in a container: what it was built in and, in `hello`, how it describes itself there."""

    container: Contained
    environment: Environment
    built: Built


class _Asked(Frozen):
    """A point whose program is wanted in its container; see `Containers.of`."""

    point: Point
    outside: Environment | BuildError
    isa: Iterable[str]
    build_with: Builder


class Containers:
    """Each image is tried once with each runtime and placement of ranks, each program described once in each."""

    def __init__(self) -> None:
        self._images: Once[SiteContainer, Contained] = Once()
        self._ranks: Once[Any, Contained] = Once()
        self._fitted: Once[Any, Fitted] = Once()
        self._brought: Once[Any, Brought] = Once()

    def of(self, point: Point, outside: Environment | BuildError, isa: Iterable[str], build_with: Builder) -> Fitted:
        """A program in the container of a point: built on the host, or in the image if the point chooses that, or if
        the image's libraries are too old for the host's programs. `outside` is the environment of the host, `isa` the
        features of the CPU. Raises BuildError, ContainerError if it does not work there."""
        return _first(_Asked(point, outside, isa, build_with), self._in)

    def without_ranks(
        self, point: Point, outside: Environment | BuildError, isa: Iterable[str], build_with: Builder
    ) -> Fitted:
        """The same, before ranks are tried: with what tries them built."""

        def fitted(asked: _Asked, where: str) -> Fitted:
            alone, start = self._alone(asked, where)
            if alone.environment.mpi is not None:
                ranks_probe(alone.environment, start)
            return alone

        return _first(_Asked(point, outside, isa, build_with), fitted)

    def of_ranks(self, point: Point, environments: Environments, family: MpiFamily) -> Fitted:
        """How ranks of an application of the image work together: tried with a program of ours that loads the image's
        library of this family. Raises BuildError."""
        choice = replace(point.environment, container_build=None)
        outside = environments.of(choice, with_mpi=True)
        if isinstance(outside, Environment) and (outside.mpi is None or outside.mpi.family is not family):
            raise ContainerError(
                f"the application of {choice.container} is linked with {family.value}, not with {choice.mpi}",
                "leave out environment.mpi, or use an image with an application for it",
            )
        builds = INSIDE if isinstance(outside, BuildError) else point.environment.container_build
        point = replace(point, environment=replace(choice, container_build=builds))
        return self.of(point, outside, environments.isa, lambda own, start: build(own, RANKS_PROBE, start=start))

    def _alone(self, asked: _Asked, where: str) -> tuple[Fitted, Start]:
        """A program that was built there and describes itself in the container, and how its compiler is started."""
        point, outside = asked.point, asked.outside
        chosen, has_ranks = container_choice(point.environment), point.benchmark.ranks == "mpi"
        choice = replace(point.environment, container_mpi=chosen.mpi)
        container, start = replace(self.alone(point), build=where), _HERE
        if where == INSIDE:
            tools = ImageTools(container)
            environment, start = tools.environment(choice, asked.isa, outside, with_mpi=has_ranks), tools.start
        elif isinstance(outside, BuildError):
            raise outside
        else:
            environment = outside
        built = asked.build_with(environment, start)
        container = replace(container, brought=self._bring(container, choice, asked, built))
        key = (chosen, where, built.key, environment.of_all)
        return self._fitted.get(key, lambda: _described(Fitted(container, environment, built))), start

    def _in(self, asked: _Asked, where: str) -> Fitted:
        """The same, with its ranks placed."""
        fitted, start = self._alone(asked, where)
        environment = fitted.environment
        if environment.mpi is None:
            return fitted
        layout, chosen = rank_layout(asked.point), container_choice(asked.point.environment)
        way = (chosen, where, environment.key, environment.of_all, layout.ranks, layout.hosts)
        placed = self._ranks.get(way, lambda: _placed(fitted.container, environment, layout, chosen.mpi, start))
        own = replace(placed, brought=fitted.container.brought)  # of this program, not of the first one in this way
        facts = {**placed.facts, **fitted.container.facts, **own.document()}
        return replace(fitted, container=replace(own, facts=facts))

    def _bring(self, container: Contained, choice: EnvironmentChoice, asked: _Asked, built: Built) -> Brought | None:
        """The files of the host that a program needs inside. Raises BuildError."""
        outside, has_ranks = asked.outside, asked.point.benchmark.ranks == "mpi"
        binds = has_ranks and choice.container_mpi == BIND
        if container.build != BROUGHT and not binds:
            return None
        if isinstance(outside, BuildError):
            raise outside
        own, variables = choice.variables, variables_with(choice.variables)
        mpi = outside.mpi if has_ranks else None
        if container.build == BROUGHT:
            return self._brought.get((built.path, own), lambda: bring_all(built.path, (), mpi, variables))
        if mpi is None:
            return None
        is_theirs = container.build == INSIDE
        key = (mpi.library, is_theirs, own)
        return self._brought.get(key, lambda: bring_mpi(mpi, variables, prefers_image=is_theirs))

    def alone(self, point: Point) -> Contained:
        """The container of a point, for a program outside that starts it. Raises ContainerError."""
        choice = replace(container_choice(point.environment), mpi=None)
        return self._images.get(choice, lambda: _found(choice))


def _first(asked: _Asked, fitted: Callable[[_Asked, str], Fitted]) -> Fitted:
    """A program built where the point wants it, else in the first folder from which it works."""
    wanted = asked.point.environment.container_build
    first: ContainerError | None = None
    for where in (OUTSIDE, INSIDE) if wanted is None else (wanted,):
        try:
            return fitted(asked, where)
        except ContainerError as error:
            if wanted is not None or (first is None and error.fault not in OF_LIBRARIES):
                raise
            first = first or error
    assert first is not None  # noqa: S101  the loop ran at least once
    raise first


def contained_environment(document: Mapping[str, Any], container: Contained) -> tuple[str, Mapping[str, Any]]:
    """(key, document) of an environment in a container."""
    contained = {
        **document,
        "name": f"{document.get('name', '')} {container.title}".strip(),
        "container": {**container.document(), **stated_by(container.image)},
    }
    return content_key(contained), contained


def _found(choice: SiteContainer) -> Contained:
    """An image with its runtime, and what a process sees in it."""
    image = _startable(image_of(choice.image), choice.runtime)
    runtime = runtime_for(image, choice.runtime)
    for mount in choice.mounts:
        if mount.is_read_only and not runtime.can_mount_read_only:
            raise ContainerError(
                f"{runtime.title} cannot mount {mount.source} read-only",
                "leave out `:ro`, or choose another environment.container_runtime",
            )
    container = Contained(
        image, runtime, _version(runtime), mounts=choice.mounts, devices=choice.devices, variables=choice.variables
    )
    container = replace(container, facts=_facts(container, choice.name))
    check_drivers(container, run_inside)
    return container


def _startable(image: Image, runtime: str | None) -> Image:
    """An image, with an archive as a folder; but not for a runtime that starts no folders."""
    if image.kind is ImageKind.ARCHIVE and (runtime is None or ImageKind.FOLDER in RUNTIMES[runtime].kinds):
        from seatrial.places.images.given import unpacked  # few images are archives

        return unpacked(image)
    return image


def _version(runtime: Runtime) -> str:
    variables = variables_with(runtime.variables().items())
    answer = ask([runtime.command, *runtime.version_words()], environment=variables)
    lines = (answer.stdout or answer.stderr).splitlines()
    return lines[0].strip()[:100] if lines else "unknown"


def run_inside(container: Contained, words: Sequence[str], variables: Changes = (), *, of_image: bool = False) -> str:
    """The output of a program in a container; a program of the host by its path, unless it is `of_image`. Raises
    ContainerError."""
    return answer_inside(container, words, variables, of_image=of_image or not words[0].startswith("/")).stdout


def answer_inside(
    container: Contained, words: Sequence[str], variables: Changes = (), *, of_image: bool = True
) -> Reply:
    """What a program of the image, or one of the host, prints in a container. Raises ContainerError."""
    folders = [] if of_image else [private_top(Path(words[0]))]
    start = started(None, None, container, variables, {}, folders)
    command = [*start.before, *start.words(words)]
    try:
        return ask(command, environment=start.variables, limit_s=_START_LIMIT_S)
    except BuildError as error:
        what = f"{Path(words[0]).name} does not start in {container.image.given} with {container.runtime.title}"
        raise not_started(what, error.output or error.message) from error


def _facts(container: Contained, name: str = "") -> dict[str, Any]:
    try:
        record = parse_record(run_inside(container, [str(inside_probe())]).encode())
    except ProtocolError as error:
        raise ContainerError(f"a program in {container.image.given} printed something else: {error}") from error
    there = record.notes.get("namespaces", {})
    own = {name: link for name, link in there.items() if link != _link(Path(f"/proc/self/ns/{name}"))}
    return {
        **container.document(),
        **({"name": name} if name else {}),
        "path": container.image.archive or container.image.given,
        "own_namespaces": sorted(own),
        "root": _root(str(record.notes.get("root_mount", ""))),
        "variables": _changes(record.notes.get("variables", ())),
    }


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def _root(line: str) -> str:
    """The file system that the root is on, and its mount options, from a line of mountinfo (proc(5))."""
    before, _, after = line.partition(" - ")
    words, kind = before.split(), after.split()
    return f"{kind[0]} ({words[5]})" if kind and len(words) > 5 else "unknown"


def _changes(there: Any) -> dict[str, list[str]]:
    """The names of variables that are set only inside, only outside, or differently."""
    inside = dict(str(item).rsplit(":", 1) for item in there if ":" in str(item))
    outside = {name: _fnv1a(value) for name, value in os.environb.items()}
    here = {os.fsdecode(name): value for name, value in outside.items()}
    return {
        "added": sorted(inside.keys() - here.keys()),
        "removed": sorted(here.keys() - inside.keys()),
        "changed": sorted(name for name in inside.keys() & here.keys() if inside[name] != here[name]),
    }


def _fnv1a(data: bytes) -> str:
    """The hash of native/launch/seen_inside.hpp."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return f"{value:016x}"


def hello_inside(container: Contained, program: Path, variables: Changes, library: str = "") -> Hello:
    """A program's description of itself in a container; with a library that it loads, with the dependencies of that.
    Raises ContainerError."""
    words = [str(program), "--describe", *([library] if library else [])]
    where = f"{program.name} in {container.image.given}"
    try:
        hello = parse_record(run_inside(container, words, variables).encode()).hello
    except ProtocolError as error:
        raise ContainerError(f"{where} printed something else: {error}", output=str(error)) from error
    if hello is None:
        raise ContainerError(f"{where} does not describe itself", output="no description")
    return hello


def _described(fitted: Fitted) -> Fitted:
    """With a program's description of itself in a container, with the libraries that it loads there."""
    container, built = fitted.container, fitted.built
    hello = hello_inside(container, built.path, fitted.environment.of_all)
    facts = container.facts
    if container.brought is not None:
        inside = container.inside([], {}).mapped(str(container.brought.folder))
        loaded = sorted(name for name, path in hello.lib_paths.items() if path.startswith(f"{inside}/"))
        facts = {**facts, **container.document(), "libraries_of_the_host": loaded}
    elif container.build != OUTSIDE:
        facts = {**facts, **container.document()}
    return replace(fitted, container=replace(container, facts=facts), built=replace(built, hello=hello))


def _placed(
    container: Contained, environment: Environment, layout: Layout, wanted: str | None, start: Start
) -> Contained:
    """The container with its ranks placed as wanted, or in the first way in which they work together. `start` is how
    the programs of the environment are built."""
    runtime = container.runtime
    ways = [
        *([(JOINED, True), (BIND, True)] if runtime.joins else []),
        *([(OUTSIDE, False), (BIND, False)] if runtime.ranks_outside else []),
        *([(INSIDE, False)] if not layout.hosts else []),
    ]
    if container.build == BROUGHT:
        ways = [way for way in ways if way[0] == BIND]
        wanted = wanted or BIND
    able = list(dict.fromkeys(placement for placement, _ in ways))
    if wanted is not None and wanted not in able:
        raise ContainerError(
            f"{runtime.title} cannot run ranks with environment.container_mpi={wanted}"
            + (" on several nodes" if wanted == INSIDE else ""),
            f"it can with {' or '.join(able)}" if able else "use another environment.container_runtime",
        )
    first: ContainerError | None = None
    for placement, is_joined in ways:
        if placement != (wanted or placement) or (wanted is None and placement == BIND):
            continue
        try:
            placed = replace(container, placement=placement, is_joined=is_joined)
            return tried_ranks(placed, environment, layout, start)
        except ContainerError as error:
            first = first or error
    assert first is not None  # noqa: S101  `able` is never empty here: checked above for `wanted`, else INSIDE or OUTSIDE
    raise first


def tried_ranks(container: Contained, environment: Environment, layout: Layout, start: Start = as_it_is) -> Contained:
    """Ranks that exchange a message in a container, before anything is measured. Raises ContainerError."""
    mpi, variables = environment.mpi, environment.of_all
    if mpi is None:
        return container
    if container.is_launcher_inside:
        container = replace(container, launcher=_launcher_inside(container, mpi, variables))
    probe = ranks_probe(environment, start)
    try:
        with folder_of_all_nodes() if layout.hosts else shared_folder("seatrial-ranks-") as folder:
            ranks = started(mpi, layout, container, variables, {}, [folder, private_top(probe)])
            command = [*ranks.before, *ranks.words([str(probe), "--record", str(folder)])]
            limit_s = _RANKS_LIMIT_S + layout.ranks * 0.1
            (done,) = run_together([LocalProgram(command, ranks.variables, folder, grace_s=GRACE_S)], limit_s)
            records = [_record(path) for path in sorted(folder.glob("rank-*.jsonl"))]
            output = "\n".join((folder / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    except NoLauncherError as error:
        raise ContainerError(str(error)) from error
    except OSError as error:
        raise ContainerError(f"ranks in {container.image.given} cannot be tried: {error}") from error
    fault = ranks_fault(
        [record.notes for record in records],
        layout.ranks,
        container.placement,
        timed_out=done.timed_out,
        failed=done.returncode != 0,
        output=output,
    )
    if fault is not None:
        raise fault
    return replace(container, facts={**container.facts, **container.document(), **_facts_of_ranks(records)})


def _record(path: Path) -> ProgramRecord:
    try:
        return parse_record(path.read_bytes())
    except (OSError, ProtocolError):
        return ProgramRecord()


def _facts_of_ranks(records: Sequence[ProgramRecord]) -> dict[str, Any]:
    """The size of the world, the libraries by build id, whether ranks read each other's memory, and how many user
    namespaces they have."""
    libraries: dict[str, set[str]] = {}
    for record in records:
        for name, build_id in (record.hello.libs if record.hello is not None else {}).items():
            libraries.setdefault(name, set()).add(build_id)
    attach = [record.notes["cross_memory_error"] for record in records if "cross_memory_error" in record.notes]
    return {
        "ranks": {
            "world": len(records),
            "library": next((str(r.notes["library"]) for r in records if "library" in r.notes), ""),
            "libraries": {name: sorted(ids) for name, ids in sorted(libraries.items())},
            "cross_memory_attach": not any(attach) if attach else None,
            "user_namespaces": len({str(record.notes.get("namespaces", {}).get("user")) for record in records}),
        }
    }


def _launcher_inside(container: Contained, mpi: Mpi, variables: Changes) -> Path:
    """The image's launcher of the same kind of library. Raises ContainerError."""
    known = _WORDS.get(mpi.family, _OF_HYDRA)
    bare = container.bare
    for name in _LAUNCHERS[mpi.family]:
        try:
            text = run_inside(bare, [name, "--version"], variables)
        except ContainerError:
            continue
        if any(word in text for word in known):
            return Path(name)
    raise ContainerError(
        f"{container.image.given} has no launcher of {mpi.title}: looked for {', '.join(_LAUNCHERS[mpi.family])}",
        "install it in the image, or choose another environment.container_mpi",
    )
