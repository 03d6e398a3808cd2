"""A guest in QEMU, with emulated processors: what it is, what runs in it, and that nothing of it stays.

It starts once for all tests (10 to 25 s).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here
from published_schemas import check

import seatrial
from seatrial.analysis.compare_along import compare_along
from seatrial.environments.mpi import lacking_mpi
from seatrial.errors import SeatrialError
from seatrial.places.guest.kernel import KERNEL, find_busybox, find_kernel
from seatrial.places.guest.qemu import find_emulator
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = [pytest.mark.real, pytest.mark.parallel]

_EXAMPLE = Path(__file__).parents[3] / "examples" / "topologies" / "two-nodes-and-a-switch.yaml"
_LIMIT_S = 300


@dataclass(frozen=True)
class Place:
    """Where a test has its guest, apart from that of the user."""

    folder: Path

    def here(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A command whose output Python writes, in this process."""
        return seatrial_here("vm", *arguments, cwd=cwd or Path.cwd(), SEATRIAL_VM=str(self.folder))

    def seatrial(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.words(*arguments), env=self.variables(), capture_output=True, text=True,
                              timeout=_LIMIT_S, check=False, **options)  # fmt: skip

    def started(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(self.words(*arguments), env=self.variables(), text=True, **options)

    @staticmethod
    def words(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "seatrial", "vm", *arguments]

    def variables(self) -> dict[str, str]:
        return {**os.environ, "SEATRIAL_VM": str(self.folder)}

    def leftovers(self) -> list[str]:
        """What is left of a guest: its folder, and processes that have its name in their command."""
        found = [str(self.folder)] if self.folder.exists() else []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.folder).encode() in words:
                found.append(words.replace(b"\0", b" ").decode(errors="replace"))
        return found


def new_place() -> Iterator[Place]:
    try:
        find_emulator(), find_busybox()
        named = os.environ.get(KERNEL)
        find_kernel(Path(named) if named else None)
    except SeatrialError as error:
        pytest.skip(str(error))
    above = Path(tempfile.mkdtemp(prefix="seatrial-"))
    place = Place(above / "guest")
    yield place
    assert place.here("down").returncode == 0
    assert not place.leftovers()
    shutil.rmtree(above)


@pytest.fixture
def place() -> Iterator[Place]:
    yield from new_place()


@pytest.fixture(scope="module")
def guest() -> Iterator[Place]:
    for place in new_place():
        done = place.seatrial("up", "--topology", str(_EXAMPLE), "--emulated", "--format", "json")
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        check(document, "vm-1")
        assert (document["state"], document["accelerator"], document["why_emulated"]) == ("up", "tcg", "as asked")
        assert [node["cpus"] for node in document["nodes"]] == [1, 1] and document["distances"] == [[10, 21], [21, 10]]
        yield place


def test_it_is_discovered_as_the_topology_says(guest: Place) -> None:
    done = guest.here("discover", "--format", "json")
    assert done.returncode == 0, done.stderr
    machine = json.loads(done.stdout)
    check(machine, "machine-1")
    devices = {device["id"]: device for device in machine["devices"]}
    nodes = [device for device in devices.values() if device["kind"] == "numa"]
    assert len(nodes) == 2 and len([device for device in devices.values() if device["kind"] == "core"]) == 2

    def above(name: str) -> list[str]:
        found = [devices[name]["parent"]]
        while found[-1] in devices and devices[found[-1]]["kind"] == "bridge":
            found.append(devices[found[-1]]["parent"])
        return found

    drives = [name for name in devices if devices[name]["kind"] == "nvme"]
    on = {numa: [name for name in drives if devices[name]["numa"] == numa] for numa in (0, 1)}
    assert (len(on[0]), len(on[1])) == (1, 1), "a drive on each node"
    (adapter,) = (name for name in devices if devices[name]["kind"] == "nic")
    assert devices[adapter]["numa"] == 1
    common = [bridge for bridge in above(on[1][0]) if bridge in above(adapter)]
    upstream = devices[common[0]]
    assert upstream["kind"] == "bridge" and len([d for d in devices.values() if d["parent"] == upstream["id"]]) == 2
    assert [s["kind"] for s in machine["platform"]["virtualization"] if "cpuinfo" in s["evidence"]] == ["qemu (tcg)"]


def test_a_command_has_its_input_output_and_exit_status(guest: Place) -> None:
    done = guest.seatrial("exec", "--", "sh", "-c", "cat; pwd; echo wrong >&2; exit 7", input="given\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "given\n/root\n", "wrong\n")
    missing = guest.seatrial("exec", "--", "nosuch")
    assert missing.returncode == 127 and "nosuch: No such file" in missing.stderr
    assert guest.seatrial("exec", "--", "sh", "-c", "kill -9 $$").returncode == 128 + signal.SIGKILL
    assert guest.here("exec").returncode == 2


def test_a_static_program_is_brought_in_and_its_results_out(guest: Place, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text('#include <stdio.h>\nint main(void) { puts("ran"); return 3; }\n')
    compiler = shutil.which("cc") or pytest.skip("needs cc")
    subprocess.run([compiler, "-static", "-o", "program", "program.c"], cwd=tmp_path, check=True)
    (tmp_path / "data").mkdir()
    content = os.urandom(3_000_000)
    (tmp_path / "data" / "input").write_bytes(content)
    done = guest.seatrial(
        *("exec", "--put", "program", "--put", "data:/tmp/data", "--get", "/tmp/data:back"),
        *("--", "sh", "-c", "cp /tmp/data/input /tmp/data/copy && ./program"), cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "ran\n"), done.stderr
    assert (tmp_path / "back" / "copy").read_bytes() == content
    again = guest.seatrial("exec", "--get", "/tmp/data:back", "--", "true", cwd=tmp_path)
    assert again.returncode == 2 and "already there" in again.stderr
    assert guest.here("exec", "--put", "nosuch", "--", "true", cwd=tmp_path).returncode == 2


def test_a_command_gets_the_signals_of_seatrial(guest: Place) -> None:
    script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    with guest.started("exec", "--", "sh", "-c", script, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=_LIMIT_S) == 5


def test_a_command_ends_with_a_killed_client(guest: Place) -> None:
    with guest.started("exec", "--", "sleep", "54321", stdin=subprocess.PIPE) as running:
        until = time.monotonic() + 60
        while not (runs := sleeping(guest)) and time.monotonic() < until:
            time.sleep(0.05)
        assert runs
        running.kill()
    until = time.monotonic() + 60
    while sleeping(guest) and time.monotonic() < until:
        time.sleep(0.05)
    assert not sleeping(guest)


def sleeping(guest: Place) -> bool:
    return "sleep 54321" in guest.seatrial("exec", "--", "sh", "-c", "ps | grep [5]4321").stdout


def test_output_that_nobody_reads_ends_the_command(guest: Place) -> None:
    with guest.started("exec", "--", "yes", stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == "y\n"
        running.stdout.close()
        assert running.wait(timeout=_LIMIT_S) == 128 + signal.SIGPIPE


def test_commands_run_side_by_side_up_to_four(guest: Place) -> None:
    running = [guest.started("exec", "--", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
    try:
        for number, one in enumerate(running):
            assert one.stdin is not None and one.stdout is not None
            one.stdin.write(f"{number}\n")
            one.stdin.flush()
            assert one.stdout.readline() == f"{number}\n"
        fifth = guest.seatrial("exec", "--", "true")
        assert fifth.returncode == 3 and "takes no more" in fifth.stderr
    finally:
        for one in running:
            one.communicate()
    assert [one.returncode for one in running] == [0, 0, 0, 0]


def test_a_second_guest_is_refused(guest: Place) -> None:
    done = guest.here("up", "--topology", str(_EXAMPLE), "--emulated")
    assert done.returncode == 2 and "already there" in done.stderr
    assert json.loads(guest.here("status", "--format", "json").stdout)["state"] == "up"


def wait_for_qemu(place: Place) -> None:
    until = time.monotonic() + _LIMIT_S
    while not any("qemu-system" in left for left in place.leftovers()) and time.monotonic() < until:
        time.sleep(0.01)


def test_nothing_is_left_of_a_killed_up(place: Place) -> None:
    with place.started("up", "--topology", str(_EXAMPLE), "--emulated", stderr=subprocess.DEVNULL) as running:
        wait_for_qemu(place)
        running.kill()
    assert any("qemu-system" in left for left in place.leftovers())
    status = json.loads(place.here("status", "--format", "json").stdout)
    assert status["state"] == "incomplete"
    assert place.here("exec", "--", "true").returncode == 2
    assert place.here("down").returncode == 0
    assert not place.leftovers()
    assert "no guest was up" in place.here("down").stderr


def test_an_interrupted_up_leaves_nothing(place: Place) -> None:
    with place.started("up", "--topology", str(_EXAMPLE), "--emulated", stderr=subprocess.DEVNULL) as running:
        wait_for_qemu(place)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=_LIMIT_S) != 0
    assert not place.leftovers()


def test_a_guest_that_ends_is_told(place: Place, tmp_path: Path) -> None:
    """QEMU refuses a kernel that is only the header of one."""
    kernel = find_kernel(Path(os.environ[KERNEL]) if os.environ.get(KERNEL) else None)
    (tmp_path / "boot").mkdir()
    (tmp_path / "lib" / "modules").mkdir(parents=True)
    (tmp_path / "lib" / "modules" / kernel.version).symlink_to(kernel.modules)
    (tmp_path / "boot" / "vmlinuz").write_bytes(kernel.image.read_bytes()[:70_000])
    done = place.here("up", "--topology", str(_EXAMPLE), "--emulated", "--kernel", str(tmp_path / "boot" / "vmlinuz"))
    assert done.returncode == 3 and "did not start" in done.stderr
    assert not place.leftovers()


def test_experiments_run_in_it_and_are_compared_with_nothing(
    guest: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest has no library of the program, which brings its own."""
    monkeypatch.setenv("SEATRIAL_VM", str(guest.folder))
    folder = tmp_path / "results"
    settings = {"environment.vm": ["none", "running"], "cores": "one", "precision": "fp64"}
    found = seatrial.run("cpu.peak", set=settings, results=folder, repeats=1, ignore_lock_of=["root"])
    here, there = found.experiments
    assert here.outcome.is_ok and there.outcome.is_ok, there.outcome
    assert here.figures and here.emulated is None
    assert there.emulated is not None and not there.figures and there.shown[0].limit is None
    contents = read_contents(ResultsFolder.existing(folder))
    (record,) = contents.records[there.id]
    seen = record.seen["vm"]
    assert (seen["accelerator"], seen["hypervisor"], seen["pus"], seen["numas"]) == ("tcg", "qemu (tcg)", 2, 2)
    assert contents.environments[there.experiment.environment]["vm"]["libraries"] == "those of this machine"
    assert there.experiment.machine != here.experiment.machine
    (compared,) = compare_along(contents, "environment.vm", None).compared
    assert compared.comparisons == () and "emulated" in compared.lost[0]
    assert "tmp/seatrial-" not in guest.seatrial("exec", "--", "sh", "-c", "ls -d /tmp/seatrial-*").stdout


def test_ranks_need_the_library_of_the_guest(guest: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (need := lacking_mpi()) is not None:
        pytest.skip(need)
    monkeypatch.setenv("SEATRIAL_VM", str(guest.folder))
    settings = {"environment.vm": "running", "size_B": 8, "ranks": 2}
    found = seatrial.run("mpi.latency", set=settings, results=tmp_path / "r", repeats=1, ignore_lock_of=["root"])
    (one,) = found.experiments
    assert one.outcome.state.value == "unsupported" and "MPI library is missing" in one.outcome.reason
