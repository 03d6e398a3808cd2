"""command: the wall time of any program, from the call that starts it to the one that reaps it.

The program is started without a shell, its standard input is empty, and its output goes to the files of the repeat. It
may use all CPUs of the experiment and binds its threads itself: `hello.cpus`, and so `affinity` in records, has one
entry for each CPU that it may use. Each repeat starts the program once.

The time includes what Linux takes to start a program: at best 0.56 ms for an empty static one on a shared virtual
machine of two Zen 5 cores, where a plain loop in C takes 0.55 ms (docs/results/command_overhead.json).

Notes record what was run: `programs` and `libraries` ({name: {path, id}}; `id` is the build id, or size and hash), as
the loader lists them for the program (`libraries_listed`) and as seen mapped while it and its children ran
(`libraries_seen`); `input_files` are the arguments that name files; `looks` is what its threads did meanwhile
(docs/methodology.md, "What repeats waited for"). A library that is mapped only for a few
milliseconds, between two looks, may be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.bounds import between, zero
from seatrial.benchmarks.placement import NODE, node_of_cpus, spread
from seatrial.model.benchmark import Benchmark, Better, Check, Figure, Native, Skip
from seatrial.model.limit import IMPOSSIBLE_ABOVE
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.sample import Sample

_TICK_S = 0.01
"""Resolution of CPU time: 100 Hz, the coarsest tick of Linux."""


def _words(params: Params) -> tuple[str, ...]:
    words = params["argv"]
    return words if isinstance(words, tuple) else (str(words),)


def _program(params: Params) -> Sequence[str]:
    return _words(params)[:1]


def _arguments(params: Params) -> list[str]:
    return arguments_of(_words(params))


def arguments_of(words: Sequence[str], exit_status: int = 0) -> list[str]:
    """The arguments that make the program start this command, which must end with that status."""
    named = [argument for number, word in enumerate(words) for argument in (f"--word-{number}", word)]
    expected = ["--expect", str(exit_status)] if exit_status else []
    return ["--words", str(len(words)), *named, *expected]


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    everything = spread(machine, len(machine.allowed_cpus), node_of_cpus(params))
    return everything if params["cpus"] == "all" else everything[: whole(params["cpus"])]


def _prepare(machine: Machine, params: Params) -> Params:
    there = spread(machine, len(machine.allowed_cpus), node_of_cpus(params))
    count = len(there) if params["cpus"] == "all" else whole(params["cpus"])
    if count > len(there):
        raise Skip(f"{count} CPUs requested; this process may use {len(there)}")
    return {**params, "cpus": count}


def _use_of_cpus(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """CPU time, less one tick, over the elapsed time of the experiment's CPUs."""

    def of(sample: Sample) -> float:
        used_s = float(sample.extra["user_s"]) + float(sample.extra["system_s"])
        return max(used_s - _TICK_S, 0.0) / (sample.elapsed_s * whole(params["cpus"]))

    return max(map(of, samples))


def _inputs(params: Params) -> tuple[str, ...]:
    """The arguments of the program, which may name files."""
    argv = params["argv"]
    return argv[1:] if isinstance(argv, tuple) else ()


BENCHMARK = Benchmark(
    name="command",
    question="How long does a program run?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, commands=_program, inputs=_inputs),
    parameters=(
        Parameter("argv", ParameterKind.WORDS, ("true",), "the program and its arguments"),
        Parameter(
            "cpus",
            ParameterKind.INTEGER,
            "all",
            "CPUs that the program may use, one per core first; all: all that this process may use",
            words=("all",),
            minimum=1,
        ),
        NODE,
        Parameter(
            "expected_s",
            ParameterKind.INTEGER,
            1,
            "approximate run time in seconds; the program is considered hung after 20 times as long, at least 30 s",
            minimum=1,
        ),
    ),
    figures=(
        Figure(
            name="wall",
            series="wall",
            unit="s",
            better=Better.LOWER,
            value=lambda sample: sample.elapsed_s,
            work="one run of the program",
        ),
    ),
    checks=(
        Check("exit_status", "exit status of the program", bound=zero),
        Check(
            "use_of_cpus",
            "CPU time over the time of the program's CPUs; above 1, it ran on other CPUs too",
            bound=between(0.0, IMPOSSIBLE_ABOVE),
            derive=_use_of_cpus,
        ),
    ),
    placement=_placement,
    prepare=_prepare,
    estimate_s=lambda params: float(whole(params["expected_s"])),
)
