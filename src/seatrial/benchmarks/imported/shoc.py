"""imported.shoc: the programs of SHOC, whose figures differ in name and unit from row to row.

A point is a row: `test` and `attributes` are what SHOC calls it. Where its device is PoCL, which runs kernels on the
processor, the peak of the cores is its limit (a compiler that folds a chain of additions shows above it); what another
device can reach, no source tells, unless the user does.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.imported.declarations import (
    GIVEN_FLOPS,
    flops_limit,
    given_limit,
    imported,
    rate_figure,
    text_parameter,
)
from seatrial.model.benchmark import Better, Figure
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params
from seatrial.model.sample import Sample

_PROCESSOR = ("pthread", "cpu", "basic")
"""How PoCL calls its devices that are the processor."""


def _flops(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    on_processor = str(params["device"]).lower().startswith(_PROCESSOR)
    if machine.named_limit(GIVEN_FLOPS) is not None or not on_processor:
        return given_limit("flop/s")(machine, params, samples)
    is_double = all(str(sample.point.get("test", "")).upper().startswith("D") for sample in samples) or all(
        "-DP" in str(sample.point.get("test", "")).upper() for sample in samples
    )
    return flops_limit("fp64" if is_double else "fp32")(machine, params, samples)


BENCHMARK = imported(
    "shoc",
    "SHOC",
    "What did a program of SHOC measure on its device?",
    (
        text_parameter("program", "the program, by its first test"),
        text_parameter("device", "the device that it chose"),
    ),
    (
        rate_figure("flops", "flop/s", "floating point operations, as SHOC counts", _flops),
        rate_figure("bandwidth", "B/s", "bytes, as SHOC counts", given_limit("B/s")),
        rate_figure("rate", "op/s", "operations or elements, as SHOC counts"),
        Figure("time", "time", "s", Better.LOWER, lambda sample: sample.elapsed_s, "one run, as SHOC defines it"),
        Figure(
            "parity",
            "parity",
            "1",
            Better.LOWER,
            lambda sample: sample.work["amount"] / sample.elapsed_s,
            "transfer to the device over computation on it",
        ),
    ),
)
