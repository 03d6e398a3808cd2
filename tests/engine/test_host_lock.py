"""Two measuring processes on one host: the second waits, whoever runs it and in whatever namespace, and knows for whom;
a dead one does not block, and nobody can block in another's name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from seatrial.engine import lock_file
from seatrial.engine.host_lock import ClaimWait, HostLock, users_named
from seatrial.engine.listener import Listener
from seatrial.engine.lock_file import FOLDER, HOST, Holder, OwnFiles, Told, holders, lock_places
from seatrial.errors import BusyError, UsageError
from seatrial.model.results.record import decode
from seatrial.places.cluster.shape import ClusterState, read_wanted, shape_of
from seatrial.places.owned_folder import write_state

real = [pytest.mark.real, pytest.mark.lab]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")

_OTHER, _THIRD = 54321, 54322

_HOLDS = """
import os, sys, time
from seatrial.engine import lock_file
from seatrial.engine.host_lock import HostLock
from pathlib import Path
lock_file._COMMON = (Path(sys.argv[1]),)
if len(sys.argv) > 2:
    os.setuid(int(sys.argv[2]))
with HostLock().held(lambda holders: None):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def place(reachable: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A common folder of these tests alone, like /tmp."""
    for name in (FOLDER, HOST):
        monkeypatch.delenv(name, raising=False)
    made = reachable / "common"
    made.mkdir()
    made.chmod(0o1777)
    monkeypatch.setattr(lock_file, "_COMMON", (made,))
    return made


@pytest.fixture
def hold(place: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a process that holds the lock."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        command = [*before, sys.executable, "-c", _HOLDS, str(place), *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def who_holds(places: tuple[Path, ...]) -> list[tuple[int, int]]:
    return [(holder.uid, holder.pid) for holder in holders(places, OwnFiles())]


def test_a_second_process_waits_for_the_first_and_names_it_and_a_killed_one_frees_the_lock(
    hold: Callable[..., subprocess.Popen[bytes]], place: Path
) -> None:
    holder = hold()
    told: list[Holder] = []

    def ended(found: tuple[Holder, ...]) -> None:
        told.extend(found)
        holder.kill()
        holder.wait()

    with HostLock().held(ended):
        (seen,) = told
        assert (seen.uid, seen.pid) == (os.geteuid(), holder.pid) and sys.executable in seen.command
        assert f"pid {holder.pid}, since 20" in seen.text() and " for " in seen.text()
        assert len(list(place.iterdir())) == 1  # what the killed one left is removed
    assert not list(place.iterdir())


def test_a_wait_with_a_limit_ends_and_says_who_where_and_what_to_do(
    hold: Callable[..., subprocess.Popen[bytes]],
) -> None:
    holder = hold()
    with pytest.raises(BusyError) as refused, HostLock(wait_s=0.0).held(lambda found: None):
        pass
    assert f"pid {holder.pid}, since" in str(refused.value) and "--wait TIME" in str(refused.value)
    assert f"--ignore-lock-of {users_name()}" in str(refused.value) and refused.value.exit_code == 3


def test_who_waits_reads_the_results_folder_and_the_time_left(place: Path) -> None:
    own = OwnFiles.make((place,), Told("/data/results\x1b[31m", 600.0))
    ask = "import sys; from pathlib import Path; from seatrial.engine.lock_file import OwnFiles, holders; "
    ask += "print(holders([Path(sys.argv[1])], OwnFiles())[0].text())"
    try:
        seen = subprocess.run([sys.executable, "-c", ask, place], capture_output=True, text=True, check=True).stdout
    finally:
        own.remove()
    assert "(expects at most 10 min more), results folder: /data/results, command: " in seen


def test_a_holder_that_takes_longer_than_it_expected_is_said_so() -> None:
    holder = Holder(1, 0, time.time() - 300.0, "run", Path("/file"), Told("", 60.0))
    assert "for 5 min (longer than the 60 s that it expected)" in holder.text()


@pytest.mark.parametrize(
    "text", [b"", b"[1]", b'{"results": 1, "lasts_s": NaN}', b'{"lasts_s": -1}', b'{"lasts_s": true}']
)
def test_what_a_holder_states_may_be_anything(text: bytes) -> None:
    assert lock_file._described(text) == ("", Told())


def users_name() -> str:
    return Holder(os.geteuid(), 1, 0.0, "", Path()).user


def test_what_everybody_may_read_has_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["seatrial", "run", "--versus", "mysql -phunter2 db", "./app --pw abc"])
    assert (
        json.loads(lock_file._description(Told()))["command"] == "seatrial run --versus mysql -p*** db ./app --pw ***"
    )


def test_the_lock_of_a_passed_user_is_not_waited_for_and_is_reported(
    hold: Callable[..., subprocess.Popen[bytes]],
) -> None:
    holder = hold()
    with HostLock(wait_s=0.0, past=users_named([users_name()])).held(lambda found: None) as held:
        assert [beside.pid for beside in held.beside()] == [holder.pid]
    with pytest.raises(UsageError, match="no such user"):
        users_named(["nobody-has-this-name"])


def test_a_thread_of_the_same_process_waits_too(place: Path) -> None:
    with (
        HostLock().held(lambda found: None),
        pytest.raises(BusyError, match="another thread"),
        HostLock(wait_s=0.0).held(lambda found: None),
    ):
        pass


@pytest.mark.parametrize(
    "namespaces", ["--net", "--mount", "--pid --fork --kill-child --mount-proc", "--user --map-root-user", "--uts"]
)
@as_root
def test_other_namespaces_see_the_lock_where_they_see_the_file(
    namespaces: str, hold: Callable[..., subprocess.Popen[bytes]], place: Path, need: Callable[[str, str], str]
) -> None:
    unshare = need("unshare", "apt install util-linux")
    holder = hold(before=(unshare, *namespaces.split()))
    ((uid, pid),) = who_holds((place,))
    assert uid == 0 and pid in ({holder.pid} if "--pid" not in namespaces else children_of(holder.pid))
    look = (
        "import sys; from pathlib import Path; from seatrial.engine.lock_file import *;"
        "print([(h.uid, h.pid) for h in holders([Path(sys.argv[1])], OwnFiles())])"
    )
    hold_here = [unshare, *namespaces.split(), sys.executable, "-c", look, str(place)]
    seen = subprocess.run(hold_here, capture_output=True, text=True, check=True).stdout
    assert seen == f"[(0, {0 if '--pid' in namespaces else holder.pid})]\n"


def children_of(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_a_named_host_has_a_lock_of_its_own(
    hold: Callable[..., subprocess.Popen[bytes]], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold()
    monkeypatch.setenv(HOST, "node1")
    with HostLock(wait_s=0.0).held(lambda found: None):
        assert who_holds((place,)) == []
        monkeypatch.setenv(HOST, "node2")
        assert who_holds((place,)) == []


def test_nodes_of_a_cluster_of_one_machine_are_hosts(
    hold: Callable[..., subprocess.Popen[bytes]], place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job in an allocation would lose its minutes to whoever measures on another node."""
    hold()
    shape = shape_of(read_wanted(2, "1gbit"), range(4))
    write_state(tmp_path, ClusterState("seatrial-7", shape, {}))
    monkeypatch.setenv("SEATRIAL_CLUSTER", str(tmp_path))
    with pytest.raises(BusyError), HostLock(wait_s=0.0).held(lambda found: None):
        pass
    monkeypatch.setattr("platform.node", lambda: "n2")
    with HostLock(wait_s=0.0).held(lambda found: None):
        assert who_holds((place,)) == []


@as_root
def test_another_user_is_named_by_the_owner_of_the_file(
    hold: Callable[..., subprocess.Popen[bytes]], place: Path
) -> None:
    holder = hold(str(_OTHER))
    assert who_holds((place,)) == [(_OTHER, holder.pid)]
    with pytest.raises(BusyError, match=f"user {_OTHER}, pid {holder.pid}"), HostLock(0.0).held(lambda found: None):
        pass
    with HostLock(0.0, past=users_named([str(_OTHER)])).held(lambda found: None):
        pass


_HOSTILE = """
import fcntl, os, sys, time
place, deed = sys.argv[1], sys.argv[3]
os.setuid(int(sys.argv[2]))
path = f"{place}/seatrial-host-0123456789abcdef.lock"
theirs = [f"{place}/{name}" for name in os.listdir(place)]
if deed == "a link":
    os.symlink(theirs[0] if theirs else "/etc/passwd", path)
elif deed == "a FIFO":
    os.mkfifo(path)
elif deed == "a folder":
    os.mkdir(path)
elif deed == "a file that nobody can read":
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o000))
elif deed == "a file without a lock":
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o644))
elif deed == "a file that all can write, locked":
    os.umask(0)
    fcntl.lockf(os.open(path, os.O_CREAT | os.O_RDWR, 0o666), fcntl.LOCK_EX)
elif deed == "a read lock on the file of another":
    for name in theirs:
        fcntl.lockf(os.open(name, os.O_RDONLY), fcntl.LOCK_SH)
elif deed == "flock on the file of another":
    for name in theirs:
        fcntl.flock(os.open(name, os.O_RDONLY), fcntl.LOCK_EX)
print("done", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    "deed",
    [
        "a FIFO",
        "a file that all can write, locked",
        "a file that nobody can read",
        "a file without a lock",
        "a folder",
        "a link",
        "a read lock on the file of another",
        "flock on the file of another",
    ],
)
@as_root
def test_nothing_that_another_user_plants_blocks_or_speaks_in_anothers_name(deed: str, place: Path) -> None:
    leftover = place / "seatrial-host-fedcba9876543210.lock"
    leftover.touch()  # of this user: unlocked
    leftover.chmod(0o644)
    hostile = subprocess.Popen([sys.executable, "-c", _HOSTILE, str(place), str(_OTHER), deed], stdout=subprocess.PIPE)
    try:
        assert hostile.stdout is not None and hostile.stdout.readline() == b"done\n"
        with HostLock(wait_s=0.0).held(lambda found: None):
            pid = os.fork()
            if pid == 0:  # a third user sees this process, and nobody else
                try:
                    os.setuid(_THIRD)
                    os._exit(0 if who_holds((place,)) == [(0, os.getppid())] else 1)
                finally:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert not leftover.exists()
    finally:
        hostile.kill()
        hostile.communicate()


@as_root
def test_a_holder_for_ever_is_named_with_its_real_command_and_can_be_passed(place: Path) -> None:
    script = (
        "import fcntl, os, sys, time; os.setuid(int(sys.argv[2]));"
        "f = os.open(sys.argv[1] + '/seatrial-host-1.lock', os.O_CREAT | os.O_RDWR, 0o644);"
        "fcntl.lockf(f, fcntl.LOCK_EX);"
        'os.write(f, b\'{"pid": 1, "command": "seatrial run \\x1b[2J"}\');'
        "print('done', flush=True); time.sleep(600)"
    )
    hostile = subprocess.Popen([sys.executable, "-c", script, str(place), str(_OTHER)], stdout=subprocess.PIPE)
    try:
        assert hostile.stdout is not None and hostile.stdout.readline() == b"done\n"
        (seen,) = holders((place,), OwnFiles())
        assert (seen.uid, seen.pid) == (_OTHER, hostile.pid) and "import fcntl" in seen.command
        assert seen.command.isprintable()
        with HostLock(0.0, past=users_named([str(_OTHER)])).held(lambda found: None):
            pass
    finally:
        hostile.kill()
        hostile.communicate()


def test_the_named_folder_is_used_too_and_must_be_safe(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv(FOLDER, str(shared))
    with HostLock().held(lambda found: None):
        assert [len(list(folder.iterdir())) for folder in (shared, place)] == [1, 1]
    shared.chmod(0o777)
    with pytest.raises(UsageError, match=r"SEATRIAL_LOCK=.* others could remove"):
        lock_places()
    monkeypatch.setenv(FOLDER, str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="No such file"):
        lock_places()


def test_folders_that_hosts_share_are_not_common_folders(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_file, "file_system_of", lambda path: {"type": "nfs4"})
    assert lock_places() == ()
    monkeypatch.setenv(FOLDER, str(place))
    assert lock_places() == (place,)


def test_without_any_folder_it_measures_and_warns(
    place: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_file, "_COMMON", ())
    with HostLock().held(lambda found: None):
        pass
    assert "SEATRIAL_LOCK" in caplog.text


def test_the_wait_for_repeats_of_other_hosts_has_the_same_limit_and_names_them_once_a_minute() -> None:
    told: list[object] = []

    class Watching(Listener):
        def waits_for_claims(self, hosts: Sequence[str]) -> None:
            told.append(hosts)

    waiting = ClaimWait(None, Watching())
    for _ in range(2):
        waiting.again(["node2"])
    assert told == [["node2"]]
    with pytest.raises(BusyError, match="node2, into the same results folder"):
        ClaimWait(0.0, Watching()).again(["node2"])


class TestRuns:
    pytestmark = real

    def test_two_runs_in_one_folder_make_each_repeat_once(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "seatrial", "run", "cpu.peak", "--set", "cores=one", "--budget", "2s"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        both = [subprocess.Popen(command, cwd=tmp_path, env=dict(os.environ), **pipes) for _ in range(2)]
        said = [process.communicate(timeout=120)[1].decode() for process in both]
        assert [process.returncode for process in both] == [0, 0], said
        records = [
            decode(line)
            for path in (tmp_path / "seatrial-results/records").iterdir()
            for line in path.read_bytes().splitlines()
        ]
        numbers = [record.repeat for record in records]
        assert sorted(numbers) == list(range(len(numbers)))
        intervals = sorted((record.t0, record.t0 + record.wall_s) for record in records)
        assert all(before[1] <= after[0] + 0.05 for before, after in pairwise(intervals))

    def test_what_is_reused_or_unsupported_does_not_wait_for_the_lock(self, tmp_path: Path) -> None:
        run = [sys.executable, "-m", "seatrial", "run", "--wait", "0s", "cpu.peak", "--set", "cores=one"]
        first = subprocess.run([*run, "--budget", "1s"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert first.returncode == 0, first.stderr
        holds = _HOLDS.replace("lock_file._COMMON = (Path(sys.argv[1]),)\n", "")
        holder = subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE)
        try:
            assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
            again = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert again.returncode == 0, again.stderr
            busy = subprocess.run([*run, "--again"], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert busy.returncode == 3 and f"pid {holder.pid}, since" in busy.stderr, busy.stderr
            passed = [*run, "--again", "--budget", "1s", "--ignore-lock-of", str(os.geteuid())]
            beside = subprocess.run(passed, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert beside.returncode == 0, beside.stderr
        finally:
            holder.kill()
            holder.communicate()
        files = (tmp_path / "seatrial-results/records").iterdir()
        lines = [line for path in files for line in path.read_bytes().splitlines()]
        noted = [decode(line).seen.get("beside") for line in lines]
        assert [[f"user {users_name()}, pid {holder.pid}"]] * 6 == [one for one in noted if one is not None][:6]
        assert noted.count(None) == 6
