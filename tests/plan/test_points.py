from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up_machine

from seatrial.benchmarks import registry
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.machine.machine import Device, DeviceKind
from seatrial.model.results.sample import State
from seatrial.plan.points import parse_settings, plan_points


def test_defaults_are_complete_and_resolved() -> None:
    (point,) = plan_points(["memory.stream"], {}, made_up_machine(cores=4, l3_bytes=32 << 20))
    assert point.parameters == {
        "threads": 4,
        "nontemporal": False,
        "huge_pages": True,
        "array_B": 128 << 20,
        "kernel": "all",
        "node": "auto",
        "memory": "local",
    }
    assert point.cpus == (0, 1, 2, 3)


def test_one_thread_per_core_before_the_second_hardware_thread() -> None:
    machine = made_up_machine(cores=2, threads=2)  # CPUs 0 and 2 are one core
    (all_cores,) = plan_points(["memory.stream"], {}, machine)
    assert all_cores.cpus == (0, 1)
    (three,) = plan_points(["memory.stream"], {"threads": ["3"]}, machine)
    assert three.cpus == (0, 1, 2)


def test_arrays_outgrow_every_cache_that_the_threads_reach() -> None:
    machine = made_up_machine(packages=2, cores=2, l3_bytes=10 << 20)
    one, both = plan_points(["memory.stream"], {"threads": ["2", "4"]}, machine)
    assert one.parameters["array_B"] == 40 << 20
    assert both.parameters["array_B"] == 80 << 20


def test_several_values_make_the_product_without_duplicates() -> None:
    points = plan_points(
        ["memory.stream"], {"threads": ["1", "all", "2"], "nontemporal": ["true", "false"]}, made_up_machine(cores=2)
    )
    assert len(points) == 4  # all is 2


def test_more_threads_than_cpus_are_skipped_never_shared() -> None:
    (point,) = plan_points(["memory.stream"], {"threads": ["3"]}, made_up_machine(cores=2))
    assert point.refusal is not None and point.refusal.state is State.SKIPPED and "3 threads" in point.refusal.reason


def test_without_targets_it_is_the_standard_trial() -> None:
    machine = made_up_machine(cores=2)
    points = plan_points([], {}, machine)
    wanted = {b.name for b in registry().values() if b.trial and b.is_in_trial(machine)}
    assert {point.benchmark.name for point in points} == wanted
    assert not any(point.named for point in points)


def test_errors_for_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"memory\.stream"):
        plan_points(["memory.steam"], {}, made_up_machine())
    with pytest.raises(UnknownNameError, match="threads"):
        plan_points(["memory.stream"], {"thread": ["1"]}, made_up_machine())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threads", "0"),
        ("threads", "-1"),
        ("threads", "1.5"),
        ("threads", "many"),
        ("nontemporal", "yes"),
        ("array_B", "12parsec"),
        ("array_B", "1"),
        ("array_B", "1.5"),
    ],
)
def test_an_invalid_value_is_refused_with_the_accepted_values(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{name} cannot be '{value}'"):
        plan_points(["memory.stream"], {name: [value]}, made_up_machine())


@pytest.mark.parametrize("option", ["threads", "=1", "threads=", "threads=1,,2"])
def test_malformed_settings_are_refused(option: str) -> None:
    with pytest.raises(UsageError):
        parse_settings([option])


def test_a_duplicate_setting_is_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        parse_settings(["threads=1", "threads=2"])


def test_only_the_trial_of_a_machine_with_gpus_measures_gpus() -> None:
    machine = made_up_machine(cores=4)
    with_gpu = replace(machine, devices=(*machine.devices, Device("gpu-0", DeviceKind.GPU, "H200")))
    of_gpus = [p.benchmark.name for p in plan_points([], {}, with_gpu) if p.benchmark.name.startswith("gpu.")]
    assert {"gpu.transfer", "gpu.p2p", "gpu.device-memory", "gpu.max-flops", "gpu.gemm"} <= set(of_gpus)
    assert not any(p.benchmark.name.startswith("gpu.") for p in plan_points([], {}, machine))
