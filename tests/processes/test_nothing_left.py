"""Whatever ends seatrial, and at whatever moment: nothing that it started is left running.

Processes are found by a variable in their environment, not by name.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.processes import start
from seatrial.processes.start import Running
from seatrial.processes.tree import is_alive

pytestmark = pytest.mark.real

MARK = "SEATRIAL_TEST_MARK"

# A program with children that no signal to its group reaches: one in a session of its own, one after a double fork,
# one that ignores SIGTERM.
_SPREADS = textwrap.dedent("""
    import os, signal, subprocess, sys, time
    from pathlib import Path
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    stubborn = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]; time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    Path(sys.argv[1]).write_text("ready")
    time.sleep(600)
""")


def marked(mark: str) -> list[int]:
    """All processes with this mark that are alive."""
    needle = f"{MARK}={mark}".encode()
    found: list[int] = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            try:
                environment = (path / "environ").read_bytes()
            except OSError:
                continue
            if needle in environment.split(b"\0") and is_alive(int(path.name)):
                found.append(int(path.name))
    return found


def until(holds: Callable[[], object], limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def words_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def assert_nothing_left(mark: str) -> None:
    deadline = time.monotonic() + 15
    while left := marked(mark):
        words = [words_of(pid) for pid in left]
        assert time.monotonic() < deadline, f"still alive: {words}"
        time.sleep(0.05)


def handled() -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # a shell's background jobs and nohup ignore them
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


def started(words: list[str], folder: Path, mark: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=handled,
        start_new_session=True,
    )


def seatrial(*words: str) -> list[str]:
    return [sys.executable, "-m", "seatrial", *words]


def spreading(folder: Path) -> tuple[list[str], Path]:
    program, ready = folder / "spreads.py", folder / "ready"
    program.write_text(_SPREADS)
    return [sys.executable, str(program), str(ready)], ready


def study(folder: Path, argv: list[str]) -> str:
    file = folder / "study.yaml"
    file.write_text(f"study: long\nquestion: Does it end?\nbenchmarks:\n  command: {{argv: {json.dumps(argv)}}}\n")
    return str(file)


_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL]


@pytest.mark.lab
@pytest.mark.parametrize("number", _SIGNALS)
def test_a_measured_command_and_all_that_it_started_end(number: signal.Signals, tmp_path: Path, mark: str) -> None:
    words, ready = spreading(tmp_path)
    run = started(seatrial("run", study(tmp_path, words)), tmp_path, mark)
    until(lambda: ready.exists() or run.poll() is not None)
    assert ready.exists(), run.communicate()
    run.send_signal(number)
    _, said = run.communicate(timeout=30)
    if number == signal.SIGKILL:
        assert run.returncode == -number
    else:
        assert run.returncode == 128 + number
        assert "interrupted" in said and "Traceback" not in said
        assert marked(mark) == [], "all has ended before seatrial has"
    assert_nothing_left(mark)


@pytest.mark.lab
def test_a_second_signal_changes_nothing_but_the_speed(tmp_path: Path, mark: str) -> None:
    words, ready = spreading(tmp_path)
    run = started(seatrial("run", study(tmp_path, words)), tmp_path, mark)
    until(ready.exists)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        run.send_signal(number)
        time.sleep(0.05)
    _, said = run.communicate(timeout=30)
    assert run.returncode == 130 and said.count("interrupted") == 1 and "Traceback" not in said
    assert_nothing_left(mark)


@pytest.mark.parametrize("number", _SIGNALS)
def test_a_profiled_command_ends(number: signal.Signals, tmp_path: Path, mark: str) -> None:
    words, ready = spreading(tmp_path)
    profile = started(seatrial("profile", "--", *words), tmp_path, mark)
    until(lambda: ready.exists() or profile.poll() is not None)
    profile.send_signal(number)
    profile.communicate(timeout=30)
    assert profile.returncode == (-number if number == signal.SIGKILL else 3), "the command failed, its profile is kept"
    assert_nothing_left(mark)


@pytest.mark.lab
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_launchers_ranks_and_helpers_end_at_random_moments(
    mpi: str, number: signal.Signals, tmp_path: Path, mark: str, need: Callable[[str, str], str]
) -> None:
    need(f"mpirun.{mpi}", f"apt install {mpi}")
    source = random.Random(f"{mpi}{number}")
    for _ in range(2):
        run = started(seatrial("run", "mpi.latency", "--set", f"environment.mpi={mpi}"), tmp_path, mark)
        until(lambda run=run: len(marked(mark)) >= 3 or run.poll() is not None)
        time.sleep(source.uniform(0.0, 1.5))
        run.send_signal(number)
        run.communicate(timeout=40)
        assert run.returncode in (-number, 128 + number)
        assert_nothing_left(mark)


@pytest.mark.lab
def test_the_guard_and_seatrial_killed_together_take_the_program_along(tmp_path: Path, mark: str) -> None:
    run = started(seatrial("run", study(tmp_path, ["sleep", "600"])), tmp_path, mark)
    until(lambda: any(words_of(pid).startswith(b"sleep ") for pid in marked(mark)))
    for pid in marked(mark):
        if b"seatrial.processes.guard" in words_of(pid) or pid == run.pid:
            os.kill(pid, signal.SIGKILL)
    run.communicate(timeout=30)
    assert_nothing_left(mark)


@pytest.mark.parametrize("in_our_group", [False, True])
def test_a_killed_guard_takes_its_programs_along_and_is_replaced(in_our_group: bool, tmp_path: Path, mark: str) -> None:
    words, ready = spreading(tmp_path)
    environment = {**os.environ, MARK: mark}
    with Path(os.devnull).open("r+") as null:
        program = Running(words, environment, [null.fileno()] * 3, in_our_group=in_our_group)
        until(ready.exists)
        assert start._guard is not None
        os.kill(start._guard.pid, signal.SIGKILL)
        ending = program.wait(10)
        assert ending is not None and ending.lost_guard and ending.returncode == -signal.SIGKILL
        assert marked(mark) == []
        ending = Running(["true"], environment, [null.fileno()] * 3).wait(10)
        assert ending is not None and ending.returncode == 0


def test_a_program_has_the_circumstances_of_its_caller(tmp_path: Path) -> None:
    code = "import os, resource; print(os.getcwd(), oct(os.umask(0)), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    before = os.umask(0o027)
    try:
        with (tmp_path / "out").open("wb") as out, Path(os.devnull).open() as null:
            streams = [null.fileno(), out.fileno(), out.fileno()]
            ending = Running([sys.executable, "-c", code], os.environ, streams, runs_in=tmp_path).wait(30)
    finally:
        os.umask(before)
    assert ending is not None and ending.returncode == 0
    assert (tmp_path / "out").read_text().split()[:2] == [str(tmp_path), "0o27"]
