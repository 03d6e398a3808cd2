"""cpu.peak: its limit and its check, from made-up samples; the program itself is tested in tests/engine."""

from __future__ import annotations

import pytest
from made_up import facts, made_up_machine
from msgspec.structs import replace

from seatrial.benchmarks.cpu.peak import BENCHMARK, clocks_Hz
from seatrial.benchmarks.placement import spread
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

FP64 = {"precision": "fp64", "cores": "all"}
_FMAS = 1e6


def _sample(clocks: list[float], latencies: list[float], vector_bits: int | None = 256, slow: float = 1.0) -> Sample:
    """A sample of threads with these clocks whose cores have these FMA latencies."""
    extra = {
        "chain_fmas": _FMAS,
        "chain_s": [
            [_FMAS * cycles / clock * slow, _FMAS * cycles / clock * 1.5]
            for clock, cycles in zip(clocks, latencies, strict=True)
        ],
        "add_ops": _FMAS,
        "add_s": [_FMAS / clock for clock in clocks],
    }
    if vector_bits is not None:
        extra["vector_bits"] = vector_bits
    return Sample("fma", 0, 1e-3, {"flops": 1e8}, extra=extra)


def _limit(machine: Machine, samples: list[Sample], params: dict[str, str] = FP64) -> Limit:
    limit = BENCHMARK.figure("fma").limit
    assert limit is not None
    return limit(machine, params, samples)


def _checked(machine: Machine, samples: list[Sample]) -> tuple[float | None, tuple[float, float]]:
    check = next(check for check in BENCHMARK.checks if check.name == "fma_latency")
    assert check.derive is not None
    return check.derive(machine, FP64, samples), check.bound(machine, FP64)


def _hybrid() -> Machine:
    machine = made_up_machine(cores=2)
    little = facts(fma_pipes=1, fma_vector_bits=128, fma_latency_cycles=5)
    return replace(machine, devices=tuple(replace(d, facts=little) if d.id == "core-1" else d for d in machine.devices))


def test_the_limit_is_that_of_the_clocks_measured() -> None:
    limit = _limit(made_up_machine(cores=2), [_sample([3e9, 2e9], [4, 4])])
    assert limit.value == pytest.approx(5e9 * 2 * 4 * 2)
    assert limit.is_physical
    assert "program uses" not in limit.derivation
    assert _limit(made_up_machine(cores=2), [_sample([3e9, 2e9], [4, 4], None)]).value == limit.value


def test_each_thread_has_the_unit_of_its_core() -> None:
    machine = _hybrid()
    samples = [_sample([3e9, 2e9], [4, 5])]
    assert _limit(machine, samples).value == pytest.approx(3e9 * 2 * 4 * 2 + 2e9 * 1 * 2 * 2)
    measured, (low, high) = _checked(machine, samples * 3)
    assert measured == pytest.approx(4.0)
    assert (low, high) == (3.5, 4.5)


def test_one_core_of_a_hybrid() -> None:
    limit = _limit(_hybrid(), [_sample([3e9], [4])], {"precision": "fp32", "cores": "one"})
    assert limit.value == pytest.approx(3e9 * 2 * 8 * 2)


def test_a_program_of_narrower_vectors_is_held_against_those() -> None:
    machine = made_up_machine(cores=1, fma_vector_bits=512, fma_latency_cycles=9)
    limit = _limit(machine, [_sample([2e9], [9], vector_bits=128)])
    assert limit.value == pytest.approx(2e9 * 2 * 2 * 2)
    assert "program uses 128 of 512 bits" in limit.derivation
    assert not limit.is_physical, "how many narrow vectors a cycle takes is not in the table"


def test_a_program_of_wider_vectors_than_the_pipes() -> None:
    limit = _limit(made_up_machine(cores=1), [_sample([2e9], [4], vector_bits=512)])
    assert limit.value == pytest.approx(2e9 * 2 * 4 * 2)
    assert limit.is_physical


def test_a_table_that_was_never_confirmed_makes_nothing_invalid() -> None:
    machine = made_up_machine(cores=1, fma_confirmed=False)
    samples = [_sample([2e9], [6])]
    limit = _limit(machine, samples)
    assert limit.value is not None
    assert not limit.is_physical
    assert _checked(machine, samples)[0] is None


@pytest.mark.parametrize(
    "unknown", [made_up_machine(cores=1, fma_pipes=0), made_up_machine(cores=1, fma_latency_cycles="?")]
)
def test_no_limit_for_a_cpu_that_is_not_in_the_table(unknown: Machine) -> None:
    samples = [_sample([2e9], [4])]
    limit = _limit(unknown, samples)
    assert limit.value is None
    assert "not in the table" in limit.derivation
    assert _checked(unknown, samples)[0] is None


def test_samples_of_other_threads_than_the_machine_has_give_no_limit() -> None:
    assert _limit(made_up_machine(cores=2), [_sample([2e9], [4])]).value is None


def test_another_latency_than_the_tables_is_seen() -> None:
    measured, (low, high) = _checked(made_up_machine(cores=1), [_sample([2e9], [5])] * 3)
    assert measured == pytest.approx(5.0)
    assert not low <= measured <= high


def test_a_latency_of_times_that_differ_is_not_judged() -> None:
    """Every chain of additions was disturbed, each in another way: 3.2 cycles would be no property of the processor."""
    quiet = [_sample([3e9], [4])] * 6
    disturbed = [
        replace(sample, extra={**sample.extra, "add_s": [_FMAS / 3e9 * slow]})
        for sample, slow in zip(quiet, (1.25, 1.4, 1.9, 1.5, 2.3, 1.7), strict=True)
    ]
    assert _checked(made_up_machine(cores=1), quiet)[0] == pytest.approx(4.0)
    assert _checked(made_up_machine(cores=1), disturbed)[0] is None


def test_the_fastest_chain_tells_the_clock() -> None:
    samples = [_sample([3e9], [4], slow=1.4), _sample([3e9], [4]), _sample([3e9], [4], slow=1.1)]
    assert clocks_Hz(samples, [4.0]) == pytest.approx([3e9])


def test_threads_spread_over_cores_first() -> None:
    machine = made_up_machine(packages=2, cores=2, threads=2)
    assert spread(machine, 6) == (0, 1, 2, 3, 4, 5)
    assert spread(replace(machine, allowed_cpus=(0, 1, 4, 5)), 4) == (0, 1, 4, 5)
