"""command: the wall time of any program, from the call that starts it to the one that reaps it.

The program is started without a shell; its standard input is empty or the file `input`, and its output goes to the
files of the repeat. It may use all CPUs of the experiment and binds its threads itself: `hello.cpus`, and so `affinity`
in records, has one entry for each CPU that it may use.

A repeat is one process of ours. It runs the program `warmup` times, then again and again for 0.25 s, four times if that
takes at most 1 s, at least once and at most `most_runs` times; each timed run is a sample. Programs that are compared
run in turns. `prepare` is run before each run, `cleanup` once at the end of the repeat; both without a shell, and not
timed. If a run does not end with the status `expect`, the repeat has failed.

What a run used is from getrusage(2), with the children that it waited for. `max_resident` is unknown for a program that
needs less memory than ours, whose peak a new process inherits (Linux, fs/exec.c, exec_mmap).

Notes record what was run: `programs` and `libraries` ({name: {path, id}}; `id` is the build id, or size and hash), as
the loader lists them for the program (`libraries_listed`) and as seen mapped while it and its children ran
(`libraries_seen`); `input_files` are the arguments that name files; `looks` is what its threads did meanwhile
(docs/methodology.md, "What repeats waited for"). A library that is mapped only for a few
milliseconds, between two looks, may be missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from seatrial.benchmarks.figures import between, duration, exactly
from seatrial.benchmarks.placement import NODE, node_of_cpus, spread
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, Native, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.limit import IMPOSSIBLE_ABOVE
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample
from seatrial.model.units import Unit

_TICK_S = 0.01
"""Resolution of CPU time: 100 Hz, the coarsest tick of Linux."""

_NONE = "none"
_MOST_RUNS = 1000


def _words(params: Params, name: str = "argv") -> tuple[str, ...]:
    words = params[name]
    return words if isinstance(words, tuple) else (str(words),)


def _programs(params: Params) -> Sequence[str]:
    return [_words(params, name)[0] for name in ("argv", "prepare", "cleanup") if params[name] != _NONE]


def _arguments(params: Params) -> list[str]:
    arguments = [
        *arguments_of(_words(params), whole(params["expect"])),
        *("--runs", str(whole(params["most_runs"])), "--warmup", str(whole(params["warmup"]))),
    ]
    for name in ("prepare", "cleanup"):
        if params[name] != _NONE:
            arguments += _listed(name, name, _words(params, name))
    return arguments if params["input"] == _NONE else [*arguments, "--input", str(params["input"])]


def arguments_of(words: Sequence[str], exit_status: int = 0) -> list[str]:
    """The arguments that make the program run this command once; it must end with that status."""
    expected = ["--expect", str(exit_status)] if exit_status else []
    return [*_listed("words", "word", words), *expected]


def words_in(arguments: Sequence[object]) -> tuple[str, ...] | None:
    """The command in arguments that `arguments_of` made; None if there is none."""
    given = [str(argument) for argument in arguments]
    values = dict(pairwise(given))
    count = values.get("--words", "")
    words = [values.get(f"--word-{number}") for number in range(int(count))] if count.isdecimal() else []
    return tuple(word for word in words if word is not None) or None


def _listed(name: str, each: str, words: Sequence[str]) -> list[str]:
    """A list of words as arguments of the program."""
    numbered = [argument for number, word in enumerate(words) for argument in (f"--{each}-{number}", word)]
    return [f"--{name}", str(len(words)), *numbered]


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    everything = spread(machine, len(machine.allowed_cpus), node_of_cpus(params))
    return everything if params["cpus"] == "all" else everything[: whole(params["cpus"])]


def _prepare(machine: Machine, params: Params) -> Params:
    if whole(params["expect"]) > 255:
        raise UsageError(f"expect cannot be {params['expect']}", "an exit status is a number from 0 to 255")
    there = spread(machine, len(machine.allowed_cpus), node_of_cpus(params))
    count = len(there) if params["cpus"] == "all" else whole(params["cpus"])
    if count > len(there):
        raise Skip(f"{count} CPUs requested; this process may use {len(there)}")
    return {**params, "cpus": count}


def _cpu_s(sample: Sample) -> float:
    return float(sample.extra["user_s"]) + float(sample.extra["system_s"])


def _use_of_cpus(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """CPU time, less one tick, over the elapsed time of the experiment's CPUs."""
    return max(
        max(_cpu_s(sample) - _TICK_S, 0.0) / (sample.elapsed_s * whole(params["cpus"]))
        for sample in samples
        if sample.series == "wall"
    )


def _inputs(params: Params) -> tuple[str, ...]:
    """The words that may name files which the program reads."""
    return (*_words(params)[1:], *([] if params["input"] == _NONE else [str(params["input"])]))


def _used(
    name: str, unit: Unit, value: Callable[[Sample], float], work: str = "one run of the program", series: str = "wall"
) -> Figure:
    """A figure of what a run used beside its time."""
    return Figure(name, unit, Better.LOWER, value, work, series=series, is_secondary=True)


def _counted(name: str) -> Callable[[Sample], float]:
    return lambda sample: float(sample.extra[name])


BENCHMARK = Benchmark(
    name="command",
    question="How long does a program run?",
    program=Native(
        Path(__file__).with_suffix(".cpp"), _arguments, commands=_programs, inputs=_inputs, takes_turns=True
    ),
    parameters=(
        Parameter.word_list("argv", ("true",), "the program and its arguments"),
        Parameter.integer(
            "cpus",
            "all",
            "CPUs that the program may use, one per core first; all: all that this process may use",
            minimum=1,
        ),
        NODE,
        Parameter.integer(
            "expected_s",
            1,
            "approximate run time in seconds; the program is considered hung after 20 times as long, at least 30 s",
            minimum=1,
        ),
        Parameter.integer("warmup", 0, "runs before the timed ones in each repeat, not timed"),
        Parameter.integer(
            "most_runs",
            _MOST_RUNS,
            "the most timed runs in a repeat; short programs run again and again for 0.25 s, or up to 4 times in 1 s",
            minimum=1,
        ),
        Parameter.word_list("prepare", _NONE, "a command that is run before each run, not timed"),
        Parameter.word_list("cleanup", _NONE, "a command that is run at the end of each repeat"),
        Parameter.text("input", _NONE, "the file that is the standard input", (_NONE,)),
        Parameter.integer("expect", 0, "the exit status that the program must end with"),
    ),
    figures=(
        duration("wall", "one run of the program"),
        _used("cpu_time", "s", _cpu_s, "user and system time of one run"),
        _used("max_resident", "B", lambda sample: sample.work["max_rss_B"], "the largest process of one run", "memory"),
        _used("voluntary_switches", "1", _counted("voluntary_switches")),
        _used("involuntary_switches", "1", _counted("involuntary_switches")),
        _used("minor_faults", "1", _counted("minor_faults")),
        _used("major_faults", "1", _counted("major_faults")),
    ),
    checks=(
        Check("exit_status", "exit status of the program", exactly("expect")),
        Check(
            "use_of_cpus",
            "CPU time over the time of the program's CPUs; above 1, it ran on other CPUs too",
            between(0.0, IMPOSSIBLE_ABOVE),
            _use_of_cpus,
        ),
    ),
    placement=_placement,
    prepare=_prepare,
    estimate_s=lambda params: float(whole(params["expected_s"]) * (1 + whole(params["warmup"]))),
    probed={"most_runs": 1},
)
