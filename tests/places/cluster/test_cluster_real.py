"""A cluster on this machine, with a real Slurm and both MPI libraries: what runs on it, and that nothing stays."""

from __future__ import annotations

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from benchmarks.training.runs import interpreter
from cli.in_process import seatrial_here
from places.host_root import make_host_root
from published_schemas import check
from ssh_server import prepared, serving

from seatrial.environments.mpi import lacking_mpi
from seatrial.model.machine.links import NodeTraffic, too_little
from seatrial.places.cluster import namespaces
from seatrial.places.cluster.namespaces import entering
from seatrial.places.cluster.network import INTERFACE
from seatrial.places.cluster.shape import ClusterState, Home
from seatrial.places.cluster.status import node_variables
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.store.cache import own_cache
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

_CANNOT = ("not installed", "is not mounted here", "cannot be made")
"""What `up` says where a machine refuses namespaces or control groups, or has no Slurm."""
_TREE = ("--tree", "2x2,4:1", "--link", "400mbit", "--node", "2:link=100mbit,quota=80%,memory=2GiB")
_MESSAGE_B = 1 << 20
_INTERFACES = Path("/sys/class/net")
_GROUPS = Path("/sys/fs/cgroup")
_RING = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static char data[1 << 20];
int main(int argc, char **argv) {
  int rank, ranks;
  char host[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Sendrecv_replace(data, sizeof data, MPI_CHAR, (rank + 1) % ranks, 0, (rank + ranks - 1) % ranks, 0,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  gethostname(host, sizeof host);
  printf("%d of %d on %s\\n", rank, ranks, host);
  usleep(500000); /* MPICH 4.0.2 with UCX 1.13: MPI_Finalize right after the first messages over TCP can hang */
  MPI_Finalize();
  return 0;
}
"""


def need_a_cluster() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        namespaces.find_tools()
    except namespaces.ClusterError as error:
        pytest.skip(str(error))


@dataclass(frozen=True)
class Place:
    """Where a test has its cluster, apart from that of the user."""

    folder: Path

    def here(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command whose output Python writes, in this process."""
        return seatrial_here("cluster", *arguments, cwd=Path.cwd(), SEATRIAL_CLUSTER=str(self.folder))

    def seatrial(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.words(*arguments), env=self.variables(), capture_output=True, text=True, timeout=120,
                              check=False, **options)  # fmt: skip

    def started(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(self.words(*arguments), env=self.variables(), text=True, **options)

    @staticmethod
    def words(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "seatrial", "cluster", *arguments]

    def variables(self) -> dict[str, str]:
        return {**os.environ, "SEATRIAL_CLUSTER": str(self.folder)}

    def leftovers(self, name: str) -> list[str]:
        """What is left of a cluster with this name (of its control groups): files, groups, processes, mounts."""
        found = [str(self.folder)] if self.folder.exists() else []
        found += map(str, (top for top in _GROUPS.glob("*") if (top / name).exists() or top.name == name))
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_text(errors="replace")
                if f"/{name}" in (process / "cgroup").read_text() or str(self.folder) in words:
                    found.append(words.replace("\0", " "))
            except OSError:
                continue
        return found + [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]


def new_place() -> Iterator[Place]:
    need_a_cluster()
    above = Path(tempfile.mkdtemp(prefix="seatrial-", dir="/run"))
    above.chmod(0o755)
    place = Place(above / "c")
    interfaces = set(_INTERFACES.iterdir())
    yield place
    place.here("down")
    assert set(_INTERFACES.iterdir()) == interfaces
    shutil.rmtree(above)


@pytest.fixture
def place() -> Iterator[Place]:
    yield from new_place()


@dataclass(frozen=True)
class Up:
    place: Place
    document: dict[str, Any]

    def on(self, *words: str, node: str = "1", **options: Any) -> subprocess.CompletedProcess[str]:
        return self.place.seatrial("exec", "--node", node, "--", *words, **options)

    def at_once(self, *words: str, node: str) -> subprocess.CompletedProcess[str]:
        """The same by nsenter alone: without the node's control group, and without a start of Python."""
        holder = self.state.processes[node]["namespaces"]
        variables = {**os.environ, **node_variables(self.place.folder, os.environ)}
        inside = [*entering(namespaces.find_tools(), holder), *words]
        return subprocess.run(inside, env=variables, capture_output=True, text=True, timeout=120, check=False)

    @property
    def state(self) -> ClusterState:
        state = Home(self.place.folder).read_state()
        assert state is not None
        return state


@pytest.fixture(scope="module")
def cluster() -> Iterator[Up]:
    for place in new_place():
        done = place.seatrial("up", *_TREE, "--format", "json")
        if done.returncode == 3 and any(words in done.stderr for words in _CANNOT):
            pytest.skip(done.stderr.strip())
        assert done.returncode == 0, done.stderr
        yield Up(place, json.loads(done.stdout))


def test_every_node_is_idle_and_no_link_is_faster_than_asked(cluster: Up) -> None:
    check(cluster.document, "cluster-1")
    nodes, switches = cluster.document["nodes"], cluster.document["switches"]
    assert cluster.document["state"] == "up"
    assert [(node["name"], node["slurm"], node["switch"]) for node in nodes] == [
        ("n1", "idle", "leaf1"), ("n2", "idle", "leaf1"), ("n3", "idle", "leaf2"), ("n4", "idle", "leaf2"),
    ]  # fmt: skip
    links = [node["link"] for node in nodes] + [switch["uplink"] for switch in switches if switch["uplink"]]
    assert [link["asked_Bps"] * 8e-6 for link in links] == [400, 100, 400, 400, 200, 200]
    for link in links:  # on a loaded machine, what was queued may arrive a little faster
        assert 0 < link["out_Bps"] < 1.25 * link["asked_Bps"] and 0 < link["in_Bps"] < 1.25 * link["asked_Bps"]
        assert link["round_trip_s"] > 0
    assert nodes[3]["link"]["against"] == ["n3"] and switches[1]["uplink"]["against"] == ["n3", "n4"]


def test_a_second_cluster_is_refused(cluster: Up) -> None:
    done = cluster.place.here("up", "--nodes", "2", "--link", "1gbit")
    assert done.returncode == 2 and "already there" in done.stderr
    assert json.loads(cluster.place.here("status", "--format", "json").stdout) == cluster.document


def test_a_command_has_its_input_output_and_exit_status(cluster: Up, tmp_path: Path) -> None:
    done = cluster.on("sh", "-c", "cat; hostname; pwd; exit 7", node="n3", input="given\n", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, f"given\nn3\n{tmp_path}\n")
    assert cluster.on("nosuch").returncode == 127
    assert cluster.on("true", node="5").returncode == 2


def test_a_command_gets_the_signals_of_seatrial(cluster: Up) -> None:
    script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with cluster.place.started("exec", "--", "sh", "-c", script, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=20) == 5


def test_slurm_starts_tasks_within_the_limits_of_their_node(cluster: Up) -> None:
    done = cluster.on("srun", "-N", "4", "-l", "sh", "-c", "hostname; cat /proc/self/cgroup")
    assert done.returncode == 0, done.stderr
    lines = [line.split(": ", 1) for line in done.stdout.splitlines()]
    for rank in range(4):
        own = [text for number, text in lines if number.strip() == str(rank)]
        assert own[0] == f"n{rank + 1}" and any(line.endswith(f"/n{rank + 1}") for line in own)
    groups = Home(cluster.place.folder).read_journal()
    assert groups is not None

    def limit(name: str) -> list[str]:
        return [(folder / name).read_text().strip() for folder in groups.of("n2") if (folder / name).exists()]

    assert limit("memory.max") + limit("memory.limit_in_bytes") == [str(2 << 30)]
    quota_us = round(0.8 * 100_000 * len(cluster.document["nodes"][1]["cpus"]))
    assert limit("cpu.max") in ([], [f"{quota_us} 100000"]) and limit("cpu.cfs_quota_us") in ([], [str(quota_us)])


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("ring")

    def build(mpi: str) -> Path:
        compiler = shutil.which(f"mpicc.{mpi}")
        if compiler is None:
            pytest.skip(f"needs mpicc.{mpi}")
        if not (folder / mpi).exists():
            (folder / "ring.c").write_text(_RING)
            subprocess.run([compiler, "-o", str(folder / mpi), str(folder / "ring.c")], check=True)
        return folder / mpi

    return build


@pytest.mark.parametrize(
    ("mpi", "launcher"),
    [
        ("openmpi", "srun -N 4 --mpi=pmix"),
        ("mpich", "srun -N 4 --mpi=pmi2"),
        ("openmpi", "salloc -Q -N 4 mpirun.openmpi"),
        ("mpich", "salloc -Q -N 4 mpirun.mpich"),
    ],
)
def test_messages_of_mpi_pass_the_links(mpi: str, launcher: str, cluster: Up, ring: Callable[[str], Path]) -> None:
    before = _traffic(cluster)
    done = cluster.on(*launcher.split(), str(ring(mpi)))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{rank} of 4 on n{rank + 1}" for rank in range(4)]
    counted = {
        node: NodeTraffic(after.sent_B - before[node].sent_B, after.received_B - before[node].received_B)
        for node, after in _traffic(cluster).items()
    }
    for one in counted.values():
        assert _MESSAGE_B <= one.sent_B < 2 * _MESSAGE_B and _MESSAGE_B <= one.received_B < 2 * _MESSAGE_B
    assert "did not pass the link" in too_little(dict.fromkeys(counted, 4.0 * _MESSAGE_B), counted)


def _traffic(cluster: Up) -> dict[str, NodeTraffic]:
    """Node -> what has passed its link so far, headers included."""
    holders = {node.name: cluster.state.processes[node.name]["namespaces"] for node in cluster.state.shape.nodes}
    traffic = {}
    for node, pid in holders.items():
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
        counters = next(line for line in lines if line.strip().startswith(f"{INTERFACE}:")).partition(":")[2].split()
        traffic[node] = NodeTraffic(sent_B=int(counters[8]), received_B=int(counters[0]))
    return traffic


_ON_ALL_NODES = """
import sys, seatrial
benchmark, mpi, results = sys.argv[1:]
seatrial.run(benchmark, set={"environment.mpi": mpi, "size_B": 1 << 16}, results=results, repeats=1)
"""


@pytest.mark.parametrize(("benchmark", "mpi"), [("mpi.bandwidth", "openmpi"), ("mpi.allreduce", "mpich")])
def test_ranks_are_spread_over_the_like_nodes_of_an_allocation(
    benchmark: str, mpi: str, cluster: Up, tmp_path: Path
) -> None:
    """n2 has less memory and a quota, so it is left out; n1 and n4 do not share CPUs."""
    results = tmp_path / "results"
    program = [sys.executable, "-c", _ON_ALL_NODES, benchmark, mpi, str(results)]
    done = cluster.on("salloc", "-Q", "-N", "3", "-w", "n1,n2,n4", *program)
    assert done.returncode == 0, done.stderr
    assert "n2 is left out: " in done.stderr and "memory limit 2 GiB, which the others do not state" in done.stderr
    ((repeat,),) = read_contents(ResultsFolder.existing(results)).records.values()
    assert repeat.outcome.is_ok, repeat.outcome
    assert repeat.seen["hosts"] == ["n1", "n4"]
    traffic = repeat.seen["notes"]["traffic"]
    assert [node["host"] for node in traffic] == ["n1", "n4"]
    assert all(node["sent_B"] + node["received_B"] > _MESSAGE_B for node in traffic)


_TRAINS = """
import sys, seatrial
python, results = sys.argv[1:]
settings = {"environment.python": python, "environment.mpi": "openmpi", "nodes": 2, "processes": 2, "threads": 1}
seatrial.run("training.pytorch", set=settings | {"batch": 16, "steps": 4, "warmup": 6}, results=results, repeats=1)
"""


def test_a_network_is_trained_on_two_nodes(cluster: Up, tmp_path: Path) -> None:
    results = tmp_path / "results"
    program = [sys.executable, "-c", _TRAINS, interpreter("torch"), str(results)]
    done = cluster.on("salloc", "-Q", "-N", "2", "-w", "n1,n4", *program)
    assert done.returncode == 0, done.stderr
    ((repeat,),) = read_contents(ResultsFolder.existing(results)).records.values()
    assert repeat.outcome.is_ok, repeat.outcome
    assert [one["host"] for one in repeat.seen["notes"]["processes"]] == ["n1", "n4"]
    assert repeat.checks["gradient_error"] == repeat.checks["results_differ"] == 0


_IN_CONTAINERS = """
import sys, seatrial
image, runtime, mpi, results = sys.argv[1:]
settings = {"environment.container": image, "environment.container_runtime": runtime, "environment.mpi": mpi}
more = {"ranks": 4, "oversubscribe": True, "size_B": 8}
seatrial.run("mpi.allreduce", set=settings | more, results=results, repeats=1)
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image") / "root"
    make_host_root(root)
    return root


def test_ranks_in_containers_on_several_nodes(image: Path, cluster: Up, tmp_path: Path) -> None:
    """Each node has a container of its own, in which its two ranks join."""
    if RUNTIMES["charliecloud"].path() is None:
        pytest.skip(f"needs {RUNTIMES['charliecloud'].package}")
    results = tmp_path / "results"
    program = [sys.executable, "-c", _IN_CONTAINERS, str(image), "charliecloud", "openmpi", str(results)]
    done = cluster.on("salloc", "-Q", "-N", "2", "-w", "n1,n4", *program)
    assert done.returncode == 0, done.stderr
    ((repeat,),) = read_contents(ResultsFolder.existing(results)).records.values()
    assert repeat.outcome.is_ok, repeat.outcome
    assert repeat.seen["hosts"] == ["n1", "n1", "n4", "n4"]
    facts = repeat.seen["container"]
    assert facts["mpi"] == "joined"
    assert (facts["ranks"]["world"], facts["ranks"]["user_namespaces"]) == (4, 2)
    # Other tests make and remove folders there meanwhile, at which Path.glob would fail.
    assert glob.glob(str(own_cache().path / "running/*/*/rank-*")) == []  # noqa: PTH207


_ACCEPTED_AND_KILLED = """#!/bin/sh
/usr/bin/sbatch "$@" >"${0%/*}/accepted"
guard=$PPID
read -r _ _ _ seatrial _ <"/proc/$guard/stat"
kill -KILL "$seatrial"
sleep 5
"""
_MEASURE = ("run", "cpu.peak", "--set", "cores=one", "--budget")


def test_a_job_is_measured_once_whoever_is_killed(cluster: Up, tmp_path: Path) -> None:
    """The submitter is killed as soon as Slurm has accepted its job, before it knows that; the same command goes on."""
    results = tmp_path / "results"
    command = [sys.executable, "-m", "seatrial", *_MEASURE, "3s", "--results", str(results), "--format", "json"]
    kills = tmp_path / "bin" / "sbatch"
    kills.parent.mkdir()
    kills.write_text(_ACCEPTED_AND_KILLED)
    kills.chmod(0o755)
    path = f"PATH={kills.parent}:{os.environ['PATH']}"
    assert cluster.on("env", path, *command).returncode == 128 + signal.SIGKILL
    assert (tmp_path / "bin" / "accepted").read_text().strip().isdecimal()
    done = cluster.on(*command)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    check(found, "results-1")
    (experiment,) = found["experiments"]
    assert experiment["outcome"] == "ok" and not experiment["reused"]
    jobs = list(results.glob("jobs/2*"))
    assert len([job for job in jobs if (job / "ended").exists()]) == 1, "the first was adopted, or given up"
    assert all((job / "ended").exists() or (job / "taken").readlink() == Path("void") for job in jobs)
    lines = [json.loads(line) for file in results.glob("records/*") for line in file.read_text().splitlines()]
    repeats = [line["repeat"] for line in lines]
    assert sorted(repeats) == list(range(len(repeats))) and len(repeats) == experiment["figures"][0]["n_repeats"]
    assert {line["seen"]["host"] for line in lines} <= {"n1", "n2", "n3", "n4"}


def test_a_job_is_cancelled_and_the_same_command_would_submit_another(cluster: Up, tmp_path: Path) -> None:
    results = tmp_path / "results"
    lasts = ("run", "cpu.peak", "cpu.gemm", "--budget", "90s")  # some 30 s at least
    command = [sys.executable, "-m", "seatrial", *lasts, "--results", str(results)]
    done = cluster.on(*command, "--detach", "--format", "json")
    assert done.returncode == 0 and "submitted job" in done.stderr, done.stderr
    document = json.loads(done.stdout)
    check(document, "jobs-1")
    assert [job["phase"] in ("waiting", "running") for job in document["jobs"]] == [True]
    done = cluster.on(*command, "--cancel")
    assert done.returncode == 0 and "1 job cancelled" in done.stderr
    (first,) = results.glob("jobs/2*")
    assert json.loads((first / "over.json").read_text())["state"] == "cancelled"
    refused = cluster.on(*command, "--detach", "--max-node-hours", "0.001")  # what it would submit again
    assert refused.returncode == 2 and "node-hours" in refused.stderr


def test_a_job_gets_the_nodes_of_each_placement(cluster: Up, tmp_path: Path) -> None:
    """Also where no rank is on the node that starts them: Open MPI once started those of n3 on n1. Ranks keep the order
    of a list that is not Slurm's, or there is no result."""
    done = cluster.on(
        *(sys.executable, "-m", "seatrial", "run", "mpi.latency", "--results", str(tmp_path / "results")),
        *("--set", "nodes=2", "--set", "ranks=2", "--set", "size_B=8", "--set", "environment.mpi=openmpi"),
        *("--set", "node_placement=across-switches,n3+n4,n4+n1", "--budget", "2s", "--format", "json"),
    )
    assert done.returncode == 0, done.stderr
    contents = read_contents(ResultsFolder.existing(tmp_path / "results"))
    found = {
        contents.experiments[key].parameters["node_placement"]: {tuple(one.seen["hosts"]) for one in records}
        for key, records in contents.records.items()
    }
    assert found == {"across-switches": {("n1", "n3")}, "n3+n4": {("n3", "n4")}, "n4+n1": {("n4", "n1")}}
    (script,) = (tmp_path / "results").glob("jobs/2*/script")
    assert "#SBATCH --nodelist=n3,n4,n1" in script.read_text()


_TWO_PARTITIONS = """systems:
  here: {batch: slurm, poll: 1s, partitions: {left: , right: }}
"""
_ALONG_SYSTEM = """study: processors
question: q
benchmarks: {cpu.peak: {cores: one, precision: fp64}}
axes: {system: ["here:left", "here:right"]}
compare: {along: system, baseline: "here:right"}
repeat: {budget: 6s}
"""


def test_the_systems_of_a_study_are_measured_in_jobs_of_their_own_and_compared(cluster: Up, tmp_path: Path) -> None:
    """Two partitions of like nodes: one experiment by all that identifies it but the system."""
    (tmp_path / "site.yaml").write_text(_TWO_PARTITIONS)
    (tmp_path / "s.yaml").write_text(_ALONG_SYSTEM)
    results = tmp_path / "results"
    command = (sys.executable, "-m", "seatrial", "run", str(tmp_path / "s.yaml"))
    command += ("--site", str(tmp_path / "site.yaml"), "--results", str(results))
    partitions = {"left": "n3", "right": "n4"}
    for name, node in partitions.items():
        assert (
            cluster.at_once(
                "scontrol", "create", f"PartitionName={name}", f"Nodes={node}", "State=DOWN", node="n1"
            ).returncode
            == 0
        )
    try:
        detached = cluster.on(*command, "--detach", "--format", "json")
        assert detached.returncode == 0, detached.stderr
        assert json.loads(detached.stdout)["system"] == "here:left, here:right"
        cancelled = cluster.on(*command, "--cancel", "--format", "json")
        assert cancelled.returncode == 0, cancelled.stderr
        assert len(json.loads(cancelled.stdout)["jobs"]) == 2
        assert not cluster.at_once("squeue", "--noheader", node="n1").stdout
        for name in partitions:
            assert cluster.at_once("scontrol", "update", f"PartitionName={name}", "State=UP", node="n1").returncode == 0
        again = cluster.on(*command, "--detach", "--format", "json")
        assert again.returncode == 0, again.stderr
        done = cluster.on(*command, "--format", "json")
    finally:
        for name in partitions:
            cluster.at_once("scontrol", "delete", f"PartitionName={name}", node="n1")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check(document, "results-1")
    assert len(list(results.glob("jobs/2*"))) == 4, "the last command waits for the jobs of the one before it"
    assert len(document["study"]["comparisons"]) == 1
    sides = [(one["baseline"], one["candidate"]) for one in document["study"]["differences"] if one["intended"]]
    assert ("here:right", "here:left") in sides
    contents = read_contents(ResultsFolder.existing(results))
    found = {
        contents.experiments[key].parameters["system"]: {record.seen["host"] for record in records}
        for key, records in contents.records.items()
    }
    assert found == {"here:left": {"n3"}, "here:right": {"n4"}}, "never pooled"


_NO_PYTHON = """systems:
  here:
    batch: slurm
    poll: 1s
    partitions:
      all: {python: none, shared: false, extra: ["#SBATCH --nodelist=n3"]}
"""


@contextmanager
def strange_node(cluster: Up, *hidden: Path) -> Iterator[None]:
    """On n3, what starts Python ends with an error, and these folders are empty."""
    interpreter = os.path.realpath(sys.executable)
    assert cluster.at_once("mount", "--bind", "/bin/false", interpreter, node="n3").returncode == 0
    for folder in hidden:
        assert cluster.at_once("mount", "-t", "tmpfs", "tmpfs", str(folder), node="n3").returncode == 0
    try:
        assert cluster.at_once(interpreter, "--version", node="n3").returncode == 1
        yield
    finally:
        for path in (interpreter, *map(str, hidden)):
            assert cluster.at_once("umount", path, node="n3").returncode == 0


def _until(lines: IO[str], word: str) -> Iterator[str]:
    """Lines up to the first with a word."""
    for line in lines:
        yield line
        if word in line:
            return


def test_nodes_without_python_and_shared_files_are_measured_by_native_programs(cluster: Up, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(_NO_PYTHON)
    results = tmp_path / "results"
    measure = (sys.executable, "-m", "seatrial", *_MEASURE, "1s")
    command = (*measure, "--site", str(tmp_path / "site.yaml"), "--system", "here", "--results", str(results))
    with strange_node(cluster, tmp_path, own_cache().path):
        words = ("exec", "--node", "1", "--", *command)
        with cluster.place.started(*words, stderr=subprocess.PIPE) as interrupted:
            assert interrupted.stderr is not None
            assert "submitted job" in "".join(_until(interrupted.stderr, "submitted job"))
            interrupted.send_signal(signal.SIGINT)
            said = interrupted.stderr.read()
            assert interrupted.wait(30) == 128 + signal.SIGINT and "the jobs go on; the same command waits" in said
        done = cluster.on(*command, "--format", "json")
    assert done.returncode == 0, done.stderr
    (job,) = results.glob("jobs/2*")
    assert "already submitted by the same command" in done.stderr, "Ctrl-C ended no job"
    assert not Path("/tmp", f"seatrial-{job.name}").exists(), "the job's folder on the node is removed"
    found = json.loads(done.stdout)
    check(found, "results-1")
    (experiment,) = found["experiments"]
    assert experiment["outcome"] == "ok" and experiment["figures"][0]["n_repeats"] >= 6
    records = [repeat for own in read_contents(ResultsFolder.existing(results)).records.values() for repeat in own]
    assert {repeat.seen["host"] for repeat in records} == {"n3"}
    assert all("no Python" in repeat.seen["not_observed"] for repeat in records)
    before = len(list(results.glob("jobs/2*")))
    again = cluster.on(*command)
    assert again.returncode == 0 and len(list(results.glob("jobs/2*"))) == before
    refused = cluster.on(*command, "gpu.triad")
    assert refused.returncode == 2 and "no Python" in refused.stderr and "python: /path" in refused.stderr


def test_a_screen_names_the_node_with_less_memory_and_a_quota(cluster: Up, tmp_path: Path) -> None:
    """Each node that is up is measured in a job of its own."""
    results, page = tmp_path / "results", tmp_path / "page.html"
    command = (sys.executable, "-m", "seatrial", "screen", "cpu.peak", "--budget", "2s", "--no-links")
    change = ("scontrol", "update", "nodename=n4")
    assert cluster.at_once(*change, "state=drain", "reason=test", node="n1").returncode == 0
    done = cluster.on(*command, "--results", str(results), "-o", str(page), "--format", "json")
    assert cluster.at_once(*change, "state=resume", node="n1").returncode == 0
    until = time.monotonic() + 30  # later tests use the node
    while cluster.at_once("sinfo", "-h", "-n", "n4", "-o", "%T", node="n1").stdout.strip() != "idle":
        assert time.monotonic() < until
        time.sleep(0.1)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    check(found, "screen-1")
    places = [(node["name"], node["switch"]) for node in found["nodes"]]
    assert places == [("n1", "leaf1"), ("n2", "leaf1"), ("n3", "leaf2")]
    read = {(one["what"], one["figure"]) for one in found["odd"] if not one["benchmark"]}
    assert read == {("n2", "memory"), ("n2", "CPUs")}
    assert "n4: drain in Slurm" in found["not_screened"]
    assert "What is odd" in page.read_text() and len(list(results.glob("jobs/2*"))) >= 3  # more where one was odd


def test_what_was_odd_once_is_measured_again_before_it_is_named(cluster: Up, tmp_path: Path) -> None:
    """The program prints half the rate on n3 in its first job only: the nodes are measured one after the other."""
    results, program = tmp_path / "results", tmp_path / "rate.sh"
    program.write_text(
        "node=$(hostname) jobs=$(ls $1/jobs | wc -l) rate=200\n"
        '[ "$node" = n3 ] && [ "$jobs" -le 3 ] && rate=100\n'
        "echo rate $rate.$(date +%N | cut -c 7)\n"
    )
    declared = {
        "name": "rate",
        "question": "How fast is it?",
        "argv": ["sh", str(program), str(results)],
        "figures": [{"name": "rate", "unit": "B/s", "better": "higher", "pattern": r"rate (\S+)"}],
    }
    (tmp_path / "rate.yaml").write_text(json.dumps({"benchmark": declared}))
    command = (sys.executable, "-m", "seatrial", "screen", str(tmp_path / "rate.yaml"), "--budget", "3s", "--no-links")
    done = cluster.on(*command, "--results", str(results), "--format", "json")
    (odd,) = (line for line in done.stderr.splitlines() if line.startswith("measuring again what was odd: "))
    assert done.returncode == 0 and odd.endswith("n3"), done.stderr  # other work may make others odd as well
    found = json.loads(done.stdout)
    check(found, "screen-1")
    assert "rate" not in {one["figure"] for one in found["odd"]}
    (once,) = (one for one in found["not_seen_again"] if one["figure"] == "rate")
    assert once["what"] == "n3" and abs(once["ratio"] - 0.5) < 0.01 and abs(once["later"] - 1.0) < 0.01
    jobs = len(list(results.glob("jobs/2*")))
    again = cluster.on(*command, "--results", str(results))
    assert "node n3 was odd at first only" in again.stdout
    assert len(list(results.glob("jobs/2*"))) == jobs, again.stderr


def test_hosts_of_the_site_file_are_measured_by_ssh(cluster: Up, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With a real sshd on the other node and no batch system: one node, and ranks on two."""
    if (need := lacking_mpi()) is not None:
        pytest.skip(need)
    place = prepared(tmp_path_factory.mktemp("hosts"), 2222)
    nodes = [node["name"] for node in cluster.document["nodes"][::2]]  # like the first; the second is not
    site = place.folder / "site.yaml"
    site.write_text(f"systems:\n  virtual: {{partitions: {{nodes: {{hosts: [{', '.join(nodes)}]}}}}}}\n")
    words = ["env", f"PATH={place.variables()['PATH']}", sys.executable, "-m", "seatrial", "run", "mpi.latency"]
    words += ["cpu.peak", "--set", "size_B=8", "--set", "ranks=2", "--set", "cores=one", "--budget", "4s"]
    words += ["--system", "virtual:nodes"]
    words += ["--site", str(site), "--results", str(place.folder / "r")]
    words += ["--format", "json", "--ignore-lock-of", "root"]
    enter = cluster.place.words("exec", "--node", "3", "--")
    with serving(place, enter, cluster.place.variables()):
        until = time.monotonic() + 60
        while (
            cluster.at_once("ssh-keyscan", "-p", "2222", nodes[1], node="n1").stdout == "" and time.monotonic() < until
        ):
            time.sleep(0.2)
        done = cluster.on(*words)
    assert done.returncode == 0, done.stderr
    found = {one["benchmark"]: one for one in json.loads(done.stdout)["experiments"]}
    assert {name: one["outcome"] for name, one in found.items()} == {"mpi.latency": "ok", "cpu.peak": "ok"}
    assert found["mpi.latency"]["hosts"] == nodes and found["cpu.peak"]["hosts"] == nodes[:1]


def test_a_node_without_slurmd_is_named_and_goes_with_the_rest(cluster: Up) -> None:
    """The last test of this cluster, which it ends; some process still runs on a node then."""
    os.kill(cluster.state.processes["n2"]["slurmd"], signal.SIGKILL)
    shown = cluster.place.here("status")
    assert shown.returncode == 0 and "n2: slurmd ended" in shown.stdout
    name = cluster.state.name
    with cluster.place.started("exec", "--", "sh", "-c", "echo on; sleep 600 & wait", stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None and busy.stdout.readline() == "on\n"
        assert cluster.on(*cluster.place.words("down")).returncode == 2, "a node cannot end its own cluster"
        assert cluster.place.leftovers(name)
        assert cluster.place.here("down").returncode == 0
    assert not cluster.place.leftovers(name)
    for words, status in ((("down",), 0), (("status",), 0), (("exec", "--", "true"), 2)):
        assert cluster.place.here(*words).returncode == status


@pytest.mark.parametrize(
    ("seen", "number"),
    [
        ("n2/boot_id", signal.SIGKILL),
        ("n2/slurmd.printed", signal.SIGKILL),
        ("n2/slurmd.printed", signal.SIGTERM),
    ],
)
def test_nothing_stays_of_an_up_that_is_killed(seen: str, number: int, place: Place) -> None:
    with place.started("up", "--nodes", "2", "--link", "1gbit", stderr=subprocess.DEVNULL) as starting:
        until = time.monotonic() + 60
        while not (place.folder / seen).exists():
            assert starting.poll() is None and time.monotonic() < until
            time.sleep(0.002)
        (top, *_) = json.loads((place.folder / "journal").read_text())["tops"]
        starting.send_signal(number)
    name = Path(top).name
    if number == signal.SIGTERM:
        assert starting.returncode == 128 + signal.SIGTERM
    else:
        assert "did not finish" in place.here("status").stdout
        assert place.here("down").returncode == 0
    assert not place.leftovers(name)


def test_a_delay_that_cannot_be_had_leaves_nothing(place: Place) -> None:
    done = place.here("up", "--nodes", "2", "--link", "1gbit,50us")
    if done.returncode == 0:
        pytest.skip("this kernel has netem")
    assert done.returncode == 3 and "no netem" in done.stderr and not place.folder.exists()


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = seatrial_here("cluster", "up", "--nodes", "2", "--link", "1gbit", cwd=tmp_path)
    assert done.returncode == 3 and "needs root" in done.stderr


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setattr(namespaces, "SYSTEM_PATH", str(tmp_path))
    done = seatrial_here("cluster", "up", "--nodes", "2", "--link", "1gbit", cwd=tmp_path)
    assert done.returncode == 3 and "apt install slurmctld slurmd slurm-client munge" in done.stderr


def test_a_folder_that_others_cannot_reach_is_refused(tmp_path: Path) -> None:
    need_a_cluster()
    closed = Path(tempfile.mkdtemp(prefix="seatrial-", dir="/run"))
    try:
        done = Place(closed / "c").here("up", "--nodes", "2", "--link", "1gbit")
        assert done.returncode == 2 and "munged" in done.stderr and not (closed / "c").exists()
    finally:
        closed.rmdir()
