"""`seatrial.list/1`: what can be measured here, as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.model.benchmark import Benchmark
from seatrial.model.machine import Machine
from seatrial.report.units import written


def list_document(
    benchmarks: Iterable[Benchmark], machine: Machine, compilers: Sequence[str], missing: Mapping[str, str]
) -> dict[str, Any]:
    """The object that CONTRACT names, with the compilers in order of preference: the first is used.

    `missing` says of benchmarks whose program cannot be had here what they lack.
    """
    return {
        "schema": "seatrial.list/1",
        "compilers": list(compilers),
        "benchmarks": [_benchmark(benchmark, machine, missing.get(benchmark.name)) for benchmark in benchmarks],
    }


def _benchmark(benchmark: Benchmark, machine: Machine, missing: str | None) -> dict[str, Any]:
    need = missing or benchmark.needs(machine)
    return {
        "name": benchmark.name,
        "question": benchmark.question,
        "state": "unsupported" if need else "ready" if benchmark.verified else "unverified",
        "need": need,
        "parameters": [
            {
                "name": parameter.name,
                "default": written(parameter.name, parameter.default),
                "help": parameter.help,
                "accepts": parameter.accepts(),
            }
            for parameter in benchmark.parameters
        ],
        "figures": [
            {"name": figure.name, "unit": figure.unit, "better": figure.better.value, "work": figure.work}
            for figure in benchmark.figures
        ],
    }
