"""`keep` and `place` with real launchers: no process and no file is left, however they end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from seatrial.errors import BuildError, Exit
from seatrial.launch.mpi import Helpers, rank_records
from seatrial.places.rank_helpers import rank_helpers
from seatrial.processes.tree import children, descendants, is_alive

pytestmark = pytest.mark.real

MPIS = ["openmpi", "mpich"]
OPTIONS = {"openmpi": ["--use-hwthread-cpus", "--bind-to", "none"], "mpich": ["-rmk", "user", "-launcher", "fork"]}

HANGS = r"""
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  signal(SIGTERM, SIG_IGN);
  MPI_Init(&argc, &argv);
  if (fork() == 0) {
    setsid();
    if (fork() == 0) for (;;) pause();
    _exit(0);
  }
  printf("ready\n");
  fflush(stdout);
  for (;;) pause();
}
"""

LAB = """
import os, signal, sys
from pathlib import Path
from seatrial.launch.local import LocalProgram, run_together
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs behind it without
folder = Path(sys.argv[1])
command = [sys.argv[2], "--parent", str(os.getpid()), "--grace", "3", "--", *sys.argv[3:]]
run_together([LocalProgram(command, dict(os.environ), folder, grace_s=8.0)], 600)
"""


@pytest.fixture(scope="module")
def helpers() -> Helpers:
    try:
        return rank_helpers()
    except BuildError as problem:
        pytest.skip(f"needs a compiler: {problem}")


@pytest.fixture(scope="session")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The command that starts two ranks that never end, ignore SIGTERM and have a daemon each."""
    folder = tmp_path_factory.mktemp("hangs")

    def command(mpi: str) -> list[str]:
        mpicc, mpirun = shutil.which(f"mpicc.{mpi}"), shutil.which(f"mpirun.{mpi}")
        if mpicc is None or mpirun is None:
            pytest.skip(f"needs mpicc.{mpi} and mpirun.{mpi}")
        program = folder / mpi
        if not program.exists():
            (folder / "hangs.c").write_text(HANGS)
            subprocess.run([mpicc, "-o", str(program), str(folder / "hangs.c")], check=True)
        return [mpirun, "-np", "2", *OPTIONS[mpi], str(program)]

    return command


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")


@pytest.fixture
def lab(
    helpers: Helpers, hanging: Callable[[str], list[str]], tmp_path: Path, as_root: None
) -> Iterator[Callable[[str], tuple[subprocess.Popen[bytes], list[int]]]]:
    """seatrial running hanging ranks: its process and all descendants."""
    labs: list[subprocess.Popen[bytes]] = []
    seen: list[int] = []
    mapped: set[Path] = set()

    def start(mpi: str) -> tuple[subprocess.Popen[bytes], list[int]]:
        command = [sys.executable, "-c", LAB, str(tmp_path), str(helpers.keep), *hanging(mpi)]
        lab = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        labs.append(lab)
        output = tmp_path / "stdout"
        wait_until(lambda: output.exists() and output.read_bytes().count(b"ready") == 2)
        wait_until(lambda: len(descendants(lab.pid)) >= 6)  # keep, launcher, two ranks, two daemons
        seen.extend(descendants(lab.pid))
        mapped.update(path for pid in seen for path in segments_of(pid))
        return lab, list(seen)

    yield start
    for pid in [process.pid for process in labs if process.poll() is None] + seen:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    for process in labs:
        process.wait()
    for path in mapped:
        path.unlink(missing_ok=True)


def wait_until(holds: Callable[[], bool], limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def all_end(pids: Sequence[int]) -> None:
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


@pytest.mark.parametrize("mpi", MPIS)
def test_nothing_is_left_when_seatrial_is_killed(
    mpi: str, lab: Callable[[str], tuple[subprocess.Popen[bytes], list[int]]]
) -> None:
    process, all_of_it = lab(mpi)
    mapped = {path for pid in all_of_it for path in segments_of(pid)}
    process.kill()
    all_end(all_of_it)
    wait_until(lambda: not any(path.exists() for path in mapped))


@pytest.mark.parametrize("mpi", MPIS)
def test_nothing_is_left_when_seatrial_is_interrupted(
    mpi: str, lab: Callable[[str], tuple[subprocess.Popen[bytes], list[int]]]
) -> None:
    process, all_of_it = lab(mpi)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    assert not any(is_alive(pid) for pid in all_of_it), "it ended before what it had started"


@pytest.mark.parametrize("mpi", MPIS)
def test_nothing_is_left_when_keep_is_killed(
    mpi: str, lab: Callable[[str], tuple[subprocess.Popen[bytes], list[int]]]
) -> None:
    process, all_of_it = lab(mpi)
    (keeper,) = children(process.pid)
    os.kill(keeper, signal.SIGKILL)
    process.wait(timeout=30)
    all_end(all_of_it)


@pytest.mark.parametrize("mpi", MPIS)
def test_what_a_killed_launcher_leaves_is_removed(
    mpi: str, helpers: Helpers, hanging: Callable[[str], list[str]], as_root: None, tmp_path: Path
) -> None:
    """The shared memory of the ranks, and Open MPI's folder."""
    output, errors = tmp_path / "output", tmp_path / "errors"
    with output.open("wb") as out, errors.open("wb") as err:
        keep = subprocess.Popen([str(helpers.keep), "--grace", "1", "--", *hanging(mpi)], stdout=out, stderr=err)
    wait_until(lambda: output.read_bytes().count(b"ready") == 2)
    wait_until(lambda: len(descendants(keep.pid)) >= 5)  # launcher, two ranks, two daemons
    all_of_it = descendants(keep.pid)
    own = children(keep.pid)  # the launcher, and daemons whose parents have ended
    (launcher,) = [pid for pid in own if b"-np" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    mapped = {path for pid in all_of_it for path in segments_of(pid)}
    folder = Path(f"/tmp/ompi.{os.uname().nodename.partition('.')[0]}.{os.getuid()}/pid.{launcher}")
    os.kill(launcher, signal.SIGKILL)
    assert keep.wait(timeout=30) == -signal.SIGKILL
    all_end(all_of_it)
    assert not [path for path in mapped if path.exists()] and not folder.exists()
    for path in mapped:
        if path.name.startswith(("vader_segment", "mpich_shm")):
            assert f"keep: {path}, left behind by the ranks, was removed" in errors.read_text()


def segments_of(pid: int) -> set[Path]:
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return set()
    found = {line.split(maxsplit=5)[5] for line in lines if "/dev/shm/" in line}
    return {Path(name) for name in found if not name.endswith("(deleted)")}


@pytest.mark.quiet
def test_files_of_other_programs_are_kept(helpers: Helpers) -> None:
    """A file that existed before, and one that is mapped. With other ranks on the machine, the first could be taken for
    one of theirs, because no process has it mapped."""
    folder = Path("/dev/shm")
    before = folder / f"mpich_shm_before_{os.getpid()}"
    mapped = folder / f"mpich_shm_mapped_{os.getpid()}"
    stray = folder / f"mpich_shm_stray_{os.getpid()}"
    before.write_bytes(b"x")
    holder = None
    try:
        hold = f"import mmap, time; f = open({str(mapped)!r}, 'w+b'); f.write(b'x' * 4096); f.flush(); "
        hold += "m = mmap.mmap(f.fileno(), 4096); time.sleep(600)"
        wait = f"until [ -e {mapped} ]; do sleep 0.05; done; sleep 0.3; echo x > {stray}; exit 3"
        keep = subprocess.Popen([str(helpers.keep), "--grace", "1", "--", "sh", "-c", wait])
        time.sleep(0.3)
        holder = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.DEVNULL)
        assert keep.wait(timeout=30) == 3
        assert before.exists() and mapped.exists() and not stray.exists()
    finally:
        if holder is not None:
            holder.kill()
            holder.wait()
        for path in (before, mapped, stray):
            path.unlink(missing_ok=True)


@pytest.mark.parametrize(("code", "expected"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", -signal.SIGSEGV)])
def test_keep_has_the_exit_status_of_its_command(code: str, expected: int, helpers: Helpers) -> None:
    assert subprocess.run([str(helpers.keep), "--", "sh", "-c", code], check=False).returncode == expected


def test_a_command_that_cannot_be_started_is_reported(helpers: Helpers, tmp_path: Path) -> None:
    done = subprocess.run([str(helpers.keep), "--", str(tmp_path / "no")], check=False, capture_output=True, text=True)
    assert done.returncode == Exit.LAUNCHER and done.stderr.endswith(
        "no cannot be started: No such file or directory\n"
    )
    done = subprocess.run([str(helpers.keep), "--parent", "1", "--", "true"], check=False, capture_output=True)
    assert done.returncode == Exit.PARENT_GONE
    assert subprocess.run([str(helpers.keep), "--"], check=False, capture_output=True).returncode == Exit.USAGE


def test_a_rank_is_bound_by_its_number_and_its_placement_recorded(helpers: Helpers, tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    lists = "/".join(map(str, reversed(cpus)))
    shows = f"{sys.executable} -c 'import os; print(sorted(os.sched_getaffinity(0)))'"
    for rank in range(3):
        done = subprocess.run(
            [
                *(str(helpers.place), "--rank-from", "NOT_SET,SOME_RANK", "--ranks", "3", "--cpus", lists),
                *("--record", str(tmp_path), "--", "sh", "-c", shows),
            ],
            env={**os.environ, "SOME_RANK": str(rank)},
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stdout == f"[{cpus[::-1][rank % len(cpus)]}]\n"
    records = rank_records(tmp_path)
    assert sorted(records) == [0, 1, 2]
    assert [r.hello.cpus for r in records.values() if r.hello] == [((cpus[::-1][k % len(cpus)],),) for k in range(3)]
    assert all(isinstance(r.notes["started_at_s"], float) for r in records.values())


@pytest.mark.parametrize(
    ("words", "rank", "status", "message"),
    [
        (["--rank-from", "X"], None, Exit.LAUNCHER, "the launcher sets no rank: none of X is set"),
        (["--rank-from", "X"], "one", Exit.USAGE, "X is 'one': expected a number"),
        (["--rank-from", "X", "--cpus", "0,a"], "0", Exit.USAGE, "'a': expected a number"),
        (["--rank-from", "X", "--cpus", "60000"], "0", Exit.LAUNCHER, "cannot bind the rank to its CPUs"),
        (["--rank-from", "X", "--cpus", "99999999"], "0", Exit.USAGE, "'99999999': expected a number"),
        (["--rank-from", "X", "--record", "/proc/nowhere"], "0", Exit.RECORD, "cannot open the record"),
        (["--cpus", "0"], "0", Exit.USAGE, "--rank-from is missing"),
    ],
)
def test_what_place_refuses(words: list[str], rank: str | None, status: Exit, message: str, helpers: Helpers) -> None:
    environment = {**os.environ, **({} if rank is None else {"X": rank})}
    command = [str(helpers.place), *words, "--ranks", "1", "--", "true"]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == status and message in done.stderr
