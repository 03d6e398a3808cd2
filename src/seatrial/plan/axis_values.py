"""The names and values of axes and parameters in a study file, checked against the benchmarks that they are for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from seatrial.errors import PlaceError, UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Parameter, ParameterKind, Value
from seatrial.model.study.study import LABEL, OF_SIDES, SYSTEM, is_of_environment
from seatrial.plan.environment_axes import (
    COLLECTIVE_ALGORITHM,
    NAMED,
    OF_BUILDS,
    OF_GPUS,
    check_environment_axis,
    concerns_environment,
    environment_value,
    refuse_for,
)
from seatrial.plan.files import Document, KeyPath, YamlNode

_LONGEST_LABEL = 200
_PLACE = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}(?::[A-Za-z0-9][A-Za-z0-9_.-]{0,99})?"
ACCEPTED_SYSTEM = "a system of the site file, or a partition of one, such as tera or tera:large"


def can_be_studied(benchmark: Benchmark) -> bool:
    """Whether seatrial runs it; results of other tools can only be imported."""
    return benchmark.program.can_run


def parameters_named(name: str, benchmarks: Iterable[Benchmark]) -> list[tuple[Benchmark, Parameter]]:
    """The parameters of that name among those of the benchmarks."""
    return [(benchmark, p) for benchmark in benchmarks for p in benchmark.parameters if p.name == name]


def concerns(name: str, benchmark: Benchmark) -> bool:
    """Whether an axis affects a benchmark, or is the label or the system."""
    if name in OF_SIDES:
        return True
    if is_of_environment(name):
        return concerns_environment(name, benchmark)
    return any(parameter.name == name for parameter in benchmark.parameters)


def check_axis_name(document: Document, path: KeyPath, name: str, benchmarks: Sequence[Benchmark]) -> None:
    """Raises UsageError if these benchmarks have nothing of that name to vary."""
    line = _key_line(document, path, name)
    if is_of_environment(name):
        try:
            check_environment_axis(name)
        except UsageError as error:
            raise document.refuse(path, error.message, error.todo, line) from None
    if not any(concerns(name, benchmark) for benchmark in benchmarks):
        if name in NAMED:
            raise document.refuse(path, none_concerned(name), "remove the axis", line)
        names = {p.name for benchmark in benchmarks for p in benchmark.parameters} | {*OF_SIDES, *NAMED}
        what = f"parameter of {benchmarks[0].name}" if len(benchmarks) == 1 else "parameter of these benchmarks"
        raise unknown_name(document, path, what, name, names)


def none_concerned(name: str) -> str:
    """Why an axis of the environment has no effect, for messages."""
    if name in OF_BUILDS:
        return "none of these benchmarks is compiled here"
    if name == COLLECTIVE_ALGORITHM:
        return "none of these benchmarks is an MPI collective, or an application that may call one"
    if name in OF_GPUS:
        return "none of these benchmarks uses a GPU"
    return "none of these benchmarks has MPI ranks"


def axis_value(
    document: Document, path: KeyPath, name: str, node: YamlNode, benchmarks: Sequence[Benchmark]
) -> Value | None:
    """One value of an axis (or of a partial parameter set). Raises UsageError unless all its benchmarks accept it."""
    try:
        if name == LABEL:
            return _label(node)
        if name == SYSTEM:
            return _system(node)
        if is_of_environment(name):
            value = environment_value(name, node)
            for benchmark in benchmarks:
                if concerns(name, benchmark):
                    refuse_for(name, value, benchmark)
            return value
    except UsageError as error:
        raise document.refuse(path, error.message, error.todo, node.line) from None
    values: list[Value] = []
    for benchmark, parameter in parameters_named(name, benchmarks):
        value = parameter_value(document, path, benchmark, parameter, node)
        if values and not alike(value, values[0]):
            raise document.refuse(
                path,
                f"{node.shown()} means different values for the benchmarks of the study",
                f"write a separate study for {benchmark.name}",
                node.line,
            )
        values.append(value)
    return values[0]


def parameter_value(
    document: Document, path: KeyPath, benchmark: Benchmark, parameter: Parameter, node: YamlNode
) -> Value:
    """The value of a node. Raises UsageError with what the parameter accepts."""
    try:
        return parameter.value_of(_given(parameter, node))
    except UsageError as error:
        seen = f"it cannot be {node.shown()}"
        raise document.refuse(path, seen, f"{parameter.name} of {benchmark.name}: {error.todo}", node.line) from None


def is_axis(parameter: Parameter, node: YamlNode) -> bool:
    """Whether a parameter under `benchmarks:` has several values. A list of texts is one argument list."""
    if not isinstance(node.value, list):
        return False
    return parameter.kind is not ParameterKind.WORDS or any(isinstance(item.value, list) for item in node.value)


def alike(one: Value | None, other: Value | None) -> bool:
    """Whether two values are equal; true is not 1."""
    return type(one) is type(other) and one == other


def _given(parameter: Parameter, node: YamlNode) -> object:
    """What to pass to the parameter: for text, exactly what is written."""
    if parameter.kind is ParameterKind.WORDS:
        if not isinstance(node.value, list) or not all(item.is_scalar and _is_text(item) for item in node.value):
            return None
        return [item.written for item in node.value]
    if not node.is_scalar:
        return None
    return node.written if parameter.kind is ParameterKind.TEXT and _is_text(node) else node.value


def _is_text(node: YamlNode) -> bool:
    return node.value is not None


def _label(node: YamlNode) -> str:
    text = node.written
    if not node.is_scalar or node.value is None or not text.strip() or not text.isprintable():
        raise UsageError(f"{node.shown()} is not a valid label", "it takes a word, such as a")
    if len(text) > _LONGEST_LABEL:
        raise UsageError("the label is too long", f"it takes a word of at most {_LONGEST_LABEL} characters")
    return text


def _system(node: YamlNode) -> str:
    text = node.written
    if not node.is_scalar or node.value is None or not re.fullmatch(_PLACE, text):
        raise UsageError(f"{node.shown()} is not the name of a system", f"it takes {ACCEPTED_SYSTEM}")
    return text


def _key_line(document: Document, path: KeyPath, name: str) -> int:
    """The line of `name`, which is the last key of the path or the value at the path."""
    parent = document.node(path[:-1])
    if parent is not None and path and path[-1] == name and name in parent.key_lines:
        return parent.key_lines[name]
    return document.line(path)


def unknown_name(document: Document, path: KeyPath, what: str, name: str, known: Iterable[str]) -> PlaceError:
    """An error that suggests the nearest known names."""
    error = UnknownNameError(what, name[:_LONGEST_LABEL], known)
    return document.refuse(path, error.message, error.todo, _key_line(document, path, name))
