"""The figures and checks of a declared benchmark, from what its program printed and wrote. Pure functions.

Patterns are searched for in each line by itself. A number must be a whole token: a greedy pattern such as
`.*([0-9.]+)` finds the last digit of 1234, which is refused, as is a number with a comma.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from seatrial.benchmarks.apps.output import rounding
from seatrial.errors import ProtocolError
from seatrial.model.declaration import Declaration, DeclaredCheck, DeclaredFigure, Pick, Which
from seatrial.model.sample import Sample

LARGEST_OUTPUT_B = 128 << 20
_LONGEST_LINE = 1 << 16
_LONGEST_SHOWN = 60
_MOST_SHOWN = 4
_MOST_TRIED = 1000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eEdD][+-]?[0-9]{1,3})?")
_PART_OF_A_NUMBER = re.compile(r"[0-9.,]")
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Colours and cursor movements (ECMA-48, section 5.4)."""
_STEP = re.compile(r"([^.\[\]]+)|\[([0-9]{1,9})\]")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in an output; `resolution` is half a unit in its last printed place as a share of it, 0: not rounded."""

    value: float
    resolution: float = 0.0


@dataclass(slots=True)
class Outputs:
    """The outputs of one run, each read and parsed once. `read` gives the content of a file in the folder of the
    repeat, None if there is no such file."""

    read: Callable[[str], bytes | None]
    _lines: dict[str, list[str]] = field(default_factory=dict)
    _documents: dict[str, Any] = field(default_factory=dict)

    def lines(self, file: str) -> list[str]:
        """The lines of a file, without colours. Raises ProtocolError if it is missing or not text."""
        if file not in self._lines:
            text = _TERMINAL.sub("", self._text(file))
            self._lines[file] = [line for piece in text.split("\n") for line in piece.split("\r") if line]
        return self._lines[file]

    def document(self, file: str) -> Any:
        """The JSON document of a file; of printed output, the first line that begins an object or a list up to the end
        of that value. Raises ProtocolError."""
        if file not in self._documents:
            self._documents[file] = _json_in(self._text(file), file)
        return self._documents[file]

    def _text(self, file: str) -> str:
        data = self.read(file)
        if data is None:
            raise ProtocolError(f"the program did not write {file}")
        if len(data) > LARGEST_OUTPUT_B:
            raise ProtocolError(f"{file} has {len(data)} bytes; at most {LARGEST_OUTPUT_B} are read")
        return data.decode("utf-8", "replace")


def read_figures(declaration: Declaration, outputs: Outputs) -> list[Sample]:
    """The samples of all figures; their elapsed time is NaN. Raises ProtocolError for a figure that is missing, is not
    a finite number, or has several values."""
    samples = []
    for figure in declaration.figures:
        try:
            numbers = _numbers(figure.pick, outputs)
        except ProtocolError as error:
            raise ProtocolError(f"figure {figure.name}: {error.message}") from None
        samples += [_sample(figure, i, number) for i, number in enumerate(numbers)]
    return samples


def _sample(figure: DeclaredFigure, i: int, number: Number) -> Sample:
    extra = {"resolution": number.resolution} if number.resolution > 0.0 else {}
    return Sample(figure.series, i, math.nan, {"value": number.value * figure.scale}, extra=extra)


def read_checks(declaration: Declaration, outputs: Outputs) -> Mapping[str, float | None]:
    """The value of each check: 1 or 0 for lines that must or must not be there, else the number; None if it is
    missing."""
    return {check.name: _checked(check, outputs) for check in declaration.checks}


def _checked(check: DeclaredCheck, outputs: Outputs) -> float | None:
    try:
        if check.must_match is None:
            found = [number.value for number in _numbers(check.pick, outputs)]
            return next((v for v in found if not check.low <= v <= check.high), found[0])
        pattern = re.compile(check.pick.pattern)
        is_there = any(pattern.search(line[:_LONGEST_LINE]) for line in outputs.lines(check.pick.file))
        return float(is_there == check.must_match)
    except ProtocolError:
        return None


def _numbers(pick: Pick, outputs: Outputs) -> list[Number]:
    found = _matched(pick, outputs) if pick.pattern else [_at_path(pick, outputs)]
    if pick.which is Which.EACH:
        return found
    if pick.which is Which.ONLY and len({number.value for number in found}) > 1:
        shown = ", ".join(f"{number.value:g}" for number in found[:_MOST_SHOWN])
        more = ", ..." if len(found) > _MOST_SHOWN else ""
        raise ProtocolError(
            f"{len(found)} lines of {pick.file} match {pick.words}, with different values ({shown}{more}): state "
            "`which:` first, last or each"
        )
    return found[-1:] if pick.which is Which.LAST else found[:1]


def _matched(pick: Pick, outputs: Outputs) -> list[Number]:
    pattern = re.compile(pick.pattern)
    lines = outputs.lines(pick.file)
    found = [
        _whole_number(match, line) for line in lines if (match := pattern.search(line[:_LONGEST_LINE])) is not None
    ]
    if not found:
        raise ProtocolError(f"none of the {len(lines)} lines of {pick.file} matches {pick.words}")
    return found


def _whole_number(match: re.Match[str], line: str) -> Number:
    """The number in the group, if it is a whole token of the line."""
    begin, end = match.span(1)
    token = match.group(1)
    if token is None:
        raise ProtocolError(f"the group of the pattern matches nothing in {_short(line)}")
    before, after = line[:begin][-1:], line[end:][:2]
    is_cut = (
        _PART_OF_A_NUMBER.match(before) is not None
        or (before in ("+", "-") and token[:1] not in ("+", "-"))
        or re.match(r"[0-9]|[.,][0-9]|[eEdD][+\-0-9]", after) is not None
    )
    if is_cut:
        raise ProtocolError(
            f"the pattern finds {token[:_LONGEST_SHOWN]!r}, a part of a number, in {_short(line)}: let the group begin "
            "after a character that is not part of a number"
        )
    return _number(token, line)


def _number(token: str, line: str) -> Number:
    if _NUMBER.fullmatch(token.strip()) is None:
        why = "has a comma: write a pattern for plain numbers" if "," in token else "is not a finite number"
        raise ProtocolError(f"{token[:_LONGEST_SHOWN]!r} in {_short(line)} {why}")
    plain = token.strip().lower().replace("d", "e")
    value = float(plain)
    if not math.isfinite(value):
        raise ProtocolError(f"{token[:_LONGEST_SHOWN]!r} in {_short(line)} is too large")
    return Number(value, abs(rounding(plain.lstrip("+-")) / value) if value != 0.0 else 0.0)


def _at_path(pick: Pick, outputs: Outputs) -> Number:
    here = outputs.document(pick.file)
    done = ""
    for name, index in _STEP.findall(pick.json):
        done += f"[{index}]" if index else f"{'.' if done else ''}{name}"
        try:
            here = here[int(index)] if index else here[name]
        except (KeyError, IndexError, TypeError):
            raise ProtocolError(f"{pick.file} has no {done}") from None
    try:
        value = float(here) if isinstance(here, int | float) and not isinstance(here, bool) else math.nan
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ProtocolError(f"{pick.json} in {pick.file} is {_short(json.dumps(here))}, not a finite number")
    return Number(value)


def _json_in(text: str, file: str) -> Any:
    decoder = json.JSONDecoder()
    for match in islice(re.finditer(r"^[ \t]*[\[{]", text, re.MULTILINE), _MOST_TRIED):
        try:
            return decoder.raw_decode(text, match.end() - 1)[0]
        except (ValueError, RecursionError):
            continue
    raise ProtocolError(f"{file} has no JSON document")


def _short(text: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in text.strip()[:200])
    return repr(shown)
