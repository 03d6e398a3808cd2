"""The command that measures an experiment again, for remedies."""

from __future__ import annotations

import shlex

from seatrial.benchmarks import registry
from seatrial.model.benchmark import Benchmark, Skip
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params, Value
from seatrial.model.spelling import written

_PROGRAM = "argv"
"""The parameter that a command line has after `--`."""


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
