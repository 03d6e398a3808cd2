"""srun of a real Slurm: a controller and one node on this machine, with and without a plugin that binds tasks."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from seatrial.errors import BuildError
from seatrial.launch.mpi import Helpers, kept, placed, rank_command, rank_records
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.places.rank_helpers import rank_helpers
from seatrial.processes.tree import is_alive

pytestmark = [pytest.mark.real, pytest.mark.parallel]

CONFIGURATION = """ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={controller_port}
SlurmdPort={node_port}
ProctrackType=proctrack/linuxproc
TaskPlugin={task_plugin}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
TmpFS={folder}/tmp
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  printf("rank %d of %d pid %d\n", rank, ranks, (int)getpid());
  fflush(stdout);
  for (; argc > 1;) pause();
  MPI_Finalize();
  return 0;
}
"""


@dataclass(frozen=True)
class Cluster:
    variables: dict[str, str]
    srun: Path
    salloc: str


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module", params=["task/affinity", "task/none"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running Slurm with one node, this machine."""
    tools = {name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in _TOOLS}
    missing = [name for name, path in tools.items() if path is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and {' '.join(missing) or 'nothing else'} (apt install slurmctld slurmd munge)")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool", "tmp"):
        (folder / name).mkdir()
    folder.chmod(0o755)  # munged trusts no folder that others may write into
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    host = platform.node().partition(".")[0]
    text = CONFIGURATION.format(
        folder=folder,
        host=host,
        task_plugin=request.param,
        cpus=os.cpu_count(),
        controller_port=free_port(),
        node_port=free_port(),
    )
    (folder / "slurm.conf").write_text(text)
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    variables = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    munge = [f"--{name}={folder}/munge.{end}" for name, end in _MUNGE.items()]
    started: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "printed").open("wb") as printed:
            for command in (
                [str(tools["munged"]), "--foreground", "--force", *munge],
                [str(tools["slurmctld"]), "-D", "-f", variables["SLURM_CONF"]],
                [str(tools["slurmd"]), "-D", "-f", variables["SLURM_CONF"]],
            ):
                started.append(subprocess.Popen(command, env=variables, stdout=printed, stderr=printed))
        wait_for_node(tools["sinfo"] or "", variables, started, folder)
        yield Cluster(variables, Path(tools["srun"] or ""), tools["salloc"] or "")
    finally:
        for process in reversed(started):
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


_TOOLS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sinfo")
_MUNGE = {"key-file": "key", "socket": "sock", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}


def wait_for_node(sinfo: str, variables: dict[str, str], started: list[subprocess.Popen[bytes]], folder: Path) -> None:
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline and all(process.poll() is None for process in started):
        asked = subprocess.run([sinfo, "-h", "-o", "%t"], env=variables, capture_output=True, text=True, check=False)
        if asked.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    said = (folder / "printed").read_text(errors="replace").strip().splitlines()
    pytest.skip(f"Slurm does not come up here: {said[-1] if said else 'it says nothing'}")


@pytest.fixture(scope="module")
def helpers() -> Helpers:
    try:
        return rank_helpers()
    except BuildError as problem:
        pytest.skip(f"needs a compiler: {problem}")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("program")

    def build(mpi: str) -> Path:
        mpicc = shutil.which(f"mpicc.{mpi}")
        if mpicc is None:
            pytest.skip(f"needs mpicc.{mpi}")
        if not (folder / mpi).exists():
            (folder / "ranks.c").write_text(PROGRAM)
            subprocess.run([mpicc, "-o", str(folder / mpi), str(folder / "ranks.c")], check=True)
        return folder / mpi

    return build


FAMILIES = [MpiFamily.OPENMPI, MpiFamily.MPICH]


def words(cluster: Cluster, helpers: Helpers, family: MpiFamily, layout: Layout, folder: Path) -> list[str]:
    mpi = Mpi(family.value, family, "", Path(), "", (), (), cluster.srun)
    starter = rank_command(mpi, layout, variables=cluster.variables)
    return [*starter.argv, *placed(helpers, starter, layout, folder)]


@pytest.mark.parametrize("family", FAMILIES)
def test_ranks_are_bound_with_or_without_slurms_help(
    family: MpiFamily, cluster: Cluster, helpers: Helpers, program: Callable[[str], Path], tmp_path: Path
) -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    layout = Layout(2, ((cpus[1],), (cpus[0],)))
    command = [*words(cluster, helpers, family, layout, tmp_path), str(program(family.value))]
    done = subprocess.run(
        [cluster.salloc, "-Q", "--ntasks=2", *command],
        env=cluster.variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(line.partition(" pid")[0] for line in done.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    records = rank_records(tmp_path)
    assert [record.hello.cpus for record in records.values() if record.hello] == [((cpus[1],),), ((cpus[0],),)]


@pytest.mark.parametrize("family", FAMILIES)
def test_ranks_end_with_the_process_that_keeps_srun(
    family: MpiFamily, cluster: Cluster, helpers: Helpers, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """They are not our children: slurmd starts them, and srun must tell it to end them."""
    command = [*words(cluster, helpers, family, Layout(2), tmp_path), str(program(family.value)), "hang"]
    with subprocess.Popen(
        [cluster.salloc, "-Q", "--ntasks=2", *kept(helpers, 0), *command],
        env=cluster.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as job:
        assert job.stdout is not None
        ranks = [int(job.stdout.readline().rpartition(" ")[2]) for _ in range(2)]
        assert all(is_alive(pid) for pid in ranks)
        keeper = next(
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and command_of(entry).startswith(f"{helpers.keep}\0--parent\0" + "0\0")
        )
        os.kill(keeper, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while any(is_alive(pid) for pid in ranks):
            assert time.monotonic() < deadline, "ranks run on"
            time.sleep(0.1)


def command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize("family", FAMILIES)
def test_the_ranks_of_srun_are_profiled(
    family: MpiFamily, cluster: Cluster, program: Callable[[str], Path], tmp_path: Path
) -> None:
    pmi = {MpiFamily.OPENMPI: "pmix", MpiFamily.MPICH: "pmi2"}[family]
    command = [*profiling(tmp_path), str(cluster.srun), "-n", "2", f"--mpi={pmi}", str(program(family.value))]
    done = subprocess.run(command, env=cluster.variables, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["complete"] and answer["ranks"] == len(answer["per_rank"]) == 2
    assert {call["call"]: call["count"] for call in answer["calls"]}["MPI_Comm_size"] == 2


def test_ranks_that_slurm_ends_at_the_time_limit_are_reported(
    cluster: Cluster, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """As at the end of a job's time: SIGTERM, then SIGKILL, by scancel."""
    path = program("mpich")
    command = [*profiling(tmp_path), str(cluster.srun), "-J", "told", "-n", "2", "--mpi=pmi2", str(path), "hang"]
    with subprocess.Popen(command, env=cluster.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert job.stdout is not None and job.stderr is not None
        spoken = 0
        while spoken < 2:
            line = job.stderr.readline()
            assert line, "it ended before both ranks spoke"
            spoken += b"rank" in line
        scancel = cluster.srun.with_name("scancel")
        subprocess.run([scancel, "-n", "told"], env=cluster.variables, check=True)
        answer = json.loads(job.stdout.read())
    assert job.returncode == 3 and not answer["complete"] and answer["exit_status"] != 0
    assert answer["ranks"] == len(answer["per_rank"]) == 2
    assert {call["call"]: call["count"] for call in answer["calls"]}["MPI_Comm_size"] == 2


def profiling(folder: Path) -> list[str]:
    return [sys.executable, "-m", "seatrial", "profile", "--results", str(folder), "--format", "json", "--"]


def test_power_says_that_this_slurm_measures_no_energy(cluster: Cluster) -> None:
    words = [sys.executable, "-m", "seatrial", "power", "--watch", "0.1s", "--format", "json"]
    done = subprocess.run(words, env=cluster.variables, capture_output=True, text=True, check=True)
    found = [one for one in json.loads(done.stdout)["sources"] if one["name"].startswith("slurm:")]
    assert [(one["usable"], one["why"]) for one in found] == [
        (False, "Slurm has no energy plugin here (AcctGatherEnergyType)")
    ]
