"""The checks before any figure is published, for our own programs and for imported results.

Each returns None if all is well, else the outcome `invalid` with the first problem.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from seatrial.model.benchmark import Benchmark
from seatrial.model.machine import Machine
from seatrial.model.outcome import Outcome
from seatrial.model.parameter import Params
from seatrial.model.protocol import UNREADABLE
from seatrial.model.reading import impossible_reason, readings
from seatrial.model.sample import Sample


def wrong_sample(
    benchmark: Benchmark, params: Params, samples: Sequence[Sample], notes: Mapping[str, object]
) -> Outcome | None:
    """None if there are samples and all are finite and positive. `notes` are those of the program, which may say why
    there are none."""
    if not samples:
        why = benchmark.why_samples_missing(params, notes)
        return Outcome.invalid("samples", f"none were recorded: {why}" if why else "none were recorded")
    for sample in samples:
        if not all(map(math.isfinite, (sample.elapsed_s, *sample.work.values()))):
            return Outcome.invalid("samples", f"sample {sample.i} of {sample.series} is not a finite number")
        if sample.elapsed_s <= 0:
            return Outcome.invalid("samples", f"sample {sample.i} of {sample.series} took {sample.elapsed_s:g} s")
    return None


def failed_check(
    benchmark: Benchmark,
    machine: Machine,
    params: Params,
    samples: Sequence[Sample],
    reported: Mapping[str, float | None],
    notes: Mapping[str, object],
    *,
    is_complete: bool = True,
) -> Outcome | None:
    """The benchmark's own checks, on reported values and on those derived from samples. A value that was not reported
    fails; without `is_complete` (results of other tools), only the reported ones are checked. `notes` are those of the
    program, which may say why samples are missing."""
    for check in benchmark.checks:
        if check.derive is not None and is_complete:
            try:
                value = check.derive(machine, params, samples)
            except UNREADABLE as error:
                return Outcome.invalid(check.name, f"cannot be computed: values missing from the samples ({error!r})")
            if value is None:
                continue
        elif check.derive is None and check.name in reported:
            value = reported[check.name]
        elif is_complete:
            return Outcome.invalid(check.name, "the program did not report it")
        else:
            continue
        low, high = check.bound(machine, params)
        if value is None or not low <= value <= high:
            shown = check.if_nan if value is None or math.isnan(value) else f"{value:.6g}"
            why = benchmark.why_samples_missing(params, notes) if check.counts_missing_samples else ""
            meaning = f"{check.meaning}); {why}" if why else f"{check.meaning})"
            return Outcome.invalid(check.name, f"{shown}, must be {_interval(low, high)} ({meaning}")
    return None


def _interval(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    return f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"


def impossible_figure(
    benchmark: Benchmark, machine: Machine, params: Params, samples: Sequence[Sample], *, is_complete: bool = True
) -> Outcome | None:
    """None if every figure that is not secondary (without `is_complete`: at least one) is present and none exceeds its
    physical limit."""
    try:
        found = readings(benchmark, machine, params, samples)
    except UNREADABLE as error:
        return Outcome.invalid("samples", f"a figure cannot be computed from them ({error!r})")
    wanted = {figure.name for figure in benchmark.figures if figure.is_there(params) and not figure.is_secondary}
    missing = wanted - {r.figure.name for r in found}
    if missing and (is_complete or not found):
        return Outcome.invalid("samples", f"none for {', '.join(sorted(missing))}")
    reason = next(filter(None, map(impossible_reason, found)), None)
    return None if reason is None else Outcome.invalid("limit", reason)
