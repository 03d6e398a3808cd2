"""The benchmarks, fixed parameters and axes of a study file."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Value
from seatrial.model.study.study import Axis
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
from seatrial.plan.file_model import Faults
from seatrial.plan.files import Document, KeyPath, YamlNode


def known_benchmarks(document: Document, faults: Faults) -> list[Benchmark]:
    """Those of the file that are known; the others are faults."""
    known = registry()
    found = []
    for name in entries_of(document, "benchmarks"):
        with faults.part():
            if name not in known:
                studied = [other for other, benchmark in known.items() if can_be_studied(benchmark)]
                raise unknown_name(document, ("benchmarks", name), "benchmark", name, studied)
            if not can_be_studied(known[name]):
                todo = "import them with `seatrial import`; a study contains only benchmarks that seatrial runs"
                raise document.refuse(
                    ("benchmarks", name), "its figures come from the result files of other tools", todo
                )
            found.append(known[name])
    return found


def fixed_and_axes(
    document: Document, benchmarks: Sequence[Benchmark], faults: Faults
) -> tuple[dict[str, dict[str, Value]], dict[str, Axis]]:
    """The parameters that have one value, by benchmark, and the axes by name, in the order of the file."""
    fixed: dict[str, dict[str, Value]] = {}
    axes: dict[str, Axis] = {}
    refused = tuple(fault.path for fault in faults.found)
    are_known = len(benchmarks) == len(entries_of(document, "benchmarks")) > 0
    for benchmark in benchmarks:
        own = fixed.setdefault(benchmark.name, {})
        known = {parameter.name: parameter for parameter in benchmark.parameters}
        for name, node in entries_of(document, "benchmarks")[benchmark.name].entries.items():
            path: KeyPath = ("benchmarks", benchmark.name, name)
            if _is_refused(path, refused):
                continue
            with faults.part():
                if name not in known:
                    raise unknown_name(document, path, f"parameter of {benchmark.name}", name, known)
                if is_axis(known[name], node):
                    axis = _axis(document, path, name, node, [benchmark])
                    _refuse_ambiguous(document, path, axis, axes.get(name), benchmarks)
                    axes[name] = axis
                else:
                    own[name] = parameter_value(document, path, benchmark, known[name], node)
    for name, node in entries_of(document, "axes").items():
        path = ("axes", name)
        if _is_refused(path, refused) or not (are_known or any(concerns(name, benchmark) for benchmark in benchmarks)):
            continue
        with faults.part():
            check_axis_name(document, path, name, benchmarks)
            if name in axes:
                raise document.refuse(path, "it is already a list under benchmarks", "keep one of the two")
            for benchmark in benchmarks:
                if name in fixed[benchmark.name]:
                    seen = f"it is varied here and has one value under benchmarks.{benchmark.name}"
                    raise document.refuse(path, seen, "keep one of the two")
            axes[name] = _axis(document, path, name, node, benchmarks)
    return fixed, axes


def _is_refused(path: KeyPath, refused: Sequence[KeyPath]) -> bool:
    """Whether the value at a path, or a part of it, has a fault already."""
    return any(other[: len(path)] == path for other in refused)


def entries_of(document: Document, key: str) -> dict[str, YamlNode]:
    """The entries of a mapping of the file; none for anything else."""
    node = document.root.entries.get(key)
    return {} if node is None else node.entries


def items_of(document: Document, key: str) -> list[YamlNode]:
    """The items of a list of the file; none for anything else."""
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
