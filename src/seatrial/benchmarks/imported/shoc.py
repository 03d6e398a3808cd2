"""imported.shoc: the programs of SHOC, whose figures differ in name and unit from row to row.

Each row is a sweep coordinate with SHOC's `test` and `attributes`. If the device is PoCL, which runs kernels on the
CPU, the limit is the peak of the cores (a result above it means that the compiler folded a chain of additions). For
other devices the limit is unknown unless the user gives it.
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
from seatrial.model.quotients import WorkRate
from seatrial.model.sample import Sample

_PROCESSOR = ("pthread", "cpu", "basic")
"""PoCL's names of CPU devices."""


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
        text_parameter("device", "the device that it used"),
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
            WorkRate("amount"),
            "time of the transfer to the device over that of the computation on it",
        ),
    ),
)
