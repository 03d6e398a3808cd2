"""Clocks, governors and limits as axes: `seatrial run STUDY` on a node that is a tree of files, and for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here
from environments.settings.made_up_node import CPUFREQ, changed, gpu_settings, plant_gpus, plant_node, value

from seatrial.engine import study_work
from seatrial.engine.policy import Pooled
from seatrial.environments.settings import journal
from seatrial.environments.settings import node as of_node
from seatrial.probes import clocks
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

pytestmark = pytest.mark.real
GOVERNOR, TURBO = f"{CPUFREQ}/policy0/scaling_governor", "sys/devices/system/cpu/intel_pstate/no_turbo"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SEATRIAL_LOCK", str(tmp_path))
    monkeypatch.setattr(of_node, "users_here", list[int])
    once = lambda pool, precision, most, minimum: Pooled(pool, precision, 1, minimum=1)  # noqa: E731
    monkeypatch.setattr(study_work, "Pooled", once)  # not six repeats: no test compares figures
    return plant_node(tmp_path / "node")


def study(node: Path, argv: list[str], axes: dict[str, list[str]]) -> None:
    lines = [
        *("study: clocks", "question: What do the clocks change?", "benchmarks:"),
        f"  command: {json.dumps({'argv': argv, 'most_runs': 1})}",
        f"axes: {json.dumps(axes)}",
        "repeat: {max: 6, budget: 60s}",
    ]
    (node.parent / "study.yaml").write_text("\n".join(lines))


def run(node: Path, *options: str, status: int = 0, **environment: str) -> Contents:
    words = ("run", "study.yaml", "--root", "node", "--keep", *options)
    done = seatrial_here(*words, cwd=node.parent, **environment)
    assert done.returncode == status, done.stderr
    return read_contents(ResultsFolder.existing(node.parent / "seatrial-results"))


def by_settings(contents: Contents) -> dict[str, tuple[str, Any]]:
    """The settings of each experiment -> outcome and reason of its last repeat, and what it saw."""
    found = {}
    for key, experiment in contents.experiments.items():
        chosen = contents.environments[experiment.environment].get("machine_settings", {})
        last = contents.records[key][-1]
        found[" ".join(f"{k}={v}" for k, v in chosen.items())] = (
            f"{last.outcome.state}: {last.outcome.reason}",
            last.seen,
        )
    return found


def test_each_repeat_runs_with_its_settings_and_the_node_is_as_before(node: Path) -> None:
    files = [str(node / name) for name in (GOVERNOR, TURBO, f"{CPUFREQ}/policy1/scaling_max_freq")]
    axes = {"environment.turbo": ["true", "false"], "environment.governor": ["unchanged", "performance"]}
    study(node, ["head", "-qn1", *files], {**axes, "environment.cpu_frequency": ["2500MHz"]})
    contents = run(node)
    assert changed(node) == {}
    found = by_settings(contents)
    assert {name: seen["machine_settings"] for name, (_, seen) in found.items()} == {
        name: dict(word.split("=") for word in name.split()) for name in found
    }
    printed = {}
    for key, experiment in contents.experiments.items():
        kept = (node.parent / "seatrial-results" / "artefacts" / key).glob("*/stdout*")
        chosen = contents.environments[experiment.environment]["machine_settings"]
        (printed[" ".join(chosen.values())],) = {" ".join(file.read_text().split()) for file in kept}
    assert printed == {
        "true 2.5GHz": "powersave 0 2500000",
        "false 2.5GHz": "powersave 1 2500000",
        "true performance 2.5GHz": "performance 0 2500000",
        "false performance 2.5GHz": "performance 1 2500000",
    }
    words = ("compare", "seatrial-results", "--along", "environment.governor", "--format", "json")
    compared = json.loads(seatrial_here(*words, cwd=node.parent).stdout)
    sides = {(one["baseline_name"], one["candidate_name"]) for one in compared["comparisons"]}
    assert sides == {("environment.governor unchanged", "environment.governor performance")}
    intended = {one["what"]: one["intended"] for one in compared["differences"]}
    assert intended["environment machine settings governor"] is True
    assert not [name for name in intended if "machine settings" in name and not intended[name]]


def test_one_experiment_has_one_identity(node: Path) -> None:
    study(node, ["true"], {"environment.cpu_frequency": ["2.5GHz"], "environment.governor": ["unchanged"]})
    first = run(node)
    study(node, ["true"], {"environment.cpu_frequency": ["2500MHz"]})
    assert set(run(node).experiments) == set(first.experiments)
    study(node, ["true"], {"environment.cpu_frequency": ["unchanged"]})
    without = set(run(node).experiments) - set(first.experiments)
    study(node, ["true"], {})
    assert len(without) == 1 and without < set(run(node).experiments)
    assert len(read_contents(ResultsFolder.existing(node.parent / "seatrial-results")).experiments) == 2


def test_a_setting_that_did_not_act_is_invalid(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (node / GOVERNOR).unlink()
    (node / GOVERNOR).symlink_to("/dev/null")  # takes every value and keeps none
    for k in range(4):
        (node / f"{CPUFREQ}/policy{k}/scaling_cur_freq").write_text("3400000\n")
        (node / f"{CPUFREQ}/policy{k}/base_frequency").write_text("2400000\n")
    axes = {"environment.governor": ["performance", "unchanged"], "environment.cpu_frequency": ["2.5GHz", "3.4GHz"]}
    monkeypatch.setattr(clocks, "_LEAST_LOOKS", 1)  # on a busy machine there are few
    study(node, ["sleep", "0.5"], {**axes, "environment.turbo": ["false"]})
    found = {name: outcome for name, (outcome, _) in by_settings(run(node, status=3)).items()}
    assert found == {
        name: f"invalid: setting: {why}"
        for name, why in {
            "turbo=false governor=performance cpu_frequency=2.5GHz": "turbo=false, governor=performance, "
            f"cpu_frequency=2.5GHz did not act: /{GOVERNOR}: is '' after 'performance' was written",
            "turbo=false governor=performance cpu_frequency=3.4GHz": "turbo=false, governor=performance, "
            f"cpu_frequency=3.4GHz did not act: /{GOVERNOR}: is '' after 'performance' was written",
            "turbo=false cpu_frequency=2.5GHz": "cpu_frequency: 2.50 GHz was asked for, the kernel reports 3.40 GHz",
            "turbo=false cpu_frequency=3.4GHz": "turbo: off was asked for, the kernel reports 3.40 GHz, above the "
            "nominal 2.40 GHz",
        }.items()
    }
    (node / GOVERNOR).unlink()
    (node / GOVERNOR).write_text("powersave\n")
    assert changed(node) == {}


def test_the_clock_that_a_program_counts_is_believed(node: Path) -> None:
    """This machine does not run at the lowest clock of the tree."""
    words = ("run", "cpu.peak", "--set", "environment.cpu_frequency=800MHz", "--set", "cores=one", "--root", "node")
    done = seatrial_here(*words, cwd=node.parent)
    assert done.returncode == 3
    assert "setting: cpu_frequency: 800 MHz was asked for, the program counted" in done.stderr
    assert changed(node) == {}


def test_what_cannot_be_set_is_unsupported(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (node / TURBO).unlink()
    axes = {"environment.turbo": ["false", "unchanged"], "environment.governor": ["performance"]}
    study(node, ["true"], axes)
    words = ("plan", "study.yaml", "--root", "node", "--format", "json")
    planned = json.loads(seatrial_here(*words, cwd=node.parent).stdout)["experiments"]
    assert [one["reason"] for one in planned if one["state"] == "unsupported"] == [
        f"turbo: this machine has no /{TURBO}, /{CPUFREQ}/boost or /{CPUFREQ}/policy*/boost; "
        "set turbo in the firmware, and label the results"
    ]
    monkeypatch.setattr(of_node, "users_here", lambda: [1234])
    found = by_settings(run(node, status=3))
    assert found["governor=performance"][0].startswith("unsupported: exclusive: others run programs on this node")
    assert by_settings(run(node, "--shared", status=3))["governor=performance"][0] == "ok: "
    monkeypatch.setattr(os, "access", lambda path, mode, **more: mode != os.W_OK)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = by_settings(run(node, "--shared", "--again", status=3))
    assert found["governor=performance"][0].startswith(f"unsupported: permission: /{CPUFREQ}/policy0/scaling_governor")


def test_the_study_of_turbo_is_planned(node: Path) -> None:
    file = str(Path(__file__).parents[2] / "examples" / "turbo-and-governor.yaml")
    words = ("plan", file, "--format", "json", "--root")
    here = json.loads(seatrial_here(*words, "node", cwd=node.parent).stdout)
    assert [one["state"] for one in here["experiments"]] == ["ready"] * 8
    (node / "empty").mkdir()
    without = json.loads(seatrial_here(*words, "node/empty", cwd=node.parent).stdout)
    for one in without["experiments"]:
        assert one["state"] == "unsupported"
        assert f"no /{TURBO}" in one["reason"] and f"governor: this machine has no /{CPUFREQ}/policy*" in one["reason"]


def test_gpus_are_set_for_a_repeat(node: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root sets GPUs")
    variables = plant_gpus(node.parent)
    looks = f"cat {variables['MADE_UP_GPUS']}/looks | wc -l"
    (Path(variables["MADE_UP_GPUS"]) / "looks").touch()
    argv = ["sh", "-c", f"n=$({looks}); until [ $({looks}) -ge $((n + 8)) ]; do sleep 0.02; done"]
    axes = {"environment.gpu_clock": ["1.4GHz", "1.2GHz"], "environment.gpu_power_limit": ["300W"]}
    study(node, argv, axes)
    found = by_settings(run(node, status=3, **variables))
    assert found["gpu_clock=1.4GHz gpu_power_limit=300W"][0] == "ok: "
    assert found["gpu_clock=1.4GHz gpu_power_limit=300W"][1]["gpu_clock_Hz"] == 1.4e9
    why = "invalid: setting: gpu_clock: 1.20 GHz was asked for, nvidia-smi reports 1.40 GHz"
    assert found["gpu_clock=1.2GHz gpu_power_limit=300W"][0] == why
    assert gpu_settings(variables) == ["free 700.00"] * 2


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing_changed(node: Path, number: signal.Signals) -> None:
    study(node, ["sleep", "600"], {"environment.governor": ["performance"], "environment.turbo": ["false"]})
    words = ["run", "study.yaml", "--root", "node", "--shared", "--quiet"]
    command = [sys.executable, "-m", "seatrial", *words]
    with subprocess.Popen(command, cwd=node.parent, start_new_session=True, stderr=subprocess.DEVNULL) as lab:
        try:
            wait_until(lambda: value(node, GOVERNOR) == "performance" and value(node, TURBO) == "1")
        finally:
            if number == signal.SIGKILL:
                os.killpg(lab.pid, number)
            else:
                lab.send_signal(number)
    wait_until(lambda: not changed(node) and not list(journal.folder().iterdir()))


def test_what_a_killed_run_left_is_put_back_by_the_next(node: Path) -> None:
    path = f"/{GOVERNOR}"
    left = journal.Journal(journal.new_file())
    left.add([journal.Entry(path, "powersave", "performance")])
    os.close(left._descriptor)
    (node / GOVERNOR).write_text("performance\n")
    study(node, ["true"], {"label": ["a"]})
    done = seatrial_here("run", "study.yaml", "--root", "node", cwd=node.parent)
    assert (done.returncode, changed(node)) == (0, {})
    assert f"{path} was left changed by a seatrial that was killed; it is put back" in done.stderr


def test_wake_up_times_are_limited_for_real(node: Path) -> None:
    device = Path("/dev/cpu_dma_latency")
    if not os.access(device, os.W_OK):
        pytest.skip("needs root and /dev/cpu_dma_latency")
    study(node, ["od", "-An", "-i", "-N4", str(device)], {"environment.cpu_idle": ["7us", "unchanged"]})
    before = device.read_bytes()[:4]
    done = seatrial_here("run", "study.yaml", "--keep", "--shared", cwd=node.parent)
    assert done.returncode == 0, done.stderr
    files = (node.parent / "seatrial-results").glob("artefacts/*/*/stdout*")
    kept = sorted({int(file.read_text()) for file in files})
    assert kept[0] == min(7, kept[-1]) and device.read_bytes()[:4] == before
