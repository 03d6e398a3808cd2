"""TheBandwidthBenchmark (RRZE Erlangen): text.

The printed rate is the best of all passes. The tool prints the total size of its four arrays; rate x minimum time must
equal the bytes that the kernel moves, so a damaged number is detected.
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

_TOOL = "TheBandwidthBenchmark"
_WORDS = {"Init": 1, "Sum": 1, "Copy": 2, "Update": 2, "Triad": 3, "Daxpy": 3, "STriad": 4, "SDaxpy": 4}
"""Kernel -> words moved per element (README of TheBandwidthBenchmark)."""
_FLOP = {"Sum": 1, "Update": 1, "Triad": 2, "Daxpy": 2, "STriad": 2, "SDaxpy": 2}
"""Kernel -> floating-point operations per element."""
_ARRAYS = 4

_SIZE = Pattern(r"Total allocated datasize:\s{1,9}([0-9.]{1,24}) MB")
_THREADS = Pattern(r"OpenMP enabled, running with ([0-9]{1,9}) threads")
_HEADER = Pattern(r"Function\s+Rate\s?\(([MG])B/s\)(?:\s+Rate\s?\(([MG])Flop/s\))?\s+Avg time\s+Min time\s+Max time\s*")
_VALID = Pattern(r"Solution Validates.{0,80}")
_FAILED = Pattern(r"(?:Failed Validation|Solution does not validate).{0,200}", re.IGNORECASE)
_PREFIXES = {"M": 1e6, "G": 1e9}


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError if the output is cut off, has two runs, or contradicts itself."""
    lines = read_lines(data, _TOOL)
    size = only_one(
        [line for line in lines if _SIZE.fullmatch(line.text.strip())], _TOOL, "line `Total allocated datasize`"
    )
    match = _SIZE.fullmatch(size.text.strip())
    total_MB = size.number_of(match[1] if match else "", "the data size")
    array_B = round(total_MB * 1e6 / _ARRAYS)
    samples = _table(lines, array_B)
    notes: dict[str, object] = {
        "best_of": "each rate is the best of all passes, as the tool prints it",
        "array_B": f"a quarter of the {total_MB:g} MB that the file states",
    }
    threads = [line for line in lines if _THREADS.search(line.text)]
    parameters: dict[str, Value] = {"array_B": array_B, "threads": 1}
    if not threads:
        notes["assumed"] = ["threads"]
    else:
        found = _THREADS.search(only_one(threads, _TOOL, "line `OpenMP enabled`").text)
        parameters["threads"] = threads[0].whole_of(found[1] if found else "", "the number of threads")
    experiment = ImportedExperiment("imported.thebandwidthbenchmark", tuple(samples), parameters, notes)
    return ImportedFile(_TOOL, "", (experiment,), _validation(lines))


def _table(lines: Sequence[Line], array_B: int) -> list[Sample]:
    header = only_one([line for line in lines if _HEADER.fullmatch(line.text)], _TOOL, "table of rates")
    match = _HEADER.fullmatch(header.text)
    if match is None:
        raise header.error("no table")
    below = lines[header.number : header.number + len(_WORDS) + 1]
    stray = [line for line in lines if line.words[:1] and line.words[0] in _WORDS and line not in below]
    if stray:
        raise stray[0].error("a row outside any table")
    if len(below) <= len(_WORDS) or not below[-1].text.startswith("-" * 20):
        raise header.error("the table below this line is cut off")
    samples: list[Sample] = []
    for kernel, line in zip(_WORDS, below, strict=False):
        words = line.words
        if len(words) != (6 if match[2] else 5) or words[0] != kernel:
            raise line.error(f"expected the row of {kernel} here")
        samples += _row(line, kernel, array_B, match[1], match[2])
    return samples


def _row(line: Line, kernel: str, array_B: int, prefix: str, flop_prefix: str | None) -> list[Sample]:
    words = line.words
    rate = line.number_of(words[1], "the rate")
    mean, least, most = (line.number_or_zero(word, "a time") for word in words[-3:])
    slack = 2 * half_unit(words[-2])
    if not least <= mean + slack or not mean <= most + slack:
        raise line.error("the minimum, mean and maximum time are not in this order")
    time_s, unit = (least, half_unit(words[-2])), _PREFIXES[prefix]
    work = _WORDS[kernel] * array_B
    # The data size is printed to 0.01 MB, which limits how exactly the work of small arrays is known.
    slack_of_size = 1.0 + 0.005e6 / _ARRAYS / array_B
    if not is_product(work / unit, (rate, half_unit(words[1]) * slack_of_size), time_s):
        raise line.error(f"{words[1]} {prefix}B/s in {words[-2]} s is not the {work} B that {kernel} moves")
    samples = [figures.rate_sample(kernel.lower(), figures.in_SI(rate, unit), resolution=last_digit(words[1]))]
    if flop_prefix is not None and kernel in _FLOP:
        # An element has 8 B, or 4 B in single precision: flops per byte must fit one of them.
        flops = figures.in_SI(line.number_of(words[2], "the rate of operations"), _PREFIXES[flop_prefix])
        slack_flops = half_unit(words[2]) * _PREFIXES[flop_prefix]
        expected = [rate * unit / (_WORDS[kernel] * element) * _FLOP[kernel] for element in (4, 8)]
        if not any(abs(flops - value) <= 2 * slack_flops + 0.001 * value for value in expected):
            raise line.error(f"{words[2]} {flop_prefix}Flop/s does not fit {words[1]} {prefix}B/s")
        samples.append(figures.rate_sample(f"{kernel.lower()}_flops", flops, resolution=last_digit(words[2])))
    return samples


def _validation(lines: Sequence[Line]) -> str:
    failed = next((line.text.strip() for line in lines if _FAILED.match(line.text.strip())), None)
    if failed is not None:
        return failed
    valid = [line for line in lines if _VALID.fullmatch(line.text.strip())]
    if not valid:
        return "the file has no line `Solution Validates`: the tool did not check its results"
    only_one(valid, _TOOL, "validation")
    return ""


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

READER = figures.Reader("thebandwidthbenchmark", read)
