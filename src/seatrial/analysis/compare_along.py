"""Comparisons within one results folder along an axis: of a study in it, or any setting that varies in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from seatrial.analysis.environment_settings import Setting, environment_settings
from seatrial.analysis.measured_again import measure_again
from seatrial.analysis.outliers import SCREENS, fleet_spreads, outliers_along, screened_nodes
from seatrial.analysis.results import all_results
from seatrial.analysis.study_results import along_axis, latest_studies
from seatrial.errors import UnknownNameError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.environment.container import CONTAINER, CONTAINER_MPI, CONTAINER_RUNTIME, NO_CONTAINER
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import VM
from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.results.record import Experiment
from seatrial.model.study.result import Compared
from seatrial.model.study.study import (
    DEFAULT_MARGIN,
    ENVIRONMENT_PREFIX,
    SYSTEM,
    Axis,
    KeptStudy,
    Study,
    StudyPoint,
    is_of_environment,
)
from seatrial.store.contents import Contents

_VM = ENVIRONMENT_PREFIX + VM
_OF_CONTAINERS = (ENVIRONMENT_PREFIX + CONTAINER_RUNTIME, ENVIRONMENT_PREFIX + CONTAINER_MPI)


class Comparisons(Frozen):
    """Comparisons, of two sides or along an axis; `screen` is None if nothing was screened for outliers."""

    compared: tuple[Compared, ...] = ()
    screen: ScreenResult | None = None


def compare_along(contents: Contents, along: str, given: float | None, *, equivalence: bool = False) -> Comparisons:
    """The comparisons along the axis or, for `node`, `repeat`, `rank` and `pair`, the outliers.

    `given` is the margin, of `equivalence` or not; None: that of a study which asks for equivalence along the axis,
    else the default.

    The baseline is that of a study in the folder with this axis; else the smallest value, the first in alphabetical
    order, false, or no container. Raises UnknownNameError if nothing varies along the axis.
    """
    margin = DEFAULT_MARGIN if given is None else given
    if along in SCREENS:
        outliers = outliers_along(contents, along, margin)
        if along != "node":
            return Comparisons(screen=ScreenResult(outliers))
        screened = screened_nodes(contents)
        return Comparisons(
            screen=ScreenResult(outliers, fleet_spreads(screened, margin), measure_again(screened, contents))
        )
    results = all_results(contents)
    known = {result.id: result for result in results}
    planned = [kept for kept in latest_studies(contents) if kept.study.axis(along) is not None]
    if not planned:
        planned = _as_studies(contents, along)
    if not planned:
        raise UnknownNameError("axis along which experiments in this folder vary", along, _axes(contents))
    found: list[Compared] = []
    for kept in planned:
        axis, asked = kept.study.axis(along), kept.study.compare
        compare = asked if asked is not None and asked.along == along else None
        baseline = compare.baseline if compare is not None else axis.values[0] if axis is not None else None
        figures = frozenset(compare.figures) if compare is not None else frozenset[str]()
        is_own = given is None and compare is not None and compare.asks_equivalence
        found += along_axis(
            [kept],
            along,
            contents,
            known,
            baseline=baseline,
            margin=compare.margin if compare is not None and is_own else margin,
            figures=figures,
            equivalence=equivalence or is_own,
        )
    return Comparisons(tuple(found))


def _as_studies(contents: Contents, along: str) -> list[KeptStudy]:
    """Experiments that vary along the axis without a study, as one study per machine."""
    settings = environment_settings(contents)
    values = {key: _coordinate(key, contents, along, settings) for key in contents.experiments}
    found = {key: value[0] for key, value in values.items() if value is not None}
    if len(set(found.values())) < 2:
        return []
    others = {key: _other_coordinates(contents.experiments[key], along, settings) for key in found}
    machines = dict.fromkeys(contents.experiments[key].machine for key in found)
    if along in (SYSTEM, _VM):  # each of its values is another machine
        return [_as_study(contents, along, next(iter(machines)), found, others)]
    return [
        _as_study(
            contents,
            along,
            machine,
            {k: v for k, v in found.items() if contents.experiments[k].machine == machine},
            others,
        )
        for machine in machines
    ]


_Given = Mapping[str, Value | None]


def _as_study(
    contents: Contents, along: str, machine: str, own: Mapping[str, Value | None], others: Mapping[str, _Given]
) -> KeptStudy:
    points: list[StudyPoint] = []
    for benchmark in dict.fromkeys(contents.experiments[key].benchmark for key in own):
        keys = [key for key in own if contents.experiments[key].benchmark == benchmark]
        of_benchmark = {key: others[key] for key in keys}
        following = _following(own, of_benchmark)
        kept = {key: {n: v for n, v in given.items() if n not in following} for key, given in of_benchmark.items()}
        for key in keys:
            for given in _at_each_place(kept[key], kept.values()):
                points.append(StudyPoint(key, benchmark, {**given, along: own[key]}))
    values = tuple(sorted(set(own.values()), key=_order(along)))
    return KeptStudy(Study("", "", (), (Axis(along, values),)), machine, tuple(points))


def _at_each_place(given: _Given, everything: Iterable[_Given]) -> list[_Given]:
    """An experiment without a container is the baseline for each runtime and placement of ranks that others have."""
    if any(name in given for name in _OF_CONTAINERS):
        return [given]
    places = [{n: v for n, v in other.items() if n in _OF_CONTAINERS} for other in everything]
    distinct = [place for n, place in enumerate(places) if place and place not in places[:n]]
    return [{**given, **place} for place in distinct] or [given]


def _following(values: Mapping[str, Value | None], others: Mapping[str, _Given]) -> frozenset[str]:
    """The settings that the axis determines: each of its values has one of theirs (arrays grow with threads)."""
    names = {name for given in others.values() for name in given}

    def follows(name: str) -> bool:
        seen: dict[Value | None, set[Value | None]] = {}
        for key, given in others.items():
            seen.setdefault(values[key], set()).add(given.get(name))
        return all(len(found) == 1 for found in seen.values())

    return frozenset(filter(follows, names))


def _coordinate(
    key: str, contents: Contents, along: str, settings: Mapping[str, Mapping[str, Setting]]
) -> Setting | None:
    """The value of an axis at an experiment; None if it has no such axis, or was measured at several values of it."""
    if along == SYSTEM:
        found = {str(name) for one in contents.records.get(key, ()) if (name := one.seen.get(SYSTEM))}
        return (next(iter(found)),) if len(found) == 1 else None
    experiment = contents.experiments[key]
    if not is_of_environment(along):
        return (experiment.parameters[along],) if along in experiment.parameters else None
    return settings.get(experiment.environment, {}).get(along.removeprefix(ENVIRONMENT_PREFIX))


def _other_coordinates(
    experiment: Experiment, along: str, settings: Mapping[str, Mapping[str, Setting]]
) -> dict[str, Value | None]:
    """Every other coordinate: experiments that share them differ along the axis only."""
    others: dict[str, Value | None] = {n: v for n, v in experiment.parameters.items() if n != along}
    if not is_of_environment(along):
        others["environment"] = experiment.environment
    else:
        own = settings.get(experiment.environment, {})
        name = along.removeprefix(ENVIRONMENT_PREFIX)
        others |= {_axis_of(n): value[0] for n, value in own.items() if n != name}
    return others


def _axis_of(name: str) -> str:
    return name if is_of_environment(name) else ENVIRONMENT_PREFIX + name


def _axes(contents: Contents) -> Iterable[str]:
    """The parameters and the settings of environments that vary in the folder, and the screens."""
    seen: dict[str, set[object]] = {}
    settings = environment_settings(contents)
    for key, experiment in contents.experiments.items():
        if (system := _coordinate(key, contents, SYSTEM, settings)) is not None:
            seen.setdefault(SYSTEM, set()).add(system)
        for name, setting in settings.get(experiment.environment, {}).items():
            seen.setdefault(_axis_of(name), set()).add(setting)
        for name, value in experiment.parameters.items():
            seen.setdefault(name, set()).add(value)
    return [*(name for name, values in seen.items() if len(values) > 1), *SCREENS]


def _rank(value: Value | None) -> tuple[bool, bool, object]:
    """Unset first, then numbers (false before true), then text."""
    is_word = isinstance(value, str | tuple)
    return value is not None, is_word, (str(value) if is_word else value) or 0


def _order(along: str) -> Callable[[Value | None], tuple[bool, object]]:
    """The order of an axis, whose first value is the baseline: without a container, before any image."""
    first = NO_CONTAINER if along == ENVIRONMENT_PREFIX + CONTAINER else None
    return lambda value: (first is not None and value != first, _rank(value))
