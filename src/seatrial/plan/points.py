"""Points: a benchmark with every parameter resolved for this machine, or the reason why it cannot run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.benchmarks import benchmark_named, registry
from seatrial.benchmarks.nodes import hosts_of, on_placed_nodes
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Skip
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import VM
from seatrial.model.machine.machine import Machine
from seatrial.model.results.outcome import Outcome
from seatrial.model.secrets import masked_parameters
from seatrial.model.study.study import is_of_environment
from seatrial.plan.axis_values import concerns, none_concerned
from seatrial.plan.environment_axes import (
    NAMED,
    check_environment_axis,
    choice_of,
    environment_value,
    guest_of,
    refuse_for,
)
from seatrial.plan.files import Node


class Point(Frozen):
    """A benchmark with resolved parameters. `refusal` is set if it cannot run on this machine; `named`: the user named
    the benchmark.

    `environment` is what a study selects of it; `given` are the values of a study's axes as written in its file;
    `probes` run alongside it. `hosts` are the nodes of its ranks; empty: this one.
    """

    benchmark: Benchmark
    parameters: Params
    cpus: tuple[int, ...]
    named: bool
    refusal: Outcome | None = None
    environment: EnvironmentChoice = AS_IT_IS
    given: Mapping[str, Value | None] = {}
    probes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def estimate_s(self) -> float | None:
        """The expected time of one repeat, in seconds; None if it cannot run."""
        return None if self.refusal is not None else self.benchmark.estimate_s(self.parameters)

    @property
    def is_profiled(self) -> bool:
        """Whether the MPI profiler is loaded with the program, which makes it another experiment."""
        return "mpi" in self.probes and self.benchmark.may_use_mpi


def without_secrets(point: Point) -> Point:
    """The point as it may be shown: secrets among its arguments are masked."""
    return replace(point, parameters=masked_parameters(point.parameters), given=masked_parameters(point.given))


def plan_points(targets: Sequence[str], settings: Mapping[str, Sequence[Value]], machine: Machine) -> tuple[Point, ...]:
    """The points of these benchmarks, each once; without targets, the standard trial of the machine.

    `settings` maps a parameter, or an axis of the environment, to its values, typed or as text; several settings make
    the product. A setting applies to every target that has it. Raises UnknownNameError for an unknown target or
    setting, UsageError for a value that the parameter does not accept.
    """
    benchmarks = [benchmark_named(name) for name in dict.fromkeys(targets)] or list(registry().values())
    _refuse_unknown(settings, benchmarks)
    points: dict[tuple[object, ...], Point] = {}
    for benchmark in benchmarks:
        in_trial = benchmark.trial if benchmark.is_in_trial(machine) else ()
        bases = _bases(benchmark, settings) if targets else in_trial
        environments = _environments(benchmark, settings)
        for base, chosen in itertools.product(bases, _product(benchmark, settings)):
            resolved: dict[str | None, Point] = {}
            for given in environments:
                if (vm := guest_of(given)) not in resolved:
                    found = resolve(benchmark, {**base, **chosen}, machine.at(vm), named=bool(targets))
                    resolved[vm] = unusable(found, machine, vm)
                point = resolved[vm]
                choice = choice_of(given, benchmark, point.parameters)
                key = (benchmark.name, choice, tuple(sorted(point.parameters.items())))
                points.setdefault(key, replace(point, environment=choice))
    return tuple(points.values())


def _bases(benchmark: Benchmark, settings: Mapping[str, Sequence[Value]]) -> tuple[Params, ...]:
    """What is measured of a benchmark that the user names: its sweep, unless one of the swept parameters is set."""
    swept = {name for point in benchmark.sweep for name in point}
    return benchmark.sweep if benchmark.sweep and swept.isdisjoint(settings) else ({},)


def parse_settings(options: Sequence[str]) -> dict[str, list[str]]:
    """`["key=v1,v2", ...]` as parameter -> values. Raises UsageError for another form or a duplicate."""
    settings: dict[str, list[str]] = {}
    for option in options:
        name, equals, values = option.partition("=")
        chosen = [value.strip() for value in values.split(",")]
        if not equals or not name.strip() or not all(chosen):
            raise UsageError(
                f"--set {option!r} is not of the form PARAMETER=VALUE",
                f"write --set {name.strip() or 'PARAMETER'}=VALUE, or several values: VALUE1,VALUE2",
            )
        if name.strip() in settings:
            raise UsageError(
                f"--set gives {name.strip()} twice", f"give all its values at once: {name.strip()}=value1,value2"
            )
        settings[name.strip()] = chosen
    return settings


def _refuse_unknown(settings: Mapping[str, Sequence[Value]], benchmarks: Sequence[Benchmark]) -> None:
    known = {parameter.name for benchmark in benchmarks for parameter in benchmark.parameters}
    for name in settings:
        if is_of_environment(name):
            try:
                check_environment_axis(name)
            except UsageError as error:
                raise UsageError(f"--set {name}: {error.message}", error.todo) from None
            if not any(concerns(name, benchmark) for benchmark in benchmarks):
                raise UsageError(f"--set {name}: {none_concerned(name)}", "remove it")
        elif name not in known:
            what = f"parameter of {benchmarks[0].name}" if len(benchmarks) == 1 else "parameter of these benchmarks"
            raise UnknownNameError(what, name, {*known, *NAMED} if "." in name else known)


def _environments(benchmark: Benchmark, settings: Mapping[str, Sequence[Value]]) -> list[dict[str, Value | None]]:
    """All combinations of the settings of the environment that affect this benchmark."""
    own = [name for name in settings if is_of_environment(name) and concerns(name, benchmark)]
    axes = [[(name, _environment_value(name, str(value), benchmark)) for value in settings[name]] for name in own]
    return [dict(combination) for combination in itertools.product(*axes)]


def _environment_value(name: str, text: str, benchmark: Benchmark) -> Value | None:
    """The same value as in a study file: `null` unsets a variable, everything else is text."""
    try:
        value = environment_value(name, Node(None if text == "null" else text, 1, text))
        refuse_for(name, value, benchmark)
    except UsageError as error:
        raise UsageError(f"--set {name}: {error.message}", error.todo) from None
    return value


def _product(benchmark: Benchmark, settings: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """All combinations of the settings that this benchmark has, with their values checked."""
    own = [parameter for parameter in benchmark.parameters if parameter.name in settings]
    axes = [[(parameter.name, parameter.value_of(value)) for value in settings[parameter.name]] for parameter in own]
    return [dict(combination) for combination in itertools.product(*axes)]


def unusable(point: Point, machine: Machine, vm: str | None) -> Point:
    """The point, refused if its guest cannot be used. A guest of which nothing is known is not started for a plan."""
    guest = None if vm is None else machine.guest(vm)
    if guest is None or guest.machine is not None:
        return point
    todo = f"; {guest.todo}" if guest.todo else ""
    return replace(point, refusal=Outcome.unsupported(VM, f"the guest {guest.name}: {guest.problem}{todo}"))


def resolve(benchmark: Benchmark, given: Mapping[str, object], machine: Machine, *, named: bool) -> Point:
    """The point with these parameters, the others at their defaults; refused if it cannot run on this machine."""
    parameters: Params = benchmark.point(given)
    try:
        machine, parameters = on_placed_nodes(machine, parameters)
        parameters = benchmark.prepare(machine, parameters)
        cpus = benchmark.placement(machine, parameters)
        hosts = hosts_of(machine, parameters) if benchmark.ranks == "mpi" else ()
        return Point(benchmark, parameters, cpus, named, hosts=hosts)
    except Skip as skip:
        return Point(benchmark, parameters, (), named, Outcome.skipped(skip.reason))


Setting = Value | Path | None
Settings = Mapping[str, Setting | list[Any]]
"""Parameter -> its value, or a list of values, each of which makes an experiment. Text is parsed as on the command line
("64MiB"); None unsets an environment variable; a tuple of strings is one value (an argument list)."""


def values_of(settings: Settings) -> dict[str, Sequence[Value]]:
    """Parameter -> its values."""
    listed = {name: value if isinstance(value, list) else [value] for name, value in settings.items()}
    return {name: [_value(value) for value in values] for name, values in listed.items()}


def _value(given: Setting) -> Value:
    if given is None:
        return "null"
    return str(given) if isinstance(given, Path) else given
