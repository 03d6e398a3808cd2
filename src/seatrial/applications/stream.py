"""STREAM (J. D. McCalpin, stream.c 5.9 and 5.10, stream_mpi.c): text.

The printed rate is the best of all passes except the first; it is the only sample of the repeat. Rate x minimum time
must equal the bytes of the arrays (16 or 24 B per element), so a damaged number is detected.

imported.stream: STREAM over MPI processes, or in single precision; other results of STREAM are `memory.stream`.

The aggregate rate of processes, which may run on several machines, does not measure the memory of one machine.
"""

from __future__ import annotations

import re

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.tables import best_rate
from seatrial.applications.reading.text import Pattern, last_digit
from seatrial.benchmarks.figures import rate
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "STREAM"
_COUNTED = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""Kernel -> elements that it reads and writes, for each element of an array (stream.c, `bytes`)."""

_VERSION = Pattern(r"STREAM version \$Revision: ?([0-9][0-9.]{0,15}) ?\$.{0,80}")
_WORD = Pattern(r"This system uses ([0-9]{1,4}) bytes per (?:array element|DOUBLE PRECISION word)\.")
_ARRAY = Pattern(r"(?:Total Aggregate )?Array size = ([0-9]{1,18})(?: \(elements\))?(?:,.{0,80})?", re.IGNORECASE)
_PASSES = Pattern(r"Each (?:kernel will be executed|test is run) ([0-9]{1,9}) times[,.].{0,80}")
_RANKS = Pattern(r".{0,80}Data is distributed across ([0-9]{1,9}) MPI ranks.{0,80}")
_THREADS = Pattern(r".{0,80}Number of Threads (?:requested|counted)(?: for each MPI rank| for rank 0)? = ([0-9]{1,9})")
_HEADER = Pattern(r"Function\s+(?:Best )?Rate \(?MB/s\)?\s+Avg time\s+Min time\s+Max time")
_ROW = Pattern(r"(Copy|Scale|Add|Triad):\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)")
_VALID = Pattern(r"Solution Validates.{0,200}")
_INVALID = Pattern(r"Failed Validation.{0,200}")
_RULE = "-" * 20


def read(data: bytes) -> ImportedFile:
    """One run of STREAM: `memory.stream`, or `imported.stream` where MPI distributes it over ranks.

    Raises ParseError if the output is cut off, has two runs, or contradicts itself.
    """
    log = Log(_TOOL, data)
    version = log.only(_VERSION, "line `STREAM version`")
    element_B = log.only(_WORD, "line `This system uses N bytes`").whole(1, "the size of an element")
    elements = log.only(_ARRAY, "line `Array size`").whole(1, "the array size")
    if element_B not in (4, 8):
        raise version.error(f"an array element of {element_B} B is neither float nor double")
    array_B = elements * element_B
    passes = log.only(_PASSES, "line `Each kernel will be executed N times`").whole(1, "the passes")
    threads, ranks = _threads(log), log.at_most_one(_RANKS, "number of ranks")
    notes: dict[str, object] = {
        "best_of": f"each rate is the best of {passes - 1} passes, as STREAM prints it",
        "passes": passes,
        "element_B": element_B,
    }
    if threads is None:  # built without OpenMP
        notes["assumed"] = ["threads"]
    parameters: dict[str, Value] = {"threads": threads or 1, "array_B": array_B}
    if ranks is not None:
        parameters["ranks"] = ranks.whole(1, "ranks")
        notes["threads_are"] = "of each rank"
    samples = tuple(_samples(log, array_B))
    if ranks is not None or element_B != 8:
        parameters["precision"] = "fp64" if element_B == 8 else "fp32"
        experiment = ImportedExperiment("imported.stream", samples, parameters, notes)
    else:
        parameters["kernel"] = "all"
        experiment = ImportedExperiment("memory.stream", samples, parameters, notes, {"array_bytes": float(array_B)})
    unchecked = "the file has no line `Solution Validates`: STREAM did not check its results, or its output is cut off"
    return ImportedFile(_TOOL, version.match[1], (experiment,), log.verdict(_INVALID, _VALID, unchecked))


def _samples(log: Log, array_B: int) -> list[Sample]:
    """The four rows below the header, in order, each checked against its own time."""
    header = log.only(_HEADER, "table of rates in MB/s")
    below = [line for line in log.lines[header.line.number :] if log.text(line)][: len(_COUNTED) + 1]
    rows = {row.line.number: row for row in log.found(_ROW)}
    if stray := rows.keys() - {line.number for line in below}:
        raise rows[min(stray)].error("a row outside any table")
    samples: list[Sample] = []
    for (kernel, counted), line in zip(_COUNTED.items(), below, strict=False):
        row = rows.get(line.number)
        if row is None or row.match[1] != kernel:
            raise line.error(f"expected the row of {kernel} here")
        cells = row.match.group(2, 4, 3, 5)
        work = float(counted * array_B)
        value = best_rate(line, kernel, work, cells, 1e6)
        samples.append(figures.sample_at_rate(kernel.lower(), "bytes", work, value, resolution=last_digit(cells[0])))
    if len(below) <= len(_COUNTED) or not log.text(below[-1]).startswith(_RULE):
        raise header.error("the table below this line is cut off")
    return samples


def _threads(log: Log) -> int | None:
    """The number of threads; None for STREAM without OpenMP, which does not print it."""
    counts = log.found(_THREADS)
    if len(counts) > 2 or len({one.match[1] for one in counts}) > 1:
        raise counts[-1].error("the number of threads requested differs from the number counted")
    return counts[0].whole(1, "the number of threads") if counts else None


IMPORTED = figures.imported(
    "stream",
    "STREAM",
    "What total memory bandwidth did STREAM's processes reach?",
    (
        *figures.counts(ranks="MPI processes", threads="threads per process"),
        figures.choice("precision", "precision of the elements", "fp64", "fp32"),
        figures.size("array_B", "size of each of the three arrays, over all processes"),
    ),
    tuple(
        rate(
            name.lower(),
            "B/s",
            f"{counted} elements read or written per array element, as STREAM counts; best pass",
            limit=figures.memory_limit(ranks="ranks"),
        )
        for name, counted in _COUNTED.items()
    ),
)

READER = figures.Reader("stream", read, (_VERSION.text,))
