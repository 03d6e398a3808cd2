"""The figures and checks of a declared benchmark, from what its program printed and wrote. Pure functions.

Patterns are searched for in each line by itself. A number must be a whole token: a greedy pattern such as
`.*([0-9.]+)` finds the last digit of 1234, which is refused, as is a number with a comma.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.declaration import Declaration, DeclaredCheck, DeclaredFigure, Pick, Which
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit
from seatrial.printable import printable, without_sequences

LARGEST_OUTPUT_B = 128 << 20
_LONGEST_LINE = 1 << 16
_MOST_BYTES_OF_A_LINE = 4 * _LONGEST_LINE
_LONGEST_SHOWN = 60
_MOST_SHOWN = 4
_MOST_TRIED = 1000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eEdD][+-]?[0-9]{1,3})?")
_PART_OF_A_NUMBER = re.compile(r"[0-9.,]")
_STEP = re.compile(r"([^.\[\]]+)|\[([0-9]{1,9})\]")


class Number(Frozen):
    """A number in an output; `resolution` is half a unit in its last printed digit as a share of it, 0: not rounded."""

    value: float
    resolution: float = 0.0


class Outputs(Struct):
    """The outputs of one run, each read once. `read` gives the content of a file in the folder of the repeat, None if
    there is no such file.

    A file is kept as its bytes, and its lines are made one after another: a list of the lines of 100 MB would take
    several times as much memory.
    """

    read: Callable[[str], bytes | None]
    _data: dict[str, bytes] = {}
    _documents: dict[str, Any] = {}

    def lines(self, file: str) -> Iterator[str]:
        """The lines of a file that are not empty, without colours; of a very long line, its beginning. Raises
        ProtocolError if the file is missing or too large."""
        data = self._content(file)
        for begin, end in _spans(data):
            line = data[begin : min(end, begin + _MOST_BYTES_OF_A_LINE)].decode("utf-8", "replace")
            if line := without_sequences(line):
                yield line[:_LONGEST_LINE]

    def document(self, file: str) -> Any:
        """The JSON document of a file; of printed output, the first line that begins an object or a list up to the end
        of that value. Raises ProtocolError."""
        if file not in self._documents:
            self._documents[file] = _json_in(self._content(file).decode("utf-8", "replace"), file)
        return self._documents[file]

    def _content(self, file: str) -> bytes:
        if file not in self._data:
            data = self.read(file)
            if data is None:
                raise ProtocolError(f"the program did not write {file}")
            if len(data) > LARGEST_OUTPUT_B:
                raise ProtocolError(f"{file} has more than {LARGEST_OUTPUT_B} bytes, and no more are read")
            self._data[file] = data
        return self._data[file]


def _spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each piece between line feeds and carriage returns that is not empty."""
    begin, size = 0, len(data)
    while begin < size:
        feed = data.find(b"\n", begin)
        stop = size if feed < 0 else feed
        while begin < stop:
            back = data.find(b"\r", begin, stop)
            end = stop if back < 0 else back
            if begin < end:
                yield begin, end
            begin = end + 1
        begin = stop + 1


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
        is_there = any(pattern.search(line) for line in outputs.lines(check.pick.file))
        return float(is_there == check.must_match)
    except ProtocolError:
        return None


def _numbers(pick: Pick, outputs: Outputs) -> list[Number]:
    """The numbers of a pick: all of `each`, else one."""
    if not pick.pattern:
        return [_at_path(pick, outputs)]
    found = _matched(pick, outputs)
    if pick.which is Which.EACH:
        return list(found)
    shown: list[Number] = []
    first = last = next(found)
    number, differ = 1, False
    for each in found:
        if pick.which is Which.ONLY and len(shown) < _MOST_SHOWN - 1:
            shown.append(each)
        last, number, differ = each, number + 1, differ or each.value != first.value
    if pick.which is Which.ONLY and differ:
        values = ", ".join(f"{one.value:g}" for one in (first, *shown))
        more = ", ..." if number > _MOST_SHOWN else ""
        raise ProtocolError(
            f"{number} lines of {pick.file} match {pick.words}, with different values ({values}{more}): state "
            "`which:` first, last or each"
        )
    return [last if pick.which is Which.LAST else first]


def _matched(pick: Pick, outputs: Outputs) -> Iterator[Number]:
    """The number of each line that matches, at least one. Raises ProtocolError for none."""
    pattern = re.compile(pick.pattern)
    number, is_found = 0, False
    for line in outputs.lines(pick.file):
        number += 1
        if (match := pattern.search(line)) is not None:
            is_found = True
            yield _whole_number(match, line)
    if not is_found:
        raise ProtocolError(f"none of the {number} lines of {pick.file} matches {pick.words}")


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
    return Number(value, abs(half_unit(plain.lstrip("+-")) / value) if value != 0.0 else 0.0)


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
    return repr(printable(text.strip()[:200], instead=" "))
