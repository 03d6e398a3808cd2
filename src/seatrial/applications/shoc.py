"""SHOC (scalable heterogeneous computing benchmark suite): the table of results that each program prints at its end.

A row is `test atts units median mean stddev min max trial0 ...`, separated by tabs (src/common/ResultDatabase.cpp). The
trials are the samples; in a table without trials, the median is. Median, mean, minimum and maximum must agree with the
trials, so a damaged number is detected. FLT_MAX and infinity mean not measured: such a row is refused; N/A is skipped.

The driver's summary (`result for maxspflops: 3097.2 GFLOPS`) gives one number per program.

imported.shoc: the programs of SHOC, whose figures differ in name and unit from row to row.

Each row is a sweep coordinate with SHOC's `test` and `attributes`. If the device is PoCL, which runs kernels on the
CPU, the limit is the peak of the cores (a result above it means that the compiler folded a chain of additions). For
other devices the limit is unknown unless the user gives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from statistics import median

from seatrial.applications.reading import figures
from seatrial.applications.reading.tables import MOST_PER_SECOND, MOST_SECONDS, check_distinct, decimal_of, scaled
from seatrial.applications.reading.text import SIX_DIGITS, LogLine, Pattern, read_lines
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Better, Figure
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "shoc"
_SUMMARY = ("test", "atts", "units", "median", "mean", "stddev", "min", "max")
_DEVICE = Pattern(r"Chose device: ?name='([^']{1,200})'.{0,200}")
_DRIVER = Pattern(r"result for ([A-Za-z]\w{0,60}):\s+(\S{1,40})(?:\s+(\S{1,20}))?")
_MAXFLOPS = Pattern(r"(?:Add|Mul|MAdd|MulMAdd)(?:[0-9]{1,2}|U)-[SD]P")
_WRONG = Pattern(r"\b(?:fail(?:ed|ure|s)?|incorrect|mismatch(?:es)?|wrong)\b", re.IGNORECASE)
_GOOD = Pattern(r"\b(?:passed|correct(?:ness)? (?:ok|verified)|0 (?:mismatches|failures|failed))\b", re.IGNORECASE)
_CHECKING = Pattern(r"correctness check", re.IGNORECASE)
"""The announcement of a check, whose verdict is in a line below it."""
_NOTE = "Note: Any results marked with (*) had missing values."
"""SHOC prints it below each table, so that the end of the table shows (ResultDatabase.cpp)."""
_MISSING = ("N/A", "NoResult")
_FLT_MAX = Decimal("3.4028e38")

_UNITS: dict[str, tuple[str, int]] = {
    "gflops": ("flops", 9),
    "gflop/s": ("flops", 9),
    "mflops": ("flops", 6),
    "tflops": ("flops", 12),
    "gb/s": ("bandwidth", 9),
    "gb/sec": ("bandwidth", 9),
    "mb/s": ("bandwidth", 6),
    "mb/sec": ("bandwidth", 6),
    "gops": ("rate", 9),
    "gop/s": ("rate", 9),
    "gelements/s": ("rate", 9),
    "edges/s": ("rate", 0),
    "s": ("time", 0),
    "sec": ("time", 0),
    "ms": ("time", -3),
    "us": ("time", -6),
    "ns": ("time", -9),
}
"""Unit as SHOC prints it, in lower case -> series and power of ten to SI. `N` is a plain number: see _unit."""


class _Row(Frozen):
    """One result: its line, names, and the cells of summary and trials as printed."""

    line: LogLine
    test: str
    attributes: str
    unit: str
    summary: tuple[str, ...]
    trials: tuple[str, ...]


def read_shoc(data: bytes) -> ImportedFile:
    """The output of a SHOC program or of its driver: one experiment with one point per row.

    Raises ParseError if there is no table, a row is damaged or cut off, or a result occurs twice.
    """
    lines = read_lines(data, _TOOL)
    rows = _rows(lines)
    if not rows:
        raise ParseError(_TOOL, None, "", "no rows of results below `test  atts  units  median ...`")
    check_distinct((((row.test, row.attributes, row.unit), row.line) for row in rows), "this test")
    left_out: list[str] = []
    samples: list[Sample] = []
    for row in rows:
        of_row = tuple(_samples(row))
        samples += of_row
        if not of_row:
            left_out.append(f"{row.test} ({row.unit})")
    if not samples:
        raise rows[0].line.error("no row has a number in a known unit")
    devices = dict.fromkeys(match[1] for line in lines if (match := _DEVICE.fullmatch(_plain(line))))
    parameters: dict[str, Value] = {"program": _program(rows)}
    if len(devices) == 1 and (device := next(iter(devices))).isprintable():
        parameters["device"] = device
    notes: dict[str, object] = {}
    unread = f"no figure of {', '.join(left_out)}: the unit is unknown, or no trial has a number"
    if not any(row.trials for row in rows):
        notes["sample"] = "the median over trials: the table has no trials"
    experiment = ImportedExperiment(
        "imported.shoc", tuple(samples), parameters, notes, remarks=(unread,) if left_out else ()
    )
    return ImportedFile("SHOC", "", (experiment,), _failure(lines, {row.line.number for row in rows}))


def _plain(line: LogLine) -> str:
    """The text of a line; of an overwritten line (a progress bar), the last text."""
    return line.text.rstrip().rpartition("\r")[2]


def _program(rows: Sequence[_Row]) -> str:
    """The program, from its tests: MaxFlops has its own names, the others begin with the program's name."""
    if any(_MAXFLOPS.fullmatch(row.test) for row in rows):
        return "MaxFlops"
    return re.split(r"[-_(]", rows[0].test)[0] or rows[0].test


def _failure(lines: Sequence[LogLine], of_rows: set[int]) -> str:
    """The first line that reports a wrong result, or an announced check without a verdict; "" if all is right."""
    checking: LogLine | None = None
    for line in lines:
        text = _plain(line)[:2000]
        if line.number in of_rows:
            continue
        if _WRONG.search(text) and not _GOOD.search(text):
            return f"line {line.number}: {text.strip()[:200]}"
        if _GOOD.search(text):
            checking = None
        elif _CHECKING.search(text):
            checking = line
    return "" if checking is None else f"line {checking.number} announces a check of the results, but none passed"


def _rows(lines: Sequence[LogLine]) -> list[_Row]:
    rows: list[_Row] = []
    header: tuple[str, ...] = ()
    has_last_tab = False
    is_open: LogLine | None = None
    for line in lines:
        text = _plain(line)
        words = tuple(text.split())
        if words[:2] == _SUMMARY[:2]:
            header = _header(line, words)
            has_last_tab = line.text.endswith("\t")
            is_open = line
        elif driver := _DRIVER.fullmatch(text.strip()):
            if not line.is_ended:
                raise line.error("the file ends in this line: it may have been cut off")
            if driver[2] not in _MISSING:
                rows.append(_Row(line, driver[1], "", driver[3] or "", (driver[2],), ()))
        elif not words or text.startswith("Note:"):
            header = ()
            is_open = None if text.startswith("Note:") else is_open
        elif header:
            if has_last_tab != line.text.endswith("\t"):
                raise line.error(
                    "the row does not end with a tab as the header does, or the reverse: it may have been cut off"
                )
            rows.append(_row(line, text, header))
    if is_open is not None:
        raise is_open.error(f"`{_NOTE}`, which SHOC prints below a table, is missing: the table was cut off")
    return rows


def _header(line: LogLine, words: tuple[str, ...]) -> tuple[str, ...]:
    trials = words[len(_SUMMARY) :]
    if words[: len(_SUMMARY)] != _SUMMARY or trials != tuple(f"trial{k}" for k in range(len(trials))):
        raise line.error("the header of the results is cut off or damaged")
    return words


def _row(line: LogLine, text: str, header: tuple[str, ...]) -> _Row:
    """A row. Raises ParseError if its trials do not agree with its summary."""
    cells = [cell.strip() for cell in text.split("\t")] if "\t" in text else text.split()
    while cells and not cells[-1]:
        cells.pop()
    if not len(_SUMMARY) <= len(cells) <= len(header) or not all(cells[:3]):
        raise line.error(f"the row has {len(cells)} cells, but the header has {len(header)} columns")
    row = _Row(line, cells[0].removesuffix("(*)"), cells[1], cells[2], tuple(cells[3:8]), tuple(cells[8:]))
    for cell in (*row.summary, *row.trials):
        value = decimal_of(cell)
        if value is None and cell not in _MISSING:
            raise line.error(f"{cell[:40]!r} is not a number in the form that SHOC prints")
        if value is not None and value >= _FLT_MAX:
            raise line.error(f"{cell[:40]} is FLT_MAX, which means not measured")
    if len(header) > len(_SUMMARY):
        _check_summary(row)
    elif not line.is_ended:
        raise line.error("the file ends in this line: it may have been cut off")
    return row


def _check_summary(row: _Row) -> None:
    """Median, mean, minimum and maximum must agree with the trials, within the printed digits. Raises ParseError."""
    trials = [float(cell) for cell in row.trials if cell not in _MISSING]
    if not trials:
        if any(cell not in _MISSING for cell in row.summary):
            raise row.line.error("the row has a summary but no trials: it is cut off")
        return
    computed = (median(trials), sum(trials) / len(trials), None, min(trials), max(trials))
    digits = max(3, *(_significant(cell) for cell in (*row.summary, *row.trials)))
    off = 1.01 * 10.0 ** (1 - digits)  # the printed statistic and the trials are each rounded by at most half a unit
    for name, stated, value in zip(_SUMMARY[3:], row.summary, computed, strict=True):
        if value is None or stated in _MISSING:
            continue
        if abs(float(stated) - value) > off * max(trials):
            raise row.line.error(f"the {name} of the trials is {value:.6g}, but the row states {stated}")


def _significant(cell: str) -> int:
    """The number of significant digits of a printed number."""
    return len(cell.lower().partition("e")[0].replace(".", "").lstrip("0")) if cell not in _MISSING else 0


def _unit(row: _Row) -> tuple[str, int] | None:
    """Series and power of ten of a row; None if its unit is unknown."""
    if row.unit == "N" and row.test.endswith("_Parity"):
        return "parity", 0
    return _UNITS.get(row.unit.lower())


def _samples(row: _Row) -> Iterator[Sample]:
    """The trials of a row in SI; none if the unit is unknown."""
    unit = _unit(row)
    if unit is None:
        return
    series, exponent = unit
    point: dict[str, Value] = {"test": row.test}
    if row.attributes:
        point["attributes"] = row.attributes
    for i, cell in enumerate(row.trials or row.summary[:1]):
        decimal = decimal_of(cell)
        if decimal is None:
            continue
        value = scaled(decimal, exponent)
        if not 0 < value <= (MOST_SECONDS if series == "time" else MOST_PER_SECOND):
            raise row.line.error(f"{cell[:40]} {row.unit} is impossible")
        make = figures.time_sample if series == "time" else figures.rate_sample
        yield make(series, value, i=i, point=point, resolution=SIX_DIGITS)


_PROCESSOR = ("pthread", "cpu", "basic")
"""PoCL's names of CPU devices."""


def _flops(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    on_processor = str(params["device"]).lower().startswith(_PROCESSOR)
    if machine.named_limit(figures.GIVEN_FLOPS) is not None or not on_processor:
        return figures.given_limit("flop/s")(machine, params, samples)
    is_double = all(str(sample.point.get("test", "")).upper().startswith("D") for sample in samples) or all(
        "-DP" in str(sample.point.get("test", "")).upper() for sample in samples
    )
    return figures.flops_limit("fp64" if is_double else "fp32")(machine, params, samples)


IMPORTED = figures.imported(
    "shoc",
    "SHOC",
    "What did a program of SHOC measure on its device?",
    (figures.text("program", "the program, by its first test"), figures.text("device", "the device that it used")),
    (
        figures.rate("flops", "flop/s", "floating point operations, as SHOC counts", _flops),
        figures.rate("bandwidth", "B/s", "bytes, as SHOC counts", figures.given_limit("B/s")),
        figures.rate("rate", "op/s", "operations or elements, as SHOC counts"),
        figures.time("time", "one run, as SHOC defines it"),
        Figure(
            "parity",
            "1",
            Better.LOWER,
            WorkRate("amount"),
            "time of the transfer to the device over that of the computation on it",
        ),
    ),
)

READER = figures.Reader("shoc", read_shoc, (r"Chose device: .{0,300}",))
