"""cpu.gemm: its declaration, limit and sizes, from made-up machines and samples."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import facts, made_up_machine

from seatrial.benchmarks.cpu.gemm import BENCHMARK, KERNEL_VARIABLES, clocks_Hz
from seatrial.model.benchmark.benchmark import Native, Role, Skip
from seatrial.model.benchmark.parameter import Params
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_ADDS = 65536
_N = 512


def _params(machine: Machine, **given: str) -> Params:
    return BENCHMARK.prepare(machine, BENCHMARK.point(given))


def _sample(clocks: list[float], n: int = _N, elapsed_s: float = 1e-2) -> Sample:
    extra = {"add_ops": _ADDS, "add_s": [_ADDS / clock for clock in clocks], "cpu_s": elapsed_s}
    return Sample("gemm", 0, elapsed_s, {"flops": 2.0 * n**3}, extra=extra)


def _limit(machine: Machine, samples: list[Sample], **given: str) -> Limit:
    limit = BENCHMARK.figure("gemm").limit
    assert limit is not None
    return limit(machine, _params(machine, **given), samples)


def _checked(name: str, machine: Machine, samples: list[Sample], **given: str) -> bool:
    params = _params(machine, **given)
    check = next(check for check in BENCHMARK.checks if check.name == name)
    assert check.derive is not None
    value = check.derive(machine, params, samples)
    low, high = check.bound(machine, params)
    return value is not None and low <= value <= high


def test_the_figure_is_two_n_cubed_over_the_time() -> None:
    assert BENCHMARK.figure("gemm").value(_sample([3e9], n=1000, elapsed_s=0.5)) == pytest.approx(4e9)


def test_the_clock_is_that_of_the_chains() -> None:
    samples = [_sample([3e9, 2e9]), _sample([3.1e9, 2e9]), _sample([1e9, 2.1e9])]
    assert clocks_Hz(samples) == pytest.approx((3e9, 2e9))


@pytest.mark.parametrize(("precision", "lanes"), [("fp64", 4), ("fp32", 8)])
def test_the_limit_is_cores_times_clock_times_flop(precision: str, lanes: int) -> None:
    limit = _limit(made_up_machine(cores=2), [_sample([3e9, 2e9])], precision=precision)
    assert limit.value == pytest.approx(5e9 * 2 * lanes * 2)
    assert limit.is_physical


def test_threads_of_one_core_share_its_units() -> None:
    machine = made_up_machine(cores=2, threads=2)
    limit = _limit(machine, [_sample([3e9, 2e9, 2.9e9, 2.1e9])], threads="4")
    assert limit.value == pytest.approx((3e9 + 2.1e9) * 2 * 4 * 2)


def test_fewer_threads_than_cores_are_held_against_their_own() -> None:
    limit = _limit(made_up_machine(cores=8), [_sample([3e9])], threads="1")
    assert limit.value == pytest.approx(3e9 * 16)


def test_each_core_has_its_own_unit() -> None:
    machine = made_up_machine(cores=2)
    little = facts(fma_pipes=1, fma_vector_bits=128, fma_latency_cycles=5)
    hybrid = replace(
        machine, devices=tuple(replace(d, facts=little) if d.id == "core-1" else d for d in machine.devices)
    )
    assert _limit(hybrid, [_sample([3e9, 2e9])]).value == pytest.approx(3e9 * 16 + 2e9 * 4)


def test_a_cpu_that_is_not_in_the_table_has_no_limit_but_a_ceiling() -> None:
    machine = made_up_machine(cores=2, fma_pipes=0)
    limit = _limit(machine, [_sample([3e9, 2e9])])
    assert limit.value is None and limit.basis is Basis.UNKNOWN
    declared = BENCHMARK.figure("gemm").ceiling
    assert declared is not None
    ceiling = declared(_params(machine, precision="fp32"))
    assert ceiling is not None and ceiling.roles == (Role.FMA_RATE,) and ceiling.factor == 2
    assert ceiling.parameters == {"precision": "fp32", "cores": "one"}


def test_samples_of_other_threads_than_the_point_has_give_no_limit() -> None:
    assert _limit(made_up_machine(cores=2), [_sample([3e9])]).value is None


def test_what_nobody_confirmed_invalidates_nothing() -> None:
    assert not _limit(made_up_machine(cores=1, fma_confirmed=False), [_sample([3e9])]).is_physical


def test_a_matrix_unit_may_do_more() -> None:
    limit = _limit(made_up_machine(cores=1, isa="asimd sve sme"), [_sample([3e9])])
    assert limit.value == pytest.approx(3e9 * 16) and not limit.is_physical
    assert "SME" in limit.derivation


def test_flop_that_are_not_those_of_the_product_are_found() -> None:
    machine = made_up_machine(cores=1)
    assert _checked("counted_flop", machine, [_sample([3e9])], n=str(_N))
    assert not _checked("counted_flop", machine, [_sample([3e9]), _sample([3e9], n=_N + 1)], n=str(_N))


def test_the_size_grows_with_the_threads_and_the_time_of_a_product_is_bounded() -> None:
    sizes = {cores: int(_params(made_up_machine(cores=cores), n="auto")["n"]) for cores in (1, 2, 8, 64, 384)}
    assert list(sizes.values()) == sorted(sizes.values())
    assert all(n % 64 == 0 for n in sizes.values())
    for cores, n in sizes.items():
        assert n >= 1408
        assert 2 * n**3 / cores <= 1.1e10, "half a second where a core has 20 GFLOP/s"
    assert _params(made_up_machine(cores=2), n="100")["n"] == 100


def test_auto_chooses_a_size_that_fits_and_is_never_skipped_for_its_time() -> None:
    small = replace(made_up_machine(cores=2), facts=facts(cgroup_memory_limit=64 << 20))
    n = int(_params(small, n="auto")["n"])
    assert n % 64 == 0 and 3 * 8 * n**2 <= 32 << 20
    assert isinstance(BENCHMARK.program, Native)
    for cores in (1, 2, 64):
        machine = made_up_machine(cores=cores)
        auto = _params(machine)
        assert "--longest" not in BENCHMARK.program.arguments(auto)
        larger = _params(machine, n=str(int(auto["n"]) + 1))
        assert "--longest" in BENCHMARK.program.arguments(larger)


def test_a_repeat_of_the_standard_trial_is_short() -> None:
    machine = made_up_machine(cores=2)
    assert [point["precision"] for point in BENCHMARK.trial] == ["fp64", "fp32"]
    assert 0.5 < BENCHMARK.estimate_s(_params(machine)) < 3


def test_the_program_is_told_what_to_leave_out_of_the_environment() -> None:
    machine = made_up_machine(cores=2)
    assert isinstance(BENCHMARK.program, Native)
    own = BENCHMARK.program.arguments(_params(machine, binding="none"))
    assert own[own.index("--without") + 1].split(",") == list(KERNEL_VARIABLES)
    assert own[own.index("--binding") + 1] == "none"
    assert "--without" not in BENCHMARK.program.arguments(_params(machine, kernels="forced"))
    assert set(KERNEL_VARIABLES) == set(BENCHMARK.program.variables)


def test_more_threads_than_cpus_are_refused() -> None:
    with pytest.raises(Skip):
        _params(made_up_machine(cores=2), threads="3")
