"""A study file, read and checked: YAML text -> `model.study.Study`, or one clear message with file, line and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seatrial.benchmarks import registry
from seatrial.errors import UsageError, did_you_mean, nearest_names
from seatrial.model.benchmark import Benchmark
from seatrial.model.parameter import Value
from seatrial.model.study import SYSTEM, Axis, RepeatPolicy, Study, StudyBenchmark
from seatrial.model.units import parse_seconds
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
from seatrial.plan.model_faults import nearest_choice
from seatrial.plan.study_sections import Context, read_best_of, read_compare, read_scaling, share
from seatrial.plan.study_yaml import MAX_BYTES, Document, Node, Path, read_yaml

if TYPE_CHECKING:
    from seatrial.plan.study_schema import StudyModel

__all__ = ["MAX_BYTES", "read_study"]

_MOST_KINDS_OF_EXCLUDE = 64


def read_study(data: bytes, file: str) -> Study:
    """The study that a file holds; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, contains unknown names,
    or contradicts itself.
    """
    document = read_yaml(data, file)
    model = _shape(document)
    benchmarks = _benchmarks(document)
    fixed, axes = _fixed_and_axes(document, benchmarks)
    zips = _zips(document, model, axes)
    context = Context(document, benchmarks, axes)
    study = Study(
        name=model.study,
        question=model.question.strip(),
        benchmarks=tuple(StudyBenchmark(benchmark.name, fixed[benchmark.name]) for benchmark in benchmarks),
        axes=tuple(axes),
        zips=zips,
        exclude=_excluded(document, benchmarks, axes),
        include=_included(document, benchmarks, axes),
        compare=read_compare(context, model),
        scaling=read_scaling(context, model),
        best_of=read_best_of(context, model),
        repeat=_repeat(document, model),
        probes=_without_repetition(document, "probes", model.probes),
        references=_without_repetition(document, "references", model.references),
    )
    _refuse_without_combinations(document, study)
    return study


def _shape(document: Document) -> StudyModel:
    """The document as a model. Raises UsageError for the first error in the file."""
    from pydantic import ValidationError

    from seatrial.plan.study_schema import StudyModel

    _refuse_number_as_name(document)
    try:
        return StudyModel.model_validate(document.root.plain())
    except ValidationError as error:
        faults = [(_path_of(document, fault), fault) for fault in error.errors(include_url=False)]
    misspelt = {
        (*place[:-1], *nearest_names(str(place[-1]), _keys(_place(place[:-1]))))
        for place, fault in faults
        if fault["type"] == "extra_forbidden"
    }
    innermost = [
        (place, fault)
        for place, fault in faults
        if not any(len(other) > len(place) and other[: len(place)] == place for other, _ in faults)
        and not (fault["type"] == "missing" and place in misspelt)
    ]
    raise min((_fault(document, place, fault) for place, fault in innermost), key=lambda found: found[0])[1]


def _refuse_number_as_name(document: Document) -> None:
    """A clearer message than the models give for `study: 2024`."""
    name = document.root.entries.get("study")
    if name is not None and name.is_scalar and not isinstance(name.value, str | None):
        raise document.refuse(("study",), f"{name.shown()} is not text", f"write it in quotes: study: '{name.written}'")


def _path_of(document: Document, fault: Any) -> Path:
    """The location of an error in the document: pydantic's location without the names of union members."""
    path: list[str | int] = []
    for step in fault["loc"]:
        if document.node((*path, step)) is not None:
            path.append(step)
    return (*path, fault["loc"][-1]) if fault["type"] == "missing" else tuple(path)


def _fault(document: Document, path: Path, fault: Any) -> tuple[tuple[int, int], UsageError]:
    """((line, order on that line), the message) of one error that pydantic reported."""
    last = str(path[-1]) if path else ""
    line = document.line(path)
    if fault["type"] == "missing":
        seen, todo = f"the key {last} is missing", f"{last} takes {_accepted(_place(path))}"
        return (line, 1), document.refuse(path[:-1], seen, todo, line)
    if fault["type"] == "extra_forbidden":
        keys = _keys(_place(path[:-1]))
        nearest = nearest_names(last, keys)
        todo = did_you_mean(nearest) if nearest else f"keys: {', '.join(keys)}"
        parent = document.node(path[:-1])
        line = parent.key_lines.get(last, line) if parent is not None else line
        return (line, 0), document.refuse(path, "unknown key", todo, line)
    node = document.node(path)
    seen = node.shown() if node is not None else "this"
    is_empty = node is not None and node.value in (None, "", [], {})
    what = "it is empty" if is_empty else f"it cannot be {seen}"
    todo = nearest_choice(fault, None if node is None else node.value) or f"it takes {_accepted(_place(path))}"
    return (line, 2), document.refuse(path, what, todo, line)


def _place(path: Path) -> tuple[str, ...]:
    """A path with "*" in place of names and positions that the user chooses."""
    steps = []
    for position, step in enumerate(path):
        chosen = isinstance(step, int) or (
            position > 0 and path[0] in ("benchmarks", "axes", "exclude", "include", "zip")
        )
        steps.append("*" if chosen else str(step))
    return tuple(steps)


def _accepted(place: tuple[str, ...]) -> str:
    from seatrial.plan.study_schema import ACCEPTED

    while ".".join(place) not in ACCEPTED:
        place = place[:-1]
    return ACCEPTED[".".join(place)]


def _keys(place: tuple[str, ...]) -> list[str]:
    """The known keys of a mapping."""
    from seatrial.plan.study_schema import ACCEPTED

    lead = "".join(f"{step}." for step in place)
    inner = [name.removeprefix(lead) for name in ACCEPTED if name and name.startswith(lead)]
    return [name for name in inner if "." not in name and name != "*"]


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
    zips = tuple(tuple(names) for names in model.zip or ())
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


def _repeat(document: Document, model: StudyModel) -> RepeatPolicy:
    if model.repeat is None:
        return RepeatPolicy()
    path: Path = ("repeat", "budget")
    try:
        budget_s = parse_seconds(model.repeat.budget)
    except UsageError as error:
        raise document.refuse(path, error.message, error.todo) from None
    if budget_s <= 0:
        raise document.refuse(path, f"{model.repeat.budget!r} is not a valid time", "give more than 0, such as 5min")
    precision = share(document, ("repeat", "precision"), model.repeat.precision)
    return RepeatPolicy(precision, budget_s, model.repeat.max)


def _without_repetition(document: Document, key: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """The entries of a list. Raises UsageError if one is there twice."""
    entries = tuple(given or ())
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
