"""A study file, read and checked: YAML text -> a `Study`, or one clear message with file, line and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Value
from seatrial.model.study.study import SYSTEM, Axis, RepeatPolicy, Study, StudyBenchmark
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
from seatrial.plan.study_model import StudyModel
from seatrial.plan.study_sections import Context, read_best_of, read_compare, read_scaling
from seatrial.plan.study_yaml import MAX_BYTES, Document, Node, Path, read_yaml

__all__ = ["MAX_BYTES", "read_study"]

_MOST_KINDS_OF_EXCLUDE = 64


def read_study(data: bytes, file: str) -> Study:
    """The study that a file holds; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, contains unknown names,
    or contradicts itself.
    """
    document = read_yaml(data, file)
    model = StudyModel.of(document)
    benchmarks = _benchmarks(document)
    fixed, axes = _fixed_and_axes(document, benchmarks)
    zips = _zips(document, model, axes)
    context = Context(document, benchmarks, axes)
    repeat = model.repeat
    study = Study(
        name=model.study,
        question=model.question,
        benchmarks=tuple(StudyBenchmark(benchmark.name, fixed[benchmark.name]) for benchmark in benchmarks),
        axes=tuple(axes),
        zips=zips,
        exclude=_excluded(document, benchmarks, axes),
        include=_included(document, benchmarks, axes),
        compare=read_compare(context, model),
        scaling=read_scaling(context, model),
        best_of=read_best_of(context, model),
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
) -> tuple[dict[str, dict[str, Value]], list[Axis]]:
    """The parameters that have one value, by benchmark, and the axes in the order of the file."""
    fixed: dict[str, dict[str, Value]] = {}
    axes: dict[str, Axis] = {}
    for benchmark in benchmarks:
        own = fixed.setdefault(benchmark.name, {})
        for name, node in document.root.entries["benchmarks"].entries[benchmark.name].entries.items():
            path: Path = ("benchmarks", benchmark.name, name)
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
    return fixed, list(axes.values())


def _entries(document: Document, key: str) -> dict[str, Node]:
    node = document.root.entries.get(key)
    return {} if node is None else node.entries


def _items(document: Document, key: str) -> list[Node]:
    node = document.root.entries.get(key)
    return [] if node is None else node.items


def _refuse_ambiguous(
    document: Document, path: Path, axis: Axis, before: Axis | None, benchmarks: Sequence[Benchmark]
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


def _axis(document: Document, path: Path, name: str, node: Node, benchmarks: Sequence[Benchmark]) -> Axis:
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


def _zips(document: Document, model: StudyModel, axes: Sequence[Axis]) -> tuple[tuple[str, ...], ...]:
    known = {axis.name: axis for axis in axes}
    zips = model.zip
    taken: set[str] = set()
    for position, names in enumerate(zips):
        path: Path = ("zip", position)
        for within, name in enumerate(names):
            if name not in known:
                raise unknown_name(document, (*path, within), "axis", name, known)
            if name in taken:
                raise document.refuse((*path, within), f"{name} is listed twice", "an axis can be in one list only")
            taken.add(name)
        sizes = {name: len(known[name].values) for name in names}
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{name} has {size}" for name, size in sizes.items())
            raise document.refuse(
                path, f"these axes have different numbers of values: {counts}", "give each the same number"
            )
    return zips


def _excluded(
    document: Document, benchmarks: Sequence[Benchmark], axes: Sequence[Axis]
) -> tuple[dict[str, Value | None], ...]:
    known = {axis.name: axis for axis in axes}
    partial = []
    for position, node in enumerate(_items(document, "exclude")):
        point: dict[str, Value | None] = {}
        for name, value_node in node.entries.items():
            path: Path = ("exclude", position, name)
            if name == BENCHMARK:
                point[name] = _benchmark_named(document, path, value_node, benchmarks)
                continue
            if name not in known:
                raise unknown_name(document, path, "axis", name, [*known, BENCHMARK])
            value = axis_value(document, path, name, value_node, benchmarks)
            if not any(alike(value, other) for other in known[name].values):
                raise document.refuse(
                    path, f"{value_node.shown()} is not a value of this axis", _values_of(document, name)
                )
            point[name] = value
        partial.append(point)
    if len({tuple(sorted(point)) for point in partial}) > _MOST_KINDS_OF_EXCLUDE:
        raise document.refuse(("exclude",), "too many different sets of axes", f"use at most {_MOST_KINDS_OF_EXCLUDE}")
    return tuple(partial)


def _values_of(document: Document, name: str) -> str:
    """The values of an axis as written in the file."""
    node = _entries(document, "axes").get(name)
    for own in _entries(document, "benchmarks").values():
        node = node or own.entries.get(name)
    shown = [item.shown() for item in node.items] if node is not None else []
    return f"its values: {', '.join(shown[:20])}{', ...' if len(shown) > 20 else ''}"


def _included(
    document: Document, benchmarks: Sequence[Benchmark], axes: Sequence[Axis]
) -> tuple[dict[str, Value | None], ...]:
    partial = []
    for position, node in enumerate(_items(document, "include")):
        point: dict[str, Value | None] = {}
        chosen: Sequence[Benchmark] = benchmarks
        if BENCHMARK in node.entries:
            path: Path = ("include", position, BENCHMARK)
            named = _benchmark_named(document, path, node.entries[BENCHMARK], benchmarks)
            chosen = [benchmark for benchmark in benchmarks if benchmark.name == named]
        for name, value_node in node.entries.items():
            path = ("include", position, name)
            if name == BENCHMARK:
                point[name] = chosen[0].name
                continue
            check_axis_name(document, path, name, chosen)
            point[name] = axis_value(document, path, name, value_node, chosen)
        if not any(all(concerns(name, b) for name in point if name != BENCHMARK) for b in chosen):
            names = " and ".join(name for name in point if name != BENCHMARK)
            raise document.refuse(("include", position), f"no benchmark of the study has {names}", "split the entry")
        _refuse_without_system(document, position, point, axes)
        partial.append(point)
    return tuple(partial)


def _refuse_without_system(
    document: Document, position: int, point: Mapping[str, Value | None], axes: Sequence[Axis]
) -> None:
    """Raise UsageError unless an entry of `include` is measured on a system of the axis, where there is this axis."""
    systems = next((axis.values for axis in axes if axis.name == SYSTEM), ())
    if point.get(SYSTEM) in systems or (not systems and SYSTEM not in point):
        return
    if not systems:
        raise document.refuse(("include", position, SYSTEM), "system is not an axis of this study", "make it one")
    todo = f"add system: one of {', '.join(map(str, systems))}"
    raise document.refuse(("include", position), "the entry does not say on which system of the axis it is", todo)


def _benchmark_named(document: Document, path: Path, node: Node, benchmarks: Sequence[Benchmark]) -> str:
    names = [benchmark.name for benchmark in benchmarks]
    if not isinstance(node.value, str) or node.value not in names:
        raise unknown_name(document, path, "benchmark in this study", node.written, names)
    return node.value


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
