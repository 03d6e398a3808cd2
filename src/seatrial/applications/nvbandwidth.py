"""nvbandwidth, 0.1 to 0.10: its text, and the JSON that `nvbandwidth -j` prints.

Each test has a matrix of GB/s (10^9 B/s) or ns over rows and columns, N/A for pairs that were not measured, and the sum
of its cells. A matrix whose cells do not add up to that sum is damaged; one without a sum is cut off. A bidirectional
test prints three matrices: each direction and the total. Formats: json_output.cpp and output.h of nvbandwidth.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from seatrial.applications.reading import figures, tables
from seatrial.applications.reading.job import ProgramOptions, named
from seatrial.applications.reading.json_text import JsonObject, is_json, read_object
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.runs import JSON_BEGIN
from seatrial.applications.reading.text import LogLine, Pattern, last_digit
from seatrial.errors import ParseError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "nvbandwidth"
_NAME = r"([A-Za-z][A-Za-z0-9_]{0,100})"
_VERSION = Pattern(r"nvbandwidth Version:\s*v?([0-9][\w.]{0,20})")
_RUNNING = Pattern(rf"Running {_NAME}\.?")
_TITLE = Pattern(r"(?:Multinode )?(?:mem(?:cpy|ory)|Device to Device Latency)\b.{0,120}\((GB/s|ns)\)")
_SUM = Pattern(rf"SUM {_NAME}\s+(\S{{1,40}})")
_ERROR = Pattern(
    r"(?:ERROR|Error|\[[A-Z_]{0,60}ERROR[A-Z_]{0,60}\])(?![\w]).{0,300}|.{0,200}Invalid value when checking.{0,200}"
)
_DRIVER = Pattern(r"(CUDA (?:Runtime|Driver) Version(?: \(API\))?|Driver Version):\s*([0-9][\w. ()]{0,40})")
_DEVICE = Pattern(r"[0-9]{1,4}: (\S.{0,98}?)(?: ?\(PCI:.{1,40}\))?(?:: \(.{1,256}\))?")
_END = "The reported results may not reflect the full capabilities"
_NONE = "N/A"
_UNITS = {"GB/s": ("bandwidth", 9, tables.MOST_PER_SECOND), "ns": ("latency", -9, tables.MOST_SECONDS)}
_MOST_CELLS = 1_000_000


class _Matrix(Struct):
    """The matrix of one test: its cells as printed, by (row, column)."""

    title: str
    unit: str
    line: LogLine | None
    columns: tuple[int, ...] = ()
    cells: dict[tuple[int, int], str] = {}
    test: str = ""

    def error(self, why: str) -> ParseError:
        return ParseError(_TOOL, None, self.title, why) if self.line is None else self.line.error(why)

    def check_rows(self) -> None:
        """Raise ParseError if a row is missing: one of pairs that were not measured leaves the sum as it is."""
        rows = sorted({row for row, _ in self.cells})
        expected = len(self.columns) if "GPU(row)" in self.title else len(rows)
        if rows != list(range(expected)):
            raise self.error(f"{self.test} has the rows {', '.join(map(str, rows)) or 'none'}: rows are missing")

    def check_sum(self, text: str) -> None:
        """Raise ParseError if the cells do not add up to the printed sum (six digits in some releases)."""
        stated = tables.decimal_of(text)
        values = [cell for cell in self.cells.values() if cell != _NONE]
        total = sum(map(float, values))
        if stated is None or abs(float(stated) - total) > _slack(values) + half_unit(text) + 6e-6 * total:
            raise self.error(f"the cells of {self.test} add up to {total:.2f}, but the stated sum is {text[:40]}")


def _slack(values: Iterable[str]) -> float:
    """The largest rounding error of the sum of printed values."""
    return sum(map(half_unit, values))


def read_nvbandwidth(data: bytes) -> ImportedFile:
    """The output of nvbandwidth, text or JSON: one experiment per test.

    Raises ParseError for a damaged file, or a test that occurs twice.
    """
    return _read_json(data) if is_json(data, "nvbandwidth") else _read_text(data)


def _read_text(data: bytes) -> ImportedFile:
    log = Log(_TOOL, data)
    version = log.maybe(_VERSION, "release")
    matrices, errors = _matrices(log)
    if not matrices and not errors:
        raise log.error("no matrix of results")
    notes = {one.match[1]: one.match[2] for one in log.found(_DRIVER)}
    is_ended = any(_END in text for text in log.texts)
    remarks = () if is_ended else (f"`NOTE: {_END} ...`, the last lines of nvbandwidth, are missing: so may be tests",)
    return _file("" if version is None else version.match[1], matrices, errors, {}, notes, remarks)


def _matrices(log: Log) -> tuple[list[_Matrix], list[str]]:
    """The matrices with their sums checked, and the errors that the tool reports."""
    done: list[_Matrix] = []
    errors: list[str] = []
    running = ""
    current: _Matrix | None = None
    for line, text in log.numbered():
        if begin := _RUNNING.fullmatch(text):
            _require_done(current)
            running = begin[1]
        elif title := _TITLE.fullmatch(text):
            _require_done(current)
            current = _Matrix(text, title[1], line)
        elif total := _SUM.fullmatch(text):
            if current is None or (running and not total[1].startswith(running)):
                raise line.error("a sum without a matrix of its test above it")
            if (
                not line.is_ended
                and tables.decimal_of(total[2]) is not None
                and re.search(r"\.[0-9]{2}\Z", total[2]) is None
            ):
                raise line.error("the file ends in this line: it may have been cut off")
            current.test = total[1]
            current.check_sum(total[2])
            current.check_rows()
            done.append(current)
            current = None
        elif _ERROR.fullmatch(text):
            errors.append(f"line {line.number}: {text[:200]}")
            current = None
        elif current is not None and text:
            _add_line(current, line)
    _require_done(current)
    return done, errors


def _require_done(matrix: _Matrix | None) -> None:
    if matrix is not None:
        raise matrix.error("the matrix below this line has no sum: it is cut off")


def _add_line(matrix: _Matrix, line: LogLine) -> None:
    """Add the column numbers or a row. Raises ParseError if it is damaged."""
    words = [cell.text for cell in tables.cells_of(tables.body(line))]
    if tables.is_noise(line.text) or not words[0][:1].isdigit():
        return
    if not matrix.columns:
        if any(re.fullmatch(r"[0-9]{1,5}", word) is None for word in words) or len(set(words)) != len(words):
            raise line.error("expected the column numbers here")
        matrix.columns = tuple(map(int, words))
        return
    if len(words) != len(matrix.columns) + 1 or re.fullmatch(r"[0-9]{1,5}", words[0]) is None:
        raise line.error(f"expected a row of {len(matrix.columns)} columns here")
    _add_row(matrix, int(words[0]), words[1:], line)


def _add_row(matrix: _Matrix, row: int, words: Sequence[str], line: LogLine | None) -> None:
    for column, word in zip(matrix.columns, words, strict=True):
        wrong = "" if word == _NONE or tables.decimal_of(word) is not None else f"{word[:40]!r} is not a number"
        if (row, column) in matrix.cells:
            wrong = f"row {row} occurs twice"
        if wrong:
            raise line.error(wrong) if line is not None else matrix.error(f"{matrix.test}: {wrong}")
        matrix.cells[row, column] = word


def _read_json(data: bytes) -> ImportedFile:
    root = read_object(data, _TOOL, "nvbandwidth").object("nvbandwidth")
    matrices: list[_Matrix] = []
    errors = [text] if (text := root.text("error")) else []
    for case in root.objects("testcases"):
        name = case.text("name")
        if name is None or re.fullmatch(_NAME, name) is None:
            raise ParseError(_TOOL, None, str(name)[:200], "a test case without a name")
        status = case.text("status") or "no status"
        if status in ("Waived", "Not Found"):
            continue
        if status != "Passed":
            errors.append(f"{name}: {status} {case.text('error') or ''}".strip())
            continue
        matrices += _parts(name, case)
    if not matrices and not errors:
        raise ParseError(_TOOL, None, "", "no test passed")
    version = (root.text("version") or "").removeprefix("v")
    notes = {key: root.get(key) for key in _JSON_NOTES if isinstance(root.get(key), str | int)}
    return _file(version, matrices, errors, root.values, notes)


_JSON_NOTES = ("CUDA Runtime Version", "CUDA Driver Version", "Driver Version", "testSamples", "useMean", "warning")


def _parts(name: str, case: JsonObject) -> list[_Matrix]:
    """The matrices of one test case. Bidirectional tests list three, one below the other."""
    title = str(case.get("bandwidth_description") or "")
    unit = re.search(r"\((GB/s|ns)\)\s*\Z", title[:200])
    rows = case.get("bandwidth_matrix")
    whole = _Matrix(title[:200], unit[1] if unit else "", None, test=name)
    if unit is None or not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise whole.error(f"{name}: no matrix in GB/s or ns")
    width = len(rows[0])
    if any(len(row) != width for row in rows) or not 0 < width * len(rows) <= _MOST_CELLS:
        raise whole.error(f"{name}: the rows of the matrix differ in length")
    n_parts = 3 if "bidirectional" in name and len(rows) == 3 * width and "device_to_device" in name else 1
    if "device_to_device" in name and len(rows) != n_parts * width:
        raise whole.error(f"{name}: {len(rows)} rows of {width} columns: rows are missing")
    height = len(rows) // n_parts
    way = "read" if "_read_" in name else "write"
    parts: list[_Matrix] = []
    for part in range(n_parts):
        suffix = ("", f"_{way}1", f"_{way}2", "_total")[part + 1] if n_parts > 1 else ""
        matrix = _Matrix(title[:200], unit[1], None, tuple(range(width)), test=name + suffix)
        for row, words in enumerate(rows[part * height : (part + 1) * height]):
            _add_row(matrix, row, [_word(word) for word in words], None)
        if part == n_parts - 1:  # only the sum of the last matrix is printed
            matrix.check_sum(_word(case.get("sum")))
        parts.append(matrix)
    if n_parts > 1:
        _check_total(parts)
    return parts


def _check_total(parts: Sequence[_Matrix]) -> None:
    """Raise ParseError if the third matrix is not the sum of the two directions, cell by cell."""
    one, other, total = parts
    for place, text in total.cells.items():
        cells = (one.cells[place], other.cells[place], text)
        if _NONE in cells and set(cells) != {_NONE}:
            raise total.error(f"{total.test}: row {place[0]}, column {place[1]} is not in all three matrices")
        if _NONE not in cells:
            first, second, both = map(float, cells)
            if abs(first + second - both) > _slack(cells) + 6e-6 * both:
                raise total.error(f"{total.test}: {cells[0]} and {cells[1]} do not add up to {text}")


def _word(value: object) -> str:
    """A cell as text: releases write numbers as text; N/A and null mean not measured."""
    if value is None:
        return _NONE
    if isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value):
        return f"{value:.12g}"
    return value if isinstance(value, str) else json.dumps(value)[:100]


def _file(
    version: str,
    matrices: Sequence[_Matrix],
    errors: Sequence[str],
    root: Mapping[str, object],
    notes: Mapping[str, object],
    remarks: tuple[str, ...] = (),
) -> ImportedFile:
    tables.check_distinct(
        ((matrix.test, matrix.line or LogLine(_TOOL, 0, matrix.test)) for matrix in matrices), "this test"
    )
    parameters: dict[str, Value] = {}
    if isinstance(size := root.get("bufferSize"), int | str) and not isinstance(size, bool):
        parameters["buffer"] = str(size)[:100]
    if isinstance(devices := root.get("GPU Device list"), list) and all(map(_DEVICE.fullmatch, map(str, devices))):
        parameters["device"] = named(_DEVICE.sub(r"\1", str(device)) for device in devices)
    experiments = tuple(
        ImportedExperiment(
            "imported.nvbandwidth",
            tuple(_samples(matrix)),
            {"test": matrix.test, **parameters},
            {"title": matrix.title, **notes},
            remarks=remarks,
        )
        for matrix in matrices
        if any(cell != _NONE for cell in matrix.cells.values())
    )
    if not experiments:
        raise ParseError(_TOOL, None, "", f"no test has a result{': ' + errors[0] if errors else ''}")
    host = root.get("Hostname")
    return ImportedFile(
        tool=_TOOL,
        version=version,
        experiments=experiments,
        failed=errors[0] if errors else "",
        host=host[:255] if isinstance(host, str) and host.isprintable() else None,
    )


def _samples(matrix: _Matrix) -> Iterable[Sample]:
    """One sample per measured pair."""
    series, exponent, most = _UNITS[matrix.unit]
    for (row, column), text in matrix.cells.items():
        decimal = tables.decimal_of(text)
        if decimal is None:
            continue
        value = tables.scaled(decimal, exponent)
        if not 0 < value <= most:
            raise matrix.error(f"{matrix.test}: {text[:40]} {matrix.unit} in row {row}, column {column} is impossible")
        point: dict[str, Value] = {"row": row, "column": column}
        yield (
            figures.rate_sample(series, value, point=point, resolution=last_digit(text))
            if series == "bandwidth"
            else figures.time_sample(series, value, point=point, resolution=last_digit(text))
        )


IMPORTED = figures.imported(
    "nvbandwidth",
    "nvbandwidth",
    "How fast are copies between the host and each GPU, and between GPUs?",
    (
        figures.text("test", "test as named by nvbandwidth, such as host_to_device_memcpy_ce"),
        figures.text("buffer", "size of the buffers, as stated in the file"),
        figures.text("device", "the GPUs, as named in the file"),
    ),
    (
        figures.rate("bandwidth", "B/s", "bytes copied for one pair (row, column) of the test's matrix"),
        figures.time("latency", "one access for one pair (row, column) of the test's matrix"),
    ),
)

READER = figures.Reader(
    "nvbandwidth",
    read_nvbandwidth,
    (rf"{_VERSION.text}|{JSON_BEGIN}",),
    ProgramOptions({"-b": "buffer", "--bufferSize": "buffer"}),
)
