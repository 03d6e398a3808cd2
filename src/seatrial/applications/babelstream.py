"""BabelStream (University of Bristol, 1 to 5; GPU-STREAM before 3): text, and CSV (`--csv`).

The printed rate is the best of all passes except the first. Rate x minimum time must equal the bytes that the kernel
moves, so a damaged number is detected if the file states the size of the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Printed
from seatrial.applications.reading.tables import best_rate
from seatrial.applications.reading.text import LogLine, Pattern, is_product, last_digit, number
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
_IMPLEMENTATION = Pattern(r"Implementation: (\S.{0,299})")
_RUNNING = Pattern(r"Running\s{1,9}(?:(?:(\S{1,20})\s)?\s{0,9}kernels|(all|triad)) ([0-9]{1,9}) times.{0,80}")
"""The port for Java does not print the word `kernels`."""
_ELEMENTS = Pattern(r"Number of elements: ([0-9]{1,18})")
_PRECISION = Pattern(r"Precision: (double|float)")
_SIZE = Pattern(r"Array size: ([0-9.]{1,24}) (KB|MB|GB|KiB|MiB|GiB)(?: \(.{0,40}\))?")
_HEADER = Pattern(
    r"Function\s{1,20}(?P<text>MBytes/sec|MB/s|MiBytes/sec|MiB/s)\s+Min \(sec\)\s+Max\s+Average"
    r"|function,num_times,n_elements,sizeof,max_(?P<csv>mi?bytes)_per_sec,min_runtime,max_runtime,avg_runtime"
)
_VALIDATION_FAILURE = Pattern(r"Validation failed on .*")
_RESIZED = Pattern(r"Resizing array from [0-9]{1,18} to ([0-9]{1,18})")
_UNITS = {
    "KB": (1e3, 2.0**10), "MB": (1e6, 2.0**20), "GB": (1e9, 2.0**30),
    "KiB": (2.0**10,), "MiB": (2.0**20,), "GiB": (2.0**30,),
}  # fmt: skip
"""What the unit of the array size may mean: in version 1, "MB" is 2^20 B. The rows show which."""
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
    unit = 2.0**20 if (header.match["csv"] or header.match["text"]).lower().startswith("mi") else 1e6
    if header.match["csv"]:
        rows = _rows(log, header, _CSV_CELLS, "")
        parameters, notes = _settings_of_rows(header, rows)
    else:
        if version is None or implementation is None:
            raise log.error(f"no line `{'Version' if version is None else 'Implementation'}`: the file is cut off")
        major = int(version.match[1].partition(".")[0])
        find = log.only if major > 1 else log.at_most_one
        running = find(_RUNNING, "line `Running kernels N times`")
        chosen = (
            "" if running is None or running.match[2] == "all" else (running.match[1] or running.match[2] or "").lower()
        )
        rows = _rows(log, header, _CELLS, chosen, major)
        parameters, notes = _settings(log, rows, unit, is_first=major < 2)
        if running is not None:
            notes["passes"] = running.whole(3, "the passes")
    if implementation is not None:
        parameters["implementation"] = implementation.match[1].strip()
    notes["best_of"] = "each rate is the best of all passes except the first, as BabelStream prints it"
    samples = []
    for line, (name, *_, rate, least, most, mean) in rows:
        is_exact = "array_B" in parameters and "array_B" not in notes
        moved_B = _ARRAYS[name] * int(str(parameters["array_B"])) if is_exact else None
        value = best_rate(line, name, moved_B, (rate, least, mean, most), unit)
        samples.append(figures.rate_sample(name, value, resolution=last_digit(rate)))
    experiment = ImportedExperiment("imported.babelstream", tuple(samples), parameters, notes)
    return ImportedFile(_TOOL, version.match[1] if version else "", (experiment,), failed[0].match[0] if failed else "")


def _settings(
    log: Log, rows: Sequence[_Row], unit: float, *, is_first: bool
) -> tuple[dict[str, Value], dict[str, object]]:
    """What the lines above the table state; `array_B` is in the notes too where it is rounded. Version 1 (`is_first`)
    need not state the precision and the size: then they are known as far as only one agrees with the rows.

    Raises ParseError if the stated sizes contradict each other, or the rates and times of the rows."""
    find = log.at_most_one if is_first else log.only
    precision, size = find(_PRECISION, "line `Precision`"), find(_SIZE, "line `Array size`")
    elements = log.at_most_one(_ELEMENTS, "line `Number of elements`") or log.maybe(_RESIZED, "size of the arrays")
    widths = tuple(_PRECISIONS) if precision is None else (8 if precision.match[1] == "double" else 4,)
    exact = [] if elements is None else [elements.whole(1, "the number of elements") * width for width in widths]
    rounded = [] if size is None else [size.printed(1, "the array size").scaled(by) for by in _UNITS[size.match[2]]]
    if size is not None and exact:
        exact = [array_B for array_B in exact if any(abs(array_B - one.value) <= one.error for one in rounded)]
        if not exact:
            raise size.error("it is not the number of elements x the size of one")
    possible = [Printed(float(array_B), 0.0) for array_B in exact] or rounded
    if not possible:
        return {}, {}
    fitting = [one for one in possible if all(_fits(cells, one, unit) for _, cells in rows)]
    if not fitting:
        line, cells = next((row for row in rows if not any(_fits(row[1], one, unit) for one in possible)), rows[0])
        raise line.error(f"{cells[1]} in {cells[2]} s is not what {cells[0]} moves with arrays of the stated size")
    parameters: dict[str, Value] = {}
    notes: dict[str, object] = {}
    if len(fitting) == 1:
        parameters["array_B"] = round(fitting[0].value)
        if not exact:
            notes["array_B"] = "rounded, as in the file"
    if precision is not None:
        parameters["precision"] = _PRECISIONS[widths[0]]
    elif elements is not None and "array_B" in parameters:
        parameters["precision"] = _PRECISIONS[round(fitting[0].value) // elements.whole(1, "the number of elements")]
    return parameters, notes


def _fits(cells: Sequence[str], array: Printed, unit: float) -> bool:
    """Whether rate x least time of a row can be the bytes that its kernel moves; a row without numbers is not judged
    here."""
    if any(number(cell) is None for cell in cells[1:3]):
        return True
    rate, least = (Printed.of(float(cell), cell) for cell in cells[1:3])
    moved = array.scaled(_ARRAYS[cells[0]] / unit)
    wide = rate.error + rate.value * moved.error / moved.value
    return is_product(moved.value, (rate.value, wide), (least.value, least.error))


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
        figures.text("device", "device, as named in the file"),
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
