"""A declaration file, read and checked: YAML text -> `model.declaration.Declaration`, or one clear message with file,
line and key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.declaration import (
    STDERR,
    STDOUT,
    Declaration,
    DeclaredCheck,
    DeclaredFigure,
    Pick,
    Which,
    filled_in,
)
from seatrial.model.layout import RANKS
from seatrial.model.parameter import Parameter, ParameterKind
from seatrial.model.study import LABEL
from seatrial.model.units import parse_seconds
from seatrial.plan.model_faults import Accepted, validated
from seatrial.plan.study_yaml import Document, Path, read_yaml

if TYPE_CHECKING:
    from seatrial.plan.declaration_schema import CheckModel, DeclarationModel, FigureModel, ParameterModel

KEY = "benchmark"
"""The key of a declaration file, which a study file does not have."""

_AT: Path = (KEY,)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TAKEN = frozenset({LABEL, "environment", "cpus", "node", "copies", "nodes"})
"""Names with a meaning of their own in studies."""
_JSON_PATH = re.compile(r"(?:[^.\[\]]+|\[[0-9]{1,9}\])(?:\.[^.\[\]]+|\[[0-9]{1,9}\])*")


def is_declaration(document: Document) -> bool:
    """Whether a YAML file declares a benchmark."""
    return KEY in document.root.entries and "study" not in document.root.entries


def read_declaration(data: bytes, file: str) -> Declaration:
    """The benchmark that a file declares; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, or contradicts itself.
    """
    return declaration_in(read_yaml(data, file))


def declaration_in(document: Document) -> Declaration:
    """The benchmark of a parsed file. Raises UsageError."""
    from seatrial.plan.declaration_schema import ACCEPTED, NAMED, FileModel

    model = validated(document, FileModel, Accepted(ACCEPTED, NAMED)).benchmark
    parameters = tuple(_parameters(document, model))
    found = Declaration(
        name=model.name,
        question=model.question.strip(),
        argv=tuple(_words(document, (*_AT, "argv"))),
        parameters=parameters,
        figures=tuple(_figures(document, model.figures or ())),
        checks=tuple(_checks(document, model.checks or ())),
        ranks=model.ranks is not None,
        variables=tuple(_variables(document)),
        build=tuple(tuple(_words(document, (*_AT, "build", k))) for k in range(len(model.build or ()))),
        files=tuple(_files(document, model.files or ())),
        exit_status=_exit_status(document, model),
        expected_s=1.0 if model.expected is None else _expected_s(document, model.expected),
    )
    _check_braces(document, found)
    return found


def _words(document: Document, path: Path) -> Iterator[str]:
    """The words of a command, as written."""
    node = document.node(path)
    for position, item in enumerate(node.items if node is not None else ()):
        if "\0" in item.written or (position == 0 and not item.written):
            raise document.refuse((*path, position), "it is not a valid argument", "write a program and its arguments")
        yield item.written


def _parameters(document: Document, model: DeclarationModel) -> Iterator[Parameter]:
    ranks = "all" if model.ranks is None else model.ranks
    path: Path = (*_AT, "parameters")
    mapping = document.node(path)
    for name, given in (model.parameters or {}).items():
        line = mapping.key_lines[name] if mapping is not None else None
        if not _PARAMETER.fullmatch(name) or name in _TAKEN:
            why = "has a meaning of its own in studies" if name in _TAKEN else "is not a valid name of a parameter"
            raise document.refuse(path, f"{name} {why}", "choose another: letters, digits and _", line)
        if name == RANKS:
            raise document.refuse(path, f"{RANKS} is not declared here", "write `ranks:` beside `parameters:`", line)
        yield _parameter(document, (*path, name), name, given)
    if model.ranks is not None:
        words = ("all",)
        help_ = "MPI ranks; all: as many as fit on the cores"
        yield Parameter(RANKS, ParameterKind.INTEGER, ranks, help_, words=words, minimum=1)


def _parameter(document: Document, path: Path, name: str, given: ParameterModel | bool | int | str) -> Parameter:
    if isinstance(given, bool | int | str):
        return Parameter(name, _kind_of(given), given, "stated by the declaration")
    help_ = given.help or "stated by the declaration"
    minimum = 0 if given.minimum is None else given.minimum
    if given.values is None:
        return Parameter(name, _kind_of(given.default), given.default, help_, minimum=minimum)
    if given.default not in given.values:
        raise document.refuse((*path, "default"), f"{given.default} is not among its values", "choose one of them")
    return Parameter(name, ParameterKind.CHOICE, given.default, help_, words=tuple(given.values))


def _kind_of(default: bool | int | str) -> ParameterKind:
    if isinstance(default, bool):
        return ParameterKind.FLAG
    return ParameterKind.INTEGER if isinstance(default, int) else ParameterKind.TEXT


def _figures(document: Document, models: Iterable[FigureModel]) -> Iterator[DeclaredFigure]:
    seen: set[str] = set()
    for position, model in enumerate(models):
        path: Path = (*_AT, "figures", position)
        _refuse_twice(document, path, model.name, seen)
        pick = _pick(document, path, model.pattern, model.json_path, model.file, model.which)
        yield DeclaredFigure(model.name, model.unit, model.better == "higher", pick, float(model.scale))


def _refuse_twice(document: Document, path: Path, name: str, seen: set[str]) -> None:
    if name in seen:
        raise document.refuse((*path, "name"), f"{name} is given twice", "choose another name")
    seen.add(name)


def _pick(document: Document, path: Path, pattern: str | None, json_path: str | None, file: str, which: str) -> Pick:
    if (pattern is None) == (json_path is None):
        both = "both pattern and json are given" if pattern is not None else "neither pattern nor json is given"
        raise document.refuse(path, both, "give one of them")
    if pattern is not None:
        groups = _compiled(document, (*path, "pattern"), pattern).groups
        if groups != 1:
            todo = "put parentheses round the number, and (?:...) round other parts: 'rate: +(\\S+) GB/s'"
            raise document.refuse((*path, "pattern"), f"it has {groups or 'no'} groups; one is needed", todo)
    elif not _JSON_PATH.fullmatch(json_path or ""):
        raise document.refuse((*path, "json"), f"{json_path!r} is not a path", "write it as results[0].rate")
    return Pick(pattern or "", json_path or "", _output(document, (*path, "file"), file), Which(which))


def _compiled(document: Document, path: Path, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise document.refuse(path, f"invalid regular expression: {error}", "see Python's `re`") from None


def _output(document: Document, path: Path, file: str) -> str:
    """A file below the folder of the repeat."""
    if file not in (STDOUT, STDERR):
        _refuse_outside(document, path, file)
    return file


def _refuse_outside(document: Document, path: Path, file: str) -> None:
    parts = PurePosixPath(file).parts
    if not file.isprintable() or file.startswith("/") or ".." in parts or not parts:
        raise document.refuse(path, f"{file[:60]!r} is not a path below the folder", "write a relative path without ..")


def _checks(document: Document, models: Iterable[CheckModel]) -> Iterator[DeclaredCheck]:
    seen: set[str] = {"exit_status"}
    for position, model in enumerate(models):
        path: Path = (*_AT, "checks", position)
        _refuse_twice(document, path, model.name, seen)
        yield _check(document, path, model)


def _check(document: Document, path: Path, model: CheckModel) -> DeclaredCheck:
    lines = [model.must_match, model.must_not_match]
    bounds = {name: value for name in ("below", "above", "equals") if (value := getattr(model, name)) is not None}
    is_of_lines = any(line is not None for line in lines)
    if is_of_lines:
        if bounds or model.pattern or model.json_path or all(lines):
            todo = "use must_match or must_not_match alone, or a pattern (or json) with below, above or equals"
            raise document.refuse(path, "it mixes two kinds of checks", todo)
        key = "must_match" if model.must_match is not None else "must_not_match"
        text = model.must_match or model.must_not_match or ""
        _compiled(document, (*path, key), text)
        file = _output(document, (*path, "file"), model.file)
        return DeclaredCheck(model.name, Pick(text, file=file), must_match=model.must_match is not None)
    pick = _pick(document, path, model.pattern, model.json_path, model.file, model.which)
    if not bounds or ("equals" in bounds and len(bounds) > 1):
        raise document.refuse(path, "it has no bound" if not bounds else "equals allows no other bound", _BOUNDS)
    low = float(bounds.get("equals", bounds.get("above", "-inf")))
    high = float(bounds.get("equals", bounds.get("below", "inf")))
    if low > high:
        raise document.refuse(path, f"no value is at least {low:g} and at most {high:g}", _BOUNDS)
    return DeclaredCheck(model.name, pick, low, high)


_BOUNDS = "give below (at most), above (at least) or both, or equals"


def _variables(document: Document) -> Iterator[tuple[str, str]]:
    path: Path = (*_AT, "variables")
    mapping = document.node(path)
    for name, node in (mapping.entries if mapping is not None else {}).items():
        if not _VARIABLE.fullmatch(name) or not node.written.isprintable():
            line = mapping.key_lines[name] if mapping is not None else None
            raise document.refuse(path, f"{name[:60]!r} is not a valid variable", "write NAME: value", line)
        yield name, node.written


def _files(document: Document, files: Iterable[str]) -> Iterator[str]:
    for position, file in enumerate(files):
        _refuse_outside(document, (*_AT, "files", position), file)
        yield file


def _exit_status(document: Document, model: DeclarationModel) -> int:
    if model.ranks is not None and model.exit_status != 0:
        todo = "remove it: a launcher ends with another status if a rank fails"
        raise document.refuse((*_AT, "exit_status"), "it does not apply to MPI programs", todo)
    return model.exit_status


def _expected_s(document: Document, text: str) -> float:
    try:
        return parse_seconds(text)
    except UsageError as error:
        raise document.refuse((*_AT, "expected"), error.message, "write a time with a unit, such as 10s") from None


def _check_braces(document: Document, declared: Declaration) -> None:
    """Raises UsageError for `{name}` without a parameter of that name."""
    values: Mapping[str, Any] = {parameter.name: parameter.default for parameter in declared.parameters}
    places: list[tuple[Path, str]] = [((*_AT, "argv", k), word) for k, word in enumerate(declared.argv)]
    places += [((*_AT, "variables", name), value) for name, value in declared.variables]
    for path, text in places:
        try:
            filled_in(text, values)
        except KeyError as error:
            unknown = UnknownNameError("parameter", str(error.args[0])[:100], values)
            todo = f"{unknown.todo}; write {{{{ for a brace"
            raise document.refuse(path, unknown.message, todo) from None
        except ValueError as error:
            raise document.refuse(path, str(error)) from None
