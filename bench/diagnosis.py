"""Plants causes of lost time, profiles the program, and counts which causes are named, not named, or named wrongly.

Each case is a run of bench/diagnosis_program.c under `seatrial profile`, with each MPI library, on a quiet machine and
with one spinner on each CPU. A case is named if the first cause (apart from startup) is the planted one; on the loaded
machine, other processes count as well, because they are true. Controls have no cause but computation and startup.

python bench/diagnosis.py [--seconds 2] [--machine quiet loaded] [--quick] [--only NAME] [-o FILE.json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import live_machine, provenance, ready, write

SOURCE = Path(__file__).with_name("diagnosis_program.c")
NOTHING = frozenset({"computation", "startup"})
LOADED = frozenset({"other-processes"})
SPINNER = "while True: pass"


@dataclass(frozen=True)
class Library:
    """An MPI library: its compiler, and its launcher for a number of ranks."""

    name: str
    compiler: str
    launcher: Callable[[int], list[str]]


LIBRARIES = (
    Library(
        "Open MPI",
        "mpicc.openmpi",
        lambda ranks: ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)],
    ),
    Library("MPICH", "mpicc.mpich", lambda ranks: ["mpiexec.mpich", "-n", str(ranks)]),
)


@dataclass(frozen=True)
class Case:
    """A planted cause: the step of the program, and the causes that are right. `cpus` restricts all ranks; `spins`
    names CPUs with a spinner; `quota` is a CPU quota of a control group."""

    name: str
    step: str
    right: frozenset[str]
    ranks: int = 2
    cpus: tuple[int, ...] = ()
    spins: tuple[int, ...] = ()
    quota: float | None = None
    seconds: float | None = None
    is_quick: bool = False


def planted(*causes: str) -> frozenset[str]:
    """The causes that are right."""
    return frozenset(causes)


CASES = (
    Case("one rank computes four times as long", "imbalance", planted("imbalance"), is_quick=True),
    Case("one rank computes longer, with messages", "imbalance-p2p", planted("imbalance")),
    Case("ranks compute in turn", "late-sender", planted("late-sender"), is_quick=True),
    Case("the receiver comes late", "late-receiver", planted("late-receiver", "imbalance")),
    Case("rank 0 writes and synchronises files", "serial-io", planted("serial-io"), is_quick=True),
    Case("8 B messages by the million", "message-rate", planted("message-rate", "latency"), is_quick=True),
    Case("exchanges of 4 MiB", "transfer", planted("transfer")),
    Case("all-reduce in the inner loop", "small-collectives", planted("latency", "message-rate")),
    Case("rank 0 sleeps", "sleeping", planted("blocked-rank")),
    Case("another rank is late in each step", "turns", planted("late-at-collective")),
    Case("four ranks on two CPUs", "balanced", planted("more-ranks-than-cpus"), ranks=4, is_quick=True),
    Case("four ranks on two CPUs that exchange", "transfer", planted("more-ranks-than-cpus"), ranks=4),
    Case("both ranks on one CPU", "balanced", planted("ranks-on-the-same-cpus"), cpus=(0,)),
    Case("a spinner on one CPU", "computing", planted("other-processes"), spins=(1,)),
    Case("a quota of 0.6 CPUs", "balanced", planted("cpu-quota"), quota=0.6),
    Case("control: even work", "balanced", NOTHING, is_quick=True),
    Case("control: mostly computation", "computing", NOTHING),
    Case("control: even work for longer", "balanced", NOTHING, seconds=6.0),
)


def main() -> None:
    """Run all cases, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--machine", nargs="+", choices=("quiet", "loaded"), default=["quiet", "loaded"])
    parser.add_argument("--quick", action="store_true", help="only the cases that the tests run")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    rows = []
    with tempfile.TemporaryDirectory() as where:
        for library in LIBRARIES:
            if shutil.which(library.compiler) is None:
                print(f"{library.name}: absent")
                continue
            program = Path(where) / library.compiler
            subprocess.run([library.compiler, "-O2", "-g", str(SOURCE), "-o", str(program), "-lm"], check=True)
            for load in options.machine:
                for case in CASES:
                    if options.only not in case.name or (options.quick and not case.is_quick):
                        continue
                    if load == "loaded" and (case.spins or case.quota):
                        continue
                    rows.append(run(case, library, program, load, options.seconds))
                    row = rows[-1]
                    print(f"{library.name:8} {load:6} {row['verdict']:7} {case.name}: {row['said']}", flush=True)
    counts = {
        load: {
            kind: {
                verdict: sum(
                    row["verdict"] == verdict and row["machine"] == load and row["control"] == (kind == "controls")
                    for row in rows
                )
                for verdict in ("named", "silent", "wrong", "skipped")
            }
            for kind in ("planted", "controls")
        }
        for load in options.machine
    }
    document = {
        "provenance": provenance(machine, ready(machine, "cpu.peak", cores="one")),
        "counts": counts,
        "cases": rows,
    }
    write("diagnosis", document, options.output)
    print(f"counts: {counts}")


def run(case: Case, library: Library, program: Path, load: str, seconds: float) -> dict[str, Any]:
    """One case with one library."""
    command = [*library.launcher(case.ranks), str(program), case.step, str(case.seconds or seconds)]
    row: dict[str, Any] = {
        "case": case.name,
        "library": library.name,
        "machine": load,
        "control": case.right == NOTHING,
        "right": sorted(case.right),
    }
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        return row | {"verdict": "skipped", "said": "needs two CPUs"}
    if case.cpus:
        command = ["taskset", "-c", ",".join(str(cpus[k]) for k in case.cpus), *command]
        if library.name == "Open MPI":
            command[command.index("-n") : command.index("-n")] = ["--bind-to", "none"]
    spins = cpus if load == "loaded" else [cpus[k] for k in case.spins]
    with contextlib.ExitStack() as stack:
        try:
            prefix = stack.enter_context(quota(case.quota)) if case.quota is not None else []
        except OSError as error:
            return row | {"verdict": "skipped", "said": f"no control group can be made: {error.strerror}"}
        stack.enter_context(spinners(spins))
        where = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        document = profiled([*prefix, *command], where)
    diagnoses = document.get("diagnoses", [])
    main_cause = next((one for one in diagnoses if one["cause"] != "startup"), None)
    return row | {
        "verdict": verdict(case, None if main_cause is None else main_cause["cause"], load),
        "said": "" if main_cause is None else main_cause["said"],
        "causes": [{"cause": one["cause"], "share": round(one["share"], 3)} for one in diagnoses],
    }


def verdict(case: Case, cause: str | None, load: str) -> str:
    """Whether the cause is the planted one."""
    right = case.right | (LOADED if load == "loaded" else frozenset())
    if cause in right or (case.right == NOTHING and cause is None):
        return "named"
    silent = cause is None or cause in ("not-known", "computation", "no-cpu")
    return "silent" if silent and case.right != NOTHING else "wrong"


def profiled(command: Sequence[str], where: Path) -> Mapping[str, Any]:
    """The profile's document. The program writes its files into `where`."""
    run = [sys.executable, "-m", "seatrial", "profile", "--results", str(where / "results"), "--format", "json", "--"]
    done = subprocess.run([*run, *command], cwd=where, capture_output=True, check=False)
    try:
        document: Mapping[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{command}: {done.stderr.decode(errors='replace')[-2000:]}") from None
    return document


@contextlib.contextmanager
def spinners(cpus: Sequence[int]) -> Iterator[None]:
    """A process on each of these CPUs that never sleeps."""
    started = [
        subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", SPINNER], start_new_session=True)
        for cpu in cpus
    ]
    try:
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def quota(cpus: float) -> Iterator[list[str]]:
    """A control group with a CPU quota; gives the words that start a command in it. Raises OSError without the
    right to make one."""
    is_v1 = Path("/sys/fs/cgroup/cpu").is_dir()
    group = Path("/sys/fs/cgroup", "cpu" if is_v1 else "", f"seatrial-diagnosis-{os.getpid()}")
    group.mkdir()
    try:
        if is_v1:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text(f"{round(cpus * 100_000)}")
        else:
            (group / "cpu.max").write_text(f"{round(cpus * 100_000)} 100000")
        yield ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


if __name__ == "__main__":
    main()
