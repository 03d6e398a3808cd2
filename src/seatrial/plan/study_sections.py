"""The sections `compare`, `scaling` and `best_of` of a study file, read and checked."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import ParameterKind, Value
from seatrial.model.frozen import Frozen
from seatrial.model.study.result import workers_of
from seatrial.model.study.study import Axis, BestOf, Compare, Scaling, is_of_environment
from seatrial.plan.axis_values import alike, axis_value, concerns, parameters_named, unknown_name
from seatrial.plan.study_model import CompareModel, StudyModel
from seatrial.plan.study_yaml import Document, Path


class Context(Frozen):
    """The file, with its benchmarks and axes."""

    document: Document
    benchmarks: Sequence[Benchmark]
    axes: Sequence[Axis]

    def axis(self, path: Path, name: str) -> Axis:
        """The axis of that name. Raises UsageError with the nearest names."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise unknown_name(self.document, path, "axis", name, (axis.name for axis in self.axes))

    def concerned(self, names: Sequence[str]) -> list[Benchmark]:
        """The benchmarks that all these axes apply to."""
        return [benchmark for benchmark in self.benchmarks if all(concerns(name, benchmark) for name in names)]

    def figure(self, path: Path, name: str, benchmarks: Sequence[Benchmark]) -> str:
        """A figure of one of these benchmarks. Raises UsageError with the nearest names."""
        known = [figure.name for benchmark in benchmarks for figure in benchmark.figures]
        if name not in known:
            what = f"figure of {' or '.join(benchmark.name for benchmark in benchmarks)}"
            raise unknown_name(self.document, path, what, name, known)
        return name


def read_compare(context: Context, model: StudyModel) -> Compare | None:
    """The comparison; the baseline is the first value of the axis unless the file names one."""
    if model.compare is None:
        return None
    document = context.document
    if isinstance(model.compare, str):
        axis = context.axis(("compare",), model.compare)
        _refuse_single(context, ("compare",), axis)
        return Compare(axis.name, axis.values[0])
    axis = context.axis(("compare", "along"), model.compare.along)
    _refuse_single(context, ("compare", "along"), axis)
    node = document.node(("compare", "baseline"))
    baseline = axis.values[0]
    if node is not None:
        path: Path = ("compare", "baseline")
        baseline_given = axis_value(document, path, axis.name, node, context.concerned([axis.name]))
        if not any(alike(baseline_given, value) for value in axis.values):
            shown = ", ".join(map(_written, axis.values[:20]))
            raise document.refuse(path, f"{node.shown()} is not a value of {axis.name}", f"its values: {shown}")
        baseline = baseline_given
    concerned = context.concerned([axis.name])
    figures = [
        context.figure(("compare", "figures", position), name, concerned)
        for position, name in enumerate(model.compare.figures)
    ]
    margin, asks_equivalence = _margin(model.compare)
    return Compare(axis.name, baseline, margin, tuple(dict.fromkeys(figures)), asks_equivalence)


def _margin(model: CompareModel) -> tuple[float, bool]:
    """The margin, and whether it is one of equivalence. A study has one: a difference beyond the margin, but within the
    equivalence, would be both."""
    if model.equivalence is None:
        return model.margin, False
    if "margin" in model.values and model.margin != model.equivalence:
        seen, todo = "equivalence is given beside another margin", "leave out `margin`: this one counts"
        raise model.refuse(("equivalence",), seen, todo)
    return model.equivalence, True


def read_scaling(context: Context, model: StudyModel) -> Scaling | None:
    """Scaling along a numeric axis."""
    if model.scaling is None:
        return None
    path: Path = ("scaling", "along")
    axis = context.axis(path, model.scaling.along)
    _refuse_single(context, path, axis)
    for value in axis.values:
        if not _is_number(context, axis.name, value):
            raise context.document.refuse(path, not_a_number(axis.name, _written(value)), NEEDS_NUMBERS)
    return Scaling(model.scaling.kind, axis.name)


def not_a_number(along: str, value: str) -> str:
    """Why nothing scales along an axis."""
    return f"{along} has the value {value}, which is not a number above 0"


NEEDS_NUMBERS = "scaling needs an axis of numbers, such as threads: [1, 2, 4]"


def read_best_of(context: Context, model: StudyModel) -> BestOf | None:
    """The sweep whose best point is reported."""
    if model.best_of is None:
        return None
    over = model.best_of.over
    for position, name in enumerate(over):
        path: Path = ("best_of", "over", position)
        context.axis(path, name)
        if name in over[:position]:
            raise context.document.refuse(path, f"{name} is listed twice", "keep one of them")
    concerned = context.concerned(over)
    if not concerned:
        seen = f"no benchmark of the study has all of {', '.join(over)}"
        raise context.document.refuse(("best_of", "over"), seen, "name axes of one benchmark")
    return BestOf(over, context.figure(("best_of", "figure"), model.best_of.figure, concerned))


def _refuse_single(context: Context, path: Path, axis: Axis) -> None:
    if len(axis.values) < 2:
        raise context.document.refuse(path, f"{axis.name} has only one value", "give it at least two")


def _is_number(context: Context, name: str, value: Value | None) -> bool:
    """Whether a value is a number, as text if it is that of an environment variable. A word such as "all" of a numeric
    parameter may become one on the machine; whether all are above 0 is checked there (`refuse_no_scaling`)."""
    if isinstance(value, str) and not is_of_environment(name):
        numeric = (ParameterKind.INTEGER, ParameterKind.BYTES)
        return any(p.kind in numeric for _, p in parameters_named(name, context.benchmarks))
    return workers_of(value) is not None or (value == 0 and not isinstance(value, bool))


def _written(value: Value | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, tuple) else str(value)
