"""TheBandwidthBenchmark (RRZE Erlangen): text.

The printed rate is the best of all passes. The tool prints the total size of its four arrays; rate x minimum time must
equal the bytes that the kernel moves, so a damaged number is detected.
"""

from __future__ import annotations

import re

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.tables import best_rate
from seatrial.applications.reading.text import LogLine, Pattern, last_digit
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "TheBandwidthBenchmark"
_WORDS = {"Init": 1, "Sum": 1, "Copy": 2, "Update": 2, "Triad": 3, "Daxpy": 3, "STriad": 4, "SDaxpy": 4}
"""Kernel -> words moved per element (README of TheBandwidthBenchmark)."""
_FLOP = {"Sum": 1, "Update": 1, "Triad": 2, "Daxpy": 2, "STriad": 2, "SDaxpy": 2}
"""Kernel -> floating-point operations per element."""
_ARRAYS = 4

_SIZE = Pattern(r"Total allocated datasize:\s{1,9}([0-9.]{1,24}) MB")
_THREADS = Pattern(r".{0,80}OpenMP enabled, running with ([0-9]{1,9}) threads.{0,80}")
_HEADER = Pattern(r"Function\s+Rate\s?\(([MG])B/s\)(?:\s+Rate\s?\(([MG])Flop/s\))?\s+Avg time\s+Min time\s+Max time")
_VALID = Pattern(r"Solution Validates.{0,80}")
_FAILED = Pattern(r"(?:Failed Validation|Solution does not validate).{0,200}", re.IGNORECASE)
_PREFIXES = {"M": 1e6, "G": 1e9}


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError if the output is cut off, has two runs, or contradicts itself."""
    log = Log(_TOOL, data)
    total_MB = log.only(_SIZE, "line `Total allocated datasize`").number(1, "the data size")
    array_B = round(total_MB * 1e6 / _ARRAYS)
    threads = log.at_most_one(_THREADS, "line `OpenMP enabled`")
    parameters: dict[str, Value] = {
        "array_B": array_B,
        "threads": 1 if threads is None else threads.whole(1, "the number of threads"),
    }
    notes: dict[str, object] = {
        "best_of": "each rate is the best of all passes, as the tool prints it",
        "array_B": f"a quarter of the {total_MB:g} MB that the file states",
        **({"assumed": ["threads"]} if threads is None else {}),
    }
    experiment = ImportedExperiment("imported.thebandwidthbenchmark", tuple(_table(log, array_B)), parameters, notes)
    unchecked = "the file has no line `Solution Validates`: the tool did not check its results"
    return ImportedFile(_TOOL, "", (experiment,), log.verdict(_FAILED, _VALID, unchecked))


def _table(log: Log, array_B: int) -> list[Sample]:
    header = log.only(_HEADER, "table of rates")
    below = log.lines[header.line.number : header.line.number + len(_WORDS) + 1]
    stray = [line for line in log.lines if line.words[:1] and line.words[0] in _WORDS and line not in below]
    if stray:
        raise stray[0].error("a row outside any table")
    if len(below) <= len(_WORDS) or not log.text(below[-1]).startswith("-" * 20):
        raise header.error("the table below this line is cut off")
    samples: list[Sample] = []
    for kernel, line in zip(_WORDS, below, strict=False):
        if len(line.words) != (6 if header.match[2] else 5) or line.words[0] != kernel:
            raise line.error(f"expected the row of {kernel} here")
        samples += _row(line, kernel, array_B, header.match[1], header.match[2])
    return samples


def _row(line: LogLine, kernel: str, array_B: int, prefix: str, flop_prefix: str | None) -> list[Sample]:
    words = line.words
    mean, least, most = words[-3:]
    # The data size is printed to 0.01 MB, which limits how exactly the work of small arrays is known.
    slack = 1.0 + 0.005e6 / _ARRAYS / array_B
    cells = (words[1], least, mean, most)
    rate = best_rate(line, kernel, _WORDS[kernel] * array_B, cells, _PREFIXES[prefix], slack)
    samples = [figures.rate_sample(kernel.lower(), rate, resolution=last_digit(words[1]))]
    if flop_prefix is not None and kernel in _FLOP:
        # An element has 8 B, or 4 B in single precision: flops per byte must fit one of them.
        unit = _PREFIXES[flop_prefix]
        flops = figures.in_SI(line.number_of(words[2], "the rate of operations"), unit)
        expected = [rate / (_WORDS[kernel] * element) * _FLOP[kernel] for element in (4, 8)]
        if not any(abs(flops - value) <= 2 * half_unit(words[2]) * unit + 0.001 * value for value in expected):
            raise line.error(f"{words[2]} {flop_prefix}Flop/s does not fit {words[1]} {prefix}B/s")
        samples.append(figures.rate_sample(f"{kernel.lower()}_flops", flops, resolution=last_digit(words[2])))
    return samples


IMPORTED = figures.imported(
    "thebandwidthbenchmark",
    "TheBandwidthBenchmark",
    "What memory bandwidth did the kernels of TheBandwidthBenchmark reach?",
    (figures.count("threads", "threads"), figures.size("array_B", "size of each of the four arrays")),
    (
        *(
            figures.rate(name.lower(), "B/s", f"{words} words moved per element; best pass", figures.memory_limit())
            for name, words in _WORDS.items()
        ),
        *(
            figures.rate(
                f"{name.lower()}_flops", "flop/s", f"{flop} flop per element; best pass", figures.flops_limit()
            )
            for name, flop in _FLOP.items()
        ),
    ),
)

READER = figures.Reader("thebandwidthbenchmark", read, (_SIZE.text,))
