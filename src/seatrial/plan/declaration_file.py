"""A declaration file: its keys, and what they become (`model.benchmark.declaration.Declaration`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from seatrial.errors import PlaceError, UnknownNameError, UsageError
from seatrial.model.benchmark.declaration import (
    STDERR,
    STDOUT,
    Declaration,
    DeclaredCheck,
    DeclaredFigure,
    Pick,
    Which,
    filled_in,
)
from seatrial.model.benchmark.parameter import Parameter, ParameterKind
from seatrial.model.benchmark.program import RANKS
from seatrial.model.study.study import LABEL
from seatrial.model.units import UNITS, Unit, labelled_unit, parse_seconds
from seatrial.plan.file_model import (
    Faults,
    Kind,
    Model,
    Spot,
    any_of,
    default,
    either,
    listed,
    member,
    model,
    named,
    one_of,
    optional,
    prose,
    required,
    scalar,
    text,
    whole,
)
from seatrial.plan.files import Document, KeyPath

KEY = "benchmark"
"""The key of a declaration file, which a study file does not have."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TAKEN = frozenset({LABEL, "environment", "cpus", "node", "copies", "nodes"})
"""Names with their own meaning in studies."""
_JSON_PATH = re.compile(r"(?:[^.\[\]]+|\[[0-9]{1,9}\])(?:\.[^.\[\]]+|\[[0-9]{1,9}\])*")
_STATED = "stated by the declaration"
_BOUNDS = "give below (at most), above (at least) or both, or equals"


def _compiled(spot: Spot, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise spot.refuse(f"invalid regular expression: {error}", "see Python's `re`") from None


def _line_pattern(spot: Spot, pattern: str) -> str:
    _compiled(spot, pattern)
    return pattern


def _number_pattern(spot: Spot, pattern: str) -> str:
    groups = _compiled(spot, pattern).groups
    if groups != 1:
        todo = "put parentheses round the number, and (?:...) round other parts: 'rate: +(\\S+) GB/s'"
        raise spot.refuse(f"it has {groups or 'no'} groups; one is needed", todo)
    return pattern


def _inside(spot: Spot, file: str) -> str:
    """A path below the folder of the file, or of the repeat."""
    parts = PurePosixPath(file).parts
    if not file.isprintable() or file.startswith("/") or ".." in parts or not parts:
        raise spot.refuse(f"{file[:60]!r} is not a path below the folder", "write a relative path without ..")
    return file


def _output(spot: Spot, file: str) -> str:
    return file if file in (STDOUT, STDERR) else _inside(spot, file)


def _words(spot: Spot, _: object) -> tuple[str, ...]:
    """The words of a command, as written."""
    for position, item in enumerate(spot.node.items):
        if "\0" in item.written or (position == 0 and not item.written):
            raise spot.inner(position).refuse("it is not a valid argument", "write a program and its arguments")
    return tuple(item.written for item in spot.node.items)


def _unit(spot: Spot, value: str) -> tuple[Unit, float]:
    try:
        return labelled_unit(value)
    except UsageError as error:
        raise spot.refuse(error.message, error.todo) from None


def _expected_s(spot: Spot, value: str) -> float:
    try:
        return parse_seconds(value)
    except UsageError as error:
        raise spot.refuse(error.message, "write a time with a unit, such as 10s") from None


def _check_parameter(spot: Spot, name: str) -> None:
    line = spot.node.key_lines[name]
    if not _PARAMETER.fullmatch(name) or name in _TAKEN:
        why = "has its own meaning in studies" if name in _TAKEN else "is not a valid name of a parameter"
        raise spot.refuse(f"{name} {why}", "choose another: letters, digits and _", line)
    if name == RANKS:
        raise spot.refuse(f"{RANKS} is not declared here", "write `ranks:` beside `parameters:`", line)


def _check_variable(spot: Spot, name: str) -> None:
    if not _VARIABLE.fullmatch(name) or not spot.node.entries[name].written.isprintable():
        line = spot.node.key_lines[name]
        raise spot.refuse(f"{name[:60]!r} is not a valid variable", "write NAME: value", line)


_WORD: Kind[bool | int | float | str] = scalar(str, bool, int, float)
_NUMBER: Kind[float] = scalar(float, int)
_DEFAULT: Kind[bool | int | str] = scalar(bool, int, str)
_SHORT_DEFAULT = _DEFAULT.only(lambda value: not isinstance(value, str) or 1 <= len(value) <= 4096)
_COUNT_OR_ALL: Kind[int | str] = scalar(int, str)
_RANKS = Kind(
    _COUNT_OR_ALL.only(lambda value: value == "all" or (isinstance(value, int) and value >= 1)).read,
    any_of(whole(1).schema, one_of("all").schema),
)
_SCALE: Kind[float] = scalar(float, int, exclusiveMinimum=0).only(lambda value: value > 0).parsed(float)
_WORD_OF_COMMAND = _WORD.accepting("a word: text, a number, true or false")
_COMMAND = listed(_WORD_OF_COMMAND, 1, 10_000).then(_words)
_NAME = text(pattern="[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", least=0, most=None)
_NAMED = "text: letters, digits, -, _ and . (at most 100)"
_PATTERN = r"a regular expression for one line, with one group that is the number, such as 'rate: +(\S+) GB/s'"
_FILE = "stdout, stderr, or the name of a file that the program writes into its working directory"
_PATH_IN_JSON = text().only(_JSON_PATH.fullmatch, "{} is not a path", "write it as results[0].rate")
_WHICH = "only (several different values are an error; the default), first, last, or each (all are samples)"


class ParameterModel(Model):
    """A parameter of the benchmark."""

    accepts = (
        "a default (text, an integer, true or false; another number in quotes), or a mapping with default, values, help"
    )

    default = required("text, an integer, true or false; another number in quotes", _DEFAULT)
    values_ = optional("a list of the accepted texts", listed(text().accepting("text"), 1, 1000))
    help = optional("text: what it sets", text(), _STATED)
    minimum = optional("the least accepted integer", whole(), 0)

    def parameter(self, name: str) -> Parameter:
        """The parameter under its name."""
        values = self.values_
        if values is None:
            return Parameter(name, _kind_of(self.default), self.default, self.help, minimum=self.minimum)
        if self.default not in values:
            raise self.refuse(("default",), f"{self.default} is not among its values", "choose one of them")
        return Parameter(name, ParameterKind.CHOICE, self.default, self.help, words=values)


def _kind_of(default: bool | int | str) -> ParameterKind:
    if isinstance(default, bool):
        return ParameterKind.FLAG
    return ParameterKind.INTEGER if isinstance(default, int) else ParameterKind.TEXT


class OutputModel(Model):
    """A number in an output."""

    name = required(_NAMED, _NAME)
    pattern = optional(_PATTERN, text().then(_number_pattern))
    json = optional("the path of a number in a JSON document, such as results[0].rate", _PATH_IN_JSON)
    file = default(_FILE, text().then(_output), STDOUT, STDOUT)
    which = default(_WHICH, member(Which), Which.ONLY, Which.ONLY.value)

    def pick(self) -> Pick:
        """Where the number is."""
        if (self.pattern is None) == (self.json is None):
            both = (
                "both pattern and json are given" if self.pattern is not None else "neither pattern nor json is given"
            )
            raise self.refuse((), both, "give one of them")
        return Pick(self.pattern or "", self.json or "", self.file, self.which)


class FigureModel(OutputModel):
    """A figure that is read from an output."""

    accepts = "a mapping: name, unit, better, and pattern or json"

    unit = required(
        f"one of {', '.join(UNITS)} (1: a plain number), also with a prefix such as GB/s or ms; or another label, such "
        "as MLUP/s, ns/day or atoms/s",
        _WORD.then(lambda spot, _: _unit(spot, spot.node.written)),
    )
    better = required("higher or lower", one_of("higher", "lower"))
    scale = default("a number above 0: turns the printed number into the unit, such as 1e-3 for ms", _SCALE, 1.0, 1)

    def figure(self) -> DeclaredFigure:
        """The figure."""
        unit, factor = self.unit
        return DeclaredFigure(self.name, unit, self.better == "higher", self.pick(), self.scale * factor)


class CheckModel(OutputModel):
    """A condition that must hold before a figure is published."""

    accepts = "a mapping: name, and must_match, must_not_match, or pattern or json with below, above or equals"

    json = optional("the path of a number in a JSON document, such as results[0].error", _PATH_IN_JSON)
    below = optional("a number: the value must be at most this", _NUMBER)
    above = optional("a number: the value must be at least this", _NUMBER)
    equals = optional("a number: the value must be this", _NUMBER)
    must_match = optional("a regular expression that one line must match", text().then(_line_pattern))
    must_not_match = optional("a regular expression that no line may match", text().then(_line_pattern))

    def check(self) -> DeclaredCheck:
        """The check."""
        bounds = {name: value for name in ("below", "above", "equals") if (value := self.values.get(name)) is not None}
        line = self.must_match or self.must_not_match
        if line is not None:
            if bounds or self.pattern or self.json or (self.must_match and self.must_not_match):
                todo = "use must_match or must_not_match alone, or a pattern (or json) with below, above or equals"
                raise self.refuse((), "it mixes two kinds of checks", todo)
            return DeclaredCheck(self.name, Pick(line, file=self.file), must_match=self.must_match is not None)
        pick = self.pick()
        if not bounds or ("equals" in bounds and len(bounds) > 1):
            raise self.refuse((), "it has no bound" if not bounds else "equals allows no other bound", _BOUNDS)
        low = float(bounds.get("equals", bounds.get("above", "-inf")))
        high = float(bounds.get("equals", bounds.get("below", "inf")))
        if low > high:
            raise self.refuse((), f"no value is at least {low:g} and at most {high:g}", _BOUNDS)
        return DeclaredCheck(self.name, pick, low, high)


class DeclarationModel(Model):
    """One benchmark."""

    name = required(
        "text: letters, digits, - and _ (at most 100); the benchmark is local.<name>",
        text(pattern="[A-Za-z0-9][A-Za-z0-9_-]{0,99}", least=0, most=None),
    )
    question = required("text: the question that it answers", prose(10_000))
    argv = required(
        "a list: the program and its arguments, such as [./solver, --size, '{size}']; `{parameter}` is replaced by its "
        "value, `{{` is a brace; no shell sees it; a program with a slash is relative to this file",
        _COMMAND,
    )
    ranks = optional(
        "an integer or all: an MPI program, started on that many ranks by default (parameter `ranks`)", _RANKS
    )
    parameters = optional(
        "a mapping of names to defaults, such as {size: 100, mode: {default: a, values: [a, b]}}",
        named(
            either(_SHORT_DEFAULT, model(ParameterModel)),
            _check_parameter,
            most=100,
            propertyNames={"pattern": f"^{_PARAMETER.pattern}$"},
        ),
    )
    figures = optional(
        "a list of figures, such as {name: rate, unit: flop/s, better: higher, pattern: '...'}; `wall`, the time of "
        "the whole program, needs no entry",
        listed(model(FigureModel), most=100),
        (),
    )
    checks = optional(
        "a list of conditions, such as {name: residual, pattern: '...', below: 1e-8}",
        listed(model(CheckModel), most=100),
        (),
    )
    variables = optional(
        "a mapping of environment variables to values, such as {OMP_NUM_THREADS: '{threads}'}",
        named(
            _WORD.then(lambda spot, _: spot.node.written).accepting(
                "text, a number, true or false; `{parameter}` is replaced by its value"
            ),
            _check_variable,
            most=100,
            propertyNames={"pattern": f"^{_VARIABLE.pattern}$"},
        ),
    )
    build = optional(
        "a list of commands, such as [[make, solver]], run once in the folder of this file",
        listed(_COMMAND.accepting("a list: a program and its arguments, such as [make, solver]"), most=100),
        (),
    )
    files = optional(
        "a list of files or folders beside this file that are copied to where the program runs",
        listed(text().then(_inside).accepting("a path relative to this file, such as input.dat"), most=1000),
        (),
    )
    exit_status = default("the expected exit status, an integer from 0 to 255 (default: 0)", whole(0, 255), 0, 0)
    expected = optional(
        "a time with a unit, such as 10s: about how long one run takes (default: 1s)",
        text(least=0, most=None).then(_expected_s),
        1.0,
    )

    def declaration(self) -> Declaration:
        """The declared benchmark."""
        faults = Faults([*self._twice(self.figures, set()), *self._twice(self.checks, {"exit_status"})])
        if self.ranks is not None and self.exit_status != 0:
            todo = "remove it: a launcher ends with another status if a rank fails"
            faults.found.append(self.refuse(("exit_status",), "it does not apply to MPI programs", todo))
        found = Declaration(
            name=self.name,
            question=self.question,
            argv=self.argv,
            parameters=tuple(self._parameters()),
            figures=tuple(figure.figure() for figure in self.figures),
            checks=tuple(check.check() for check in self.checks),
            ranks=self.ranks is not None,
            variables=tuple((self.variables or {}).items()),
            build=self.build,
            files=self.files,
            exit_status=self.exit_status,
            expected_s=self.expected,
        )
        faults.found += self._wrong_braces(found)
        faults.raise_all()
        return found

    def _parameters(self) -> Iterator[Parameter]:
        for name, given in (self.parameters or {}).items():
            if isinstance(given, ParameterModel):
                yield given.parameter(name)
            else:
                yield Parameter(name, _kind_of(given), given, _STATED)
        if self.ranks is not None:
            help_ = "MPI ranks; all: as many as fit on the cores"
            yield Parameter(RANKS, ParameterKind.INTEGER, self.ranks, help_, words=("all",), minimum=1)

    def _twice(self, outputs: Sequence[OutputModel], seen: set[str]) -> Iterator[PlaceError]:
        for output in outputs:
            if output.name in seen:
                yield output.refuse(("name",), f"{output.name} is given twice", "choose another name")
            seen.add(output.name)

    def _wrong_braces(self, declared: Declaration) -> Iterator[PlaceError]:
        """The faults of `{name}` without a parameter of that name."""
        values: Mapping[str, Any] = {parameter.name: parameter.default for parameter in declared.parameters}
        places: list[tuple[KeyPath, str]] = [(("argv", k), word) for k, word in enumerate(declared.argv)]
        places += [(("variables", name), value) for name, value in declared.variables]
        for path, word in places:
            try:
                filled_in(word, values)
            except KeyError as error:
                unknown = UnknownNameError("parameter", str(error.args[0])[:100], values)
                todo = f"{unknown.todo}; write {{{{ for a brace"
                yield self.refuse(path, unknown.message, todo)
            except ValueError as error:
                yield self.refuse(path, str(error))


class InputFileModel(Model):
    """A file that declares one benchmark."""

    accepts = f"a mapping with the key `{KEY}`"

    benchmark = required(
        "a mapping: name, question, argv, then parameters, figures, checks and so on", model(DeclarationModel)
    )


def is_declaration(document: Document) -> bool:
    """Whether a YAML file declares a benchmark."""
    return KEY in document.root.entries and "study" not in document.root.entries


def declaration_in(document: Document) -> Declaration:
    """The benchmark of a parsed file. Raises UsageError if it does not match the published schema, or contradicts
    itself."""
    return InputFileModel.of(document).benchmark.declaration()
