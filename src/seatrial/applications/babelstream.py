"""BabelStream (University of Bristol, 3 to 5): text, and CSV (`--csv`).

The printed rate is the best of all passes except the first. Rate x minimum time must equal the bytes that the kernel
moves, so a damaged number is detected if the file states the number of elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.text import Line, Pattern, is_product, last_digit, only_one, read_lines
from seatrial.model.benchmark.parameter import Value
from seatrial.model.printed import half_unit
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "BabelStream"
_ARRAYS = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2, "nstream": 4}
"""Kernel -> elements that it reads and writes for each element of an array (main.cpp of BabelStream)."""
_CLASSIC = ("copy", "mul", "add", "triad", "dot")

_VERSION = Pattern(r"Version: ([0-9][0-9A-Za-z.+-]{0,30})")
_IMPLEMENTATION = Pattern(r"Implementation: (\S.{0,99})")
_RUNNING = Pattern(r"Running\s{1,9}(?:(\S{1,20})\s)?\s{0,9}kernels ([0-9]{1,9}) times.{0,80}")
_ELEMENTS = Pattern(r"Number of elements: ([0-9]{1,18})")
_PRECISION = Pattern(r"Precision: (double|float)")
_SIZE = Pattern(r"Array size: ([0-9.]{1,24}) (KB|MB|GB|KiB|MiB|GiB)(?: \(.{0,40}\))?")
_HEADER = Pattern(r"Function\s{1,20}(MBytes/sec|MB/s|MiBytes/sec|MiB/s)\s+Min \(sec\)\s+Max\s+Average\s*")
_PREAMBLE = (
    (_VERSION, "line `Version`"),
    (_IMPLEMENTATION, "line `Implementation`"),
    (_RUNNING, "line `Running kernels N times`"),
    (_PRECISION, "line `Precision`"),
    (_SIZE, "line `Array size`"),
)
"""Lines above the table of text output."""
_CSV_HEADER = Pattern(
    r"function,num_times,n_elements,sizeof,max_(mi?bytes)_per_sec,min_runtime,max_runtime,avg_runtime\s*"
)
_VALIDATION_FAILURE = Pattern(r"Validation failed on .{0,200}")
_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_PRECISIONS = {4: "fp32", 8: "fp64"}


def read(data: bytes) -> ImportedFile:
    """One run of BabelStream. Raises ParseError if the output is cut off, has two runs, or contradicts itself."""
    lines = read_lines(data, _TOOL)
    headers = [line for line in lines if _HEADER.fullmatch(line.text) or _CSV_HEADER.fullmatch(line.text)]
    header = only_one(headers, _TOOL, "table of functions")
    failed = next((line.text.strip() for line in lines if _VALIDATION_FAILURE.match(line.text.strip())), "")
    csv = _CSV_HEADER.fullmatch(header.text)
    found = _csv(lines, header, csv[1]) if csv else _text(lines, header)
    version = _only(lines, _VERSION)
    return ImportedFile(_TOOL, version or "", (found,), failed)


def _text(lines: Sequence[Line], header: Line) -> ImportedExperiment:
    """The table of text output, with the settings that the lines above it state."""
    unit = 2.0**20 if header.words[1].startswith("MiB") else 1e6
    for pattern, what in _PREAMBLE:
        only_one([line for line in lines if pattern.fullmatch(line.text.strip())], _TOOL, what)
    running = _match(lines, _RUNNING)
    element = {"double": 8, "float": 4, None: None}[_only(lines, _PRECISION)]
    elements = _only(lines, _ELEMENTS)
    array_B = int(elements) * element if elements is not None and element is not None else None
    rows = _rows(lines, header, _row_sets(running))
    samples = [_sample(line, name, cells, unit, array_B) for line, name, cells in rows]
    parameters: dict[str, Value] = {}
    notes: dict[str, object] = {}
    if array_B is None and (size := _match(lines, _SIZE)) is not None:
        array_B = round(float(size[1]) * _UNITS[size[2]]) if size[1].count(".") < 2 and size[1] != "." else None
        notes["array_B"] = "rounded, as in the file"
    _set(parameters, "array_B", array_B)
    _set(parameters, "precision", _PRECISIONS.get(element or 0))
    _set(parameters, "implementation", _only(lines, _IMPLEMENTATION))
    if running is not None:
        notes["passes"] = int(running[2])
    notes["best_of"] = "each rate is the best of all passes except the first, as BabelStream prints it"
    return ImportedExperiment("imported.babelstream", tuple(samples), parameters, notes)


def _row_sets(running: re.Match[str] | None) -> tuple[tuple[str, ...], ...]:
    """The sets of rows that a complete table may have."""
    chosen = (running[1] or "").lower() if running is not None else ""
    if chosen in _ARRAYS:
        return ((chosen,),)
    return (_CLASSIC, (*_CLASSIC, "nstream"), ("nstream",)) if chosen == "" else _SELECTED.get(chosen, (_CLASSIC,))


_SELECTED: dict[str, tuple[tuple[str, ...], ...]] = {"all": ((*_CLASSIC, "nstream"),), "classic": (_CLASSIC,)}


def _rows(
    lines: Sequence[Line], header: Line, row_sets: tuple[tuple[str, ...], ...]
) -> list[tuple[Line, str, list[str]]]:
    """The rows of the table: exactly those that BabelStream prints in one run."""
    rows: list[tuple[Line, str, list[str]]] = []
    for line in lines[header.number :]:
        words = line.words
        if not words or words[0].lower() not in _ARRAYS:
            break
        if len(words) != 5 or not line.is_ended:
            raise line.error("a row has a name, four numbers and a line break at its end; this one is cut off")
        rows.append((line, words[0].lower(), words[1:]))
    _refuse_incomplete(lines, header, rows, row_sets)
    return rows


def _refuse_incomplete(
    lines: Sequence[Line],
    header: Line,
    rows: Sequence[tuple[Line, str, list[str]]],
    row_sets: tuple[tuple[str, ...], ...],
) -> None:
    names = tuple(name for _, name, _ in rows)
    if names not in row_sets:
        raise header.error(
            f"the table has the rows {', '.join(names) or 'none'}, which is no complete table of BabelStream"
        )
    own = {line.number for line, _, _ in rows}
    for line in lines:
        words = line.text.replace(",", " ").split()
        if line.number not in own and len(words) >= 5 and words[0].lower() in _ARRAYS:
            raise line.error("a row outside any table")


def _csv(lines: Sequence[Line], header: Line, unit_name: str) -> ImportedExperiment:
    """The rows of CSV output."""
    unit = 2.0**20 if unit_name == "mibytes" else 1e6
    rows: list[tuple[Line, str, list[str]]] = []
    settings: set[tuple[str, ...]] = set()
    for line in lines[header.number :]:
        cells = line.text.strip().split(",")
        if cells[0].lower() not in _ARRAYS:
            break
        if len(cells) != 8 or not line.is_ended:
            raise line.error("a row has eight cells and a line break at its end; this one is cut off")
        settings.add(tuple(cells[1:4]))
        rows.append((line, cells[0].lower(), [cells[4], cells[5], cells[6], cells[7]]))
    _refuse_incomplete(lines, header, rows, _row_sets(None))
    if len(settings) != 1:
        raise header.error("the rows below differ in num_times, n_elements or sizeof")
    passes, elements, element = (
        rows[0][0].whole_of(cell, what)
        for cell, what in zip(next(iter(settings)), ("num_times", "n_elements", "sizeof"), strict=True)
    )
    if element not in _PRECISIONS:
        raise rows[0][0].error(f"an element of {element} B is neither float nor double")
    samples = [_sample(line, name, cells, unit, elements * element) for line, name, cells in rows]
    parameters: dict[str, Value] = {"array_B": elements * element, "precision": _PRECISIONS[element]}
    _set(parameters, "implementation", _only(lines, _IMPLEMENTATION))
    notes = {
        "passes": passes,
        "best_of": "each rate is the best of all passes except the first, as BabelStream prints it",
    }
    return ImportedExperiment("imported.babelstream", tuple(samples), parameters, notes)


def _sample(line: Line, name: str, cells: Sequence[str], unit: float, array_B: int | None) -> Sample:
    rate = line.number_of(cells[0], "the rate")
    least, most, mean = (line.number_or_zero(cell, "a time") for cell in cells[1:])
    slack = half_unit(cells[1]) + half_unit(cells[3])
    if not least <= mean + slack or not mean <= most + slack:
        raise line.error("the minimum, mean and maximum time are not in this order")
    if array_B is not None:
        work = _ARRAYS[name] * array_B
        if not is_product(work / unit, (rate, half_unit(cells[0])), (least, half_unit(cells[1]))):
            raise line.error(f"{cells[0]} in {cells[1]} s is not the {work} B that {name} moves")
    return figures.rate_sample(name, figures.in_SI(rate, unit), resolution=last_digit(cells[0]))


def _set(parameters: dict[str, Value], name: str, value: Value | None) -> None:
    if value is not None:
        parameters[name] = value


def _match(lines: Sequence[Line], pattern: Pattern) -> re.Match[str] | None:
    """The match of the only line of this form, or None. Raises ParseError for a second one: two runs in one file."""
    found = [line for line in lines if pattern.fullmatch(line.text.strip())]
    return pattern.fullmatch(only_one(found, _TOOL, "such line").text.strip()) if found else None


def _only(lines: Sequence[Line], pattern: Pattern) -> str | None:
    match = _match(lines, pattern)
    return None if match is None else match[1].strip()


IMPORTED = figures.imported(
    "babelstream",
    "BabelStream",
    "What memory bandwidth did BabelStream's kernels reach?",
    (
        figures.text("implementation", "programming model, as named in the file"),
        figures.choice("precision", "precision of the elements", "fp64", "fp32"),
        figures.size("array_B", "size of each array"),
    ),
    tuple(
        figures.rate(
            name,
            "B/s",
            f"{arrays} elements read or written per array element, as BabelStream counts; best pass",
            figures.device_memory_limit(),
        )
        for name, arrays in _ARRAYS.items()
    ),
)

READER = figures.Reader("babelstream", read)
