"""The experiments whose programs had no CPU, by names that tell them apart (docs/adr/0063)."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from seatrial.analysis.rules.finding import Names
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.study.comparison import Comparison

_LONGEST_NAME = 60


def missing_cpus(results: Sequence[ExperimentResult]) -> tuple[NoCpu, ...]:
    """Of these results: "memory.stream (threads=2)", or the program that was measured."""
    names = Names(results)
    return tuple(
        replace(result.no_cpu, who=_name(result, names.experiment(result)))
        for result in results
        if result.no_cpu is not None
    )


def missing_of_sides(comparisons: Iterable[Comparison]) -> tuple[NoCpu, ...]:
    """Of the sides of comparisons, each once."""
    sides = (side.no_cpu for one in comparisons for side in (one.baseline, one.candidate))
    return tuple(dict.fromkeys(one for one in sides if one is not None))


def missing_of_side(result: ExperimentResult, side: str) -> NoCpu | None:
    """Of an experiment on one side of a comparison: "memory.stream of threads 2"; a program has its own name."""
    if result.no_cpu is None:
        return None
    of = side if _program(result) else f"{result.experiment.benchmark} of {side}"
    return replace(result.no_cpu, who=_short(of))


def _name(result: ExperimentResult, otherwise: str) -> str:
    program = _program(result)
    return _short(shlex.join(program)) if program else otherwise


def _program(result: ExperimentResult) -> tuple[str, ...]:
    words = result.experiment.parameters.get("argv")
    return words if isinstance(words, tuple) else ()


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1].rstrip()}…"
