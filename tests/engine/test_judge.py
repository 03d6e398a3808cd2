"""The judge, on made-up records: each fault has its own outcome and no figure is published."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from made_up import facts, made_up_machine
from msgspec.structs import replace

from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM
from seatrial.engine.judge import judge
from seatrial.engine.kinds.native import NativeProgram
from seatrial.environments.build import Built
from seatrial.launch.local import Completed
from seatrial.model.benchmark.program import Hello, ProgramRecord
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import Point, plan_points

MACHINE = made_up_machine(cores=2, l3_bytes=1 << 20, channels=1)  # 25.6 GB/s
LIBS = {"libc.so.6": "aa", "libstdc++.so.6": "bb"}
HELLO = Hello(
    "stream",
    "key",
    "h",
    cpus=((0,), (1,)),
    libs=LIBS,
    lib_paths={"libc.so.6": "/evil/libc.so.6"},
    isa=("sse2", "avx", "avx2", "fma"),
)
BUILT = Built(Path("/cache/stream"), "key", (), replace(HELLO, lib_paths={"libc.so.6": "/lib/libc.so.6"}), 1.0, True)
PROGRAM = NativeProgram(STREAM.program, BUILT)
DONE = Completed(0, 0.3, 30.0, False, "")
(POINT,) = plan_points(["memory.stream"], {}, MACHINE)


def stream_record(**changes: object) -> ProgramRecord:
    samples = tuple(
        Sample(name, i, 1e-2, {"bytes": float(size)}, extra={"pages_looked_at": 100, "pages_astray": 0})
        for i in range(5)
        for name, size in (("copy", 8 << 20), ("scale", 8 << 20), ("add", 12 << 20), ("triad", 12 << 20))
    )
    checks = {f"{name}_mismatches": 0.0 for name in ("copy", "scale", "add", "triad")}
    whole = ProgramRecord(HELLO, samples, {**checks, "distinct_inputs": 1.0, "array_bytes": 4 << 20}, {}, None, True)
    return replace(whole, **changes)


def judged(record: ProgramRecord, done: Completed = DONE, point: Point = POINT) -> tuple[State, str]:
    outcome = judge(point, MACHINE, PROGRAM, done, record)
    return outcome.state, outcome.reason


def test_a_valid_repeat_is_ok() -> None:
    assert judged(stream_record()) == (State.OK, "")


def test_emulated_processors_that_the_machine_does_not_show_publish_nothing() -> None:
    emulated = replace(HELLO, hypervisor="TCGTCGTCGTCG")
    state, reason = judged(stream_record(hello=emulated))
    assert state is State.INVALID and "emulated" in reason
    machine = replace(MACHINE, facts=facts(hypervisor="qemu (tcg)"))
    assert judge(POINT, machine, PROGRAM, DONE, stream_record(hello=emulated)).is_ok, "the machine says it"
    assert judged(stream_record(hello=replace(HELLO, hypervisor="KVMKVMKVM")))[0] is State.OK


def test_no_rate_of_emulated_processors_is_beyond_a_limit() -> None:
    fast = tuple(replace(sample, elapsed_s=sample.elapsed_s * 1e-3) for sample in stream_record().samples)
    assert judged(stream_record(samples=fast))[0] is State.INVALID
    machine = replace(MACHINE, facts=facts(hypervisor="qemu (tcg)"))
    assert judge(POINT, machine, PROGRAM, DONE, stream_record(samples=fast)).is_ok


def test_a_timeout_takes_precedence() -> None:
    state, reason = judged(ProgramRecord(), replace(DONE, timed_out=True, returncode=-9))
    assert state is State.TIMED_OUT and "30 s" in reason


def test_a_crash_states_the_signal() -> None:
    state, reason = judged(stream_record(ended=False), replace(DONE, returncode=-11, evidence="core dumped"))
    assert state is State.FAILED and "SIGSEGV" in reason


def test_a_record_that_cannot_be_written_is_its_own_stage() -> None:
    state, reason = judged(ProgramRecord(), replace(DONE, returncode=74, evidence="No space left on device"))
    assert state is State.FAILED and reason.startswith("record: ") and "No space left" in reason


def test_a_missing_end_is_a_failure() -> None:
    state, reason = judged(stream_record(ended=False))
    assert state is State.FAILED and "`end`" in reason


def test_a_skip_keeps_its_reason() -> None:
    assert judged(ProgramRecord(hello=HELLO, skip="needs 3 GB", ended=True)) == (State.SKIPPED, "needs 3 GB")


@pytest.mark.parametrize(
    ("hello", "check", "seen"),
    [
        (replace(HELLO, build="other"), "target", "other"),
        (replace(HELLO, isa=("sse2",)), "target", "avx2"),
        (replace(HELLO, libs={**LIBS, "libc.so.6": "ff"}), "library", "/evil/libc.so.6"),
        (replace(HELLO, libs={"libc.so.6": "aa"}), "library", "libstdc"),
        (replace(HELLO, cpus=((0,), (0,))), "affinity", "0; 0 instead of 0; 1"),
        (replace(HELLO, cpus=((0, 1), (0, 1))), "affinity", "0,1; 0,1"),
        (replace(HELLO, cpus=((0,),)), "affinity", "0 instead of 0; 1"),
    ],
)
def test_the_program_must_be_the_one_built_and_run_where_it_was_placed(hello: Hello, check: str, seen: str) -> None:
    state, reason = judged(stream_record(hello=hello))
    assert state is State.INVALID and reason.startswith(f"{check}: ") and seen in reason


def test_an_added_library_is_valid() -> None:
    hello = replace(HELLO, libs={**LIBS, "libprofiler.so": "cc"})
    assert judged(stream_record(hello=hello))[0] is State.OK


@pytest.mark.parametrize(
    "sample",
    [
        Sample("triad", 0, math.nan, {"bytes": 1}),
        Sample("triad", 0, 1e-3, {"bytes": math.inf}),
        Sample("triad", 0, 0.0, {"bytes": 1}),
        Sample("triad", 0, -1.0, {"bytes": 1}),
        Sample("triad", 0, 1e-3, {}),
    ],
)
def test_a_sample_that_is_no_measurement_invalidates_all(sample: Sample) -> None:
    record = stream_record()
    state, reason = judged(replace(record, samples=(*record.samples, sample)))
    assert state is State.INVALID and reason.startswith(("samples: ", "counted_bytes: "))


def test_no_samples_at_all() -> None:
    assert judged(stream_record(samples=()))[0] is State.INVALID


def test_a_figure_without_samples_is_missing() -> None:
    kept = tuple(sample for sample in stream_record().samples if sample.series != "add")
    state, reason = judged(stream_record(samples=kept))
    assert state is State.INVALID and "add" in reason


@pytest.mark.parametrize("check", [check.name for check in STREAM.checks if check.derive is None])
def test_each_check_must_be_reported_and_hold(check: str) -> None:
    record = stream_record()
    without = {name: value for name, value in record.checks.items() if name != check}
    state, reason = judged(replace(record, checks=without))
    assert state is State.INVALID and reason.startswith(check) and "did not report" in reason
    for bad in (-1.0, math.nan, None):
        state, reason = judged(replace(record, checks={**record.checks, check: bad}))
        assert state is State.INVALID and reason.startswith(check)


def test_bytes_that_differ_from_the_arrays_are_reported() -> None:
    record = stream_record()
    inflated = (*record.samples[:-1], replace(record.samples[-1], work={"bytes": 24.0 * (8 << 20)}))
    state, reason = judged(replace(record, samples=inflated))
    assert state is State.INVALID and reason.startswith("counted_bytes: 16")


def test_arrays_that_fit_a_cache_give_no_figure() -> None:
    record = stream_record()
    state, reason = judged(replace(record, checks={**record.checks, "array_bytes": (4 << 20) - 1}))
    assert state is State.INVALID and "caches serve part of it" in reason


def test_more_than_is_physically_possible_is_invalid() -> None:
    fast = tuple(replace(s, elapsed_s=s.work["bytes"] / (25.6e9 * 1.021)) for s in stream_record().samples)
    state, reason = judged(stream_record(samples=fast))
    assert state is State.INVALID and reason.startswith("limit: ") and "1 populated channels" in reason
    near = tuple(replace(s, elapsed_s=s.work["bytes"] / (25.6e9 * 1.019)) for s in stream_record().samples)
    assert judged(stream_record(samples=near))[0] is State.OK


def peak_record(flop_per_cycle: float = 16.0, latency: float = 4.0) -> ProgramRecord:
    """What a 3 GHz machine with this FMA rate and latency would report."""
    sample = Sample(
        "fma",
        0,
        1e-3,
        {"flops": 2 * 3e9 * flop_per_cycle * 1e-3},
        extra={
            "chain_fmas": 30000,
            "chain_s": [[30000 * latency / 3e9] * 2] * 2,
            "add_ops": 30000,
            "add_s": [1e-5] * 2,
            "vector_bits": 256,
        },
    )
    return ProgramRecord(
        replace(HELLO, program="peak"), (sample,) * 5, {"state_mismatches": 0, "distinct_state": 1.0}, {}, None, True
    )


(PEAK_POINT,) = plan_points([PEAK.name], {}, MACHINE)


def test_a_valid_peak_is_ok() -> None:
    assert judged(peak_record(), point=PEAK_POINT) == (State.OK, "")


def test_folded_arithmetic_exceeds_the_peak() -> None:
    state, reason = judged(peak_record(flop_per_cycle=32), point=PEAK_POINT)
    assert state is State.INVALID and reason.startswith("limit: ") and "2 x" in reason


def test_more_fma_than_any_core_could_start_are_named_even_on_an_unknown_cpu() -> None:
    unknown = made_up_machine(cores=2, fma_pipes="?", l3_bytes=1 << 20)
    (point,) = plan_points([PEAK.name], {}, unknown)
    assert unknown.fma_unit(0) is None
    sound = judge(point, unknown, PROGRAM, DONE, peak_record(flop_per_cycle=32))
    assert sound.is_ok, sound
    outcome = judge(point, unknown, PROGRAM, DONE, peak_record(flop_per_cycle=36))
    assert outcome.state is State.INVALID and outcome.reason.startswith("fma_per_cycle: 4.5")


def test_a_latency_that_differs_from_the_table_is_reported() -> None:
    state, reason = judged(peak_record(latency=5), point=PEAK_POINT)
    assert state is State.INVALID and reason.startswith("fma_latency: 5, must be from 3.5 to 4.5")


def test_samples_without_a_clock_are_invalid() -> None:
    record = peak_record()
    bare = tuple(replace(sample, extra={}) for sample in record.samples)
    assert judged(replace(record, samples=bare), point=PEAK_POINT)[0] is State.INVALID
