"""The limits of devices, from what a driver tells of them."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.benchmarks import benchmark_named
from seatrial.benchmarks.gpu.limits import flop_limit, matrix_limit, memory_limit
from seatrial.model.machine.limit import Basis
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

H200 = {
    "devices": 1,
    "compute_units": 132,
    "clock_Hz": 1.98e9,
    "memory_clock_Hz": 3.201e9,
    "memory_bus_bits": 6144,
    "cache_bytes": 60 << 20,
    "capability": 90,
}
POCL = {"devices": 1, "compute_units": 2, "clock_Hz": 3e9, "memory_clock_Hz": 0, "memory_bus_bits": 0, "capability": 0}


def sample(facts: dict[str, Any]) -> list[Sample]:
    return [Sample("sum", 0, 1.0, extra={"device": facts})]


def test_an_h200() -> None:
    """The datasheet says 4.8 TB/s, 67 and 34 TFLOP/s."""
    of_memory = memory_limit(lambda params: 1 << 30)(Machine(""), {}, sample(H200))
    assert of_memory.value == pytest.approx(4.92e12, rel=0.01) and of_memory.basis is Basis.PHYSICAL
    assert flop_limit(Machine(""), {"precision": "fp32"}, sample(H200)).value == pytest.approx(66.9e12, rel=0.01)
    assert flop_limit(Machine(""), {"precision": "fp64"}, sample(H200)).value == pytest.approx(33.5e12, rel=0.01)


@pytest.mark.parametrize(
    ("precision", "flops"),
    [("fp32", 66.9e12), ("fp64", 66.9e12), ("tf32", 535e12), ("fp16", 1070e12), ("bf16", 1070e12)],
)
def test_a_library_has_the_tensor_cores_of_an_h200(precision: str, flops: float) -> None:
    """The datasheet's 67, 67, 495, 989 and 989 TFLOP/s; the last three are at 1.83 GHz, the driver tells 1.98."""
    limit = benchmark_named("gpu.gemm").figure("gemm").limit
    assert limit is not None
    assert limit(Machine(""), {"precision": precision, "library": "vendor"}, sample(H200)).value == pytest.approx(
        flops, rel=0.01
    )
    assert limit(Machine(""), {"precision": precision, "library": "portable"}, sample(H200)).value is None


def test_precisions_that_a_device_has_not_have_no_limit() -> None:
    v100 = {**H200, "capability": 70, "compute_units": 80, "clock_Hz": 1.53e9}
    assert matrix_limit(Machine(""), {"precision": "fp16"}, sample(v100)).value == pytest.approx(125e12, rel=0.01)
    assert matrix_limit(Machine(""), {"precision": "fp64"}, sample(v100)).value == pytest.approx(7.8e12, rel=0.01)
    assert matrix_limit(Machine(""), {"precision": "bf16"}, sample(v100)).value is None
    assert matrix_limit(Machine(""), {"precision": "fp16"}, sample(POCL)).value is None


def test_several_devices_together() -> None:
    both = {**H200, "devices": 8}
    assert memory_limit(lambda params: 1 << 30)(Machine(""), {}, sample(both)).value == pytest.approx(39.3e12, rel=0.01)


def test_what_may_come_from_a_cache_has_no_limit_of_the_memory() -> None:
    limit = memory_limit(lambda params: 1 << 26)(Machine(""), {}, sample(H200))
    assert limit.value is None and "cache of 60 MiB" in limit.derivation


def test_devices_that_share_a_problem_may_each_hold_their_part_in_a_cache() -> None:
    eight = sample({**H200, "devices": 8})
    of_memory = memory_limit(lambda params: 1 << 30)
    assert of_memory(Machine(""), {"mode": "EP"}, eight).value is not None
    assert of_memory(Machine(""), {"mode": "TP"}, eight).value is None


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_what_the_driver_does_not_tell_is_unknown(precision: str) -> None:
    assert memory_limit(lambda params: 1 << 30)(Machine(""), {}, sample(POCL)).value is None
    assert flop_limit(Machine(""), {"precision": precision}, sample(POCL)).value is None


@pytest.mark.parametrize(("figure", "share"), [("fma", 1.0), ("add", 0.5), ("multiply", 0.5), ("mixed", 0.75)])
def test_operations_of_less_than_two_flop_reach_less(figure: str, share: float) -> None:
    limit = benchmark_named("gpu.max-flops").figure(figure).limit
    assert limit is not None
    assert limit(Machine(""), {"precision": "fp64"}, sample(H200)).value == pytest.approx(share * 33.45e12, rel=0.01)
