"""The containers that points choose: found, tried and described before anything is measured in them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seatrial.engine.contained import Contained
from seatrial.engine.container_choice import ContainerChoice, container_choice
from seatrial.engine.container_drivers import check_drivers
from seatrial.engine.once import Once
from seatrial.engine.rank_helpers import inside_probe, ranks_probe
from seatrial.engine.ranks import rank_layout
from seatrial.engine.starting import started
from seatrial.environments.build import Built, Environment
from seatrial.environments.compiler import ask
from seatrial.environments.private_copy import private_top
from seatrial.environments.variables import variables_with
from seatrial.errors import BuildError, ProtocolError
from seatrial.launch.containers.error import ContainerError
from seatrial.launch.containers.faults import not_started, ranks_fault
from seatrial.launch.containers.image import image_of
from seatrial.launch.containers.runtime import SHARED, Runtime
from seatrial.launch.containers.runtimes import runtime_for
from seatrial.launch.local import Program, run_together
from seatrial.launch.mpi import NoLauncherError
from seatrial.launch.place import GRACE_S
from seatrial.model.container import INSIDE, JOINED, OUTSIDE
from seatrial.model.experiment import content_key
from seatrial.model.layout import Layout
from seatrial.model.mpi import Mpi, MpiFamily
from seatrial.model.protocol import Hello, ProgramRecord, parse_record
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

_Variables = tuple[tuple[str, str | None], ...]


class Containers:
    """Each image is tried once with each runtime and placement of ranks, each program described once in each."""

    def __init__(self) -> None:
        self._images: Once[ContainerChoice, Contained] = Once()
        self._ranks: Once[Any, Contained] = Once()
        self._hellos: Once[Any, Hello] = Once()

    def of(self, point: Point, environment: Environment, built: Built) -> tuple[Contained, Hello]:
        """The container of a point, and the description of its program in it. Raises BuildError, ContainerError if it
        does not work there."""
        choice = container_choice(point.environment)
        variables = (*(environment.mpi.variables if environment.mpi is not None else ()), *environment.variables)
        container = self.alone(point)
        alone = replace(choice, mpi=None)
        own = (alone, built.key, variables)
        hello = self._hellos.get(own, lambda: _described(container, built, variables))
        if environment.mpi is None:
            return container, hello
        mpi, layout, wanted = environment.mpi, rank_layout(point), choice.mpi
        key = (choice, mpi.library, variables, layout.ranks, layout.hosts)
        ranks = self._ranks.get(key, lambda: _placed(container, environment, mpi, layout, variables, wanted))
        return ranks, hello

    def alone(self, point: Point) -> Contained:
        """The container of a point, for a program outside that starts it. Raises ContainerError."""
        choice = replace(container_choice(point.environment), mpi=None)
        return self._images.get(choice, lambda: _found(choice))


def contained_environment(document: Mapping[str, Any], container: Contained) -> tuple[str, Mapping[str, Any]]:
    """(key, document) of an environment in a container."""
    contained = {
        **document,
        "name": f"{document.get('name', '')} {container.title}".strip(),
        "container": container.document(),
    }
    return content_key(contained), contained


def _found(choice: ContainerChoice) -> Contained:
    """An image with its runtime, and what a process sees in it."""
    image = image_of(choice.image)
    runtime = runtime_for(image, choice.runtime)
    for mount in choice.mounts:
        if mount.is_read_only and not runtime.can_mount_read_only:
            raise ContainerError(
                f"{runtime.title} cannot mount {mount.source} read-only",
                "leave out `:ro`, or choose another environment.container_runtime",
            )
    container = Contained(
        image,
        runtime,
        _version(runtime),
        mounts=choice.mounts,
        devices=choice.devices,
        variables=choice.variables,
    )
    container = replace(container, facts=_facts(container, choice.name))
    check_drivers(container, run_inside)
    return container


def _version(runtime: Runtime) -> str:
    variables = variables_with(runtime.variables().items())
    answer = ask([runtime.command, *runtime.version_words()], environment=variables)
    lines = (answer.stdout or answer.stderr).splitlines()
    return lines[0].strip()[:100] if lines else "unknown"


def run_inside(container: Contained, words: Sequence[str], variables: _Variables = ()) -> str:
    """The output of a program in a container; a program of the host by its path. Raises ContainerError."""
    folders = [private_top(Path(words[0]))] if words[0].startswith("/") else []
    start = started(None, None, container, variables, {}, folders)
    command = [*start.before, *start.words(words)]
    try:
        return ask(command, environment=start.variables, limit_s=_START_LIMIT_S).stdout
    except BuildError as error:
        what = f"{Path(words[0]).name} does not start in {container.image.given} with {container.runtime.title}"
        raise not_started(what, error.output or error.message) from error


def _facts(container: Contained, name: str = "") -> dict[str, Any]:
    try:
        record = parse_record(run_inside(container, [str(inside_probe())]).encode())
    except ProtocolError as error:
        raise ContainerError(f"a program in {container.image.given} printed something else: {error}") from error
    there = record.notes.get("namespaces", {})
    own = {name: link for name, link in there.items() if link != _namespace(name)}
    return {
        **container.document(),
        **({"name": name} if name else {}),
        "path": container.image.given,
        "own_namespaces": sorted(own),
        "root": _root(str(record.notes.get("root_mount", ""))),
        "variables": _changes(record.notes.get("variables", ())),
    }


def _namespace(name: str) -> str:
    try:
        return str(Path(f"/proc/self/ns/{name}").readlink())
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


def _described(container: Contained, built: Built, variables: _Variables) -> Hello:
    """A program's description of itself in a container, with the libraries that it loads there."""
    try:
        hello = parse_record(run_inside(container, [str(built.path), "--describe"], variables).encode()).hello
    except ProtocolError as error:
        raise ContainerError(f"{built.path.name} in {container.image.given} printed something else: {error}") from error
    if hello is None:
        raise ContainerError(f"{built.path.name} in {container.image.given} does not describe itself")
    return hello


def _placed(
    container: Contained,
    environment: Environment,
    mpi: Mpi,
    layout: Layout,
    variables: _Variables,
    wanted: str | None,
) -> Contained:
    """The container with its ranks placed as wanted, or in the first way in which they work together."""
    runtime = container.runtime
    able = [
        *([JOINED] if runtime.joins else []),
        *([OUTSIDE] if runtime.ranks_outside else []),
        *([INSIDE] if not layout.hosts else []),
    ]
    if wanted is not None and wanted not in able:
        raise ContainerError(
            f"{runtime.title} cannot run ranks with environment.container_mpi={wanted}"
            + (" on several nodes" if wanted == INSIDE else ""),
            f"it can with {' or '.join(able)}" if able else "use another environment.container_runtime",
        )
    first: ContainerError | None = None
    for placement in [wanted] if wanted is not None else able:
        try:
            return _tried(replace(container, placement=placement), environment, mpi, layout, variables)
        except ContainerError as error:
            first = first or error
    assert first is not None  # noqa: S101  `able` is never empty here: checked above for `wanted`, else INSIDE or OUTSIDE
    raise first


def _tried(
    container: Contained, environment: Environment, mpi: Mpi, layout: Layout, variables: _Variables
) -> Contained:
    """Ranks that exchange a message in a container, before anything is measured. Raises ContainerError."""
    if container.is_launcher_inside:
        container = replace(container, launcher=_launcher_inside(container, mpi, variables))
    probe = ranks_probe(environment)
    folder = Path(tempfile.mkdtemp(prefix="seatrial-ranks-", dir=SHARED))
    try:
        start = started(mpi, layout, container, variables, {}, [folder, private_top(probe)])
        command = [*start.before, *start.words([str(probe), "--record", str(folder)])]
        limit_s = _RANKS_LIMIT_S + layout.ranks * 0.1
        (done,) = run_together([Program(command, start.variables, folder, grace_s=GRACE_S)], limit_s)
        records = [_record(path) for path in sorted(folder.glob("rank-*.jsonl"))]
        output = "\n".join((folder / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
    except NoLauncherError as error:
        raise ContainerError(str(error)) from error
    except OSError as error:
        raise ContainerError(f"ranks in {container.image.given} cannot be tried: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
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


def _launcher_inside(container: Contained, mpi: Mpi, variables: _Variables) -> Path:
    """The image's launcher of the same kind of library. Raises ContainerError."""
    known = _WORDS.get(mpi.family, _OF_HYDRA)
    bare = replace(container, placement="")
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
