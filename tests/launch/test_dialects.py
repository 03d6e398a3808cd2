"""The command line of each launcher, compared with its manual."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.launch.mpi import (
    Helpers,
    NoLauncherError,
    RankCommand,
    in_allocation,
    placed,
    rank_command,
    rank_variables,
    runs_of,
)
from seatrial.model.benchmark.program import Layout, layout_of
from seatrial.model.environment.mpi import Mpi, MpiFamily

HELPERS = Helpers(Path("/c/keep"), Path("/c/place"), Path("/c/share"))
SWAPPED = Layout(2, ((1,), (0,)))
THREADED = Layout(2, ((0, 2), (4, 6)))
TWO_NODES = Layout(4, ((0,), (1,), (0,), (1,)), ("n1", "n2"))
UNEQUAL_NODES = Layout(4, ((0,), (1,), (2,), (3,)), ("n1", "n2"))
SHARED = Layout(9, shares_cpus=True)
UNBOUND = Layout(2)


def library(family: MpiFamily, launcher: str | None = "/opt/bin/mpirun") -> Mpi:
    path = None if launcher is None else Path(launcher)
    return Mpi(family.value, family, "1.0", Path("/opt/lib/libmpi.so"), "id", (), (), path)


def command(family: MpiFamily, layout: Layout, launcher: str = "/opt/bin/mpirun") -> RankCommand:
    return rank_command(library(family, launcher), layout, ["OPENBLAS_NUM_THREADS"])


def words(starter: RankCommand, layout: Layout, record: Path | None = None) -> str:
    return " ".join([*starter.argv[1:], *placed(HELPERS, starter, layout, record)])


OPENMPI = "--use-hwthread-cpus --bind-to none"
PLACE = "/c/place --rank-from"


IN_SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]", "SLURMD_NODENAME": "n1", "PATH": "/usr/bin"}


@pytest.fixture
def _in_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IN_SLURM.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_in_slurm")
@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (SWAPPED, f"-np 2 {OPENMPI} {PLACE} OMPI_COMM_WORLD_RANK,PMIX_RANK --ranks 2 --cpus 1/0 --"),
        (THREADED, f"-np 2 {OPENMPI} {PLACE} OMPI_COMM_WORLD_RANK,PMIX_RANK --ranks 2 --cpus 0,2/4,6 --"),
        (UNBOUND, f"-np 2 {OPENMPI}"),
        (SHARED, f"-np 9 {OPENMPI} --oversubscribe"),
        (
            TWO_NODES,
            f"-np 4 {OPENMPI} --host n1:2,n2:2 --map-by slot -x OPENBLAS_NUM_THREADS "
            f"{PLACE} OMPI_COMM_WORLD_RANK,PMIX_RANK --ranks 4 --cpus 0/1 --",
        ),
    ],
)
def test_open_mpi(layout: Layout, expected: str) -> None:
    assert words(command(MpiFamily.OPENMPI, layout), layout) == expected


def _on(*hosts: str) -> Layout:
    return Layout(2 * len(hosts), hosts=hosts)


@pytest.mark.usefixtures("_in_slurm")
@pytest.mark.parametrize(("node", "hosts"), [("n1", ("n3", "n2")), ("n1", ("n2", "n1")), ("n2", ("n1", "n2"))])
def test_open_mpi_keeps_an_order_of_nodes_by_a_name_for_each_rank(
    node: str, hosts: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it fills its own node first, and then the others in Slurm's order."""
    monkeypatch.setenv("SLURMD_NODENAME", node)
    starter = rank_command(library(MpiFamily.OPENMPI), _on(*hosts), variables=IN_SLURM | {"SLURMD_NODENAME": node})
    named = ",".join(host for host in hosts for _ in range(2))
    assert f"--host {named} --map-by seq" in " ".join(starter.argv)
    assert starter.variables["SLURM_NODELIST"] in {"n1,n2,n3", "n1,n2"}, "its daemons are numbered in this order"


def test_srun_keeps_an_order_of_nodes() -> None:
    starter = rank_command(library(MpiFamily.MPICH, "/usr/bin/srun"), _on("n3", "n2"), variables=IN_SLURM)
    assert {"--nodelist=n3,n3,n2,n2", "--distribution=arbitrary"} <= set(starter.argv)
    assert not [word for word in starter.argv if word.startswith("--ntasks-per-node")]


@pytest.mark.parametrize("family", [MpiFamily.MPICH, MpiFamily.MVAPICH, MpiFamily.INTEL])
def test_hydra_refuses_an_order_of_nodes_that_it_cannot_keep(family: MpiFamily) -> None:
    assert rank_command(library(family), _on("n2", "n3"), variables=IN_SLURM).argv
    assert rank_command(library(family), _on("n3", "n2"), variables={}).argv, "ssh starts them in the order given"
    with pytest.raises(NoLauncherError, match="not on n3, n2 in this order"):
        rank_command(library(family), _on("n3", "n2"), variables=IN_SLURM)


HYDRA = "-print-all-exitcodes -rmk user -launcher fork"


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (SWAPPED, f"-np 2 {HYDRA} -bind-to user:1,0"),
        (THREADED, f"-np 2 {HYDRA} -bind-to user:0+2,4+6"),
        (UNBOUND, f"-np 2 {HYDRA} -bind-to none"),
        (TWO_NODES, "-np 4 -print-all-exitcodes -hosts n1,n2 -ppn 2 -bind-to user:0,1"),
        (
            UNEQUAL_NODES,
            "-np 4 -print-all-exitcodes -hosts n1,n2 -ppn 2 -bind-to none "
            f"{PLACE} PMI_RANK,PMIX_RANK --ranks 4 --cpus 0/1/2/3 --",
        ),
    ],
)
@pytest.mark.parametrize("family", [MpiFamily.MPICH, MpiFamily.MVAPICH])
def test_hydra(family: MpiFamily, layout: Layout, expected: str) -> None:
    assert words(command(family, layout), layout) == expected


def test_mvapich_does_not_bind_a_second_time() -> None:
    assert command(MpiFamily.MVAPICH, SWAPPED).variables["MV2_ENABLE_AFFINITY"] == "0"


@pytest.mark.parametrize(
    ("layout", "pins"),
    [
        (SWAPPED, {"I_MPI_PIN": "1", "I_MPI_PIN_PROCESSOR_LIST": "1,0"}),
        (THREADED, {"I_MPI_PIN": "1", "I_MPI_PIN_DOMAIN": "[0x5,0x50]"}),
        (UNBOUND, {"I_MPI_PIN": "0"}),
        (SHARED, {"I_MPI_PIN": "0", "I_MPI_WAIT_MODE": "1"}),
    ],
)
def test_intel(layout: Layout, pins: dict[str, str]) -> None:
    starter = command(MpiFamily.INTEL, layout)
    assert starter.variables == pins
    assert words(starter, layout) == f"-np {layout.ranks} -bootstrap fork -hosts localhost"


@pytest.mark.parametrize(
    ("layout", "binding"),
    [(SWAPPED, "list:1:0"), (THREADED, "list:0,2:4,6"), (UNBOUND, "none"), (UNEQUAL_NODES, "none")],
)
def test_pals(layout: Layout, binding: str) -> None:
    starter = command(MpiFamily.CRAY, layout)
    argv = " ".join(starter.argv)
    assert f"-n {layout.ranks} --ppn 2" in argv and argv.endswith(f"--cpu-bind {binding}")
    assert starter.binds == (binding not in ("none",))


@pytest.mark.parametrize(
    ("family", "pmi"),
    [
        (MpiFamily.OPENMPI, "pmix"),
        (MpiFamily.MPICH, "pmi2"),
        (MpiFamily.INTEL, "pmi2"),
        (MpiFamily.CRAY, "cray_shasta"),
    ],
)
def test_srun(family: MpiFamily, pmi: str) -> None:
    starter = rank_command(library(family, "/usr/bin/srun"), TWO_NODES, variables=IN_SLURM)
    for word in (
        *("--ntasks=4", "--nodes=2", "--nodelist=n1,n2", "--ntasks-per-node=2", "--distribution=block"),
        *(f"--mpi={pmi}", "--cpu-bind=mask_cpu:0x1,0x2", "--overlap"),
    ):
        assert word in starter.argv
    assert "--overcommit" not in starter.argv
    assert "--cpus 0/1" in words(starter, TWO_NODES), "a site may ignore the masks"


def test_srun_starts_libraries_without_a_launcher_only_inside_an_allocation(tmp_path: Path) -> None:
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    alone = library(MpiFamily.CRAY, None)
    with pytest.raises(NoLauncherError, match="salloc"):
        rank_command(alone, SWAPPED, variables={"PATH": str(tmp_path)})
    started = rank_command(alone, SWAPPED, variables={"PATH": str(tmp_path), "SLURM_JOB_ID": "7"})
    assert started.argv[0] == str(tmp_path / "srun")


@pytest.mark.parametrize("family", list(MpiFamily))
@pytest.mark.parametrize("launcher", ["/opt/bin/mpiexec", "/usr/bin/srun"])
@pytest.mark.parametrize("layout", [SWAPPED, THREADED, TWO_NODES, UNEQUAL_NODES, UNBOUND])
def test_no_launcher_oversubscribes_unless_ranks_share_cpus(family: MpiFamily, launcher: str, layout: Layout) -> None:
    starter = command(family, layout, launcher)
    assert not {"--oversubscribe", "--overcommit"} & set(starter.argv)
    assert not [name for name in starter.variables if "yield" in name.lower() or "WAIT" in name]
    placing = placed(HELPERS, starter, layout, None)
    assert bool(placing) == (layout.is_bound and not starter.binds)


@pytest.mark.parametrize("family", list(MpiFamily))
@pytest.mark.parametrize("launcher", ["/opt/bin/mpiexec", "/usr/bin/srun"])
def test_ranks_that_share_cpus_yield(family: MpiFamily, launcher: str) -> None:
    starter = command(family, SHARED, launcher)
    assert set(starter.variables.items()) & {
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
        ("I_MPI_WAIT_MODE", "1"),
    }


def test_the_placement_of_other_programs_is_recorded() -> None:
    starter = command(MpiFamily.MPICH, SWAPPED)
    assert placed(HELPERS, starter, SWAPPED, Path("/r")) == [
        *("/c/place", "--rank-from", "PMI_RANK,PMIX_RANK", "--ranks", "2", "--record", "/r", "--")
    ]


def test_ranks_do_not_inherit_the_rank_variables_of_an_outer_job() -> None:
    variables = {
        "PMI_RANK": "3",
        "OMPI_COMM_WORLD_SIZE": "9",
        "PMIX_MCA_gds": "hash",
        "OMPI_MCA_btl": "tcp",
        "PATH": "",
    }
    assert rank_variables(variables) == ["PMI_RANK", "OMPI_COMM_WORLD_SIZE"]


def test_the_node_that_starts_ranks_is_listed_though_none_runs_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI 4.1 takes the first node of a list without its own for its own, and starts that one's ranks there."""
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    variables = in_allocation(Layout(2, ((1,), (1,)), ("n2", "n4")))
    assert (variables["SLURM_NODELIST"], variables["SLURM_TASKS_PER_NODE"]) == ("n1,n2,n4", "1(x3)")
    monkeypatch.setenv("SLURMD_NODENAME", "n4")
    assert in_allocation(Layout(2, ((1,), (1,)), ("n2", "n4")))["SLURM_NODELIST"] == "n2,n4"


def test_layouts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="3 ranks do not fill 2 nodes"):
        Layout(3, hosts=("a", "b"))
    with pytest.raises(ValueError, match="3 CPUs for 2 ranks of 1 threads"):
        layout_of({"ranks": 2}, (0, 1, 2))
    assert layout_of({"ranks": 2, "threads": 2}, (3, 2, 1, 0)).cpus == ((3, 2), (1, 0))
    assert layout_of({"ranks": 2}, (0, 1), "none") == Layout(2)
    assert layout_of({"ranks": 9}, ()).shares_cpus


def test_numbers_are_shown_as_ranges() -> None:
    assert runs_of([7, 0, 1, 2, 9]) == "0-2,7,9" and runs_of([]) == ""
