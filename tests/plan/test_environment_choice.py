"""What axes of the environment select, from a study and from `--set`: the MPI library, its settings, their defaults."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from made_up import made_up_machine

from seatrial.benchmarks import benchmark_named
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.environment.mpi import COLLECTIVES, operation_of
from seatrial.plan.environment_axes import choice_of, concerns_environment, environment_value
from seatrial.plan.files import YamlNode
from seatrial.plan.points import Point, plan_points, study_points
from seatrial.plan.study_file import read_study

MACHINE = made_up_machine(cores=4)
ALGORITHM = "environment.collective_algorithm"


def points(text: str) -> Sequence[Point]:
    return study_points(read_study(f"study: s\nquestion: q?\n{text}".encode(), "s.yaml"), MACHINE)


def choose(given: dict[str, str | None], benchmark: str = "mpi.allreduce", **parameters: str) -> EnvironmentChoice:
    return choice_of(given, benchmark_named(benchmark), parameters)


def test_an_mpi_and_its_settings_by_name() -> None:
    text = """benchmarks: {mpi.latency: {}}
axes:
  environment.mpi: [openmpi-5.0.11, /opt/mpi/lib/libmpi.so.40]
  environment.transport: [tcp]
  environment.binding: [none]
"""
    first, second = points(text)
    settings = (("binding", "none"), ("transport", "tcp"))
    assert first.environment == EnvironmentChoice(mpi="openmpi-5.0.11", mpi_settings=settings)
    assert second.environment == EnvironmentChoice(mpi="/opt/mpi/lib/libmpi.so.40", mpi_settings=settings)


def test_a_setting_at_its_default_changes_nothing_and_is_still_a_point_of_its_axis() -> None:
    text = "benchmarks: {mpi.allreduce: {}}\naxes: {environment.transport: [auto, shm], environment.binding: [core]}"
    plain, shared = points(text + "\ncompare: environment.transport")
    assert plain.environment == AS_IT_IS and plain.given["environment.transport"] == "auto"
    assert shared.environment.mpi_settings == (("transport", "shm"),)
    assert choose({ALGORITHM: "auto"}) == AS_IT_IS


def test_an_algorithm_without_its_operation_is_that_of_the_benchmark() -> None:
    assert choose({ALGORITHM: "ring"}).mpi_settings == (("collective_algorithm", "allreduce:ring"),)
    assert choose({ALGORITHM: "bruck"}, "mpi.barrier").mpi_settings == (("collective_algorithm", "barrier:bruck"),)
    given = choose({ALGORITHM: "ring"}, call="nonblocking")
    assert given.mpi_settings == (("collective_algorithm", "iallreduce:ring"),)
    given = choose({ALGORITHM: "reduce:binomial+ring+bcast:chain"})
    assert given.mpi_settings == (("collective_algorithm", "allreduce:ring+bcast:chain+reduce:binomial"),)


def test_every_collective_benchmark_is_recognized() -> None:
    assert operation_of("mpi.neighbour-alltoallv", {"call": "nonblocking"}) == "ineighbor-alltoallv"
    assert operation_of("mpi.bcast", {"call": "persistent"}) == "persistent-bcast"
    assert operation_of("mpi.latency") is None and operation_of("allreduce") is None
    assert {"barrier", "allreduce", "alltoallw", "reduce-scatter-block", "exscan"} <= set(COLLECTIVES)


def test_which_benchmarks_an_axis_affects() -> None:
    concerned = {
        name: {
            benchmark
            for benchmark in ("cpu.peak", "io.file", "mpi.latency", "mpi.allreduce", "apps.lammps")
            if concerns_environment(f"environment.{name}", benchmark_named(benchmark))
        }
        for name in ("compiler", "mpi", "transport", "collective_algorithm", "UCX_TLS")
    }
    assert concerned == {
        "compiler": {"cpu.peak", "mpi.latency", "mpi.allreduce"},
        "mpi": {"mpi.latency", "mpi.allreduce", "apps.lammps"},
        "transport": {"mpi.latency", "mpi.allreduce", "apps.lammps"},
        "collective_algorithm": {"mpi.allreduce", "apps.lammps"},
        "UCX_TLS": {"cpu.peak", "io.file", "mpi.latency", "mpi.allreduce", "apps.lammps"},
    }


def test_two_settings_are_two_points_and_one_setting_is_one() -> None:
    text = "benchmarks: {mpi.allreduce: {}}\naxes: {environment.collective_algorithm: [ring, 'allreduce:ring', auto]}"
    assert [point.environment.mpi_settings for point in points(text)] == [
        (("collective_algorithm", "allreduce:ring"),),
        (),
    ]


def test_set_accepts_what_a_study_accepts() -> None:
    settings = {
        "environment.mpi": ["mpich", "openmpi"],
        "environment.OMP_WAIT_POLICY": ["null"],
        ALGORITHM: ["ring"],
        "environment.flags": ["-O2 -g"],
    }
    found = plan_points(["mpi.allreduce", "mpi.latency", "io.file"], settings, MACHINE)
    assert [(point.benchmark.name, point.environment.mpi) for point in found] == [
        ("mpi.allreduce", "mpich"),
        ("mpi.allreduce", "openmpi"),
        ("mpi.latency", "mpich"),
        ("mpi.latency", "openmpi"),
        ("io.file", None),
    ]
    reduce, latency, file = found[0], found[2], found[4]
    assert reduce.environment.mpi_settings == (("collective_algorithm", "allreduce:ring"),)
    assert latency.environment.mpi_settings == () and latency.environment.flags == ("-O2", "-g")
    assert file.environment == EnvironmentChoice(variables=(("OMP_WAIT_POLICY", None),))


@pytest.mark.parametrize(
    ("target", "name", "value", "words"),
    [
        ("cpu.peak", "environment.mpi", "openmpi", "none of these benchmarks has MPI ranks"),
        ("io.file", "environment.compiler", "g++", "none of these benchmarks is compiled here"),
        ("mpi.latency", ALGORITHM, "ring", "is an MPI collective"),
        ("mpi.latency", "environment.transport", "tpc", "did you mean tcp"),
        ("mpi.latency", "environment.flags", "-fplugin=x.so", "not accepted"),
        ("mpi.latency", "environment.MY_TOKEN", "x", "secret"),
        ("mpi.latency", "environment.mpl", "openmpi", "environment.mpi"),
        ("apps.lammps", ALGORITHM, "ring", "allreduce:ring"),
        ("mpi.latency", "enviroment.mpi", "openmpi", "environment.mpi"),
    ],
)
def test_set_refuses_what_a_study_refuses(target: str, name: str, value: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_points([target], {name: [value]}, MACHINE)
    assert words in str(caught.value)
    assert isinstance(caught.value, UnknownNameError) or str(caught.value).startswith(f"--set {name}: ")


@pytest.mark.parametrize("name", ["OMPI_MCA_btl_tcp_links", "PMIX_MCA_gds", "UCX_TLS", "_X", "I_MPI_ADJUST_BCAST"])
def test_variables_of_libraries_have_lower_case_behind_their_first_word(name: str) -> None:
    (point,) = points(f"benchmarks: {{mpi.latency: {{}}}}\naxes: {{environment.{name}: [1]}}")
    assert point.environment.variables == ((name, "1"),)


@pytest.mark.parametrize("name", ["Mpi", "MPi", "mpi_x", "OMPI_" + "x" * 150, "A-B", "A_b c"])
def test_an_invalid_variable_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="unknown axis"):
        points(f"benchmarks: {{mpi.latency: {{}}}}\naxes: {{'environment.{name}': [1]}}")


def test_containers() -> None:
    axes = {"environment.container": "/images/a", "environment.container_runtime": "podman"}
    chosen = choose({**axes, "environment.container_mpi": "inside"})
    assert chosen == EnvironmentChoice(container="/images/a", container_runtime="podman", container_mpi="inside")
    assert choose({**axes, "environment.container": "none"}) == AS_IT_IS
    given = {"environment.container_mounts": "/d:/d+/x:/y:ro", "environment.container_devices": "nvidia"}
    chosen = choose({"environment.container": "app", **given})
    assert (chosen.container_mounts, chosen.container_devices) == ("/d:/d+/x:/y:ro", "nvidia")
    without = dict.fromkeys(given, "none")
    assert choose({"environment.container": "app", **without}) == EnvironmentChoice(container="app")
    value = environment_value("environment.container_mounts", YamlNode("/d+/x:/y:ro", 1, "/d+/x:/y:ro"))
    assert value == "/d:/d+/x:/y:ro"
    built = choose({**axes, "environment.container_build": "brought"})
    assert built.container_build == "brought" and built.container_mpi is None
    assert not concerns_environment("environment.container_build", benchmark_named("apps.lammps"))


@pytest.mark.parametrize(
    ("axis", "value", "why"),
    [
        ("container_runtime", "podmann", "did you mean podman?"),
        ("container", "-v", "it takes none, the name of a container of the site file, or an image"),
        ("container", "", "it takes none, the name of a container of the site file, or an image"),
        ("container_mounts", "/a:/b:rw", "it takes SOURCE"),
        ("container_mounts", "", "it takes none, or mounts"),
        ("container_devices", "--gpus", "it takes nvidia, rocm, or a CDI name"),
        ("container_mpi", "bound", "bind (the launcher is outside"),
        ("container_build", "here", "brought (built"),
    ],
)
def test_what_containers_are_not(axis: str, value: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        environment_value(f"environment.{axis}", YamlNode(value, 1, value))
    assert why in caught.value.todo


def test_a_placement_of_ranks_concerns_ranks() -> None:
    assert concerns_environment("environment.container_mpi", benchmark_named("mpi.latency"))
    assert not concerns_environment("environment.container_mpi", benchmark_named("cpu.peak"))
    assert concerns_environment("environment.container", benchmark_named("cpu.peak"))
