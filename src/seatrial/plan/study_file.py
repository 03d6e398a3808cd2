"""A study file, read and checked: YAML text -> a `Study`, or the faults, each with file, line and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial as partial_of

from seatrial.errors import PlaceError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import ParameterKind, Value
from seatrial.model.benchmark.power import is_of_power
from seatrial.model.frozen import Frozen
from seatrial.model.study.result import workers_of
from seatrial.model.study.study import (
    POWER,
    SYSTEM,
    Axis,
    BestOf,
    Compare,
    RepeatPolicy,
    Scaling,
    Study,
    StudyBenchmark,
    is_of_environment,
)
from seatrial.model.units import labelled_quantity
from seatrial.plan.axis_values import (
    alike,
    axis_value,
    check_axis_name,
    concerns,
    parameters_named,
    unknown_name,
)
from seatrial.plan.combinations import BENCHMARK, MOST_COMBINATIONS, combinations, combinations_at_most
from seatrial.plan.file_model import Faults
from seatrial.plan.files import MAX_BYTES, Document, KeyPath, YamlNode, read_yaml
from seatrial.plan.study_axes import entries_of, fixed_and_axes, items_of, known_benchmarks
from seatrial.plan.study_model import CompareModel, StudyModel

__all__ = ["MAX_BYTES", "read_study"]

_MOST_KINDS_OF_EXCLUDE = 64
NEEDS_NUMBERS = "scaling needs an axis of numbers, such as threads: [1, 2, 4]"
_Partial = dict[str, Value | None]


def read_study(data: bytes, file: str) -> Study:
    """The study that a file holds; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, contains unknown names,
    or contradicts itself.
    """
    document = read_yaml(data, file)
    faults = Faults()
    model: StudyModel | None = None
    with faults.part():
        model = StudyModel.of(document)
    benchmarks = known_benchmarks(document, faults)
    fixed, axes = fixed_and_axes(document, benchmarks, faults)
    if model is None:
        raise PlaceError.of(faults.found)
    context = _Context(document, model, benchmarks, axes, faults, is_sound=not faults.found)
    zips, excluded, included = context.zips(), context.excluded(), context.included()
    compare, scaling, best_of = context.compare(), context.scaling(), context.best_of()
    for key in ("probes", "references"):
        _refuse_repetition(document, key, faults)
    faults.found = [fault for fault in faults.found if not isinstance(fault, _Follows)]
    faults.raise_all()
    repeat = model.repeat
    study = Study(
        name=model.study,
        question=model.question,
        benchmarks=tuple(StudyBenchmark(benchmark.name, fixed[benchmark.name]) for benchmark in benchmarks),
        axes=tuple(axes.values()),
        zips=zips,
        exclude=excluded,
        include=included,
        compare=compare,
        scaling=scaling,
        best_of=best_of,
        repeat=RepeatPolicy() if repeat is None else RepeatPolicy(repeat.precision, repeat.budget, repeat.max),
        probes=model.probes,
        references=model.references,
    )
    _refuse_without_combinations(document, study)
    return study


class _Follows(PlaceError):
    """It follows from another fault, which is reported: an axis is unknown because its name is wrong elsewhere."""


class _Context(Frozen):
    """A study file, with its benchmarks and axes."""

    document: Document
    model: StudyModel
    benchmarks: Sequence[Benchmark]
    axes: Mapping[str, Axis]
    faults: Faults
    is_sound: bool
    """Whether the benchmarks, their parameters and the axes have no fault."""

    def unknown(self, path: KeyPath, what: str, name: str, known: Iterable[str]) -> PlaceError:
        """The error of a name that is unknown, unless that may follow from another fault."""
        if not self.is_sound:
            return _Follows(self.document.file, None, name)
        return unknown_name(self.document, path, what, name, known)

    def axis(self, path: KeyPath, name: str) -> Axis:
        """The axis of that name. Raises UsageError with the nearest names."""
        if name not in self.axes:
            raise self.unknown(path, "axis", name, self.axes)
        return self.axes[name]

    def varied_axis(self, path: KeyPath, name: str) -> Axis:
        """The same; it has two values or more."""
        axis = self.axis(path, name)
        if len(axis.values) < 2:
            raise self.document.refuse(path, f"{axis.name} has only one value", "give it at least two")
        return axis

    def concerned(self, names: Sequence[str]) -> list[Benchmark]:
        """The benchmarks that all these axes apply to."""
        return [benchmark for benchmark in self.benchmarks if all(concerns(name, benchmark) for name in names)]

    def benchmark(self, path: KeyPath, node: YamlNode) -> str:
        """A benchmark of the study, by its name."""
        names = [benchmark.name for benchmark in self.benchmarks]
        if not isinstance(node.value, str) or node.value not in names:
            raise self.unknown(path, "benchmark in this study", node.written, names)
        return node.value

    def figure(self, path: KeyPath, name: str, benchmarks: Sequence[Benchmark]) -> str:
        """A figure of one of these benchmarks, or the main figure of the one of that name. Raises UsageError with the
        nearest names."""
        for benchmark in benchmarks:
            if benchmark.name == name:
                try:
                    return benchmark.main_figure().name
                except UsageError as error:
                    raise self.document.refuse(path, error.message, error.todo.replace(f"{name}:", "")) from None
        known = [figure.name for benchmark in benchmarks for figure in benchmark.figures]
        if name not in known:
            what = f"figure of {' or '.join(benchmark.name for benchmark in benchmarks)}"
            raise self.unknown(path, what, name, known)
        named = [figure for benchmark in benchmarks for figure in benchmark.figures if figure.name == name]
        if all(map(is_of_power, named)) and POWER not in self.model.probes:
            raise self.document.refuse(path, f"{name} needs the probe power", "add it to the study: probes: [power]")
        return name

    def zips(self) -> tuple[tuple[str, ...], ...]:
        """The axes that advance together."""
        taken: set[str] = set()
        for position, names in enumerate(self.model.zip):
            with self.faults.part():
                path: KeyPath = ("zip", position)
                for within, name in enumerate(names):
                    self.axis((*path, within), name)
                    if name in taken:
                        todo = "an axis can be in one list only"
                        raise self.document.refuse((*path, within), f"{name} is listed twice", todo)
                    taken.add(name)
                sizes = {name: len(self.axes[name].values) for name in names}
                if len(set(sizes.values())) > 1:
                    counts = ", ".join(f"{name} has {size}" for name, size in sizes.items())
                    seen = f"these axes have different numbers of values: {counts}"
                    raise self.document.refuse(path, seen, "give each the same number")
        return self.model.zip

    def excluded(self) -> tuple[_Partial, ...]:
        """The partial parameter sets to leave out."""
        partial = self.faults.each(
            partial_of(self._excluded, position, node)
            for position, node in enumerate(items_of(self.document, "exclude"))
        )
        if len({tuple(sorted(point)) for point in partial}) > _MOST_KINDS_OF_EXCLUDE:
            todo = f"use at most {_MOST_KINDS_OF_EXCLUDE}"
            raise self.document.refuse(("exclude",), "too many different sets of axes", todo)
        return tuple(partial)

    def _excluded(self, position: int, node: YamlNode) -> _Partial:
        point: _Partial = {}
        for name, value_node in node.entries.items():
            path: KeyPath = ("exclude", position, name)
            if name == BENCHMARK:
                point[name] = self.benchmark(path, value_node)
                continue
            if name not in self.axes:
                raise self.unknown(path, "axis", name, [*self.axes, BENCHMARK])
            value = axis_value(self.document, path, name, value_node, self.benchmarks)
            if not any(alike(value, other) for other in self.axes[name].values):
                seen = f"{value_node.shown()} is not a value of this axis"
                raise self.document.refuse(path, seen, _values_of(self.document, name))
            point[name] = value
        return point

    def included(self) -> tuple[_Partial, ...]:
        """The partial parameter sets to add."""
        if not self.is_sound:
            return ()
        entries = enumerate(items_of(self.document, "include"))
        return tuple(self.faults.each(partial_of(self._included, position, node) for position, node in entries))

    def _included(self, position: int, node: YamlNode) -> _Partial:
        point: _Partial = {}
        chosen: Sequence[Benchmark] = self.benchmarks
        if BENCHMARK in node.entries:
            named = self.benchmark(("include", position, BENCHMARK), node.entries[BENCHMARK])
            chosen = [benchmark for benchmark in self.benchmarks if benchmark.name == named]
        for name, value_node in node.entries.items():
            path: KeyPath = ("include", position, name)
            if name == BENCHMARK:
                point[name] = chosen[0].name
                continue
            check_axis_name(self.document, path, name, chosen)
            point[name] = axis_value(self.document, path, name, value_node, chosen)
        if not any(all(concerns(name, b) for name in point if name != BENCHMARK) for b in chosen):
            names = " and ".join(name for name in point if name != BENCHMARK)
            raise self.document.refuse(
                ("include", position), f"no benchmark of the study has {names}", "split the entry"
            )
        self._refuse_without_system(position, point)
        return point

    def _refuse_without_system(self, position: int, point: Mapping[str, Value | None]) -> None:
        """Raise UsageError unless an entry of `include` is measured on a system of the axis, where there is this
        axis."""
        systems = self.axes[SYSTEM].values if SYSTEM in self.axes else ()
        if point.get(SYSTEM) in systems or (not systems and SYSTEM not in point):
            return
        path: KeyPath = ("include", position)
        if not systems:
            raise self.document.refuse((*path, SYSTEM), "system is not an axis of this study", "make it one")
        todo = f"add system: one of {', '.join(map(str, systems))}"
        raise self.document.refuse(path, "the entry does not say on which system of the axis it is", todo)

    def compare(self) -> Compare | None:
        """The comparison; the baseline is the first value of the axis unless the file names one."""
        with self.faults.part():
            return self._compare(self.model.compare)
        return None

    def _compare(self, model: CompareModel | str | None) -> Compare | None:
        if model is None:
            return None
        if isinstance(model, str):
            axis = self.varied_axis(("compare",), model)
            return Compare(axis.name, axis.values[0])
        axis = self.varied_axis(("compare", "along"), model.along)
        concerned = self.concerned([axis.name])
        path: KeyPath = ("compare", "baseline")
        node = self.document.node(path)
        baseline = axis.values[0] if node is None else axis_value(self.document, path, axis.name, node, concerned)
        if node is not None and not any(alike(baseline, value) for value in axis.values):
            shown = ", ".join(map(_written, axis.values[:20]))
            raise self.document.refuse(path, f"{node.shown()} is not a value of {axis.name}", f"its values: {shown}")
        figures = self.faults.each(
            partial_of(self.figure, ("compare", "figures", position), name, concerned)
            for position, name in enumerate(model.figures)
        )
        margin, asks_equivalence = _margin(model)
        return Compare(axis.name, baseline, margin, tuple(dict.fromkeys(figures)), asks_equivalence)

    def scaling(self) -> Scaling | None:
        """Scaling along a numeric axis."""
        if self.model.scaling is None:
            return None
        with self.faults.part():
            path: KeyPath = ("scaling", "along")
            axis = self.varied_axis(path, self.model.scaling.along)
            for value in axis.values:
                if not self._is_number(axis.name, value):
                    raise self.document.refuse(path, not_a_number(axis.name, _written(value)), NEEDS_NUMBERS)
            return Scaling(self.model.scaling.kind, axis.name)
        return None

    def _is_number(self, name: str, value: Value | None) -> bool:
        """Whether a value is a number, as text if it is that of an environment variable. A word such as "all" of a
        numeric parameter may become one on the machine; whether all are above 0 is checked there
        (`refuse_no_scaling`)."""
        if isinstance(value, str) and not is_of_environment(name):
            numeric = (ParameterKind.INTEGER, ParameterKind.BYTES)
            return any(p.kind in numeric for _, p in parameters_named(name, self.benchmarks))
        return workers_of(value) is not None or (value == 0 and not isinstance(value, bool))

    def best_of(self) -> BestOf | None:
        """The sweep whose best point is reported."""
        if self.model.best_of is None:
            return None
        over = self.model.best_of.over
        with self.faults.part():
            for position, name in enumerate(over):
                path: KeyPath = ("best_of", "over", position)
                self.axis(path, name)
                if name in over[:position]:
                    raise self.document.refuse(path, f"{name} is listed twice", "keep one of them")
            concerned = self.concerned(over)
            if not concerned:
                seen = f"no benchmark of the study has all of {', '.join(over)}"
                raise self.document.refuse(("best_of", "over"), seen, "name axes of one benchmark")
            figure = self.figure(("best_of", "figure"), self.model.best_of.figure, concerned)
            return BestOf(over, figure, self._limits(self.model.best_of.at_most or {}, concerned))
        return None

    def _limits(self, given: Mapping[str, object], benchmarks: Sequence[Benchmark]) -> dict[str, float | None]:
        """Figure -> the largest value that a contender may have, in SI."""
        limits: dict[str, float | None] = {}
        for written, value in given.items():
            path: KeyPath = ("best_of", "at_most", written)
            name = self.figure(path, written, benchmarks)
            unit = next(f.unit for benchmark in benchmarks for f in benchmark.figures if f.name == name)
            try:
                found = labelled_quantity(str(value))
            except UsageError as error:
                raise self.document.refuse(path, error.message, error.todo) from None
            if found.unit != unit:
                raise self.document.refuse(path, f"{value} is not in {unit}", f"give the value of {name} with its unit")
            limits[name] = found.value
        return limits


def _margin(model: CompareModel) -> tuple[float, bool]:
    """The margin, and whether it is one of equivalence. A study has one: a difference beyond the margin, but within the
    equivalence, would be both."""
    if model.equivalence is None:
        return model.margin, False
    if "margin" in model.values and model.margin != model.equivalence:
        seen, todo = "equivalence is given beside another margin", "leave out `margin`: this one counts"
        raise model.refuse(("equivalence",), seen, todo)
    return model.equivalence, True


def not_a_number(along: str, value: str) -> str:
    """Why nothing scales along an axis."""
    return f"{along} has the value {value}, which is not a number above 0"


def _values_of(document: Document, name: str) -> str:
    """The values of an axis as written in the file."""
    node = entries_of(document, "axes").get(name)
    for own in entries_of(document, "benchmarks").values():
        node = node or own.entries.get(name)
    shown = [item.shown() for item in node.items] if node is not None else []
    return f"its values: {', '.join(shown[:20])}{', ...' if len(shown) > 20 else ''}"


def _written(value: Value | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, tuple) else str(value)


def _refuse_repetition(document: Document, key: str, faults: Faults) -> None:
    """Collect the entries of a list that are there twice."""
    entries = [node.written for node in items_of(document, key)]
    for position, entry in enumerate(entries):
        if entry in entries[:position]:
            faults.found.append(document.refuse((key, position), f"{entry} is listed twice", "keep one of them"))


def _refuse_without_combinations(document: Document, study: Study) -> None:
    number = combinations_at_most(study)
    if number > MOST_COMBINATIONS:
        todo = f"a study has at most {MOST_COMBINATIONS}: use fewer values, or `zip` so that axes advance together"
        raise document.refuse(("axes",), f"the axes make {number} combinations", todo)
    if next(iter(combinations(study)), None) is None:
        raise document.refuse(("exclude",), "no experiments are left", "exclude less")
