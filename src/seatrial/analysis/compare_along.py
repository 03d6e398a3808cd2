"""Comparisons within one results folder along an axis: of a study in it, or any setting that varies in it, also a
setting of the environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from seatrial.analysis.grouped import grouped
from seatrial.analysis.outliers import SCREENS, outliers_along
from seatrial.analysis.results import all_results
from seatrial.analysis.study_results import along_axis, latest_studies
from seatrial.errors import UnknownNameError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.environment.container import CONTAINER, CONTAINER_MPI, CONTAINER_RUNTIME, NO_CONTAINER
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS, UNCHANGED
from seatrial.model.environment.mpi import DEFAULTS
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import NO_GUEST, VM
from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.results.record import Experiment
from seatrial.model.results.rows import verdicts_text
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

_DIGITS = 12
Setting = tuple[Value | None]
"""The value of an axis, in a tuple of one: an unset variable has the value None, where another axis has none."""


def environment_settings(contents: Contents) -> dict[str, dict[str, Setting]]:
    """The axes of each environment of a folder by their names without the prefix. An image is named as a user would,
    with its digest only where two have one name; without a container, a runtime and a placement of ranks have no
    value."""
    names = _names_of_images(contents)
    return {key: _settings(document, names) for key, document in contents.environments.items()}


def _settings(document: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    compiler, mpi, container = (document.get(name) for name in ("compiler", "mpi", CONTAINER))
    if isinstance(compiler, Mapping):
        found["compiler"] = (f"{compiler.get('family')} {compiler.get('version')}",)
    guest = document.get(VM)
    found[VM] = (str(guest.get("name")) if isinstance(guest, Mapping) else NO_GUEST,)
    found["flags"] = (" ".join(document.get("added_flags", ())),)
    if isinstance(mpi, Mapping):
        found["mpi"] = (str(mpi.get("name")),)
        found |= {name: (value,) for name, value in {**DEFAULTS, **(document.get("settings") or {})}.items()}
    found |= {name: (value,) for name, value in (document.get("variables") or {}).items()}
    of_machine = document.get("machine_settings") or {}
    found |= {name: (of_machine.get(name, UNCHANGED),) for name in MACHINE_SETTINGS}
    if isinstance(container, Mapping):
        found[CONTAINER] = (names[_image(container)],)
        found[CONTAINER_RUNTIME] = (str(container.get("runtime")),)
        if "mpi" in container:
            found[CONTAINER_MPI] = (str(container["mpi"]),)
    elif "chosen" not in document:  # else it is unknown: what was chosen is not available
        found[CONTAINER] = (NO_CONTAINER,)
    return found


def _image(container: Mapping[str, Any]) -> str:
    return f"{container.get('image')}\0{container.get('digest')}"


def _names_of_images(contents: Contents) -> dict[str, str]:
    """Image -> its name, with digits of its digest where another image has that name."""
    images = {
        _image(container): (str(container.get("image")), str(container.get("digest") or "").removeprefix("sha256:"))
        for document in contents.environments.values()
        if isinstance(container := document.get(CONTAINER), Mapping)
    }
    times = Counter(name for name, _ in images.values())
    return {key: name if times[name] == 1 else f"{name} {digest[:_DIGITS]}" for key, (name, digest) in images.items()}


_VM = ENVIRONMENT_PREFIX + VM
_OF_CONTAINERS = (ENVIRONMENT_PREFIX + CONTAINER_RUNTIME, ENVIRONMENT_PREFIX + CONTAINER_MPI)


class Comparisons(Frozen):
    """Comparisons, of two sides or along an axis; `screen` is None if nothing was screened for outliers."""

    compared: tuple[Compared, ...] = ()
    screen: ScreenResult | None = None

    def __repr__(self) -> str:
        screened = ", a screen for outliers" if self.screen is not None else ""
        return f"<{verdicts_text(one for own in self.compared for one in own.comparisons)}{screened}>"

    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each comparison (model/results/rows.py)."""
        return [row for one in self.compared for row in one.rows()]


def compare_along(contents: Contents, along: str, given: float | None, *, equivalence: bool = False) -> Comparisons:
    """The comparisons along the axis or, for `repeat`, `rank` and `pair`, the outliers.

    `given` is the margin, of `equivalence` or not; None: that of a study which asks for equivalence along the axis,
    else the default.

    The baseline is that of a study in the folder with this axis; else the smallest value, the first in alphabetical
    order, false, or no container. Raises UnknownNameError if nothing varies along the axis.
    """
    margin = DEFAULT_MARGIN if given is None else given
    if along in SCREENS:
        return Comparisons(screen=ScreenResult(outliers_along(contents, along, margin)))
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
            kept,
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
    by_machine = grouped((contents.experiments[key].machine, key) for key in found)
    if along in (SYSTEM, _VM):  # each of its values is another machine
        by_machine = {next(iter(by_machine)): list(found)}
    return [
        _as_study(contents, along, machine, {key: found[key] for key in keys}, others)
        for machine, keys in by_machine.items()
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


def _order(along: str) -> Callable[[Value | None], tuple[object, ...]]:
    """The order of an axis, whose first value is the baseline: without a container, before any image; unset first, then
    numbers (false before true), then text."""
    first = NO_CONTAINER if along == ENVIRONMENT_PREFIX + CONTAINER else None

    def rank(value: Value | None) -> tuple[object, ...]:
        is_word = isinstance(value, str | tuple)
        is_other = first is not None and value != first
        return is_other, value is not None, is_word, (str(value) if is_word else value) or 0

    return rank
