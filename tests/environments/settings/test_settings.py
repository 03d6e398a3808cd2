"""Settings of the machine: changed as asked, and put back whatever ends seatrial, on a tree of files."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from environments.settings.made_up_node import (
    CPUFREQ,
    GPUS,
    POWERCAP,
    UNCORE,
    changed,
    gpu_settings,
    plant_gpus,
    plant_node,
)

from seatrial.environments.settings import change, journal
from seatrial.environments.settings import node as of_node
from seatrial.environments.settings.change import changed_here, guarded, replay
from seatrial.environments.settings.files import Undone, undo
from seatrial.environments.settings.knobs import (
    KNOBS,
    WRITTEN,
    NotAllowedError,
    offered_settings,
    refuse_forbidden,
    writes_of,
)
from seatrial.environments.settings.node import why_shared
from seatrial.model.benchmark.parameter import Value
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS
from seatrial.processes.own_folder import boot_id

WANTED: dict[str, Value] = {
    "turbo": False,
    "governor": "performance",
    "cpu_frequency": 2.5e9,
    "energy_preference": "performance",
    "uncore_frequency": 1.8e9,
    "power_limit": 200.0,
}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return plant_node(tmp_path / "node")


def test_every_setting_acts_and_is_put_back(node: Path) -> None:
    with guarded(node) as settings:
        assert settings.change(WANTED) == {}
        assert changed(node) == {
            **{f"{CPUFREQ}/policy{k}/scaling_governor": "performance" for k in range(4)},
            **{f"{CPUFREQ}/policy{k}/scaling_{end}_freq": "2500000" for k in range(4) for end in ("min", "max")},
            **{f"{CPUFREQ}/policy{k}/energy_performance_preference": "performance" for k in range(4)},
            "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
            **{f"{UNCORE}/{end}_freq_khz": "1800000" for end in ("min", "max")},
            f"{POWERCAP}/intel-rapl:0/constraint_0_power_limit_uw": "200000000",
        }
        (left,) = changed_here()
        assert left.is_guarded
        assert all(WRITTEN.fullmatch(entry.path) for entry in left.entries)
        assert settings.restore() == {}
        assert changed(node) == {}
        assert settings.change({"governor": "performance"}) == {}
    wait_until_gone()
    assert changed(node) == {}
    assert list(KNOBS) == list(MACHINE_SETTINGS)
    assert set(WANTED) | {"cpu_idle"} == {name for name, one in MACHINE_SETTINGS.items() if not one.of_gpus}


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def wait_until_gone() -> None:
    wait_until(lambda: not list(journal.folder().iterdir()))


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("governor", "warp", "warp is not a governor of this machine"),
        ("cpu_frequency", 9e9, "9.00 GHz is not a clock of this machine"),
        ("cpu_frequency", 1e8, "100 MHz is not a clock of this machine"),
        ("uncore_frequency", 9e9, "9.00 GHz is not a clock of this machine"),
        ("power_limit", 400.0, "400 W is not a limit of this machine"),
        ("power_limit", 0.0, "is not a limit of this machine"),
        ("cpu_idle", 0.0, "this machine has no /dev/cpu_dma_latency"),
    ],
)
def test_what_the_machine_does_not_allow_is_not_tried(name: str, value: float | str, error: str, node: Path) -> None:
    with pytest.raises(NotAllowedError, match=error):
        writes_of({name: value}, node)


def test_a_machine_without_the_setting(tmp_path: Path) -> None:
    for name, value in {**WANTED, "cpu_idle": 0.0}.items():
        with pytest.raises(NotAllowedError, match=r"this machine has no /(sys|dev)/") as refused:
            writes_of({name: value}, tmp_path)
        assert refused.value.need == name


def test_what_a_machine_has_is_offered(node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    states = {one.name: one.state for one in offered_settings(node)}
    assert {name for name, state in states.items() if state == "unverified"} == set(WANTED)
    assert {one.state for one in offered_settings(tmp_path / "nothing")} == {"unsupported"}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert {one.need for one in offered_settings(node) if one.name in WANTED} == {"root"}


def test_who_may_not_change_it_is_stated_before_it_is_tried(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = writes_of(WANTED, node)
    refuse_forbidden(writes, node)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for user, need in ((1000, "root"), (0, "permission")):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(NotAllowedError, match="no_turbo") as refused:
            refuse_forbidden(writes, node)
        assert refused.value.need == need


OF_GPUS: dict[str, Value] = {"gpu_clock": 1.4e9, "gpu_power_limit": 300.0}


@pytest.fixture
def gpus(node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    variables = plant_gpus(tmp_path)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return variables


@pytest.mark.real
def test_gpus_are_set_and_put_back(node: Path, gpus: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    with guarded(node) as settings:
        assert settings.change(OF_GPUS) == {}
        assert gpu_settings(gpus) == ["1400,1400 300.00"] * 2
        assert settings.restore() == {}
        assert gpu_settings(gpus) == ["free 700.00"] * 2
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")  # the others are somebody else's
        assert settings.change(OF_GPUS) == {}
        assert gpu_settings(gpus) == ["free 700.00", "1400,1400 300.00"]
        (Path(gpus["MADE_UP_GPUS"]) / "denied").touch()
        failed = settings.change({"gpu_power_limit": 200.0})
        assert list(failed) == [f"nvidia-smi:{GPUS[1]}/power_limit"]
        assert "Insufficient Permissions" in failed[f"nvidia-smi:{GPUS[1]}/power_limit"]
        (Path(gpus["MADE_UP_GPUS"]) / "denied").unlink()
    wait_until_gone()
    assert gpu_settings(gpus) == ["free 700.00"] * 2


@pytest.mark.real
def test_gpus_are_put_back_after_the_guard_was_killed(node: Path, gpus: dict[str, str]) -> None:
    with pytest.raises(OSError, match=r"was killed|Broken pipe"), guarded(node) as settings:
        assert settings.change(OF_GPUS) == {}
        (guard,) = guards()
        os.kill(guard, signal.SIGKILL)
        settings.change({"gpu_clock": 1e9})
    assert gpu_settings(gpus) == ["free 700.00"] * 2
    assert changed_here() == []


@pytest.mark.real
def test_what_gpus_do_not_allow_is_not_tried(node: Path, gpus: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value, error in (
        ("gpu_clock", 3e9, r"3.00 GHz is not a clock of NVIDIA Made Up\s+it has up to 1.98 GHz"),
        ("gpu_power_limit", 50.0, r"50 W is not a limit of NVIDIA Made Up\s+it takes 100 to 700 W"),
        ("gpu_power_limit", 900.0, r"900 W is not a limit"),
    ):
        with pytest.raises(NotAllowedError, match=error):
            writes_of({name: value}, node)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(NotAllowedError, match="lists none that this process may use"):
        writes_of(OF_GPUS, node)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotAllowedError, match="nvidia-smi is not on PATH"):
        writes_of(OF_GPUS, node)


def test_other_users_and_other_jobs_share_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_node, "users_here", list[int])
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert why_shared({}) == ""
    assert why_shared({"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "8"}) == ""
    assert why_shared({"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "4"}).startswith("this job has 4 of the 8 CPUs")
    monkeypatch.setattr(of_node, "users_here", lambda: [1234])
    assert why_shared({}) == "others run programs on this node (users 1234)"


def test_a_setting_that_did_not_act_is_reported_and_what_others_set_stays(node: Path) -> None:
    file = node / f"{CPUFREQ}/policy0/scaling_governor"
    with guarded(node) as settings:
        assert settings.change({"governor": "performance"}) == {}
        file.write_text("schedutil\n")
        kept = settings.restore()
        assert kept == {f"/{CPUFREQ}/policy0/scaling_governor": "is 'schedutil', which somebody else has set"}
    assert changed(node) == {f"{CPUFREQ}/policy0/scaling_governor": "schedutil"}


LAB = """
    import os, sys, time
    from pathlib import Path
    from seatrial.environments.settings.change import guarded
    with guarded(Path(sys.argv[1])) as settings:
        print("ready", flush=True)
        for k in range(10_000):
            settings.change({"governor": "performance", "cpu_frequency": 2.5e9, "power_limit": 200.0})
            settings.change({"governor": "powersave", "cpu_frequency": 1.2e9, "turbo": bool(k % 2)})
            if k % 3 == 2:
                settings.restore()
"""


def guards() -> list[int]:
    """The guards of our journals, found by the journal that they hold open."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                targets = [str(one.readlink()) for one in (process / "fd").iterdir()]
            except OSError:
                continue
            if any(target.startswith(str(journal.folder())) for target in targets):
                found.append(int(process.name))
    return found


@pytest.mark.real
@pytest.mark.parametrize("with_guard", [False, True])
def test_all_is_put_back_after_a_kill(node: Path, with_guard: bool) -> None:
    lab = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LAB), str(node)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert lab.stdout is not None
    assert lab.stdout.readline() == b"ready\n"
    time.sleep(0.05 + random.random() * 0.2)
    killed = guards() if with_guard else []
    for guard in killed:
        os.kill(guard, signal.SIGKILL)
    os.killpg(lab.pid, signal.SIGKILL)
    lab.communicate()
    if with_guard:
        assert len(killed) == 1
        wait_until(lambda: not guards())  # a process that was killed holds its lock until it has ended
        replay(node)
    else:
        wait_until_gone()
    assert changed(node) == {}
    assert changed_here() == []


def test_an_undo_that_was_killed_is_finished(node: Path) -> None:
    path = f"/{CPUFREQ}/policy0/scaling_governor"
    chain = [journal.Entry(path, "powersave", "performance"), journal.Entry(path, "performance", "schedutil")]
    for now_is, is_restored in (("schedutil", True), ("performance", True), ("powersave", False)):
        (node / path[1:]).write_text(f"{now_is}\n")
        assert undo(chain, node) == Undone((path,) if is_restored else (), {})
        assert changed(node) == {}


@pytest.mark.real
def test_all_is_put_back_at_once_if_only_the_guard_is_killed(node: Path) -> None:
    with pytest.raises(OSError, match=r"was killed|Broken pipe"), guarded(node) as settings:
        assert settings.change({"governor": "performance"}) == {}
        (guard,) = guards()
        os.kill(guard, signal.SIGKILL)
        settings.change({"turbo": False})
    assert changed(node) == {}


@pytest.mark.real
def test_a_latency_is_held_while_the_guard_lives() -> None:
    device = Path("/dev/cpu_dma_latency")
    if os.geteuid() != 0 or not device.exists():
        pytest.skip("needs root and /dev/cpu_dma_latency")

    def limit_us() -> int:
        return int.from_bytes(device.read_bytes()[:4], "little", signed=True)

    before = limit_us()
    with guarded() as settings:
        assert settings.change({"cpu_idle": 7e-6}) == {}
        assert limit_us() == min(before, 7)
    assert limit_us() == before


def test_a_new_journal_is_never_taken_for_one_that_is_left(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process starts just when a guard has created its journal."""
    seen: list[object] = []
    real = journal.lock

    def lock_late(descriptor: int) -> bool:
        seen.append(replay(node))
        return real(descriptor)

    monkeypatch.setattr(journal, "lock", lock_late)
    made = journal.Journal(journal.new_file())
    monkeypatch.setattr(journal, "lock", real)
    assert seen == [[]] and made.file.exists()
    made.add([journal.Entry(f"/{CPUFREQ}/policy0/scaling_governor", "powersave", "performance")])
    assert [left.is_guarded for left in changed_here()] == [True]
    made.remove()


@pytest.mark.real
def test_an_answer_that_was_cut_by_an_interrupt_is_not_read_on(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between the bytes of an answer: the rest would be taken for the length of the next one."""

    def cut(channel: socket.socket) -> None:
        channel.recv(1)
        raise KeyboardInterrupt

    with guarded(node) as settings:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(change, "receive", cut)
            settings.change({"governor": "performance"})
        with pytest.raises(OSError, match="Bad file descriptor"):
            settings.restore()
    assert changed(node) == {}
    assert changed_here() == []


def planted(host: str, boot: str, path: str, new: str = "performance") -> Path:
    journal.folder().mkdir(parents=True, mode=0o700)
    file = journal.folder() / "planted.jsonl"
    file.write_text(
        json.dumps({"v": 1, "host": host, "boot": boot, "changes": [[path, "powersave", new]]}) + '\n{"v": 1'
    )
    file.chmod(0o600)
    return file


def test_journals_that_are_not_replayed(node: Path) -> None:
    path = f"/{CPUFREQ}/policy0/scaling_governor"
    (node / path[1:]).write_text("performance\n")
    here = os.uname().nodename
    file = planted("elsewhere", boot_id(), path)
    assert replay(node) == []
    assert file.exists()
    file.unlink()
    journal.folder().rmdir()
    file = planted(here, "an earlier boot", path)
    assert replay(node) == []
    assert not file.exists()
    journal.folder().rmdir()
    secret = node / "secret"
    secret.write_text("performance")
    file = planted(here, boot_id(), "/secret")
    replay(node)
    assert secret.read_text() == "performance"
    file.unlink(missing_ok=True)
    journal.folder().rmdir()
    file = planted(here, boot_id(), path)
    file.chmod(0o622)  # others can write it
    assert replay(node) == []
    assert (node / path[1:]).read_text() == "performance\n"
    file.chmod(0o600)
    (found,) = replay(node)
    assert found[1].restored == (path,)
    assert not file.exists()


def seatrial(node: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return seatrial_here("settings", "--root", str(node), *words, cwd=node)


@pytest.mark.real
def test_a_command_with_settings(node: Path) -> None:
    show = f"cat {CPUFREQ}/policy0/scaling_max_freq; exit 4"
    command = [sys.executable, "-m", "seatrial", "settings", "--root", str(node), "--shared"]
    command += ["--set", "cpu_frequency=2.5GHz", "--", "sh", "-c", show]
    done = subprocess.run(command, cwd=node, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout.splitlines()[0]) == (4, "2500000")
    wait_until_gone()
    assert changed(node) == {}
    for words, error in (
        (("--set", "governor=warp", "--", "true"), "warp is not a governor of this machine"),
        (("--set", "warp=9", "--", "true"), "unknown setting 'warp'"),
        (("--set", "turbo=maybe", "--", "true"), "turbo cannot be 'maybe'"),
        (("--set", "cpu_frequency=2.5W", "--", "true"), "cpu_frequency cannot be '2.5W'"),
        (("--set", "turbo", "--", "true"), "is not of the form NAME=VALUE"),
        (("--set", "turbo=true"), "--set is for the time of a command"),
        (("--", "true"), "no setting was given"),
        (("--set", "turbo=true", "--", "no-such-program"), "no-such-program: not found"),
    ):
        done = seatrial(node, "--shared", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert error in done.stderr
    assert changed(node) == {}


def test_what_is_changed_is_shown_and_put_back(node: Path) -> None:
    path = f"/{CPUFREQ}/policy0/scaling_governor"
    assert seatrial(node).stdout == "Nothing is changed on this host.\n"
    (node / path[1:]).write_text("performance\n")
    planted(os.uname().nodename, boot_id(), path)
    assert seatrial(node).stdout == (
        f"{path}: performance (was powersave), is left by a seatrial that was killed (--restore puts it back)\n"
    )
    assert seatrial(node, "--restore").stdout == f"{path}: put back\n1 setting put back.\n"
    assert changed(node) == {}
