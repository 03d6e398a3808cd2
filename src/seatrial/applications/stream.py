"""STREAM (J. D. McCalpin, stream.c 5.9 and 5.10, stream_mpi.c): text.

The printed rate is the best of all passes except the first; it is the only sample of the repeat. Rate x minimum time
must equal the bytes of the arrays (16 or 24 B per element), so a damaged number is detected.

imported.stream: STREAM over MPI processes, or in single precision; other results of STREAM are `memory.stream`.

The aggregate rate of processes, which may run on several machines, does not measure the memory of one machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.text import Line, Pattern, is_product, last_digit, only_one, read_lines
from seatrial.benchmarks.figures import rate
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Figure
from seatrial.model.benchmark.parameter import Value
from seatrial.model.printed import half_unit
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "STREAM"
_COUNTED = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""Kernel -> elements that it reads and writes, for each element of an array (stream.c, `bytes`)."""

_VERSION = Pattern(r"STREAM version \$Revision: ?([0-9][0-9.]{0,15}) ?\$")
_WORD = Pattern(r"This system uses ([0-9]{1,4}) bytes per (?:array element|DOUBLE PRECISION word)\.")
_ARRAY = Pattern(r"(Total Aggregate )?Array size = ([0-9]{1,18})(?: \(elements\))?(?:,.{0,80})?\s*", re.IGNORECASE)
_PASSES = Pattern(r"Each (?:kernel will be executed|test is run) ([0-9]{1,9}) times[,.].{0,80}")
_RANKS = Pattern(r"Data is distributed across ([0-9]{1,9}) MPI ranks")
_THREADS = Pattern(r"Number of Threads (?:requested|counted)(?: for each MPI rank| for rank 0)? = ([0-9]{1,9})\s*\Z")
_HEADER = Pattern(r"Function\s+(?:Best )?Rate \(?MB/s\)?\s+Avg time\s+Min time\s+Max time\s*")
_ROW = Pattern(r"(Copy|Scale|Add|Triad):\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*")
_VALIDATION = Pattern(r"(?:Solution Validates|Failed Validation).{0,200}")
_RULE = "-" * 20


def read(data: bytes) -> ImportedFile:
    """One run of STREAM: `memory.stream`, or `imported.stream` where MPI distributes it over ranks.

    Raises ParseError if the output is cut off, has two runs, or contradicts itself.
    """
    lines = read_lines(data, _TOOL)
    version_line = only_one([line for line in lines if _VERSION.search(line.text)], _TOOL, "line `STREAM version`")
    version = _matched(_VERSION, version_line)
    word = _value(lines, _WORD, "line `This system uses N bytes`")
    array_line = only_one([line for line in lines if _ARRAY.fullmatch(line.text.strip())], _TOOL, "line `Array size`")
    elements = array_line.whole_of(_matched(_ARRAY, array_line, 2), "the array size")
    if word not in (4, 8):
        raise version_line.error(f"an array element of {word} B is neither float nor double")
    passes = _value(lines, _PASSES, "line `Each kernel will be executed N times`")
    samples = _table(lines, elements * word)
    failed = _validation(lines)
    threads = _threads(lines)
    ranks = [line for line in lines if _RANKS.search(line.text)]
    notes: dict[str, object] = {
        "best_of": f"each rate is the best of {passes - 1} passes, as STREAM prints it",
        "passes": passes,
        "element_B": word,
    }
    if threads is None:  # built without OpenMP
        notes["assumed"] = ["threads"]
    parameters: dict[str, Value] = {"threads": threads or 1, "array_B": elements * word}
    if word == 8 and not ranks:
        parameters["kernel"] = "all"
    if ranks:
        parameters["ranks"] = ranks[0].whole_of(_matched(_RANKS, only_one(ranks, _TOOL, "ranks")), "ranks")
        notes["threads_are"] = "of each rank"
    benchmark = "imported.stream" if ranks or word != 8 else "memory.stream"
    if benchmark == "imported.stream":
        parameters["precision"] = "fp64" if word == 8 else "fp32"
    checks = {"array_bytes": float(elements * word)} if benchmark == "memory.stream" else {}
    experiment = ImportedExperiment(benchmark, tuple(samples), parameters, notes, checks)
    return ImportedFile(_TOOL, version, (experiment,), failed)


def _table(lines: Sequence[Line], array_B: int) -> list[Sample]:
    """The four rows below the header, in order, each checked against its own time."""
    header = only_one([line for line in lines if _HEADER.fullmatch(line.text)], _TOOL, "table of rates in MB/s")
    below = [line for line in lines[header.number :] if line.text.strip()][: len(_COUNTED) + 1]
    stray = [line for line in lines if _ROW.match(line.text) and line not in below]
    if stray:
        raise stray[0].error("a row outside any table")
    samples: list[Sample] = []
    for kernel, line in zip(_COUNTED, below, strict=False):
        row = _ROW.fullmatch(line.text)
        if row is None or row[1] != kernel:
            raise line.error(f"expected the row of {kernel} here")
        samples.append(_sample(line, kernel, row.group(2, 3, 4, 5), array_B))
    if len(below) <= len(_COUNTED) or not below[-1].text.startswith(_RULE):
        raise header.error("the table below this line is cut off")
    return samples


def _sample(line: Line, kernel: str, cells: tuple[str, ...], array_B: int) -> Sample:
    rate = line.number_of(cells[0], "the rate")
    average, least, most = (line.number_or_zero(cell, "a time") for cell in cells[1:])
    work = float(_COUNTED[kernel] * array_B)
    slack = 2 * half_unit(cells[2])
    if not least <= average + slack <= most + 2 * slack:
        raise line.error("the minimum, mean and maximum time are not in this order")
    if not is_product(work / 1e6, (rate, half_unit(cells[0])), (least, half_unit(cells[2]))):
        raise line.error(f"{cells[0]} MB/s in {cells[2]} s is not the {work:.0f} B that {kernel} moves")
    return figures.sample_at_rate(
        kernel.lower(), "bytes", work, figures.in_SI(rate, 1e6), resolution=last_digit(cells[0])
    )


def _validation(lines: Sequence[Line]) -> str:
    """Why STREAM reports a wrong result; empty if the solution validates."""
    verdicts = [line for line in lines if _VALIDATION.match(line.text.strip())]
    failed = [line for line in verdicts if not line.text.strip().startswith("Solution Validates")]
    if failed:
        return failed[0].text.strip()
    if not verdicts:
        return "the file has no line `Solution Validates`: STREAM did not check its results, or its output is cut off"
    only_one(verdicts, _TOOL, "validation")
    return ""


def _threads(lines: Sequence[Line]) -> int | None:
    """The number of threads; None for STREAM without OpenMP, which does not print it."""
    counts = [
        (line, line.whole_of(match[1], "the number of threads"))
        for line in lines
        if (match := _THREADS.search(line.text))
    ]
    if len(counts) > 2 or len({count for _, count in counts}) > 1:
        raise counts[-1][0].error("the number of threads requested differs from the number counted")
    return counts[0][1] if counts else None


def _value(lines: Sequence[Line], pattern: Pattern, what: str) -> int:
    line = only_one([line for line in lines if pattern.fullmatch(line.text.strip())], _TOOL, what)
    return line.whole_of(_matched(pattern, line), what)


def _matched(pattern: Pattern, line: Line, group: int = 1) -> str:
    match = pattern.search(line.text.strip())
    if match is None:
        raise ParseError(_TOOL, line.number, line.text)
    return match[group]


def _figure(name: str) -> Figure:
    return rate(
        name.lower(),
        "B/s",
        "bytes",
        f"{_COUNTED[name]} elements read or written per array element, as STREAM counts; best pass",
        limit=figures.memory_limit(ranks="ranks"),
    )


IMPORTED = figures.imported(
    "stream",
    "STREAM",
    "What total memory bandwidth did STREAM's processes reach?",
    (
        figures.count("ranks", "MPI processes"),
        figures.count("threads", "threads per process"),
        figures.choice("precision", "precision of the elements", "fp64", "fp32"),
        figures.size("array_B", "size of each of the three arrays, over all processes"),
    ),
    tuple(_figure(name) for name in _COUNTED),
)

READER = figures.Reader("stream", read)
