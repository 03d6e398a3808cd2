"""How findings name experiments, and the command that measures one again. Numbers are formatted by `model.spelling`, as
on the page."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Benchmark, Skip
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import settings, written

_MOST_NAMED = 6
_PROGRAM = "argv"
"""The parameter that a command line has after `--`."""


def listed(items: Iterable[str], most: int = _MOST_NAMED) -> str:
    """The first few items: "a, b, c and 4 more"."""
    named = list(items)
    rest = len(named) - most
    return ", ".join(named[:most]) + (f" and {rest} more" if rest > 0 else "")


class Names:
    """Names experiments by the settings that distinguish them from the others of their benchmark."""

    def __init__(self, results: Sequence[ExperimentResult]) -> None:
        self._values: dict[tuple[str, str], set[Value]] = {}
        self._count: dict[str, int] = {}
        for result in results:
            benchmark = result.experiment.benchmark
            self._count[benchmark] = self._count.get(benchmark, 0) + 1
            for name, value in result.experiment.parameters.items():
                self._values.setdefault((benchmark, name), set()).add(value)

    def experiment(self, result: ExperimentResult) -> str:
        """Such as: "memory.stream (threads=2)"."""
        return result.experiment.benchmark + _in_brackets(settings(self._distinguishing(result), ", "))

    def figure(self, result: ExperimentResult, figure: FigureResult) -> str:
        """Such as: "memory.stream triad (threads=2, nontemporal=true)"."""
        parameters = settings({**self._distinguishing(result), **figure.point}, ", ")
        return f"{result.experiment.benchmark} {figure.name}" + _in_brackets(parameters)

    def _distinguishing(self, result: ExperimentResult) -> dict[str, Value]:
        benchmark = result.experiment.benchmark
        return {
            name: value
            for name, value in result.experiment.parameters.items()
            if self._count.get(benchmark, 0) > 1 and len(self._values.get((benchmark, name), ())) > 1
        }


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def again(machine: Machine, result: ExperimentResult) -> str:
    """Such as: "seatrial run memory.stream --set threads=1 --again", with the words of a program after `--`; or of the
    study if its parameters cannot be given on a command line. Values from records are quoted for a shell."""
    experiment = result.experiment
    benchmark = registry().get(experiment.benchmark)
    given = dict(experiment.parameters) if benchmark is None else _given(benchmark, machine, experiment.parameters)
    program = given.pop(_PROGRAM, ()) if benchmark is not None else ()
    if not isinstance(program, tuple) or any(isinstance(value, tuple) for value in given.values()):
        return "seatrial run STUDY.yaml --again"  # only study files take other lists
    words = ["seatrial", "run", experiment.benchmark]
    for name, value in given.items():
        words += ["--set", f"{name}={written(name, value)}"]
    return shlex.join([*words, "--again", *(("--", *program) if program else ())])


def _given(benchmark: Benchmark, machine: Machine, params: Params) -> dict[str, Value]:
    """The parameters that must be set for `prepare` to return these: all but those whose default gives the same."""
    asked = dict(params)
    for parameter in benchmark.parameters:
        changed = {**asked, parameter.name: parameter.default}
        if parameter.name in asked and _prepared(benchmark, machine, changed) == dict(params):
            asked = changed
    defaults = {parameter.name: parameter.default for parameter in benchmark.parameters}
    return {name: value for name, value in asked.items() if name not in defaults or value != defaults[name]}


def _prepared(benchmark: Benchmark, machine: Machine, params: Params) -> Params | None:
    try:
        return dict(benchmark.prepare(machine, params))
    except (Skip, KeyError, TypeError, ValueError):  # a record of another version may have other parameters
        return None
