"""Figures that many benchmarks have: rates and times; and bounds of checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from seatrial.model.benchmark.benchmark import (
    Attainable,
    Better,
    Bound,
    Ceiling,
    Figure,
    HostCopies,
    Intensity,
    LimitOf,
    Native,
    Role,
    elapsed,
)
from seatrial.model.benchmark.declaration import WALL
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.quotients import TimePerWork, WorkRate
from seatrial.model.machine.machine import Machine
from seatrial.model.units import Unit


def zero(machine: Machine, params: Params) -> tuple[float, float]:
    """Must be zero: errors, lost messages, wrong bytes."""
    return (0, 0)


def between(low: float, high: float) -> Bound:
    """From `low` to `high`, both included."""
    return lambda machine, params: (low, high)


def exactly(value: str | float | Callable[[Params], float]) -> Bound:
    """Exactly this number, the parameter of this name, or a function of the parameters."""

    def bound(machine: Machine, params: Params) -> tuple[float, float]:
        if isinstance(value, str):
            number: float = whole(params[value])
        else:
            number = value(params) if callable(value) else value
        return (number, number)

    return bound


class More(TypedDict, total=False):
    """What a `Figure` may state besides its value and work."""

    series: str
    limit: LimitOf | None
    ceiling: Callable[[Params], Ceiling | tuple[Ceiling, ...] | None] | None
    attainable: Callable[[Params], Attainable]
    one_limit_over: tuple[str, ...]
    is_there: Callable[[Params], bool]
    customary: Callable[[Params, float], str] | None
    role: Role | HostCopies | None
    intensity: Callable[[Params], Intensity | None] | None
    is_secondary: bool
    is_of_one_worker: bool


_COUNTED: Mapping[str, str] = {"B/s": "bytes", "flop/s": "flops", "op/s": "ops"}
"""Unit of a rate -> what samples usually count it as."""


def rate(name: str, unit: Unit, work: str, counted: str = "", **more: Unpack[More]) -> Figure:
    """The work `counted` in a sample ("": as usual for this unit) over its time: higher is better."""
    return Figure(name, unit, Better.HIGHER, WorkRate(counted or _COUNTED[unit]), work, **more)


def duration(name: str, work: str, each: str = "", **more: Unpack[More]) -> Figure:
    """The seconds of a sample, or of one unit of the work `each` in it: lower is better."""
    return Figure(name, "s", Better.LOWER, TimePerWork(each) if each else elapsed, work, **more)


def wall_time(work: str) -> Figure:
    """Elapsed seconds of a run of the program by our own clock: lower is better."""
    return duration(WALL, work, role=Role.PROGRAM_START)


def time_step(series: str, work: str) -> Figure:
    """Seconds of a step, which users of molecular dynamics wait for, from samples that count their `steps`."""
    return duration("step", work, "steps", series=series)


Words = Sequence[str] | Callable[[Params], Sequence[str]]
"""Arguments that are always the same, or that follow from the resolved parameters."""


class _Abilities(TypedDict, total=False):
    """What `Native` says about a program beside its source and arguments."""

    library: Literal["blas", "fft", "gpu"] | None
    variables: tuple[str, ...]
    commands: Callable[[Params], Sequence[str]] | None
    inputs: Callable[[Params], Sequence[str]] | None
    takes_turns: bool
    starts_containers: bool


def native_program(
    file: str, parameters: Sequence[Parameter], *words: Words, **abilities: Unpack[_Abilities]
) -> Native:
    """The program beside the declaration `file`, with the same stem. It gets the options that the parameters declare,
    then `words`."""

    def arguments(params: Params) -> list[str]:
        computed = (part(params) if callable(part) else part for part in words)
        own = (parameter.arguments(params) for parameter in parameters)
        return [word for part in (*own, *computed) for word in part]

    return Native(Path(file).with_suffix(".cpp"), arguments, **abilities)
