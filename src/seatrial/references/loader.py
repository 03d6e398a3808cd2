"""All references: those shipped with seatrial, and those of the site's own file. A file is TOML, checked key by key;
docs/references.md describes the format.

The own file is `$SEATRIAL_REFERENCES`, else `~/.config/seatrial/references.toml` if it exists. It has the format of the
shipped files and is used in the same way.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from seatrial.errors import ParseError, SeatrialError, UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.declaration import PREFIX
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.history import Qualifier, Reference
from seatrial.model.units import LARGEST_COUNT, Quantity, labelled_quantity, parse_quantity

_LARGEST_FILE_B = 4 << 20
_LONGEST_TEXT = 500
_NAME = re.compile(r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*\Z")
_LONGEST_NAME = 80
_PLACE = re.compile(r"\(at line (\d+), column \d+\)\Z")
_FILE_KEYS = frozenset({"study", "source", "year", "configuration", "reference"})
_ENTRY_KEYS = frozenset(
    {
        *("id", "benchmark", "figure", "value", "range", "better", "qualifier", "parameters", "configuration"),
        *("source", "year", "remark", "contradicts"),
    }
)
_ENDS = (("low", Qualifier.LOWEST), ("high", Qualifier.HIGHEST))
_Word = TypeVar("_Word", Qualifier, Better)
_SEE = "docs/references.md shows the format"


def read_file(path: Path) -> tuple[Reference, ...]:
    """The references of a file, in order. Raises UsageError if it cannot be read or an entry is wrong, ParseError if it
    is invalid TOML; each names the file."""
    try:
        if not path.is_file():
            raise UsageError(f"{path} is not a file", "give a TOML file with references")
        if path.stat().st_size > _LARGEST_FILE_B:
            raise UsageError(f"{path} is larger than {_LARGEST_FILE_B >> 20} MiB", "a references file is much smaller")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "check its path and permissions") from error
    return read(content, str(path))


def read(content: bytes, name: str) -> tuple[Reference, ...]:
    """The references in the content of the file `name`; errors as for `read_file`."""
    document = _toml(content, name)
    try:
        _refuse_unknown_keys(document, _FILE_KEYS, "key of a references file")
        study = _name(document, "study")
        entries = document.get("reference", [])
        if not isinstance(entries, list):
            raise UsageError("`reference` is not a list of tables", "write [[reference]] before each entry")
    except SeatrialError as error:
        raise UsageError(f"{name}: {error.message}", error.todo or _SEE) from error
    found: list[Reference] = []
    for number, entry in enumerate(entries, start=1):
        label = entry.get("id", f"number {number}") if isinstance(entry, dict) else f"number {number}"
        try:
            if not isinstance(entry, dict):
                raise UsageError("not a table", "write [[reference]] before each entry")
            found += _entry(entry, document, study)
        except SeatrialError as error:
            raise UsageError(f"{name}: reference {label!r}: {error.message}", error.todo or _SEE) from error
    return _with_expanded_ranges(found, study, entries)


def _toml(content: bytes, name: str) -> dict[str, Any]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ParseError("references", None, "", "not UTF-8 text", name) from error
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ParseError("references", None, "", "nested too deeply", name) from error
    except ValueError as error:  # TOMLDecodeError, and numbers that Python refuses
        place = _PLACE.search(str(error))
        line = int(place[1]) if place else None
        lines = text.splitlines()
        shown = lines[line - 1] if line is not None and line <= len(lines) else ""
        raise ParseError("references", line, shown, f"invalid TOML: {error}", name) from error


def _entry(entry: Mapping[str, Any], document: Mapping[str, Any], study: str) -> list[Reference]:
    """The reference of an entry, or the two of a range."""
    _refuse_unknown_keys(entry, _ENTRY_KEYS, "key of a reference")
    own = f"{study}.{_name(entry, 'id')}"
    qualifier = _one_of(Qualifier, entry, "qualifier", Qualifier.EXACT)
    has_labels = str(entry.get("benchmark", "")).startswith(PREFIX)  # other benchmarks have no units of the user
    if ("value" in entry) == ("range" in entry):
        raise UsageError("it needs either a `value` or a `range`", 'write value = "47.9GB/s"')
    if "value" in entry:
        values = [(own, _quantity(entry["value"], has_labels), qualifier)]
    else:
        ends = entry["range"]
        if not isinstance(ends, list) or len(ends) != 2 or qualifier is not Qualifier.EXACT:
            raise UsageError("a range has two values and no qualifier", 'write range = ["231GB/s", "355GB/s"]')
        read_ends = [_quantity(end, has_labels) for end in ends]
        if read_ends[0].unit != read_ends[1].unit or read_ends[0].value >= read_ends[1].value:
            raise UsageError("the range must go from a lower to a higher value of the same unit", _SEE)
        values = [(f"{own}-{end}", quantity, word) for quantity, (end, word) in zip(read_ends, _ENDS, strict=True)]
    configuration = {**_texts(document, "configuration"), **_texts(entry, "configuration")}
    return [
        Reference(
            id=reference_id,
            benchmark=_name(entry, "benchmark"),
            figure=_name(entry, "figure"),
            value=quantity.value,
            unit=quantity.unit,
            better=_one_of(Better, entry, "better", Better.HIGHER),
            parameters=_parameters(entry),
            configuration=configuration,
            source=_text(entry, "source") or _text(document, "source"),
            year=_year(entry) or _year(document),
            remark=_text(entry, "remark"),
            contradicts=tuple(_contradicted(entry, study)),
            qualifier=word,
        )
        for reference_id, quantity, word in values
    ]


def _with_expanded_ranges(found: list[Reference], study: str, entries: list[dict[str, Any]]) -> tuple[Reference, ...]:
    """Replace ranges in `contradicts` by both of their ends."""
    ranges = {f"{study}.{entry['id']}" for entry in entries if "range" in entry}
    spread = {name: tuple(f"{name}-{end}" for end, _ in _ENDS) for name in ranges}
    return tuple(
        replace(
            reference, contradicts=tuple(one for name in reference.contradicts for one in spread.get(name, (name,)))
        )
        for reference in found
    )


def _quantity(given: object, has_labels: bool) -> Quantity:
    """A published value: a number (unit "1") or a number with its unit, which may be a label; finite and above 0."""
    if isinstance(given, str):
        quantity = labelled_quantity(given) if has_labels else parse_quantity(given)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        quantity = Quantity(float(given), "1") if abs(given) <= LARGEST_COUNT else Quantity(math.inf, "1")
    else:
        raise UsageError(f"{str(given)[:40]!r} is not a value", 'write value = "47.9GB/s", or value = 1.3 for a ratio')
    if not (math.isfinite(quantity.value) and quantity.value > 0):
        raise UsageError(f"{str(given)[:40]!r} is not a finite value above 0", _SEE)
    return quantity


def _parameters(entry: Mapping[str, Any]) -> dict[str, Value]:
    given = entry.get("parameters", {})
    if not isinstance(given, dict):
        raise UsageError("`parameters` is not a table", "write parameters = { threads = 2 }")
    for name, value in given.items():
        if not isinstance(value, bool | int | float | str):
            raise UsageError(f"the parameter {name!r} must be a number, a text, true or false", _SEE)
        if isinstance(value, str):
            _checked(value, f"the parameter {name!r}")
        elif not -LARGEST_COUNT <= value <= LARGEST_COUNT:  # also not NaN; an int may be too large for a float
            raise UsageError(f"the parameter {name!r} must be a number up to 2^53", _SEE)
        _checked(name, "the name of a parameter")
    return dict(given)


def _contradicted(entry: Mapping[str, Any], study: str) -> list[str]:
    given = entry.get("contradicts", [])
    if not isinstance(given, list) or not all(isinstance(name, str) and _is_name(name) for name in given):
        raise UsageError("`contradicts` is not a list of ids", 'write contradicts = ["other-id"]')
    return [f"{study}.{name}" for name in given]


def _texts(table: Mapping[str, Any], key: str) -> dict[str, str]:
    given = table.get(key, {})
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        raise UsageError(f"`{key}` is not a table of texts", 'write configuration = { machine = "..." }')
    return {_checked(name, f"a name in `{key}`"): _checked(text, f"{key}.{name}") for name, text in given.items()}


def _text(table: Mapping[str, Any], key: str) -> str:
    given = table.get(key, "")
    if not isinstance(given, str):
        raise UsageError(f"`{key}` is not a text", f'write {key} = "..."')
    return _checked(given, f"`{key}`")


def _checked(text: str, what: str) -> str:
    if len(text) > _LONGEST_TEXT or not text.isprintable():
        raise UsageError(f"{what} is longer than {_LONGEST_TEXT} characters, or has unprintable ones", _SEE)
    return text


def _name(table: Mapping[str, Any], key: str) -> str:
    given = table.get(key)
    if not isinstance(given, str) or not _is_name(given):
        raise UsageError(
            f"`{key}` is missing or not a valid name", f'write {key} = "name": letters, digits, dots, - and _'
        )
    return given


def _is_name(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and _NAME.match(text) is not None


def _year(table: Mapping[str, Any]) -> int | None:
    given = table.get("year")
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or not 1900 <= given <= 2200:
        raise UsageError("`year` is not a year", "write year = 2017")
    return given


def _one_of(kind: type[_Word], table: Mapping[str, Any], key: str, default: _Word) -> _Word:
    given = table.get(key, default.value)
    try:
        return kind(given)
    except ValueError:
        raise UnknownNameError(key, str(given)[:40], (one.value for one in kind if one.value)) from None


def _refuse_unknown_keys(table: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    for key in table:
        if key not in known:
            raise UnknownNameError(what, key[:40], known)


_VARIABLE = "SEATRIAL_REFERENCES"


@cache
def shipped_references() -> tuple[Reference, ...]:
    """The references of the package, in the order of its files."""
    folder = resources.files(__package__).joinpath("data")
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return checked(reference for file in files for reference in read(file.read_bytes(), file.name))


def all_references() -> tuple[Reference, ...]:
    """The shipped references, then those of the site's own file.

    Raises UsageError if the own file cannot be read, has a wrong entry, or reuses the id of a shipped value.
    """
    own = own_file()
    return shipped_references() if own is None else _with_own(own, _state(own))


def own_references() -> tuple[Reference, ...]:
    """The references of the site's own file alone. Raises UsageError as `all_references`."""
    own = own_file()
    return () if own is None else _with_own(own, _state(own))[len(shipped_references()) :]


def reference_named(reference_id: str) -> Reference:
    """The reference with this id. Raises UnknownNameError, which names the nearest."""
    known = {reference.id: reference for reference in all_references()}
    if reference_id not in known:
        raise UnknownNameError("reference", reference_id, known)
    return known[reference_id]


def own_file() -> Path | None:
    """The site's own file, or None if there is none. Raises UsageError if `$SEATRIAL_REFERENCES` names no file."""
    named = os.environ.get(_VARIABLE)
    if named:
        path = Path(named)
        if not path.is_file():
            raise UsageError(f"{_VARIABLE} names {named!r}, which is not a file", "set it to a TOML file, or unset it")
        return path
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        path = (Path(base) if base else Path.home() / ".config") / "seatrial" / "references.toml"
    except RuntimeError:  # no home folder
        return None
    return path if path.is_file() else None


def checked(references: Iterable[Reference]) -> tuple[Reference, ...]:
    """The references, if they are consistent: unique ids, and each contradiction stated on both sides.

    Raises UsageError.
    """
    known: dict[str, Reference] = {}
    for reference in references:
        if reference.id in known:
            raise UsageError(f"two references have the id {reference.id!r}", "change one of the ids")
        known[reference.id] = reference
    for reference in known.values():
        for other in reference.contradicts:
            if other not in known:
                raise UnknownNameError(f"reference (`contradicts` of {reference.id})", other, known)
            if reference.id not in known[other].contradicts or other == reference.id:
                raise UsageError(
                    f"{reference.id} contradicts {other}, but {other} does not contradict it", "name each in the other"
                )
    return tuple(known.values())


@cache
def _with_own(path: Path, state: tuple[int, int]) -> tuple[Reference, ...]:
    """`state` is the state of the file: an edited file is read again."""
    return checked((*shipped_references(), *read_file(path)))


def _state(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error
    return status.st_mtime_ns, status.st_size
