"""HPCG (3.1, and vendors' builds with the same report): the file `HPCG-Benchmark_*.txt`, lines `section::key=value`.

The rating is total operations over total time with overheads; the report holds all three, so a damaged number shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from seatrial.errors import ParseError
from seatrial.imports.reader import Reader
from seatrial.imports.samples import in_SI, rate_sample, time_sample
from seatrial.imports.text import Line, half_unit, is_product, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample

_TOOL = "HPCG"
_ENTRY = re.compile(r"([^=]{1,200})=(.{0,200})")
_FINAL = "Final Summary"
_RATING = f"{_FINAL}::HPCG result is VALID with a GFLOP/s rating of"
_INVALID = re.compile(rf"{_FINAL}::HPCG result is INVALID.{{0,80}}")
_OFFICIAL = f"{_FINAL}::Official results execution time (sec) must be at least"
_LAST = re.compile(
    rf"{_FINAL}::(?:Official results execution time|(?:After confirmation p|P)lease upload results from the YAML file)"
)
"""The key that ends a report: too short for the list, by the short path, or long enough."""
_SHORTEST_OFFICIAL_S = 1800.0
_OVERHEAD = "Total with convergence and optimization phase overhead"
_PARAMETERS = {
    "ranks": "Machine Summary::Distributed Processes",
    "threads": "Machine Summary::Threads per processes",
    "nx": "Local Domain Dimensions::nx",
    "ny": "Local Domain Dimensions::ny",
    "nz": "Local Domain Dimensions::nz",
}
_RATES = {
    "bandwidth": (f"GB/s Summary::{_OVERHEAD}", 1e9),
    "ddot": ("GFLOP/s Summary::Raw DDOT", 1e9),
    "waxpby": ("GFLOP/s Summary::Raw WAXPBY", 1e9),
    "spmv": ("GFLOP/s Summary::Raw SpMV", 1e9),
    "mg": ("GFLOP/s Summary::Raw MG", 1e9),
}
_TIMES = {"ddot": "DDOT", "waxpby": "WAXPBY", "spmv": "SpMV", "mg": "MG"}
_TESTS = (
    "Spectral Convergence Tests",
    "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon",
    "Iteration Count Information",
    "Reproducibility Information",
)
Entries = Mapping[str, tuple[str, Line]]


def read(data: bytes) -> ImportedFile:
    """One report of HPCG. Raises ParseError where it is cut off, holds two runs, or contradicts itself."""
    entries, invalid = _entries(read_lines(data, _TOOL))
    parameters: dict[str, Value] = {
        name: _line(entries, key).whole_of(_TOOL, entries[key][0], name) for name, key in _PARAMETERS.items()
    }
    official = _number(entries, _OFFICIAL) if _OFFICIAL in entries else _SHORTEST_OFFICIAL_S
    total_s = _number(entries, "Benchmark Time Summary::Total")
    failed = _failed(entries, invalid)
    samples = [] if failed else _samples(entries, total_s)
    notes = {
        # The report words it so, whether or not the time was enough.
        "submission_valid": not failed and total_s >= max(official, _SHORTEST_OFFICIAL_S),
        "shortest_official_s": official,
        "reference_code": any("Reference version of" in key for key in entries),
    }
    experiment = ImportedExperiment("imported.hpcg", tuple(samples), parameters, notes)
    return ImportedFile(_TOOL, _text(entries, "version"), (experiment,), failed)


def _entries(lines: Sequence[Line]) -> tuple[dict[str, tuple[str, Line]], str]:
    """Key -> (value, line) and what the report says where its result is invalid.

    Raises ParseError for a report that begins twice or does not end. The levels of coarse grids repeat their keys.
    """
    start = next((i for i, line in enumerate(lines) if line.text.strip() == "HPCG-Benchmark"), None)
    if start is None:
        raise ParseError(_TOOL, None, "", "there is no line `HPCG-Benchmark`: give the report HPCG-Benchmark_*.txt")
    entries: dict[str, tuple[str, Line]] = {}
    invalid = ""
    for line in lines[start + 1 :]:
        text = line.text.strip()
        match = _ENTRY.fullmatch(text)
        if text == "HPCG-Benchmark":
            raise line.error(_TOOL, "a second report begins here; give each in a file of its own")
        if _INVALID.match(text):
            invalid = text.removeprefix(f"{_FINAL}::")
        if match is None or not line.is_ended:
            continue
        if match[1] in entries and "Coarse Grids" not in match[1]:
            raise line.error(_TOOL, f"this key stands in line {entries[match[1]][1].number} too")
        entries[match[1]] = (match[2].strip(), line)
    is_whole = _RATING in entries and any(_LAST.match(key) for key in entries)
    if not invalid and not is_whole:
        why = "the report is cut off: its final summary is not whole"
        raise ParseError(_TOOL, lines[-1].number, lines[-1].text, why)
    return entries, invalid


def _failed(entries: Entries, invalid: str) -> str:
    """Why the result is wrong, as the report says; empty where it is not."""
    for test in _TESTS:
        result = _text(entries, f"{test}::Result")
        if result != "PASSED":
            return f"{test.partition(' |')[0]}: {result}"
    return invalid


def _samples(entries: Entries, total_s: float) -> list[Sample]:
    rating = _number(entries, _RATING)
    if entries[_RATING][0] != _text(entries, f"GFLOP/s Summary::{_OVERHEAD}"):
        raise _line(entries, _RATING).error(_TOOL, "the rating is not that of the GFLOP/s summary")
    _check(entries, "GFLOP/s Summary::Raw Total", "Floating Point Operations Summary::Total", total_s, 1e9)
    for name, time in _TIMES.items():
        operations = f"Floating Point Operations Summary::Raw {time}"
        _check(entries, _RATES[name][0], operations, _number(entries, f"Benchmark Time Summary::{time}"), 1e9)
    raw = _number(entries, "GFLOP/s Summary::Raw Total")
    if rating > raw * 1.0001:
        raise _line(entries, _RATING).error(_TOOL, "the rating, with its overheads, is above the raw rate")
    _check_bandwidth(entries, rating / raw)
    samples = [rate_sample("rating", in_SI(rating, 1e9))]
    samples += [rate_sample(name, in_SI(_number(entries, key), scale)) for name, (key, scale) in _RATES.items()]
    return [*samples, time_sample("time", total_s)]


def _check_bandwidth(entries: Entries, share: float) -> None:
    """Whether reads and writes make the raw bandwidth, of which overheads leave the same share as of the raw rate."""
    group = "GB/s Summary::"
    total = _number(entries, f"{group}Raw Total B/W")
    sum_of_both = sum(_number(entries, f"{group}Raw {way} B/W") for way in ("Read", "Write"))
    left = _number(entries, f"{group}{_OVERHEAD}")
    if abs(sum_of_both - total) > 1e-4 * total or abs(left - share * total) > 1e-4 * total:
        raise _line(entries, f"{group}Raw Total B/W").error(_TOOL, "the bandwidths of the report do not fit together")


def _check(entries: Entries, rate_key: str, work_key: str, time_s: float, scale: float) -> None:
    """Rate x time = work, to the digits printed (six, as C++ streams print them)."""
    rate, work = _number(entries, rate_key), _number(entries, work_key)
    near = 2e-5  # all three are printed to six digits
    if not is_product(work / scale, (rate, max(rate * near, half_unit(entries[rate_key][0]))), (time_s, time_s * near)):
        raise _line(entries, rate_key).error(_TOOL, f"this rate x {time_s:g} s is not the work of the report")


def _line(entries: Entries, key: str) -> Line:
    if key not in entries:
        raise ParseError(_TOOL, None, "", f"the report has no {key!r}: it is cut off, or of a version not known here")
    return entries[key][1]


def _number(entries: Entries, key: str) -> float:
    return _line(entries, key).number_of(_TOOL, entries[key][0], key)


def _text(entries: Entries, key: str) -> str:
    _line(entries, key)
    return entries[key][0]


READER = Reader("hpcg", read)
