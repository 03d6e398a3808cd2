"""Programs that are built in an image, or brought into it with what they need, and applications of an image."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from engine.harness import make_ready, run_one
from one_point import prepare_point
from places.host_root import add_compiler, make_host_root, without_mpi

from seatrial.applications.lammps import BENCHMARK as LAMMPS
from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.engine.listener import Listener
from seatrial.engine.prepare import build_helpers, build_points, prepared_points
from seatrial.engine.ready import Ready
from seatrial.environments.build import Built, Environment, build
from seatrial.environments.chosen import Environments
from seatrial.environments.mpi import find_mpis
from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.environment.container import BIND, BROUGHT, INSIDE, OUTSIDE
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import State
from seatrial.places.containers import fitted as containers
from seatrial.places.containers.fitted import Containers, Fitted
from seatrial.places.containers.image import ContainerError
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import write_root
from seatrial.places.images.programs_inside import NotInImageError, find_in_image
from seatrial.places.rank_helpers import RANKS_PROBE
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

IMAGE, RUNTIME, BUILD = "environment.container", "environment.container_runtime", "environment.container_build"
PLACE, MPI = "environment.container_mpi", "environment.mpi"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image") / "root"
    make_host_root(root)
    return root


@pytest.fixture(scope="module")
def bare_image(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without MPI."""
    root = tmp_path_factory.mktemp("bare") / "root"
    shutil.copytree(image, root, symlinks=True, copy_function=os.link)
    without_mpi(root)
    return root


@pytest.fixture(scope="module")
def compiler_image(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compiler") / "root"
    shutil.copytree(image, root, symlinks=True, copy_function=os.link)
    try:
        add_compiler(root)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the packages of Debian 12's compiler and Open MPI")
    return root


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """One static program, no libraries."""
    root = tmp_path / "tiny"
    root.mkdir()
    assert write_root(root)
    return root


def need(runtime: str, *mpis: str) -> None:
    if RUNTIMES[runtime].path() is None:
        pytest.skip(f"needs {RUNTIMES[runtime].package}")
    if runtime == "bubblewrap" and os.geteuid() != 0:
        pytest.skip("a user's ranks have user namespaces of their own there")
    for mpi in mpis:
        if all(mpi != found.name for found in find_mpis()):
            pytest.skip(f"needs {mpi}")


def point_of(machine: Machine, root: Path, runtime: str, **more: str) -> Point:
    settings = {IMAGE: str(root), RUNTIME: runtime, "ranks": "2", **more}
    (point,) = plan_points(["mpi.latency"], {name: [value] for name, value in settings.items()}, machine)
    return point


def fit(machine: Machine, root: Path, runtime: str, **more: str) -> Fitted:
    """The program that tries ranks, in a container as chosen."""
    point, environments = point_of(machine, root, runtime, **more), Environments(machine)
    outside = environments.of(point.environment, with_mpi=True)
    return Containers().of(
        point, outside, environments.isa, lambda environment, start: build(environment, RANKS_PROBE, start=start)
    )


@pytest.mark.parametrize(("runtime", "mpi"), [("charliecloud", "openmpi"), ("bubblewrap", "mpich")])
def test_the_mpi_of_the_host_in_an_image_without_one(
    bare_image: Path, runtime: str, mpi: str, live_machine: Machine
) -> None:
    need(runtime, mpi)
    with pytest.raises(ContainerError, match="missing MPI library") as caught:
        fit(live_machine, bare_image, runtime, **{MPI: mpi})
    assert f"environment.container_mpi={BIND}" in caught.value.todo
    fitted = fit(live_machine, bare_image, runtime, **{MPI: mpi, PLACE: BIND})
    facts = fitted.container.facts
    assert facts["mpi"] == BIND and facts["joined"] == (runtime == "charliecloud")
    assert facts["ranks"]["world"] == 2 and facts["ranks"]["cross_memory_attach"]
    library = "libmpi.so.40" if mpi == "openmpi" else "libmpich.so.12"
    assert facts["ranks"]["libraries"][library] == [next(one.build_id for one in find_mpis() if one.name == mpi)]
    assert library in facts["libraries_of_the_host"] and "libc.so.6" not in facts["libraries_of_the_host"]


def test_a_runtime_whose_ranks_no_launcher_outside_reaches_cannot_bind(bare_image: Path, live_machine: Machine) -> None:
    need("nspawn", "openmpi")
    if os.geteuid() != 0:
        pytest.skip("nspawn needs root")
    with pytest.raises(ContainerError, match=f"container_mpi={BIND}"):
        fit(live_machine, bare_image, "nspawn", **{MPI: "openmpi", PLACE: BIND})


@pytest.mark.parametrize("runtime", ["charliecloud", "podman", "nspawn"])
def test_a_program_with_the_c_library_of_the_host(
    tiny: Path, runtime: str, live_machine: Machine, tmp_path: Path
) -> None:
    need(runtime)
    if runtime == "nspawn" and os.geteuid() != 0:
        pytest.skip("nspawn needs root")
    refused = prepare_point(PEAK, live_machine, {IMAGE: str(tiny), RUNTIME: runtime})
    assert refused.outcome.state is State.UNSUPPORTED and "(no such program)" in refused.outcome.reason
    assert f"environment.container_build={BROUGHT}" in refused.outcome.reason
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(PEAK, live_machine, folder, **{IMAGE: str(tiny), RUNTIME: runtime, BUILD: BROUGHT})
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    assert {"libc.so.6", "libstdc++.so.6"} <= set(record.seen["container"]["libraries_of_the_host"])
    assert ready.environment["container"]["build"] == BROUGHT and ready.environment["container"]["brought"]["key"]
    assert "--inhibit-cache" in record.seen["command"]


def test_ranks_with_everything_of_the_host(tiny: Path, live_machine: Machine) -> None:
    need("charliecloud", "openmpi")
    facts = fit(live_machine, tiny, "charliecloud", **{MPI: "openmpi", BUILD: BROUGHT}).container.facts
    assert (facts["mpi"], facts["ranks"]["world"]) == (BIND, 2)
    with pytest.raises(ContainerError, match="container_mpi=inside"):
        fit(live_machine, tiny, "charliecloud", **{MPI: "openmpi", BUILD: BROUGHT, PLACE: INSIDE})


def test_what_was_built_ahead_in_an_image_needs_no_compiler(
    compiler_image: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program with the image's MPI, what tries its ranks, and a program of the host that the image can run."""
    need("charliecloud", "openmpi")
    points = [
        point_of(live_machine, compiler_image, "charliecloud", **{MPI: "openmpi", BUILD: INSIDE}),
        point_of(live_machine, compiler_image, "charliecloud", **{MPI: "openmpi"}),
    ]
    assert build_helpers(points) is None
    inside, outside = build_points(points, Environments(live_machine), lambda name: None)
    assert inside.container is not None and inside.container.build == INSIDE
    assert isinstance(inside.environment, Environment) and inside.environment.compiler.image
    assert outside.container is not None and outside.container.build == OUTSIDE
    assert isinstance(inside.result, Built) and isinstance(outside.result, Built)
    assert inside.result.path != outside.result.path

    def compiles(command: Sequence[str], *_: object, **__: object) -> None:
        raise AssertionError(f"it compiles: {command}")

    monkeypatch.setattr("seatrial.environments.build.make_file", compiles)
    for ready, built in zip(
        prepared_points(points, Environments(live_machine), "machine", Listener()),
        (inside.result, outside.result),
        strict=True,
    ):
        assert isinstance(ready, Ready), ready.outcome
        assert ready.experiment.program == built.key
        assert ready.container is not None and ready.container.facts["ranks"]["world"] == 2


def test_a_program_built_in_the_image(
    compiler_image: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its compiler, with its MPI library; also if the program of the host does not fit."""
    need("charliecloud", "openmpi")
    fitted = fit(live_machine, compiler_image, "charliecloud", **{MPI: "openmpi", BUILD: INSIDE})
    environment = fitted.environment
    assert environment.compiler.command == ("g++",) and environment.compiler.image.startswith("sha256:")
    assert environment.libc.startswith("glibc 2.") and environment.mpi is not None
    assert (environment.mpi.family, environment.mpi.found) == (MpiFamily.OPENMPI, "the image")
    assert environment.document()["compiler"]["image"] == fitted.container.image.digest
    facts = fitted.container.facts
    assert facts["build"] == INSIDE and facts["ranks"]["world"] == 2 and "libmpi.so.40" in fitted.built.hello.libs
    as_usual = containers._described

    def described(one: Fitted) -> Fitted:
        if one.container.build != INSIDE:
            raise ContainerError("too old", fault="old C library")
        return as_usual(one)

    monkeypatch.setattr(containers, "_described", described)
    again = fit(live_machine, compiler_image, "charliecloud", **{MPI: "openmpi"})
    assert again.built.key == fitted.built.key and again.built.from_cache


def test_an_image_without_a_compiler(image: Path, live_machine: Machine) -> None:
    need("charliecloud", "openmpi")
    with pytest.raises(ContainerError, match=r"has no C\+\+20 compiler") as caught:
        fit(live_machine, image, "charliecloud", **{MPI: "openmpi", BUILD: INSIDE})
    assert "Debian: g++" in caught.value.todo


def test_an_application_of_the_image(image: Path, live_machine: Machine, tmp_path: Path) -> None:
    """It is found, described and run inside, in the folder of its repeat; its MPI library is that of the image."""
    need("charliecloud", "openmpi")
    root = tmp_path / "root"
    shutil.copytree(image, root, symlinks=True, copy_function=os.link)
    program = fit(live_machine, image, "charliecloud", **{MPI: "openmpi"}).built.path
    shutil.copyfile(program, root / "usr/bin/only-inside")
    (root / "usr/bin/only-inside").chmod(0o755)
    declared = External(
        name="only-inside",
        install="",
        output="stdout",
        arguments=lambda params, directory: ["--record", "."],
        parse=lambda data: ProgramRecord(),
        version=("--describe",),
        companions=("sleep",),
    )
    point = point_of(live_machine, root, "charliecloud")
    found = find_in_image(Containers().alone(point), declared, ())
    assert found.installed.path == Path("/usr/bin/only-inside") and found.installed.companions["sleep"].name == "sleep"
    assert found.installed.version.startswith('{"ev":"hello"') and found.installed.image.startswith("sha256:")
    assert (found.family, found.library) == (MpiFamily.OPENMPI, "libmpi.so.40")
    with pytest.raises(NotInImageError, match="has no nothing on the PATH"):
        find_in_image(Containers().alone(point), replace(declared, name="nothing"), ())
    folder = ResultsFolder.create(tmp_path / "results")
    settings = {IMAGE: str(root), RUNTIME: "charliecloud", "ranks": "2"}
    ready = make_ready(replace(LAMMPS, program=declared), live_machine, folder, **settings)
    assert ready.environment["mpi"]["found"] == "the image" and ready.environment["mpi"]["version"].startswith("4.")
    record = run_one(ready, live_machine, folder)
    assert "/usr/bin/only-inside" in record.seen["command"] and record.seen["container"]["ranks"]["world"] == 2
    ranks = list(folder.path.glob("artefacts/*/*/rank-*.jsonl"))
    assert len(ranks) >= 2  # it was started in the folder of the repeat
