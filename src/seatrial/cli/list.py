"""`seatrial list`."""

from __future__ import annotations

from typing import Any

from seatrial.benchmarks import registry
from seatrial.cli.output import print_json
from seatrial.environments.compiler import first_compiler
from seatrial.errors import NoCompilerError
from seatrial.machine.live import discover_live
from seatrial.model.benchmark import Benchmark
from seatrial.model.machine import Machine
from seatrial.report.text import default_text, list_text


def list_command(*, as_json: bool) -> None:
    """Print every benchmark with its state on this machine."""
    machine = discover_live()
    try:
        first_compiler()
        missing = None
    except NoCompilerError as error:
        missing = str(error).replace("\n ", ";")
    benchmarks = [_described(benchmark, machine, missing) for benchmark in registry().values()]
    if as_json:
        print_json({"schema": "seatrial.list/1", "benchmarks": benchmarks})
    else:
        print(list_text(benchmarks))


def _described(benchmark: Benchmark, machine: Machine, no_compiler: str | None) -> dict[str, Any]:
    need = no_compiler or benchmark.needs(machine)
    state = "unsupported" if need else "ready" if benchmark.verified else "unverified"
    return {
        "name": benchmark.name,
        "question": benchmark.question,
        "state": state,
        "need": need,
        "parameters": [
            {
                "name": parameter.name,
                "default": default_text(parameter.kind, parameter.default),
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
