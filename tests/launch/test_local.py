"""Running a program and ending it, with real processes."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest

from seatrial.launch.local import Completed, LocalProgram, run, run_together
from seatrial.processes.tree import children, is_alive

pytestmark = pytest.mark.real


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(code), *arguments]


def test_a_program_that_succeeds(tmp_path: Path) -> None:
    done = run(python("print('hello')"), os.environ, tmp_path, 60)
    assert done.returncode == 0 and not done.timed_out and done.evidence == "hello"
    assert 0 < done.wall_s < 60


def test_the_end_of_stderr_is_the_evidence(tmp_path: Path) -> None:
    done = run(
        python("import sys; print('out'); sys.stderr.write('x' * 100000 + 'the end'); sys.exit(7)"),
        os.environ,
        tmp_path,
        60,
    )
    assert done.returncode == 7 and done.died_of == "ended with exit status 7"
    assert done.evidence.endswith("the end") and len(done.evidence) <= 4000


def test_a_signal_has_its_name(tmp_path: Path) -> None:
    done = run(python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), os.environ, tmp_path, 60)
    assert done.died_of == "was killed by SIGSEGV"


def test_a_missing_program_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        run([str(tmp_path / "nothing")], os.environ, tmp_path, 60)


_HANGS_WITH_CHILDREN = """
import os, signal, subprocess, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stubborn])
far = subprocess.Popen(["sleep", "600"], start_new_session=True)
Path(sys.argv[1]).write_text(f"{os.getpid()} {child.pid} {far.pid}")
time.sleep(600)
"""


def test_a_hanging_program_is_ended_with_its_children_even_those_that_ignore_the_signal(tmp_path: Path) -> None:
    done = run(python(_HANGS_WITH_CHILDREN, str(tmp_path / "pids")), os.environ, tmp_path, 1.5)
    assert done.timed_out and done.returncode == -signal.SIGKILL
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 3
    assert_all_end(pids)


_LEAVES_A_DAEMON = """
import os, sys, time
from pathlib import Path
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        Path(sys.argv[1]).write_text(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not Path(sys.argv[1]).exists() or not Path(sys.argv[1]).read_text():
    time.sleep(0.01)
"""


def test_a_daemon_that_a_program_leaves_behind_is_ended(tmp_path: Path) -> None:
    done = run(python(_LEAVES_A_DAEMON, str(tmp_path / "pid")), os.environ, tmp_path, 60)
    assert done.returncode == 0
    assert_all_end([int((tmp_path / "pid").read_text())])


def test_children_of_this_process_that_were_there_before_are_left_alone(tmp_path: Path) -> None:
    import subprocess

    mine = subprocess.Popen(["sleep", "600"])
    try:
        run(python(""), os.environ, tmp_path, 60)
        assert mine.poll() is None and mine.pid in children(os.getpid())
    finally:
        mine.kill()
        mine.wait()


def assert_all_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 5
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still alive: {[pid for pid in pids if is_alive(pid)]}"
        time.sleep(0.02)


_SHOWS_ITS_PIPES = """
import os, sys
pipes = {}
for name in os.listdir("/proc/self/fd"):
    try:
        pipes[name] = os.readlink("/proc/self/fd/" + name)
    except OSError:
        pass
print(" ".join(sys.argv[1:]), *sorted(kind + "@" + name for name, kind in pipes.items() if kind.startswith("pipe:")))
"""


def together(folder: Path, *commands: list[str], limit_s: float = 60.0) -> list[Completed]:
    folders = [folder / str(number) for number in range(len(commands))]
    for own in folders:
        own.mkdir()
    return run_together([LocalProgram(c, os.environ, own) for c, own in zip(commands, folders, strict=True)], limit_s)


@pytest.mark.parametrize("count", [2, 3])
def test_programs_are_connected_in_a_ring_and_inherit_only_their_own_ends(count: int, tmp_path: Path) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    done = together(tmp_path, *[python(_SHOWS_ITS_PIPES)] * count)
    assert set(Path("/proc/self/fd").iterdir()) == before, "an end was left open here"
    rings: list[tuple[str, str]] = []
    for number, one in enumerate(done):
        _, turns, _, leads, *pipes = one.evidence.split()
        assert leads == str(int(number == 0)) and len(pipes) == 2
        of = {name: kind for kind, name in (pipe.split("@") for pipe in pipes)}
        source, target = turns.split("-")
        rings.append((of[source], of[target]))
    for number, (_, target) in enumerate(rings):
        assert target == rings[(number + 1) % count][0], "what it writes to is what the next one reads"
    assert len({source for source, _ in rings}) == count


def test_a_program_that_cannot_be_started_ends_the_others(tmp_path: Path) -> None:
    before = children(os.getpid())
    with pytest.raises(OSError):
        together(tmp_path, python("import time; time.sleep(600)"), [str(tmp_path / "nothing")])
    assert children(os.getpid()) == before


def test_a_time_limit_ends_all_programs(tmp_path: Path) -> None:
    done = together(tmp_path, python("print('well')"), python("import time; time.sleep(600)"), limit_s=1.5)
    assert done[0].returncode == 0 and done[0].evidence == "well"
    assert done[1].timed_out and done[1].returncode < 0
