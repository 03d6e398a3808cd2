"""command: what it starts, what it tells of it, and how it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from engine.harness import make_ready, run_experiments, run_one
from engine.planted_faults import Edits, with_fault
from made_up import made_up_machine

from seatrial.benchmarks.command.command import BENCHMARK as COMMAND
from seatrial.engine.listener import Listener
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Native
from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import Point, resolve
from seatrial.stats.interval import StoppingRule
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

real = pytest.mark.real


def plan(machine: Machine, **given: object) -> Point:
    return resolve(COMMAND, given, machine, named=True)


def arguments(params: Params) -> list[str]:
    assert isinstance(COMMAND.program, Native)
    return list(COMMAND.program.arguments(params))


def measured(tmp_path: Path, machine: Machine, *argv: str, **settings: str) -> RepeatRecord:
    folder = ResultsFolder.create(tmp_path / "results")
    return run_one(make_ready(COMMAND, machine, folder, argv=argv, **settings), machine, folder)


def compiled(tmp_path: Path, name: str, source: str, *options: str) -> Path:
    """A C program, or with -shared a library."""
    (tmp_path / f"{name}.c").write_text(source)
    target = tmp_path / name
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler (apt install gcc)")
    subprocess.run([compiler, "-O2", str(tmp_path / f"{name}.c"), *options, "-o", str(target)], check=True)
    return target


def test_words_reach_the_program_as_they_are() -> None:
    point = plan(made_up_machine(), argv=["prog", "", "--cpus", "a b"])
    assert arguments(point.parameters) == [
        *("--words", "4", "--word-0", "prog", "--word-1", "", "--word-2", "--cpus", "--word-3", "a b"),
        *("--runs", "1000", "--warmup", "0"),
    ]


def test_what_belongs_to_the_program_reaches_it_too() -> None:
    given = {"prepare": ["sync"], "cleanup": ["rm", "x y"], "input": "in put", "expect": 3, "warmup": 2, "most_runs": 5}
    point = plan(made_up_machine(), argv=["prog"], **given)
    assert arguments(point.parameters) == [
        *("--words", "1", "--word-0", "prog", "--expect", "3", "--runs", "5", "--warmup", "2"),
        *("--prepare", "1", "--prepare-0", "sync", "--cleanup", "2", "--cleanup-0", "rm", "--cleanup-1", "x y"),
        *("--input", "in put"),
    ]
    with pytest.raises(UsageError, match="expect cannot be 256"):
        plan(made_up_machine(), expect=256)


def test_its_file_is_part_of_what_is_measured() -> None:
    assert isinstance(COMMAND.program, Native) and COMMAND.program.commands is not None
    point = plan(made_up_machine(), argv=["prog", "other"], prepare=["drop", "caches"], input="data")
    assert list(COMMAND.program.commands(point.parameters)) == ["prog", "drop"]
    assert COMMAND.program.inputs is not None
    assert list(COMMAND.program.inputs(point.parameters)) == ["other", "data"]


@pytest.mark.parametrize(
    ("given", "cpus"),
    [({}, (0, 1, 2, 3, 4, 5, 6, 7)), ({"cpus": 2}, (0, 1)), ({"cpus": 5}, (0, 1, 2, 3, 4)), ({"cpus": 8}, range(8))],
)
def test_it_may_use_all_cpus_cores_first(given: dict[str, object], cpus: tuple[int, ...]) -> None:
    point = plan(made_up_machine(cores=4, threads=2), **given)
    assert point.cpus == tuple(cpus) and point.parameters["cpus"] == len(cpus)


def test_more_cpus_than_there_are_is_skipped() -> None:
    refusal = plan(made_up_machine(cores=2), cpus=3).refusal
    assert refusal is not None and refusal.reason == "3 CPUs requested; this process may use 2"


def test_how_long_it_takes_is_what_the_user_says() -> None:
    assert plan(made_up_machine(), expected_s=300).estimate_s == 300


@pytest.mark.parametrize(("used_s", "holds"), [(0.0, True), (2.0, True), (2.03, True), (2.2, False), (4.0, False)])
def test_more_cpu_time_than_its_cpus_have_is_no_measurement(used_s: float, holds: bool) -> None:
    (check,) = [check for check in COMMAND.checks if check.derive is not None]
    machine, params = made_up_machine(), {"cpus": 2}
    sample = Sample("wall", 0, 1.0, extra={"user_s": used_s, "system_s": 0.0})
    assert check.derive is not None
    value = check.derive(machine, params, [sample])
    low, high = check.bound(machine, params)
    assert value is not None and (low <= value <= high) is holds


@real
def test_a_program_is_timed(tmp_path: Path, live_machine: Machine) -> None:
    record = measured(tmp_path, live_machine, "sleep", "0.05")
    assert record.outcome.is_ok, record.outcome
    sample, *others = (sample for sample in record.samples if sample.series == "wall")
    assert others  # a short program is run again and again
    assert sample.series == "wall" and sample.elapsed_s >= 0.05
    assert sample.extra["user_s"] + sample.extra["system_s"] < 0.05 and sample.extra["voluntary_switches"] >= 1
    notes = record.seen["notes"]
    assert notes["libraries_seen"] is True and notes["libraries_listed"] is True
    assert any(name.startswith(("libc.", "libc-", "ld-musl")) for name in notes["libraries"])
    assert "sleep" in notes["programs"] or "coreutils" in notes["programs"] or "busybox" in notes["programs"]
    assert all(entry["id"] for entry in notes["libraries"].values())


@real
def test_its_cpus_are_those_of_the_point(tmp_path: Path, live_machine: Machine) -> None:
    report = f"import os; open({str(tmp_path / 'seen')!r}, 'w').write(repr(sorted(os.sched_getaffinity(0))))"
    record = measured(tmp_path, live_machine, sys.executable, "-c", report, cpus="1")
    assert record.outcome.is_ok, record.outcome
    assert record.seen["affinity"] == [[live_machine.cpus_one_per_core[0]]]
    assert (tmp_path / "seen").read_text() == repr(record.seen["affinity"][0])


@real
def test_what_the_program_uses_is_told(tmp_path: Path, live_machine: Machine) -> None:
    spend = "import time; block = bytearray(64 << 20)\nwhile time.process_time() < 0.2: pass"
    record = measured(tmp_path, live_machine, sys.executable, "-c", spend)
    assert record.outcome.is_ok, record.outcome
    extra = record.samples[0].extra
    assert extra["user_s"] + extra["system_s"] >= 0.19
    assert extra["max_rss_B"] >= 64 << 20 and extra["minor_faults"] > 100


@real
def test_only_the_output_of_the_last_run_is_kept_and_each_reads_its_input(
    tmp_path: Path, live_machine: Machine
) -> None:
    (tmp_path / "input").write_text("what it reads\n")
    folder = ResultsFolder.create(tmp_path / "results")
    settings = {"argv": ("cat",), "input": str(tmp_path / "input"), "most_runs": "3"}
    ready = make_ready(COMMAND, live_machine, folder, **settings)
    run_experiments([ready], live_machine, folder, StoppingRule(maximum=1, minimum=1), Listener(), keep=True)
    (record,) = read_contents(folder).records[ready.experiment.id]
    assert record.seen["folder"]["type"]
    assert [sample.i for sample in record.samples if sample.series == "wall"] == [0, 1, 2]
    (output,) = folder.path.glob("artefacts/*/*/stdout")
    assert output.read_text() == "what it reads\n"


@real
def test_the_cpus_that_a_wrapper_leaves_are_recorded(tmp_path: Path, live_machine: Machine) -> None:
    """taskset changes them after its start: those of the first look were wrong."""
    cpus = sorted(os.sched_getaffinity(0))
    if shutil.which("taskset") is None or len(cpus) < 2:
        pytest.skip("needs two CPUs and taskset (util-linux)")
    spins = "import time; end = time.perf_counter() + 0.5\nwhile time.perf_counter() < end: pass"
    record = measured(tmp_path, live_machine, "taskset", "-c", str(cpus[1]), sys.executable, "-c", spins)
    assert record.seen["looks"]["allowed"] == str(cpus[1])


def test_memory_below_our_own_is_not_told(tmp_path: Path, live_machine: Machine) -> None:
    record = measured(
        tmp_path, live_machine, str(compiled(tmp_path, "small", "int main(void) { return 0; }", "-static"))
    )
    assert record.outcome.is_ok and "max_rss_B" not in record.samples[0].extra


@real
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("sh", "-c", "exit 3"), "sh ended with exit status 3"),
        (("sh", "-c", "exit 65"), "sh ended with exit status 65"),  # 65 would mean another CPU if it were ours
        (("sh", "-c", "kill -SEGV $$"), "sh was killed by signal 11 (Segmentation fault)"),
    ],
)
def test_a_program_that_fails_is_no_measurement(
    argv: tuple[str, ...], said: str, tmp_path: Path, live_machine: Machine
) -> None:
    record = measured(tmp_path, live_machine, *argv)
    assert record.outcome.state is State.FAILED and said in record.outcome.evidence
    assert not record.samples
    assert record.seen["host"]  # what ran is known all the same


@real
def test_a_program_that_is_removed_after_it_was_found(tmp_path: Path, live_machine: Machine) -> None:
    program = compiled(tmp_path, "gone", "int main(void) { return 0; }")
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(COMMAND, live_machine, folder, argv=(str(program),))
    program.unlink()
    record = run_one(ready, live_machine, folder)
    assert record.outcome.state is State.FAILED
    assert f"{program}: no such program" in record.outcome.evidence


@real
def test_a_file_that_is_no_program_is_named(tmp_path: Path, live_machine: Machine) -> None:
    script = tmp_path / "script"
    script.write_text("echo no first line\n")
    script.chmod(0o755)
    record = measured(tmp_path, live_machine, str(script))
    assert record.outcome.state is State.FAILED
    assert f"{script} cannot be run" in record.outcome.evidence and "#!/bin/sh" in record.outcome.evidence


@real
def test_no_shell_reads_the_words(tmp_path: Path, live_machine: Machine) -> None:
    record = measured(tmp_path, live_machine, "test", "$HOME;*", "=", "$HOME;*")
    assert record.outcome.is_ok, record.outcome


@real
def test_standard_input_is_empty(tmp_path: Path, live_machine: Machine) -> None:
    record = measured(tmp_path, live_machine, "sh", "-c", "! read line")
    assert record.outcome.is_ok, record.outcome


@real
def test_ignored_signals_are_not_handed_on(tmp_path: Path, live_machine: Machine) -> None:
    fill = f"ulimit -f 1; exec dd if=/dev/zero of={tmp_path / 'big'} bs=4096 count=10"
    record = measured(tmp_path, live_machine, "sh", "-c", fill)
    assert record.outcome.state is State.FAILED and "was killed by signal 25" in record.outcome.evidence


@real
def test_a_library_is_known_by_what_is_in_it(
    tmp_path: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, value in (("one", 1), ("two", 2)):
        (tmp_path / place).mkdir()
        options = ("-shared", "-fPIC", "-Wl,-soname,libplanted.so.1", "-Wl,--build-id=none")
        library = compiled(tmp_path, f"planted{value}", f"int planted(void) {{ return {value}; }}", *options)
        shutil.copy(library, tmp_path / place / "libplanted.so.1")
    source = "int planted(void); int main(void) { return planted() > 9; }"
    program = compiled(tmp_path, "user", source, str(tmp_path / "one" / "libplanted.so.1"))
    seen = []
    for place in ("one", "two"):
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / place))
        (tmp_path / f"run-{place}").mkdir()
        record = measured(tmp_path / f"run-{place}", live_machine, str(program))
        assert record.outcome.is_ok, record.outcome
        seen.append(record.seen["notes"]["libraries"]["libplanted.so.1"])
    assert [entry["path"] for entry in seen] == [str(tmp_path / place / "libplanted.so.1") for place in ("one", "two")]
    assert seen[0]["id"] != seen[1]["id"] and all(entry["id"].startswith("size ") for entry in seen)


@real
def test_children_and_what_they_open_later_are_seen(tmp_path: Path, live_machine: Machine) -> None:
    library = compiled(tmp_path, "libopened.so", "int opened;", "-shared", "-fPIC", "-Wl,-soname,libopened.so")
    inner = f"import ctypes, time; ctypes.CDLL({str(library)!r}); time.sleep(1.2)"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    record = measured(tmp_path, live_machine, sys.executable, "-c", outer, expected_s="2")
    assert record.outcome.is_ok, record.outcome
    assert record.seen["notes"]["libraries"]["libopened.so"]["path"] == str(library)


@real
def test_input_files_are_known_by_content(tmp_path: Path, live_machine: Machine) -> None:
    given, made = tmp_path / "given", tmp_path / "made"
    given.write_text("some input")
    os.utime(given, (0, 0))
    record = measured(tmp_path, live_machine, "cp", str(given), str(made))
    assert record.outcome.is_ok, record.outcome
    assert set(record.seen["notes"]["input_files"]) == {str(given)}
    assert record.seen["notes"]["input_files"][str(given)].startswith("size 10 fnv ")


FAULTS: dict[str, Edits] = {
    "a blind eye": {"command.cpp": ("!failure_text.empty()", "failure_text.size() == 9999")},
    "any CPU": {"command.cpp": ("allow_cpus(0, program.cpus);", "")},
}


@real
def test_a_status_that_is_not_looked_at_is_found(
    tmp_path: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = with_fault(COMMAND, "a blind eye", FAULTS, tmp_path, monkeypatch)
    folder = ResultsFolder.create(tmp_path / "results")
    record = run_one(make_ready(blind, live_machine, folder, argv=("false",)), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("exit_status: ")


@real
def test_a_program_outside_its_cpus_is_found(
    tmp_path: Path, live_machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loose = with_fault(COMMAND, "any CPU", FAULTS, tmp_path, monkeypatch)
    folder = ResultsFolder.create(tmp_path / "results")
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs two CPUs")
    record = run_one(make_ready(loose, live_machine, folder, cpus="1"), live_machine, folder)
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith("affinity: ")


_COUNTED = r"""
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}
static void* spin(void* none) {
  for (const double end = now() + 0.4; now() < end;) {}
  return none;
}
int main(void) {
  char byte;
  const int file = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 20000; i++)
    if (read(file, &byte, 1) != 1)
      return 1;
  pthread_t thread;
  pthread_create(&thread, NULL, spin, NULL);
  return pthread_join(thread, NULL);
}
"""


@real
def test_reads_started_threads_and_threads_that_wait_are_counted(tmp_path: Path, live_machine: Machine) -> None:
    record = measured(tmp_path, live_machine, str(compiled(tmp_path, "counted", _COUNTED, "-pthread")), most_runs="1")
    used, seen = record.seen["used"], record.seen["looks"]
    assert used["read_calls"] >= 20_000 and used["read_B"] >= 20_000 and used["write_calls"] > 0
    assert record.seen["started_tasks"] >= 2
    assert (seen["most_threads"], seen["most_processes"], len(seen["thread_cpu_s"])) == (2, 1, 2)
    assert seen["thread_waits"] > 0 and seen["thread_wait_s"] > 0 and seen["openings"] == 0


_WAITS_ON_ITS_CHILD = r"""
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
static void caught(int number) { _exit(number); }
int main(int count, char** words) {
  (void)count;
  char byte = 0;
  int ends[2];
  signal(SIGSEGV, caught);
  if (pipe(ends) != 0)
    return 1;
  if (fork() == 0) {
    const int file = open(words[1], O_RDWR | O_CREAT, 0600);
    const int is_told = flock(file, LOCK_EX) == 0 && write(ends[1], &byte, 1) == 1;
    usleep(150000);
    flock(file, LOCK_UN);
    usleep(150000);
    _exit(is_told && write(ends[1], &byte, 1) == 1 ? 0 : 1);
  }
  close(ends[1]);
  const int file = open(words[1], O_RDWR | O_CREAT, 0600);
  int ended = 1;
  if (read(ends[0], &byte, 1) != 1 || flock(file, LOCK_EX) != 0 || read(ends[0], &byte, 1) != 1)
    return 1;
  wait(&ended);
  return ended;
}
"""


@real
def test_what_a_process_waits_for_that_another_one_does_is_seen(tmp_path: Path, live_machine: Machine) -> None:
    program, file = compiled(tmp_path, "waits", _WAITS_ON_ITS_CHILD), tmp_path / "locked"
    record = measured(tmp_path, live_machine, str(program), str(file), most_runs="1")
    looks = record.seen["looks"]
    found = {one["in"]: one for process in looks["processes"] for one in process["waits_on"]}
    assert found.keys() == {"pipe", "file lock"} and looks["catches_faults"] is True
    for one in found.values():
        assert one["name"] == "waits" and one["is_child"] and one["looks"] > 0 and one["wait_s"] > 0
    assert (found["file lock"]["path"], found["pipe"]["path"]) == (str(file), "")
