"""Benchmarks and commands that something disturbs, under `seatrial run` and `seatrial check --results`."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from causes.case import BOTH, QUIET_ONLY, Bench, Case, Said, Skip, planted
from causes.loads import io_limit, mounted, quota, spinners

NOT_KNOWN = frozenset({"not-known"})
"""Of repeats that spread, on any machine."""
_SPIN = "import sys,time\nend=time.process_time()+float(sys.argv[1])\nwhile time.process_time()<end: pass"
_SPINS = f"import sys,subprocess\nfor p in [subprocess.Popen([sys.executable,'-c',{_SPIN!r},sys.argv[1]])\n"
_SPINS += " for _ in range(int(sys.argv[2]))]: p.wait()"
_SYNCS = "import os,sys\nf=os.open(sys.argv[1],os.O_RDWR|os.O_CREAT)\n"
_SYNCS += "for _ in range(400): os.pwrite(f,b'x'*4096,0); os.fsync(f)"
_HOG = "a=bytearray(1<<28);b=bytearray(1<<28)\nwhile True: a[:]=b"

Plant = Callable[[Bench], AbstractContextManager[Sequence[str]]]
"""Plants a cause while the case runs; gives the words that start `seatrial`."""


def _spin(seconds: float = 0.5) -> list[str]:
    return [sys.executable, "-c", _SPIN, str(seconds)]


def _command(bench: Bench, argv: Sequence[str], prefix: Sequence[str]) -> Said:
    """`command` in a study, as a user would write it."""
    study = bench.folder / "study.yaml"
    benchmarks = {"command": {"argv": list(argv)}}
    repeat = {"precision": "1%", "budget": f"{max(8.0, 4 * bench.seconds):.0f}s", "max": 60}
    document = {"study": "planted", "question": "How long?", "benchmarks": benchmarks, "repeat": repeat}
    study.write_text(json.dumps(document))  # JSON is YAML
    return _measured(bench, [str(study)], prefix)


def _measured(bench: Bench, target: Sequence[str], prefix: Sequence[str]) -> Said:
    bench.seatrial("run", *target, "--results", "results", "--format", "json", prefix=prefix)
    document = bench.seatrial("check", "--results", "results", "--format", "json")
    shares: dict[str, float | None] = {}
    said = []
    for finding in document["findings"]:
        if finding.get("causes"):
            said.append(f"{finding['observation']} {finding['diagnosis']}")
        for one in finding.get("causes", ()):
            shares[one["cause"]] = max(shares.get(one["cause"]) or 0.0, one["share"] or 0.0) or None
    ordered = sorted(shares.items(), key=lambda one: -(one[1] or 0.0))
    return Said(tuple(ordered), " ".join(said))


@contextlib.contextmanager
def _nothing(bench: Bench) -> Iterator[Sequence[str]]:
    yield ()


def _with_quota(cpus: float) -> Plant:
    return lambda bench: quota(cpus)


def _with_limit(bytes_per_s: float) -> Plant:
    return lambda bench: io_limit(bytes_per_s, bench.folder)


def _with_spinners(*cpus: int) -> Plant:
    @contextlib.contextmanager
    def plant(bench: Bench) -> Iterator[Sequence[str]]:
        with spinners([bench.cpus[k] for k in cpus]):
            yield ()

    return plant


@contextlib.contextmanager
def _quota_and_spinner(bench: Bench) -> Iterator[Sequence[str]]:
    with quota(0.3) as words, spinners(bench.cpus[:1]):
        yield [*words, "taskset", "-c", str(bench.cpus[0])]


@contextlib.contextmanager
def _hog(bench: Bench) -> Iterator[Sequence[str]]:
    process = subprocess.Popen(["taskset", "-c", str(bench.cpus[1]), sys.executable, "-c", _HOG])
    try:
        yield ()
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _slow_folder(bench: Bench) -> Iterator[Sequence[str]]:
    """`slow` in the case's folder goes through a process that copies 20 MB/s."""
    behind = bench.folder / "behind"
    behind.mkdir()
    bindfs = ["bindfs", "--write-rate=20000000", "--read-rate=20000000", str(behind)]
    with mounted(bindfs, bench.folder / "slow"):
        yield ()


@contextlib.contextmanager
def _synchronous_folder(bench: Bench) -> Iterator[Sequence[str]]:
    """`slow` in the case's folder is mounted such that every write waits for the device."""
    image = bench.folder / "image"
    image.write_bytes(b"")
    subprocess.run(["truncate", "-s", "64M", str(image)], check=True)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
    with mounted(["mount", "-o", "loop,sync", str(image)], bench.folder / "slow"):
        yield ()


def _dd(file: str, megabytes: int, *options: str) -> Callable[[Bench], list[str]]:
    def argv(bench: Bench) -> list[str]:
        return ["dd", "if=/dev/zero", f"of={bench.folder / file}", "bs=1M", f"count={megabytes}", *options]

    return argv


def _program(mode: str, seconds: float = 1.0, before: Sequence[str] = ()) -> Callable[[Bench], list[str]]:
    """The program of repeats.c, compiled in the case's folder."""

    def argv(bench: Bench) -> list[str]:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise Skip("a C compiler is missing")
        program = bench.folder / "repeats"
        source = Path(__file__).with_name("repeats.c")
        subprocess.run([compiler, "-O1", str(source), "-o", str(program), "-pthread", "-lm"], check=True)
        return [*before, str(program), mode, str(seconds)]

    return argv


def _on(cpu: int, words: Sequence[str]) -> Callable[[Bench], list[str]]:
    return lambda bench: ["taskset", "-c", str(bench.cpus[cpu]), *words]


def _of_command(
    name: str,
    argv: Sequence[str] | Callable[[Bench], list[str]],
    right: frozenset[str] = frozenset(),
    plant: Plant = _nothing,
    *,
    together: frozenset[str] = frozenset(),
    is_quick: bool = False,
) -> Case:
    def say(bench: Bench) -> Said:
        with plant(bench) as prefix:
            return _command(bench, argv(bench) if callable(argv) else argv, prefix)

    return _case(name, say, right, together, plant, is_quick)


def _of_benchmark(
    name: str, target: str, right: frozenset[str] = frozenset(), plant: Plant = _nothing, *, is_quick: bool = False
) -> Case:
    def say(bench: Bench) -> Said:
        with plant(bench) as prefix:
            words = [word.replace("FOLDER", str(bench.folder)) for word in target.split()]
            return _measured(bench, [*words, "--budget", f"{max(8.0, 4 * bench.seconds):.0f}s"], prefix)

    return _case(name, say, right, frozenset(), plant, is_quick)


def _case(
    name: str,
    say: Callable[[Bench], Said],
    right: frozenset[str],
    together: frozenset[str],
    plant: Plant,
    is_quick: bool,
) -> Case:
    is_of_load = plant is not _nothing or "spinn" in name
    return Case(
        "repeats",
        name,
        say,
        right=right,
        together=together,
        allowed=NOT_KNOWN,
        loads=QUIET_ONLY if is_of_load else BOTH,
        is_quick=is_quick,
        needs_cpus=2,
    )


CASES: tuple[Case, ...] = (
    _of_command("command: a quota of 0.3 CPUs", _spin(), planted("cpu-quota"), _with_quota(0.3), is_quick=True),
    _of_command("command: a quota of 0.7 CPUs", _spin(), planted("cpu-quota"), _with_quota(0.7)),
    _of_command("command of 20 ms: a quota of 0.2 CPUs", _spin(0.02), planted("cpu-quota"), _with_quota(0.2)),
    _of_benchmark("cpu.peak: a quota of 0.6 CPUs", "cpu.peak", planted("cpu-quota"), _with_quota(0.6)),
    _of_benchmark(
        "cpu.peak, one core: a quota of 0.3 CPUs", "cpu.peak --set cores=one", planted("cpu-quota"), _with_quota(0.3)
    ),
    _of_command("command: a spinner on its CPU", _on(0, _spin()), planted("other-processes"), _with_spinners(0)),
    _of_command("command: spinners on all CPUs", _spin(), planted("other-processes"), _with_spinners(0, 1)),
    _of_benchmark("cpu.peak: a spinner on one of its CPUs", "cpu.peak", planted("other-processes"), _with_spinners(1)),
    _of_benchmark("memory.stream: a process that copies memory", "memory.stream", planted("other-processes"), _hog),
    _of_command(
        "command: a quota and a spinner",
        _spin(),
        plant=_quota_and_spinner,
        together=planted("cpu-quota", "other-processes"),
    ),
    _of_command(
        "command: two processes bound to one CPU",
        _on(0, [sys.executable, "-c", _SPINS, "0.4", "2"]),
        planted("more-threads-than-cpus"),
        is_quick=True,
    ),
    _of_command(
        "command: five processes on two CPUs",
        [sys.executable, "-c", _SPINS, "0.4", "5"],
        planted("more-threads-than-cpus"),
    ),
    _of_command(
        "command: a limit of 20 MB/s on writes", _dd("file", 20, "oflag=direct"), planted("io-limit"), _with_limit(20e6)
    ),
    _of_command(
        "command: a limit of 20 MB/s, written with fsync",
        _dd("file", 20, "conv=fsync"),
        planted("io-limit"),
        _with_limit(20e6),
    ),
    _of_benchmark("io.file: a limit of 50 MB/s", "io.file --set direct=true", planted("io-limit"), _with_limit(50e6)),
    _of_command("command: a slow file system", _dd("slow/file", 10), planted("file-system"), _slow_folder),
    _of_command(
        "command: a file system mounted with sync", _dd("slow/file", 40), planted("file-system"), _synchronous_folder
    ),
    _of_benchmark(
        "io.file: a slow file system",
        "io.file --set folder=FOLDER/slow --set file_B=4MiB",
        planted("file-system"),
        _slow_folder,
    ),
    _of_command(
        "command: fsync after each write",
        lambda bench: [sys.executable, "-c", _SYNCS, str(bench.folder / "file")],
        planted("synchronised-io"),
    ),
    _of_command(
        "command: threads bound to a CPU each, a spinner on one",
        _program("bound"),
        planted("other-processes"),
        _with_spinners(1),
    ),
    _of_command("command: two threads and one lock", _program("locks"), planted("lock-contention"), is_quick=True),
    _of_command("command: memory allocated in each step", _program("faults"), planted("page-faults"), is_quick=True),
    _of_command("command: a mutex for each item", _program("queue"), planted("lock-contention")),
    _of_command("command: threads for each small block", _program("crew"), planted("thread-starts"), is_quick=True),
    _of_command("command: a program for each small block", _program("shells"), planted("process-starts")),
    _of_command(
        "command: a file is opened for each value", _program("lookups"), planted("file-openings", "small-calls")
    ),
    _of_command("command: single bytes through a socket", _program("bytes"), planted("small-calls"), is_quick=True),
    _of_command("command: memory mapped in each step", _program("maps"), planted("kernel-time")),
    _of_command("command: two threads share a triangle by its rows", _program("wedge", 2.0), planted("uneven-threads")),
    _of_command(
        "command: two threads take turns, the other one waits in a loop", _program("relay"), planted("waiting-loop")
    ),
    _of_command("command that writes results in large blocks", _program("records"), is_quick=True),
    _of_command("command whose threads share a counter of tasks", _program("tasks")),
    _of_command("command that polls and sleeps", _program("polls"), planted("sleep"), is_quick=True),
    _of_command("command that sleeps", ["sleep", "0.4"], planted("sleep")),
    _of_command("command that waits for others", _program("child"), planted("child-process"), is_quick=True),
    _of_command("command that computes", _spin()),
    _of_command("command with a lock for each of many rows", _program("rows"), is_quick=True),
    _of_command("command whose workers wait for work", _program("pool")),
    _of_command("command that touches memory once", _program("once"), is_quick=True),
    _of_command("command that computes beside a thread that sleeps", _program("watched"), is_quick=True),
    _of_command(
        "shell that waits for a command", _program("compute", before=("sh", "-c", '"$@"; :', "sh")), is_quick=True
    ),
    _of_command("command that writes to a disk", _dd("file", 200, "oflag=direct")),
    _of_command("command on a CPU: a spinner on the other", _on(1, _spin()), plant=_with_spinners(0)),
    _of_command("command of 20 ms", _spin(0.02)),
    _of_command("command: a quota that is not used up", _spin(0.2), plant=_with_quota(1.8)),
    _of_command("command: a limit that is not reached", _dd("file", 20, "oflag=direct"), plant=_with_limit(2e10)),
    _of_command("command beside a slow file system that it does not use", _spin(0.3), plant=_slow_folder),
    _of_benchmark("cpu.peak undisturbed", "cpu.peak"),
    _of_benchmark("memory.stream undisturbed", "memory.stream"),
    _of_benchmark("io.file undisturbed", "io.file"),
)
