"""Our own programs: built from source in each environment; they write the record (model/benchmark/program.py)."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from seatrial.engine.kinds.kind import ProgramKind
from seatrial.engine.ready import Ready, Refused, Runnable
from seatrial.environments.asking import AUTO, Gpu, Gpus, NoGpuError, find_gpus, lacking_gpu
from seatrial.environments.blas import HOW_TO_GET_ONE, find_blas
from seatrial.environments.build import Built, Environment, build, program_key
from seatrial.environments.cached_files import Start, as_it_is
from seatrial.environments.chosen import absent_environment, isa_of
from seatrial.environments.compiler import DECISIVE_FEATURES, variables_with
from seatrial.environments.loaded_libraries import (
    OWN,
    LoadedLibrary,
    Once,
    files_among,
    hashes_of,
    loaded_blas,
    loaded_fft,
)
from seatrial.environments.mpi import lacking_mpi
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import Native
from seatrial.model.benchmark.parameter import Value, whole
from seatrial.model.benchmark.program import RANKS, Hello, ProgramRecord, parse_record
from seatrial.model.environment.container import INSIDE
from seatrial.model.machine.guest import VM
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import content_key
from seatrial.model.results.sample import Outcome
from seatrial.places.contained import Contained
from seatrial.places.containers.fitted import Containers, contained_environment
from seatrial.places.containers.tiny_root import timed_program
from seatrial.places.containers.trial import start_arguments, write_started
from seatrial.places.guest.runtime import Guests, guest_environment
from seatrial.places.images.programs_inside import ImageLibraries
from seatrial.plan.points import Point

RECORD_FILE = "rank-000000.jsonl"


@dataclass(frozen=True, slots=True)
class NativeProgram(Runnable):
    """One of our programs, built. `library_arguments` name the library that it loads, `library_notes` state what is
    known of it."""

    writes_record: ClassVar[bool] = True
    declared: Native
    built: Built
    library_arguments: tuple[str, ...] = ()
    library_notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The program in the build cache."""
        return self.built.path

    @property
    def build_s(self) -> float:
        """0 if it was in a cache."""
        return self.built.seconds

    @property
    def starts_containers(self) -> bool:
        """As it is declared."""
        return self.declared.starts_containers

    @property
    def starts_user_programs(self) -> bool:
        """If it is declared to start commands."""
        return self.declared.commands is not None

    @contextmanager
    def prepared(self, ready: Ready, directory: Path, limit_s: float) -> Iterator[None]:
        """With the program that is started in a container, if it starts one."""
        if self.starts_containers:
            write_started(directory)
        yield

    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        """The record's folder, the placement, and the arguments from its parameters."""
        if ready.mpi is None:
            # A runtime may put its own processes, or other process numbers, between this process and the program.
            is_inside = ready.container is not None and not self.starts_containers
            parent = [] if is_inside else ["--parent", str(os.getpid())]
            where = ["--cpus", ",".join(map(str, ready.point.cpus)), *parent]
        else:
            where = ["--ranks", str(whole(ready.point.parameters[RANKS]))]
        own = [*self.declared.arguments(ready.point.parameters), *_at_least(ready)]
        if ready.container is not None and self.starts_containers:
            own = [*own, *start_arguments(ready.container, ready.variables, directory)]
        return ["--record", str(directory), *where, *own, *self.library_arguments]

    def output(self, directory: Path) -> Path:
        """The record (of rank 0)."""
        return directory / RECORD_FILE

    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """Parse the record."""
        return parse_record(data)

    def mismatch(self, machine: Machine, record: ProgramRecord) -> Outcome | None:
        """None if the program that ran is the one that was built, for this CPU, with its libraries."""
        hello = record.hello
        if hello is None:
            return None
        if hello.build != self.built.key:
            return Outcome.invalid("target", f"the program reports build {hello.build!r} instead of {self.built.key!r}")
        missing = (frozenset(isa_of(machine)) & DECISIVE_FEATURES) - set(hello.isa)
        if missing:
            return Outcome.invalid(
                "target",
                f"built without {' '.join(sorted(missing))}, which this CPU has: the figure is that of a lesser CPU",
            )
        # A command starts another program, which loads its own libraries: they are only noted.
        return None if self.declared.commands is not None else self._other_library(hello)

    def _other_library(self, hello: Hello) -> Outcome | None:
        for name, build_id in self.built.hello.libs.items():
            if name not in hello.libs:
                return Outcome.invalid("library", f"{name}, which the program was built with, was not loaded")
            where = hello.lib_paths.get(name, "an unknown path")
            expected = self.built.hello.lib_paths.get(name, "another path")
            # Without a build id, only the path distinguishes the files.
            is_elsewhere = not build_id and Path(where).resolve() != Path(expected).resolve()
            if hello.libs[name] != build_id or is_elsewhere:
                return Outcome.invalid("library", f"{name} was loaded from {where} instead of {expected}")
        return None

    def added_notes(self) -> Mapping[str, str]:
        """What is known of the library that it loads."""
        return self.library_notes

    def added_libraries(self, hello: Hello) -> list[str]:
        """Loaded libraries that are not among those of the build."""
        return sorted(hello.libs.keys() - self.built.hello.libs.keys())


@dataclass(slots=True)
class NativeKind(ProgramKind[Native]):
    """Programs are built once; devices, libraries and commands are looked up once."""

    _builds: Once[tuple[str, Path], Built] = field(default_factory=Once)
    _devices: Once[str, Gpus] = field(default_factory=Once)
    """All programs find the same; environment variables such as CUDA_VISIBLE_DEVICES change the list."""
    _libraries: Once[Any, LoadedLibrary] = field(default_factory=Once)
    _commands: Once[Any, Mapping[str, str]] = field(default_factory=Once)
    _containers: Containers = field(default_factory=Containers)
    _of_images: ImageLibraries = field(default_factory=ImageLibraries)
    _guests: Guests = field(default_factory=Guests)

    @staticmethod
    def missing(program: Native, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """The missing compiler, MPI library, device or BLAS."""
        if isinstance(environment, BuildError):
            return f"a C++20 compiler: {environment.message}; {environment.todo}"
        if has_ranks and (need := lacking_mpi()) is not None:
            return f"an MPI: {need}"
        if program.library == "gpu" and (need := lacking_gpu()) is not None:
            return f"a device: {need}"
        return f"a BLAS: {HOW_TO_GET_ONE}" if program.library == "blas" and not find_blas() else None

    def installed_programs(self, point: Point, program: Native) -> Iterator[Path]:
        """The commands of the user that it starts."""
        names = program.commands(point.parameters) if program.commands is not None else ()
        yield from (Path(found) for name in names if (found := shutil.which(name)) is not None)

    def identify(self, point: Point, program: Native) -> Ready | Refused:
        """By its build and everything that it loads, starts and reads."""
        outside = self.environments.of(point.environment, with_mpi=point.benchmark.ranks == "mpi")
        described = absent_environment(point.environment)
        if isinstance(outside, BuildError) and point.environment.container_build != INSIDE:
            return self.refused(point, outside, described)
        key = ""
        try:
            if isinstance(outside, Environment):
                described = outside.key, outside.document()
                key = program_key(outside, program.source)
            if (refusal := point.refusal or _refused_start(point, program)) is not None:
                return self.refused(point, refusal, described, key)
            environment, built, container = self._found(point, program, outside)
            if container is not None:
                described = contained_environment(environment.document(), container)
            elif point.environment.vm is not None:
                container, built, document = self._in_guest(point, environment, built)
                described = content_key(document), document
            point, runnable, key = self._identified(point, program, built, container)
            self.make_helpers(point, environment.mpi)
        except BuildError as problem:
            if point.environment.container is not None or point.environment.vm is not None:
                described = absent_environment(point.environment)
            return self.refused(point, problem, described, key)
        experiment = self.experiment(point, described[0], key)
        here = self.environments.machine
        there = None if (machine := here.at(point.environment.vm)) is here else machine
        mpi, document = environment.mpi, described[1] or {}
        return Ready(point, experiment, runnable, document, mpi, environment.of_all, container, there)

    def _in_guest(
        self, point: Point, environment: Environment, built: Built
    ) -> tuple[Contained | None, Built, Mapping[str, Any]]:
        """The guest of a point (None: not started, for a plan), its program there, and the document of the environment.
        Raises BuildError."""
        name = str(point.environment.vm)
        guest = self.environments.machine.guest(name)
        if guest is None or not self.builds:
            return None, built, {**environment.document(), VM: {"name": name}}
        found, hello = self._guests.of(point, environment, built, guest)
        return found, replace(built, hello=hello), guest_environment(environment.document(), found)

    def _found(
        self, point: Point, program: Native, outside: Environment | BuildError
    ) -> tuple[Environment, Built, Contained | None]:
        """Its build, where it was built, and the container of its point. `outside` is the environment of the host.
        Raises BuildError."""
        if point.environment.container is not None and not program.starts_containers:
            building = partial(self._built, program, point)
            fitted = self._containers.of(point, outside, self.environments.isa, building)
            return fitted.environment, fitted.built, fitted.container
        if isinstance(outside, BuildError):
            raise outside
        container = self._containers.alone(point) if program.starts_containers else None
        return outside, self._built(program, point, outside, as_it_is), container

    def _built(self, program: Native, point: Point, environment: Environment, start: Start) -> Built:
        """Its build; a plan only builds programs that must report what they load."""
        key = program_key(environment, program.source)
        if not self.builds and program.library is None and point.environment.container is None:
            return Built(Path(), key, (), Hello(point.benchmark.name, key, ""), 0.0, from_cache=False)
        announce = partial(self.listener.building, point)
        return self._builds.get((key, program.source), lambda: build(environment, program.source, announce, start))

    def _identified(
        self, point: Point, program: Native, built: Built, container: Contained | None
    ) -> tuple[Point, NativeProgram, str]:
        """The point, its program, and the key of everything that affects the run: the build, the programs that it
        starts, the library that it loads, and the variables that these depend on."""
        variables = variables_with(point.environment.variables)
        identity: dict[str, Any] = {"build": built.key}
        arguments: tuple[str, ...] = ()
        notes: Mapping[str, str] = {}
        if program.library == "gpu":
            gpus = self._devices.get(content_key({"variables": variables}), partial(find_gpus, built.path, variables))
            point, identity["devices"] = with_devices(point, gpus)
        kind = "blas" if program.library == "gpu" and point.parameters.get("blas", OWN) != OWN else program.library
        if kind in ("blas", "fft"):
            loaded = self._library(point, kind, built, container)
            point = replace(point, parameters={**point.parameters, kind: loaded.name})
            built, arguments = replace(built, hello=loaded.hello), loaded.arguments
            notes = loaded.notes
            identity["libraries"] = loaded.identity
        identity |= self._started(point, program, variables)
        if probes := point.identifying_probes:
            identity["probes"] = probes
        runnable = NativeProgram(program, built, arguments, notes)
        if len(identity) == 1:
            return point, runnable, built.key
        identity["variables"] = {name: variables[name] for name in program.variables if name in variables}
        return point, runnable, content_key(identity)

    def _library(self, point: Point, kind: str, built: Built, container: Contained | None) -> LoadedLibrary:
        """The BLAS or FFT library that a program loads, of this machine or of the image. Raises BuildError."""
        choice, wanted = point.environment, str(point.parameters[kind])
        variables = variables_with(choice.variables)
        if kind == "blas":
            if container is not None:
                return self._of_images.blas(wanted, built, container, choice.variables)
            key = (built.key, choice, wanted)
            return self._libraries.get(key, partial(loaded_blas, wanted, built, variables))
        precision = str(point.parameters["precision"])
        if container is not None:
            return self._of_images.fft(wanted, precision, built, container, choice.variables)
        of_fft = (built.key, choice, wanted, precision)
        return self._libraries.get(of_fft, partial(loaded_fft, wanted, precision, built, variables))

    def _started(self, point: Point, program: Native, variables: Mapping[str, str]) -> dict[str, Any]:
        """The identity of the programs that it starts and of the files that these read; {} if there are none."""
        identity: dict[str, Any] = {}
        if program.starts_containers:
            identity["started"] = hashlib.sha256(timed_program() or b"").hexdigest()
        if point.environment.container is not None or point.environment.vm is not None:
            return identity  # they are in the image, whose digest identifies them, or in the guest
        if program.commands is not None:
            for name in program.commands(point.parameters):
                found = self._commands.get((name, point.environment), partial(hashes_of, name, variables))
                identity.setdefault("programs", {})[name] = found
        if program.inputs is not None and (files := files_among(program.inputs(point.parameters))):
            identity["files"] = files
        return identity


def with_devices(point: Point, gpus: Gpus) -> tuple[Point, list[Mapping[str, Any]]]:
    """The point with its backend and number of devices resolved and a CPU for each (ranks keep theirs), and the
    identities of the devices.

    Raises NoGpuError if they are not found.
    """
    params = point.parameters
    if params["devices"] == 0:
        threads = _host_threads(point, 0)
        return replace(
            point, parameters={**point.benchmark.on_devices(params, True), "cpu_threads": len(threads)}, cpus=threads
        ), []
    found = gpus.of(str(params["backend"]))
    first = whole(params["device"])
    count = len(found) - first if params["devices"] == AUTO else whole(params["devices"])
    if count < 1 or first + count > len(found):
        wanted = f"device {first}" if count <= 1 else f"devices {first} to {first + count - 1}"
        raise NoGpuError("device", f"{found[0].backend} has no {wanted}: {len(found)} found, numbered from 0")
    chosen = found[first : first + count]
    seen: dict[str, Value] = {**params, "backend": found[0].backend, "devices": count}
    resolved = point.benchmark.on_devices(seen, bool(chosen[0].facts.get("cpu")))
    identities = [device.identity for device in chosen]
    if point.benchmark.ranks == "mpi":  # the ranks have their own CPUs and share the devices
        return replace(point, parameters=resolved), identities
    if count > len(point.cpus):
        raise NoGpuError("cpus", f"{count} devices need one CPU each; this process may use {len(point.cpus)}")
    drivers = _near(chosen, point.cpus)
    if "cpu_threads" not in params:
        return replace(point, parameters=resolved, cpus=drivers), identities
    threads = _host_threads(replace(point, cpus=tuple(cpu for cpu in point.cpus if cpu not in drivers)), count)
    return replace(point, parameters={**resolved, "cpu_threads": len(threads)}, cpus=(*drivers, *threads)), identities


def _host_threads(point: Point, drivers: int) -> tuple[int, ...]:
    """The CPUs of the threads that compute, of those of the point: all, or as many as the parameters ask for."""
    wanted = point.parameters["cpu_threads"]
    count = len(point.cpus) if wanted == AUTO else whole(wanted)
    if count > len(point.cpus):
        beside = f" and {drivers} that drive devices" if drivers else ""
        there = len(point.cpus) + drivers
        raise NoGpuError("cpus", f"{count} threads{beside} need one CPU each; this process may use {there}")
    return point.cpus[:count]


def _near(devices: Sequence[Gpu], cpus: Sequence[int]) -> tuple[int, ...]:
    """A CPU for each device: a local one if available, else any other that is free."""
    found: dict[int, int] = {}
    for must_be_local in (True, False):
        for number, device in enumerate(devices):
            free = [cpu for cpu in cpus if cpu not in found.values()]
            near = [cpu for cpu in free if not must_be_local or cpu in device.local_cpus]
            if number not in found and near:
                found[number] = near[0]
    return tuple(found[number] for number in range(len(devices)))


def _at_least(ready: Ready) -> tuple[str, ...]:
    """Samples are taken for longer if a meter needs that to show their energy."""
    return ("--at-least", f"{ready.least_phase_s:g}") if ready.least_phase_s else ()


def _refused_start(point: Point, program: Native) -> Outcome | None:
    """Why a program that starts containers has none to start; None if it has."""
    if not program.starts_containers:
        return None
    if point.environment.container is None:
        return Outcome.skipped("there is no container to start; set environment.container to an image")
    if timed_program() is None:
        return Outcome.unsupported("processor", f"no program to start in a container is known for {platform.machine()}")
    return None
