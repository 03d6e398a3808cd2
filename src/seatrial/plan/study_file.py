"""A study file, read and checked: YAML text -> a `Study`, or one clear message with file, line and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import ParameterKind, Value
from seatrial.model.frozen import Frozen
from seatrial.model.study.result import workers_of
from seatrial.model.study.study import (
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
from seatrial.plan.axis_values import (
    alike,
    axis_value,
    can_be_studied,
    check_axis_name,
    concerns,
    is_axis,
    parameter_value,
    parameters_named,
    unknown_name,
)
from seatrial.plan.combinations import BENCHMARK, MOST_COMBINATIONS, combinations, combinations_at_most
from seatrial.plan.files import MAX_BYTES, Document, KeyPath, YamlNode, read_yaml
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
    model = StudyModel.of(document)
    benchmarks = _benchmarks(document)
    fixed, axes = _fixed_and_axes(document, benchmarks)
    context = _Context(document, model, benchmarks, axes)
    repeat = model.repeat
    study = Study(
        name=model.study,
        question=model.question,
        benchmarks=tuple(StudyBenchmark(benchmark.name, fixed[benchmark.name]) for benchmark in benchmarks),
        axes=tuple(axes.values()),
        zips=context.zips(),
        exclude=context.excluded(),
        include=context.included(),
        compare=context.compare(),
        scaling=context.scaling(),
        best_of=context.best_of(),
        repeat=RepeatPolicy() if repeat is None else RepeatPolicy(repeat.precision, repeat.budget, repeat.max),
        probes=_without_repetition(document, "probes", model.probes),
        references=_without_repetition(document, "references", model.references),
    )
    _refuse_without_combinations(document, study)
    return study


def _benchmarks(document: Document) -> list[Benchmark]:
    known = registry()
    found = []
    for name in document.root.entries["benchmarks"].entries:
        if name not in known:
            studied = [other for other, benchmark in known.items() if can_be_studied(benchmark)]
            raise unknown_name(document, ("benchmarks", name), "benchmark", name, studied)
        if not can_be_studied(known[name]):
            todo = "import them with `seatrial import`; a study contains only benchmarks that seatrial runs"
            raise document.refuse(("benchmarks", name), "its figures come from the result files of other tools", todo)
        found.append(known[name])
    return found


def _fixed_and_axes(
    document: Document, benchmarks: Sequence[Benchmark]
) -> tuple[dict[str, dict[str, Value]], dict[str, Axis]]:
    """The parameters that have one value, by benchmark, and the axes by name, in the order of the file."""
    fixed: dict[str, dict[str, Value]] = {}
    axes: dict[str, Axis] = {}
    for benchmark in benchmarks:
        own = fixed.setdefault(benchmark.name, {})
        for name, node in document.root.entries["benchmarks"].entries[benchmark.name].entries.items():
            path: KeyPath = ("benchmarks", benchmark.name, name)
            known = {parameter.name: parameter for parameter in benchmark.parameters}
            if name not in known:
                raise unknown_name(document, path, f"parameter of {benchmark.name}", name, known)
            if is_axis(known[name], node):
                axis = _axis(document, path, name, node, [benchmark])
                _refuse_ambiguous(document, path, axis, axes.get(name), benchmarks)
                axes[name] = axis
            else:
                own[name] = parameter_value(document, path, benchmark, known[name], node)
    for name, node in _entries(document, "axes").items():
        path = ("axes", name)
        check_axis_name(document, path, name, benchmarks)
        if name in axes:
            raise document.refuse(path, "it is already a list under benchmarks", "keep one of the two")
        for benchmark in benchmarks:
            if name in fixed[benchmark.name]:
                seen = f"it is varied here and has one value under benchmarks.{benchmark.name}"
                raise document.refuse(path, seen, "keep one of the two")
        axes[name] = _axis(document, path, name, node, benchmarks)
    return fixed, axes


def _entries(document: Document, key: str) -> dict[str, YamlNode]:
    node = document.root.entries.get(key)
    return {} if node is None else node.entries


def _items(document: Document, key: str) -> list[YamlNode]:
    node = document.root.entries.get(key)
    return [] if node is None else node.items


def _refuse_ambiguous(
    document: Document, path: KeyPath, axis: Axis, before: Axis | None, benchmarks: Sequence[Benchmark]
) -> None:
    """Raise UsageError if a list under one benchmark leaves open whether the parameter varies for another one."""
    if before is not None:
        if len(before.values) != len(axis.values) or not all(map(alike, before.values, axis.values)):
            seen = f"{axis.name} has other values under another benchmark"
            raise document.refuse(path, seen, f"give the same list to both, once: axes: {{{axis.name}: [...]}}")
        return
    for benchmark, _ in parameters_named(axis.name, benchmarks):
        node = document.root.entries["benchmarks"].entries[benchmark.name].entries.get(axis.name)
        if benchmark.name != path[1] and (node is None or not node.items):
            raise document.refuse(
                path,
                f"{benchmark.name} has {axis.name} too, and the file does not state whether it varies there",
                f"to vary it for all, use axes: {{{axis.name}: [...]}}; otherwise write two studies",
            )


def _axis(document: Document, path: KeyPath, name: str, node: YamlNode, benchmarks: Sequence[Benchmark]) -> Axis:
    """An axis with its values checked; duplicates are refused."""
    if not node.items:
        raise document.refuse(path, "it has no values", "write them as a list, such as [1, 2]")
    seen: dict[tuple[str, object], int] = {}
    values = []
    for position, item in enumerate(node.items):
        value = axis_value(document, (*path, position), name, item, benchmarks)
        key = (type(value).__name__, value)
        if key in seen:
            raise document.refuse(
                (*path, position), f"{item.shown()} is listed twice (first on line {seen[key]})", "keep one of them"
            )
        seen[key] = item.line
        values.append(value)
    return Axis(name, tuple(values))


class _Context(Frozen):
    """A study file, with its benchmarks and axes."""

    document: Document
    model: StudyModel
    benchmarks: Sequence[Benchmark]
    axes: Mapping[str, Axis]

    def axis(self, path: KeyPath, name: str) -> Axis:
        """The axis of that name. Raises UsageError with the nearest names."""
        if name not in self.axes:
            raise unknown_name(self.document, path, "axis", name, self.axes)
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
            raise unknown_name(self.document, path, "benchmark in this study", node.written, names)
        return node.value

    def figure(self, path: KeyPath, name: str, benchmarks: Sequence[Benchmark]) -> str:
        """A figure of one of these benchmarks. Raises UsageError with the nearest names."""
        known = [figure.name for benchmark in benchmarks for figure in benchmark.figures]
        if name not in known:
            what = f"figure of {' or '.join(benchmark.name for benchmark in benchmarks)}"
            raise unknown_name(self.document, path, what, name, known)
        return name

    def zips(self) -> tuple[tuple[str, ...], ...]:
        """The axes that advance together."""
        taken: set[str] = set()
        for position, names in enumerate(self.model.zip):
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
        partial = []
        for position, node in enumerate(_items(self.document, "exclude")):
            point: _Partial = {}
            for name, value_node in node.entries.items():
                path: KeyPath = ("exclude", position, name)
                if name == BENCHMARK:
                    point[name] = self.benchmark(path, value_node)
                    continue
                if name not in self.axes:
                    raise unknown_name(self.document, path, "axis", name, [*self.axes, BENCHMARK])
                value = axis_value(self.document, path, name, value_node, self.benchmarks)
                if not any(alike(value, other) for other in self.axes[name].values):
                    seen = f"{value_node.shown()} is not a value of this axis"
                    raise self.document.refuse(path, seen, _values_of(self.document, name))
                point[name] = value
            partial.append(point)
        if len({tuple(sorted(point)) for point in partial}) > _MOST_KINDS_OF_EXCLUDE:
            todo = f"use at most {_MOST_KINDS_OF_EXCLUDE}"
            raise self.document.refuse(("exclude",), "too many different sets of axes", todo)
        return tuple(partial)

    def included(self) -> tuple[_Partial, ...]:
        """The partial parameter sets to add."""
        partial = []
        for position, node in enumerate(_items(self.document, "include")):
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
                seen = f"no benchmark of the study has {names}"
                raise self.document.refuse(("include", position), seen, "split the entry")
            self._refuse_without_system(position, point)
            partial.append(point)
        return tuple(partial)

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
        model = self.model.compare
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
        figures = [
            self.figure(("compare", "figures", position), name, concerned)
            for position, name in enumerate(model.figures)
        ]
        margin, asks_equivalence = _margin(model)
        return Compare(axis.name, baseline, margin, tuple(dict.fromkeys(figures)), asks_equivalence)

    def scaling(self) -> Scaling | None:
        """Scaling along a numeric axis."""
        if self.model.scaling is None:
            return None
        path: KeyPath = ("scaling", "along")
        axis = self.varied_axis(path, self.model.scaling.along)
        for value in axis.values:
            if not self._is_number(axis.name, value):
                raise self.document.refuse(path, not_a_number(axis.name, _written(value)), NEEDS_NUMBERS)
        return Scaling(self.model.scaling.kind, axis.name)

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
        for position, name in enumerate(over):
            path: KeyPath = ("best_of", "over", position)
            self.axis(path, name)
            if name in over[:position]:
                raise self.document.refuse(path, f"{name} is listed twice", "keep one of them")
        concerned = self.concerned(over)
        if not concerned:
            seen = f"no benchmark of the study has all of {', '.join(over)}"
            raise self.document.refuse(("best_of", "over"), seen, "name axes of one benchmark")
        return BestOf(over, self.figure(("best_of", "figure"), self.model.best_of.figure, concerned))


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
    node = _entries(document, "axes").get(name)
    for own in _entries(document, "benchmarks").values():
        node = node or own.entries.get(name)
    shown = [item.shown() for item in node.items] if node is not None else []
    return f"its values: {', '.join(shown[:20])}{', ...' if len(shown) > 20 else ''}"


def _written(value: Value | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, tuple) else str(value)


def _without_repetition(document: Document, key: str, entries: tuple[str, ...]) -> tuple[str, ...]:
    """The entries of a list. Raises UsageError if one is there twice."""
    for position, entry in enumerate(entries):
        if entry in entries[:position]:
            raise document.refuse((key, position), f"{entry} is listed twice", "keep one of them")
    return entries


def _refuse_without_combinations(document: Document, study: Study) -> None:
    number = combinations_at_most(study)
    if number > MOST_COMBINATIONS:
        todo = f"a study has at most {MOST_COMBINATIONS}: use fewer values, or `zip` so that axes advance together"
        raise document.refuse(("axes",), f"the axes make {number} combinations", todo)
    if next(iter(combinations(study)), None) is None:
        raise document.refuse(("exclude",), "no experiments are left", "exclude less")
