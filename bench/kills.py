"""Disturbs studies that run in jobs of a batch system, gives the same command again, and checks what was measured.

python bench/kills.py [--nodes 3] [--kills 30] [--each 3] [--seed 1] [--only NAME,...] [-o FILE.json]

Needs root and what `seatrial cluster` needs: it brings up its own cluster with a real Slurm. A small study goes
through `run --system`, each time into a new folder. One disturbance comes at a random moment (seeded) of its life: the
submitter is killed with -9; slurmd of the job's node or slurmctld is killed, and started again after some seconds; the
job is cancelled or requeued; the network of the job's node, or of the submitter's, is down for some seconds; two
submitters start at once; a `run` without jobs measures beside. Then the same command is given again, until it succeeds
but at most three times.

A row is right if then every point is there once, in the results, in `export` and in `query`; no repeat was made twice
and none is missing; no job is left in the queue; nothing printed a traceback; and every command that did not succeed
said which part and why. Rows that are in FILE.json already are kept, and the rest is added.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from common import live_machine, provenance, ready, today, write

from seatrial.engine.lock_file import HOST
from seatrial.jobs.folder import JobFolder
from seatrial.places.cluster.groups import ControlGroups, join
from seatrial.places.cluster.namespaces import Tools, entering, find_tools, plain_environment
from seatrial.places.cluster.network import INTERFACE
from seatrial.places.cluster.shape import FOLDER, HEAD, ClusterState, Home
from seatrial.processes.start import start_detached
from seatrial.store.folder import ResultsFolder

HOME = Path(os.environ.get(FOLDER, "/run/seatrial-kills"))
STUDY = """study: kills
question: Is every point measured once, whatever is killed?
benchmarks:
  command: {}
axes:
  argv: [[sleep, "0.15"], [sleep, "0.25"], [sleep, "0.35"]]
repeat: {precision: 20%, budget: 40s, max: 8}
"""
POINTS = 3
LONGEST_S = 150.0
AWAY_S = 4.0
"""How long a daemon or a network is away."""
TRIES = 3


@dataclass
class Cluster:
    """The cluster that is disturbed."""

    tools: Tools
    state: ClusterState
    groups: ControlGroups
    daemons: dict[tuple[str, str], int] = field(default_factory=dict)

    def command(self, *words: str, node: str = "1") -> list[str]:
        """A command on a node."""
        return [sys.executable, "-m", "seatrial", "cluster", "exec", "--node", node, "--", *words]

    def on(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the first node."""
        return subprocess.run(
            self.command(*words), env=_variables(), capture_output=True, text=True, timeout=LONGEST_S, check=False
        )

    def kill(self, node: str, daemon: str) -> None:
        """Kill a daemon with -9."""
        os.kill(self.daemons.get((node, daemon), self.state.processes[node][daemon]), signal.SIGKILL)

    def start(self, node: str, daemon: str) -> None:
        """Start it again."""
        conf = str(HOME / "slurm.conf")
        words = [self.tools.paths[daemon], "-D", *(("-N", node) if daemon == "slurmd" else ()), "-f", conf]
        command = [*entering(self.tools, self.state.processes[node]["namespaces"]), *words]
        before = partial(join, self.groups.of(node))
        pid = start_detached(command, plain_environment(), HOME / f"{daemon}.again", before=before)
        self.daemons[node, daemon] = pid

    def set_link(self, node: str, up_or_down: str) -> None:
        """Take the network of a node up or down."""
        inside = entering(self.tools, self.state.processes[node]["namespaces"])
        self.tools.run([*inside, self.tools.paths["ip"], "link", "set", "dev", INTERFACE, up_or_down])

    def queue(self) -> list[str]:
        """The jobs in the queue, once Slurm answers."""
        for _ in range(60):
            done = self.on("squeue", "--noheader", "--format=%i %T")
            if done.returncode == 0:
                return done.stdout.split("\n")[:-1]
            time.sleep(1.0)
        return ["Slurm does not answer"]

    def wait_until_idle(self) -> None:
        """Until every node can take jobs again."""
        for _ in range(90):
            states = self.on("sinfo", "--noheader", "--Node", "--format=%t").stdout.split()
            if states and set(states) == {"idle"}:
                return
            if any(state.startswith(("down", "drain")) for state in states):
                names = ",".join(node.name for node in self.state.shape.nodes)
                self.on("scontrol", "update", f"nodename={names}", "state=resume")
            time.sleep(1.0)
        raise SystemExit(f"nodes do not become idle: {states}")


def _variables() -> dict[str, str]:
    """The jobs only sleep: they hold their own lock, and wait for no other measurement on this machine."""
    return {**os.environ, FOLDER: str(HOME), HOST: "seatrial-kills"}


@contextmanager
def cluster_up(nodes: int) -> Iterator[Cluster]:
    """A cluster for the time of the context."""
    seatrial = [sys.executable, "-m", "seatrial", "cluster"]
    up = [*seatrial, "up", "--nodes", str(nodes), "--link", "1gbit"]
    done = subprocess.run(up, env=_variables(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the cluster does not come up: {done.stderr.strip()}")
    try:
        state, groups = Home(HOME).read_state(), Home(HOME).read_journal()
        if state is None or groups is None:
            raise SystemExit("the state of the cluster cannot be read")
        yield Cluster(find_tools(), state, groups)
    finally:
        subprocess.run([*seatrial, "down"], env=_variables(), check=False)


@dataclass
class Trial:
    """One study that is disturbed, in its own folder."""

    cluster: Cluster
    folder: Path
    moment_s: float
    draw: random.Random

    @property
    def results(self) -> Path:
        """The results folder."""
        return self.folder / "results"

    def words(self) -> list[str]:
        """The command."""
        study = str(self.folder / "study.yaml")
        return [sys.executable, "-m", "seatrial", "run", study, "--results", str(self.results), "--format", "json"]

    def started(self, name: str, words: list[str], node: str = "1") -> Started:
        """Start a command on a node, and note the id of its process."""
        noting = ["sh", "-c", 'echo $$ >"$0"; exec "$@"', str(self.folder / f"{name}.pid"), *words]
        return Started(self, name, self.cluster.command(*noting, node=node))

    def jobs(self) -> list[JobFolder]:
        """The jobs that there are."""
        return JobFolder.all(ResultsFolder.existing(self.results)) if self.results.is_dir() else []

    def running_job(self) -> tuple[str, str]:
        """Wait for a job that has started: the batch system's id of it, and its node."""
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until:
            for job in self.jobs():
                start = job.start()
                if start is not None and job.batch_id is not None:
                    return job.batch_id, start.host
            time.sleep(0.05)
        raise SystemExit(f"no job of {self.folder} starts")


class Started:
    """A command that runs."""

    def __init__(self, trial: Trial, name: str, command: list[str]) -> None:
        self._files = [trial.folder / f"{name}.{stream}" for stream in ("out", "err")]
        self._pid = trial.folder / f"{name}.pid"
        with self._files[0].open("w") as out, self._files[1].open("w") as err:
            self.process = subprocess.Popen(command, env=_variables(), stdout=out, stderr=err)
        until = time.monotonic() + LONGEST_S
        while not (self._pid.exists() and self._pid.read_text().strip()) and time.monotonic() < until:
            time.sleep(0.01)

    def kill(self) -> None:
        """Kill what was started with -9."""
        try:
            os.kill(int(self._pid.read_text()), signal.SIGKILL)
        except ProcessLookupError:
            return

    def wait(self) -> dict[str, Any]:
        """What it answered: status, the experiments, and what it said."""
        try:
            self.process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
        out, err = (file.read_text(errors="replace") for file in self._files)
        try:
            experiments = json.loads(out)["experiments"]
        except (ValueError, KeyError):
            experiments = []
        return {
            "status": self.process.returncode,
            "outcomes": [one["outcome"] for one in experiments],
            "reasons": sorted({one["reason"] for one in experiments if one["reason"]}),
            "said": err.strip().splitlines()[-6:],
            "traceback": "Traceback" in err,
        }


def submitter(trial: Trial) -> list[dict[str, Any]]:
    """The submitter is killed with -9 at any moment of its life."""
    started = trial.started("first", trial.words())
    time.sleep(trial.moment_s)
    started.kill()
    return [started.wait()]


def _at_a_moment(trial: Trial, disturb: Callable[[str, str], None]) -> list[dict[str, Any]]:
    """Something happens to the job and its node, at a moment while it runs."""
    started = trial.started("first", trial.words())
    job, node = trial.running_job()
    time.sleep(trial.draw.uniform(0.0, max(1.0, trial.moment_s / 2)))
    disturb(job, node)
    return [started.wait()]


def slurmd(trial: Trial) -> list[dict[str, Any]]:
    """The slurmd of the job's node is killed, and started again."""

    def disturb(job: str, node: str) -> None:
        trial.cluster.kill(node, "slurmd")
        time.sleep(AWAY_S)
        trial.cluster.start(node, "slurmd")

    return _at_a_moment(trial, disturb)


def slurmctld(trial: Trial) -> list[dict[str, Any]]:
    """The slurmctld is killed at any moment, also before anything is submitted, and started again."""
    started = trial.started("first", trial.words())
    time.sleep(trial.moment_s)
    trial.cluster.kill(HEAD, "slurmctld")
    time.sleep(AWAY_S)
    trial.cluster.start(HEAD, "slurmctld")
    return [started.wait()]


def cancelled(trial: Trial) -> list[dict[str, Any]]:
    """The job is cancelled (scancel)."""
    return _at_a_moment(trial, lambda job, node: _ran(trial.cluster.on("scancel", job)))


def requeued(trial: Trial) -> list[dict[str, Any]]:
    """The job is requeued (scontrol requeue)."""
    return _at_a_moment(trial, lambda job, node: _ran(trial.cluster.on("scontrol", "requeue", job)))


def _ran(done: subprocess.CompletedProcess[str]) -> None:
    """A job that has just ended cannot be cancelled any more: that counts as a disturbance that came too late."""
    if done.returncode:
        print(f"too late: {done.stderr.strip()}", file=sys.stderr)


def network_of_job(trial: Trial) -> list[dict[str, Any]]:
    """The network of the job's node is down for a while."""

    def disturb(job: str, node: str) -> None:
        trial.cluster.set_link(node, "down")
        time.sleep(AWAY_S)
        trial.cluster.set_link(node, "up")

    return _at_a_moment(trial, disturb)


def network_of_submitter(trial: Trial) -> list[dict[str, Any]]:
    """The network of the submitter's node is down for a while, at any moment."""
    node = trial.cluster.state.shape.nodes[-1].name
    started = trial.started("first", trial.words(), node=node.removeprefix("n"))
    time.sleep(trial.moment_s)
    trial.cluster.set_link(node, "down")
    time.sleep(AWAY_S)
    trial.cluster.set_link(node, "up")
    return [started.wait()]


def two_submitters(trial: Trial) -> list[dict[str, Any]]:
    """Two submitters of the same study on two nodes, at once or one somewhat later."""
    first = trial.started("first", trial.words())
    time.sleep(trial.draw.choice((0.0, trial.moment_s / 4)))
    second = trial.started("second", trial.words(), node="2")
    return [first.wait(), second.wait()]


def beside_local(trial: Trial) -> list[dict[str, Any]]:
    """A `run` that measures in its own process on another node, beside one in jobs."""
    first = trial.started("first", trial.words())
    time.sleep(trial.moment_s / 4)
    local = ["env", "-u", FOLDER, "-u", "SLURM_CONF", *trial.words()]
    second = trial.started("second", local, node="2")
    return [first.wait(), second.wait()]


DISTURBANCES: dict[str, Callable[[Trial], list[dict[str, Any]]]] = {
    "submitter": submitter,
    "slurmd": slurmd,
    "slurmctld": slurmctld,
    "scancel": cancelled,
    "requeue": requeued,
    "network of the job": network_of_job,
    "network of the submitter": network_of_submitter,
    "two submitters": two_submitters,
    "a local run beside": beside_local,
}


def disturbed(cluster: Cluster, name: str, number: int, seed: int, life_s: float, above: Path) -> dict[str, Any]:
    """One row: what happened, what the same command did after it, and what is wrong."""
    draw = random.Random(f"{seed} {name} {number}")
    moment_s = draw.uniform(0.0, life_s)
    folder = Path(tempfile.mkdtemp(dir=above))
    (folder / "study.yaml").write_text(STUDY)
    trial = Trial(cluster, folder, moment_s, draw)
    start = time.perf_counter()
    before = DISTURBANCES[name](trial)
    at_kill = [job.phase().value for job in trial.jobs()]
    after: list[dict[str, Any]] = []
    for again in range(TRIES):
        after.append(trial.started(f"again{again}", trial.words()).wait())
        if after[-1]["status"] == 0:
            break
    wrong = list(problems(trial, before, after))
    row = {
        "disturbance": name,
        "number": number,
        "moment_s": round(moment_s, 2),
        "jobs_then": at_kill,
        "commands": [*before, *after],
        "tries": len(after),
        "repeats": sorted(repeats_of(trial).values()),
        "wrong": wrong,
        "wall_s": round(time.perf_counter() - start, 1),
        "date": today(),
    }
    cluster.wait_until_idle()
    return row


def lines_of(trial: Trial) -> list[dict[str, Any]]:
    """Every line of the records, a torn last one left out."""
    found = []
    for file in trial.results.glob("records/*.jsonl"):
        text = file.read_text()
        found += [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return found


def repeats_of(trial: Trial) -> Counter[str]:
    """Experiment -> its repeats."""
    return Counter(line["experiment"] for line in lines_of(trial))


def problems(trial: Trial, before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[str]:
    """What is wrong with a study that was disturbed; nothing if all is right."""
    for answer in (*before, *after):
        if answer["traceback"]:
            yield "a traceback was printed"
        if answer["status"] not in (0, -signal.SIGKILL, 128 + signal.SIGKILL) and not answer["said"]:
            yield f"a command ended with {answer['status']} and said nothing"
    last = after[-1]
    if last["status"] != 0 or last["outcomes"] != ["ok"] * POINTS:
        yield f"the same command does not complete: status {last['status']}, {last['outcomes']}"
    made: dict[str, list[int]] = {}
    for line in lines_of(trial):
        made.setdefault(line["experiment"], []).append(line["repeat"])
    for experiment, numbers in made.items():
        if len(set(numbers)) != len(numbers):
            yield f"{experiment[:12]}: a repeat was recorded twice: {sorted(numbers)}"
        if sorted(set(numbers)) != list(range(len(set(numbers)))):
            yield f"{experiment[:12]}: a repeat is missing: {sorted(numbers)}"
    if len(made) != POINTS:
        yield f"{len(made)} experiments instead of {POINTS}"
    yield from _problems_of_reading(trial)
    if left := trial.cluster.queue():
        yield f"left in the queue: {left}"


def _problems_of_reading(trial: Trial) -> Iterator[str]:
    seatrial = [sys.executable, "-m", "seatrial"]
    exported = subprocess.run(
        [*seatrial, "export", str(trial.results), "--format", "csv"], capture_output=True, text=True, check=False
    )
    rows = Counter(row["parameters"] for row in csv.DictReader(io.StringIO(exported.stdout)) if row["figure"] == "wall")
    if sorted(rows.values()) != [1] * POINTS:
        yield f"export has these points: {dict(rows)}: {exported.stderr.strip()}"
    select = "SELECT parameters, count(*) AS n FROM figures WHERE figure = 'wall' GROUP BY parameters"
    asked = subprocess.run(
        [*seatrial, "query", str(trial.results), select, "--format", "csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    counts = [row["n"] for row in csv.DictReader(io.StringIO(asked.stdout))]
    if counts != ["1"] * POINTS:
        yield f"query has these points: {asked.stdout.strip()}: {asked.stderr.strip()}"


def undisturbed(cluster: Cluster, above: Path) -> float:
    """How long a study lives, in seconds; ends the script if it fails."""
    folder = Path(tempfile.mkdtemp(dir=above))
    (folder / "study.yaml").write_text(STUDY)
    trial = Trial(cluster, folder, 0.0, random.Random(0))
    start = time.perf_counter()
    answer = trial.started("first", trial.words()).wait()
    took_s = time.perf_counter() - start
    if wrong := list(problems(trial, [], [answer])):
        raise SystemExit(f"an undisturbed study: {wrong}, {answer}")
    return took_s


def main() -> None:
    """Print and write a row for each disturbance, and how many were right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--kills", type=int, default=30, help="of the submitter")
    parser.add_argument("--each", type=int, default=3, help="of every other disturbance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(DISTURBANCES))
    parser.add_argument("--limit", type=float, default=float("inf"), help="no new row after this many seconds")
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    until = time.monotonic() + options.limit
    machine = live_machine()
    origin = provenance(machine, ready(machine, "cpu.peak", cores="one", precision="fp64"))
    rows: list[dict[str, Any]] = []
    if options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text())["rows"]
    known = {(row["disturbance"], row["number"]) for row in rows}
    document: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="seatrial-kills-") as above, cluster_up(options.nodes) as cluster:
        life_s = undisturbed(cluster, Path(above))
        print(f"an undisturbed study takes {life_s:.1f} s", file=sys.stderr)
        for name in options.only.split(","):
            for number in range(options.kills if name == "submitter" else options.each):
                if (name, number) in known or time.monotonic() > until:
                    continue
                row = disturbed(cluster, name, number, options.seed, life_s, Path(above))
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
                document = {
                    **{**origin, "nodes": options.nodes, "seed": options.seed, "undisturbed_s": round(life_s, 1)},
                    **{"counts": counted(rows), "rows": rows},
                }
                if options.output is not None:  # what was found so far, in case the rest is interrupted
                    options.output.write_text(json.dumps({"benchmark": "kills", **document}, indent=1) + "\n")
    write("kills", document, options.output)


def counted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many studies were disturbed in each way, and how many were right."""
    by_name: dict[str, list[bool]] = {}
    for row in rows:
        by_name.setdefault(row["disturbance"], []).append(not row["wrong"])
    return [{"disturbance": name, "studies": len(own), "right": sum(own)} for name, own in by_name.items()]


if __name__ == "__main__":
    main()
