"""How settings of the node are applied where its files cannot be written: by Slurm, for the ranks that srun starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_up import made_up_machine
from msgspec.structs import replace

from seatrial.engine.kinds.native import NativeProgram
from seatrial.engine.node_settings import of_record, setting_that_did_not_act, with_settings
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.build import Built
from seatrial.environments.settings import node as of_node
from seatrial.model.benchmark.program import Hello
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Sample
from seatrial.plan.points import plan_points
from seatrial.probes.clocks import ClockLooks

CONFIGURATION = """Configuration data as of 2026-11-29T12:00:00
CpuFreqDef              = Unknown
CpuFreqGovernors        = OnDemand,Performance,UserSpace
CryptoType              = (null)
"""


@pytest.fixture
def of_srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ready:
    """An experiment whose ranks srun starts, in a job on a node with files that the user may not write."""
    tool = tmp_path / "scontrol"
    tool.write_text(f"#!/bin/sh\ncat <<END\n{CONFIGURATION}END\n")
    tool.chmod(0o755)
    policy = tmp_path / "sys/devices/system/cpu/cpufreq/policy0"
    policy.mkdir(parents=True)
    for name, text in {
        "scaling_governor": "ondemand",
        "scaling_available_governors": "performance ondemand powersave",
        "scaling_min_freq": "800000",
        "scaling_max_freq": "3500000",
        "cpuinfo_min_freq": "800000",
        "cpuinfo_max_freq": "3500000",
        "boost": "1",
    }.items():
        (policy / name).write_text(f"{text}\n")
    for name, text in {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr(of_node, "root_in_force", lambda: tmp_path)
    monkeypatch.setattr("seatrial.engine.node_settings.root_in_force", lambda: tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (point,) = plan_points(["mpi.latency"], {}, made_up_machine(cores=2))
    mpi = Mpi("openmpi", MpiFamily.OPENMPI, "4.1.4", Path("/lib/libmpi.so"), "", (), (), Path("/usr/bin/srun"))
    built = Built(Path(), "key", (), Hello("latency", "key", "n1"), 0.0, from_cache=True)
    experiment = Experiment("mpi.latency", point.parameters, "key", "program", "machine")
    return Ready(point, experiment, NativeProgram(point.benchmark.program, built), {"name": "gcc"}, mpi=mpi)


@pytest.mark.real
def test_srun_sets_what_only_root_can_write(of_srun: Ready) -> None:
    for chosen, asked in (
        ((("governor", "performance"),), "Performance"),
        ((("cpu_frequency", "2.5GHz"),), "2500000-2500000:Performance"),
        ((("governor", "ondemand"), ("cpu_frequency", "2.5GHz")), "2500000-2500000:OnDemand"),
        ((("governor", "powersave"),), None),
        ((("turbo", "false"), ("governor", "performance")), None),
    ):
        found = with_settings(of_srun, EnvironmentChoice(machine_settings=chosen))
        assert found.environment is not None and found.environment["machine_settings"] == dict(chosen)
        if asked is None:
            assert isinstance(found, Refused) and found.outcome.reason.startswith("root: only root can set /sys")
        else:
            assert isinstance(found, Ready) and found.node_settings == ()
            assert dict(found.variables)["SLURM_CPU_FREQ_REQ"] == asked


@pytest.mark.real
def test_other_launchers_and_several_nodes(of_srun: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = EnvironmentChoice(machine_settings=(("governor", "performance"),))
    on_nodes = replace(of_srun, point=replace(of_srun.point, hosts=("n1", "n2")))
    assert isinstance(with_settings(on_nodes, wanted), Ready)
    assert of_srun.mpi is not None
    by_mpirun = replace(on_nodes, mpi=replace(of_srun.mpi, launcher=Path("/usr/bin/mpirun")))
    refused = with_settings(by_mpirun, wanted)
    assert isinstance(refused, Refused) and refused.outcome.reason.startswith("node: its ranks run on several nodes")
    monkeypatch.delenv("SLURM_JOB_ID")
    assert isinstance(with_settings(of_srun, wanted), Refused)


def seen(of_srun: Ready, samples: tuple[Sample, ...] = (), **chosen: str) -> str | None:
    """What is wrong with a repeat whose CPUs ran at 2 GHz with the governor ondemand; None: nothing."""
    looks = ClockLooks()
    looks.cpus, looks.governors = [0.8e9, 2e9, 2e9, 2e9], {"ondemand"}
    ready = replace(
        of_srun, point=replace(of_srun.point, environment=EnvironmentChoice(machine_settings=(*chosen.items(),)))
    )
    assert of_record(ready, looks) == {"machine_settings": chosen, "clock_Hz": 2e9}
    outcome = setting_that_did_not_act(ready, looks, samples)
    return None if outcome is None else outcome.reason


def test_what_was_seen_is_compared_with_what_was_asked(of_srun: Ready) -> None:
    assert seen(of_srun, governor="ondemand", cpu_frequency="2.05GHz") is None
    assert seen(of_srun, turbo="false") is None  # its nominal clock is unknown
    assert (
        seen(of_srun, governor="performance") == "setting: governor: performance was asked for, the CPUs had ondemand"
    )
    slow = seen(of_srun, cpu_frequency="2.5GHz")
    assert slow == "setting: cpu_frequency: 2.50 GHz was asked for, the kernel reports 2.00 GHz"
    counted = (Sample("fma", 0, 1.0, {}, extra={"add_ops": 3e9, "add_s": [1.5, 1.2]}),)
    fast = seen(of_srun, counted, cpu_frequency="2GHz")
    assert fast == "setting: cpu_frequency: 2.00 GHz was asked for, the program counted 2.50 GHz"
    assert seen(of_srun, counted, cpu_frequency="2.5GHz") is None
    few = ClockLooks()
    few.cpus = [1e9, 1e9]
    assert few.seen().cpu_Hz is None
