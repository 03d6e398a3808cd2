"""BabelStream (University of Bristol, 1 to 5; GPU-STREAM before 3): text, and CSV (`--csv`).

The printed rate is the best of all passes except the first. Rate x minimum time must equal the bytes that the kernel
moves, so a damaged number is detected if the file states the number of elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log
from seatrial.applications.reading.tables import best_rate
from seatrial.applications.reading.text import LogLine, Pattern, last_digit
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile

_TOOL = "BabelStream"
_ARRAYS = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2, "nstream": 4}
"""Kernel -> elements that it reads and writes for each element of an array (main.cpp of BabelStream)."""
_FIRST = ("copy", "mul", "add", "triad")
"""The kernels of versions 1 and 2, then GPU-STREAM."""
_CLASSIC = (*_FIRST, "dot")
_SELECTED = {
    "": (_CLASSIC, (*_CLASSIC, "nstream"), ("nstream",)),
    "all": ((*_CLASSIC, "nstream"),),
    "classic": (_CLASSIC,),
    **{kernel: ((kernel,),) for kernel in _ARRAYS},
}
"""The kernels that the user selected -> the rows that a complete table may have."""

_VERSION = Pattern(r"Version: ([0-9]{1,3}(?:\.[0-9A-Za-z.+-]{0,30})?)")
_IMPLEMENTATION = Pattern(r"Implementation: (\S.{0,99})")
_RUNNING = Pattern(r"Running\s{1,9}(?:(\S{1,20})\s)?\s{0,9}kernels ([0-9]{1,9}) times.{0,80}")
_ELEMENTS = Pattern(r"Number of elements: ([0-9]{1,18})")
_PRECISION = Pattern(r"Precision: (double|float)")
_SIZE = Pattern(r"Array size: ([0-9.]{1,24}) (KB|MB|GB|KiB|MiB|GiB)(?: \(.{0,40}\))?")
_HEADER = Pattern(
    r"Function\s{1,20}(?P<text>MBytes/sec|MB/s|MiBytes/sec|MiB/s)\s+Min \(sec\)\s+Max\s+Average"
    r"|function,num_times,n_elements,sizeof,max_(?P<csv>mi?bytes)_per_sec,min_runtime,max_runtime,avg_runtime"
)
_VALIDATION_FAILURE = Pattern(r"Validation failed on .*")
_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_PRECISIONS = {4: "fp32", 8: "fp64"}
_CELLS, _CSV_CELLS = 5, 8

_Row = tuple[LogLine, Sequence[str]]
"""Its name in lower case, in CSV three settings, the rate, and the shortest, longest and mean time."""


def read(data: bytes) -> ImportedFile:
    """One run of BabelStream. Raises ParseError if the output is cut off, has two runs, or contradicts itself."""
    log = Log(_TOOL, data)
    header = log.only(_HEADER, "table of functions")
    version = log.at_most_one(_VERSION, "line `Version`")
    implementation = log.at_most_one(_IMPLEMENTATION, "line `Implementation`")
    failed = log.found(_VALIDATION_FAILURE)
    parameters: dict[str, Value]
    notes: dict[str, object]
    if header.match["csv"]:
        rows = _rows(log, header, _CSV_CELLS, "")
        parameters, notes = _settings_of_rows(header, rows)
    else:
        if version is None or implementation is None:
            raise log.error(f"no line `{'Version' if version is None else 'Implementation'}`: the file is cut off")
        running = log.only(_RUNNING, "line `Running kernels N times`")
        major = int(version.match[1].partition(".")[0])
        rows = _rows(log, header, _CELLS, (running.match[1] or "").lower(), major)
        parameters, notes = _settings(log, running)
    if implementation is not None:
        parameters["implementation"] = implementation.match[1].strip()
    notes["best_of"] = "each rate is the best of all passes except the first, as BabelStream prints it"
    unit = 2.0**20 if (header.match["csv"] or header.match["text"]).lower().startswith("mi") else 1e6
    samples = []
    for line, (name, *_, rate, least, most, mean) in rows:
        moved_B = None if "array_B" in notes else _ARRAYS[name] * int(str(parameters["array_B"]))
        value = best_rate(line, name, moved_B, (rate, least, mean, most), unit)
        samples.append(figures.rate_sample(name, value, resolution=last_digit(rate)))
    experiment = ImportedExperiment("imported.babelstream", tuple(samples), parameters, notes)
    return ImportedFile(_TOOL, version.match[1] if version else "", (experiment,), failed[0].match[0] if failed else "")


def _settings(log: Log, running: Found) -> tuple[dict[str, Value], dict[str, object]]:
    """What the lines above the table state; `array_B` is in the notes too where it is rounded."""
    precision, size = log.only(_PRECISION, "line `Precision`"), log.only(_SIZE, "line `Array size`")
    elements = log.at_most_one(_ELEMENTS, "line `Number of elements`")
    element_B = 8 if precision.match[1] == "double" else 4
    notes: dict[str, object] = {"passes": running.whole(2, "the passes")}
    if elements is not None:
        array_B = elements.whole(1, "the number of elements") * element_B
    else:
        array_B = round(size.number(1, "the array size") * _UNITS[size.match[2]])
        notes["array_B"] = "rounded, as in the file"
    return {"array_B": array_B, "precision": _PRECISIONS[element_B]}, notes


def _settings_of_rows(header: Found, rows: Sequence[_Row]) -> tuple[dict[str, Value], dict[str, object]]:
    """What the rows of CSV state, which must be the same in all."""
    if len({tuple(cells[1:4]) for _, cells in rows}) != 1:
        raise header.error("the rows below differ in num_times, n_elements or sizeof")
    line, cells = rows[0]
    passes, elements, element_B = (
        line.whole_of(cell, what) for cell, what in zip(cells[1:4], ("num_times", "n_elements", "sizeof"), strict=True)
    )
    if element_B not in _PRECISIONS:
        raise line.error(f"an element of {element_B} B is neither float nor double")
    return {"array_B": elements * element_B, "precision": _PRECISIONS[element_B]}, {"passes": passes}


def _rows(log: Log, header: Found, width: int, chosen: str, major: int = 3) -> list[_Row]:
    """The rows of the table: exactly those that BabelStream prints in one run. Raises ParseError."""
    rows: list[_Row] = []
    for line, text in log.numbered():
        name, *cells = text.replace(",", " ").split() or [""]
        if name.lower() not in _ARRAYS:
            continue
        if line.number != header.line.number + len(rows) + 1:
            if len(cells) >= _CELLS - 1:
                raise line.error("a row outside any table")
        elif len(cells) != width - 1 or not line.is_ended:
            raise line.error(f"a row has {width} cells and a line break at its end; this one is cut off")
        else:
            rows.append((line, (name.lower(), *cells)))
    names = tuple(cells[0] for _, cells in rows)
    if names not in (_SELECTED.get(chosen, (_CLASSIC,)) if major > 2 else (_FIRST,)):
        why = f"the table has the rows {', '.join(names) or 'none'}, which is not a complete table of BabelStream"
        raise header.error(why)
    return rows


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

READER = figures.Reader(
    "babelstream", read, (r"BabelStream|GPU-STREAM", rf"{_VERSION.text}|function,num_times,.{{0,400}}")
)
