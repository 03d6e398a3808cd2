"""Points: a benchmark with every parameter resolved for this machine, or the reason why it cannot run."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from seatrial.benchmarks import benchmark_named, registry
from seatrial.benchmarks.nodes import hosts_of, on_placed_nodes
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Skip
from seatrial.model.benchmark.parameter import JsonValue, Params, Value
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import published
from seatrial.model.machine.guest import VM
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Outcome
from seatrial.model.secrets import masked_parameters
from seatrial.model.study.result import workers_of
from seatrial.model.study.study import MPI, OF_SIDES, POWER, PROBES, SYSTEM, Study, is_of_environment
from seatrial.plan.axis_values import alike, concerns, none_concerned
from seatrial.plan.combinations import Given, combinations
from seatrial.plan.environment_axes import (
    NAMED,
    check_environment_axis,
    choice_of,
    environment_value,
    guest_of,
    refuse_for,
)
from seatrial.plan.files import YamlNode
from seatrial.plan.study_file import NEEDS_NUMBERS, not_a_number

_T = TypeVar("_T")
PROBES_SETTING = "probes"
"""The setting that selects them for benchmarks that a command names."""


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
        return MPI in self.probes and self.benchmark.may_use_mpi

    @property
    def has_power(self) -> bool:
        """Whether its power is measured, for which it runs longer and alone: another experiment."""
        return POWER in self.probes

    @property
    def identifying_probes(self) -> list[str]:
        """The probes that make it another experiment."""
        return [*([MPI] if self.is_profiled else ()), *([POWER] if self.has_power else ())]


def without_secrets(point: Point) -> Point:
    """The point as it may be shown: secrets among its arguments are masked."""
    return replace(point, parameters=masked_parameters(point.parameters), given=masked_parameters(point.given))


def plan_points(targets: Sequence[str], settings: Mapping[str, Sequence[Value]], machine: Machine) -> tuple[Point, ...]:
    """The points of these benchmarks, each once; without targets, the standard trial of the machine.

    `settings` maps a parameter, or an axis of the environment, to its values, typed or as text; several settings make
    the product. A setting applies to every target that has it. Raises UnknownNameError for an unknown target or
    setting, UsageError for a value that the parameter does not accept.
    """
    probes, settings = with_probes_apart(settings)
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
                points.setdefault(key, replace(point, environment=choice, probes=probes))
    return tuple(points.values())


def with_probes_apart(settings: Mapping[str, _T]) -> tuple[tuple[str, ...], dict[str, _T]]:
    """The probes among settings, and the other settings. Raises UsageError for an unknown probe."""
    rest = dict(settings)
    given: Any = rest.pop(PROBES_SETTING, ())
    probes = tuple(dict.fromkeys(map(str, [given] if isinstance(given, str) else given)))
    for probe in probes:
        if probe not in PROBES:
            raise UnknownNameError("probe", probe, sorted(PROBES))
    return probes, rest


def with_probes(study: Study, probes: Sequence[str]) -> Study:
    """The study with further probes."""
    return replace(study, probes=tuple(dict.fromkeys((*study.probes, *probes))))


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
        value = environment_value(name, YamlNode(None if text == "null" else text, 1, text))
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


class StudyPoints(Frozen):
    """The points in the order of the study. `merged` counts those that are the same as an earlier one."""

    points: tuple[Point, ...]
    merged: int


def study_points(study: Study, machine: Machine) -> tuple[Point, ...]:
    """The points of a study on a machine: every combination of its axes with all parameters resolved, no duplicates."""
    return plan_study(study, machine).points


def plan_study(study: Study, machine: Machine) -> StudyPoints:
    """The same, with the number of duplicates (such as `threads: all` and the number that it resolves to)."""
    resolved: dict[tuple[object, ...], Point] = {}
    points: dict[tuple[object, ...], Point] = {}
    number = 0
    for entry, given in combinations(study):
        number += 1
        benchmark = benchmark_named(entry.name)
        chosen = {name: value for name, value in given.items() if value is not None and _is_parameter(name)}
        probed = benchmark.probed if {*study.probes} - {POWER} else {}
        settings: dict[str, Value] = {**probed, **entry.parameters, **chosen}
        vm = guest_of(given)
        key = (entry.name, vm, *sorted(settings.items()))
        if key not in resolved:
            resolved[key] = unusable(resolve(benchmark, settings, machine.at(vm), named=True), machine, vm)
        point = replace(
            _labelled(resolved[key], given), probes=tuple(probe for probe in study.probes if probe in PROBES)
        )
        points.setdefault((point.benchmark.name, point.environment, *sorted(point.parameters.items())), point)
    return StudyPoints(tuple(points.values()), number - len(points))


def refuse_unfit(study: Study, points: Sequence[Point]) -> None:
    """Raise UsageError if the points cannot give what the study asks for: two sides to compare, numbers to scale
    with."""
    refuse_nothing_to_compare(study, points)
    refuse_no_scaling(study, points)


def refuse_no_scaling(study: Study, points: Sequence[Point]) -> None:
    """Raise UsageError if a study has a scaling along an axis whose values are not numbers on this machine, or all the
    same number, or that a benchmark does not have."""
    if study.scaling is None:
        return
    along = study.scaling.along
    values = [point.parameters.get(along, point.given.get(along)) for point in points if along in point.given]
    for point, value in zip((point for point in points if along in point.given), values, strict=True):
        if point.refusal is None and workers_of(value) is None:
            raise UsageError(f"study {study.name}: {not_a_number(along, str(value))}", NEEDS_NUMBERS)
    without = sorted(
        {point.benchmark.name for point in points} - {p.benchmark.name for p in points if along in p.given}
    )
    if without:
        raise UsageError(
            f"study {study.name}: {along} is not a setting of {', '.join(without)}, so nothing scales there",
            "move it to its own study, or name an axis that all benchmarks of the study have",
        )
    if len({workers_of(value) or value for value in values}) == 1:
        raise UsageError(
            f"study {study.name}: every value of {along} is {values[0]} on this machine, so nothing scales",
            NEEDS_NUMBERS,
        )


def refuse_nothing_to_compare(study: Study, points: Sequence[Point]) -> None:
    """Raise UsageError if a study has a comparison but no two points to compare. The part of a study on one system has
    the other side elsewhere."""
    if study.compare is not None and study.compare.along == SYSTEM and len(study.systems) == 1:
        return
    if study.compare is not None and not compared_points(study, points):
        raise UsageError(
            f"study {study.name}: no two experiments differ only in {study.compare.along}, so nothing can be compared",
            "check exclude, include, and values that resolve to the same on this machine: see seatrial plan",
        )


@published("Same")
class SameSides(Frozen):
    """Values of the compared axis that are one experiment on this machine, and so not compared."""

    benchmark: str
    values: tuple[JsonValue | None, ...]


def same_sides(study: Study, points: Sequence[Point], ids: Mapping[int, str]) -> tuple[SameSides, ...]:
    """The sides of comparisons that are one experiment. `ids` has the id of each point's experiment by the `id()` of
    the point.

    Raises UsageError if there are no others: a study does not compare an experiment with itself.
    """
    if study.compare is None:
        return ()
    along = study.compare.along
    found: dict[SameSides, None] = {}
    is_compared = False
    for group in compared_points(study, points):
        by_id: dict[str, list[Value | None]] = {}
        for point in group:
            by_id.setdefault(ids[id(point)], []).append(point.given[along])
        is_compared |= len(by_id) > 1
        name = group[0].benchmark.name
        found |= dict.fromkeys(SameSides(name, tuple(own)) for own in by_id.values() if len(own) > 1)
    if found and not is_compared:
        first = next(iter(found))
        shown = " and ".join("null" if value is None else str(value) for value in first.values)
        raise UsageError(
            f"study {study.name}: {along} {shown} are one experiment of {first.benchmark} on this machine, so nothing "
            "can be compared",
            "name values that differ here: see seatrial list",
        )
    return tuple(found)


def compared_points(study: Study, points: Sequence[Point]) -> tuple[tuple[Point, ...], ...]:
    """The groups of points that differ only along the axis of `compare`, the baseline first; groups without a
    baseline or without a candidate are left out."""
    compare = study.compare
    if compare is None:
        return ()
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        if compare.along in point.given:
            groups.setdefault((point.benchmark.name, *study.place(point.given, compare.along)), []).append(point)
    sorted_groups = (
        sorted(group, key=lambda point: not alike(point.given[compare.along], compare.baseline))
        for group in groups.values()
        if any(alike(point.given[compare.along], compare.baseline) for point in group)
    )
    return tuple(tuple(group) for group in sorted_groups if len(group) > 1)


def _is_parameter(name: str) -> bool:
    return name not in OF_SIDES and not is_of_environment(name)


def _labelled(point: Point, given: Given) -> Point:
    """A resolved point with its label and system, and the environment that it selects."""
    sides = {name: value for name in OF_SIDES if (value := given.get(name)) is not None}
    parameters = {**point.parameters, **sides} if sides else point.parameters
    return replace(
        point, parameters=parameters, environment=choice_of(given, point.benchmark, point.parameters), given=given
    )
