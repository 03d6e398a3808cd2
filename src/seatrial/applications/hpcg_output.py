"""The report of HPCG (3.1, and builds of vendors): `HPCG-Benchmark_*.txt`, lines `section::key=value`. Version 3.0
wrote the same as YAML: a section, and below it its keys, indented.

NVIDIA's build prints it on the terminal, and leaves out the local nz. Of the five ratings in a report, the one of the
line `VALID` counts. It is total operations over total time with overheads; the report has all three, so a damaged
number is detected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.applications.reading.log import Log
from seatrial.applications.reading.tables import body
from seatrial.applications.reading.text import LogLine, Pattern
from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import half_unit

TOOL = "HPCG"
SHORTEST_OFFICIAL_S = 1800.0
"""An official result takes at least this long (HPCG's own report says so)."""

_ENTRY = Pattern(r"([^=]{1,200})=(.{0,200})")
_FINAL = "Final Summary"
_RATING = f"{_FINAL}::HPCG result is VALID with a GFLOP/s rating of"
_INVALID = Pattern(rf"{_FINAL}::HPCG result is INVALID.{{0,80}}")
_OFFICIAL = f"{_FINAL}::Official results execution time (sec) must be at least"
_LAST = Pattern(
    rf"{_FINAL}::(?:Official results execution time|(?:After confirmation p|P)lease upload results from the YAML file)"
)
"""The key that ends a report: too short for the list, by the short path, or long enough."""
_WHOLE_LAST = Pattern(rf"{_LAST.text}.{{0,40}}=(?:http://hpcg-benchmark\.org/?|1800)")
_TITLE = Pattern(r"(?:HPCG-Benchmark|(?:n\d{1,6}-)?\d{1,9}p-\d{1,6}t)(?: version: (V?[0-9][\w.]{0,20}))?")
"""The first line of a report, with the version where it is YAML; in builds of Intel, the local size, ranks and threads.
"""
_YAML = Pattern(r"( *)(\S[^=]{0,199}?):(?: (.{0,200}))?")
_SPACED_FINAL = Pattern(rf"^ ?{_FINAL} ?:: *")
"""Builds of Intel have spaces around it."""
_OVERHEADS_DIFFER = 0.02
_SHORT_S = 1.0
_OVERHEAD = "Total with convergence and optimization phase overhead"
_COUNTS = {
    "ranks": "Machine Summary::Distributed Processes",
    "threads": "Machine Summary::Threads per processes",
    "nx": "Local Domain Dimensions::nx",
    "ny": "Local Domain Dimensions::ny",
}
_LOCAL_NZ = "Local Domain Dimensions::nz"
_RATES = {
    "bandwidth": f"GB/s Summary::{_OVERHEAD}",
    "ddot": "GFLOP/s Summary::Raw DDOT",
    "waxpby": "GFLOP/s Summary::Raw WAXPBY",
    "spmv": "GFLOP/s Summary::Raw SpMV",
    "mg": "GFLOP/s Summary::Raw MG",
}
_KERNELS = {"ddot": "DDOT", "waxpby": "WAXPBY", "spmv": "SpMV", "mg": "MG"}
_TESTS = (
    "Spectral Convergence Tests",
    "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon",
    "Iteration Count Information",
    "Reproducibility Information",
)
_PRINTED = 2e-5
"""Numbers are printed to six digits, as C++ streams print them."""


class HpcgReport(Frozen):
    """One report. `failed` says why the result is wrong, as HPCG says it ("": it is not); then there are no `rates`.

    `counts` has ranks, threads, nx, ny and nz (of one process; no nz where the report does not state it, and processes
    share the global one unevenly); `rates` rating, ddot, waxpby, spmv and mg in Gflop/s,
    bandwidth in GB/s, as printed; `total_s` is the time of the timed sets.
    """

    version: str
    counts: Mapping[str, int]
    rates: Mapping[str, float]
    total_s: float
    official_s: float
    is_reference_code: bool
    failed: str

    @property
    def notes(self) -> dict[str, object]:
        """Whether it can be an official result."""
        return {
            "submission_valid": self.submission_valid,
            "shortest_official_s": self.official_s,
            "reference_code": self.is_reference_code,
        }

    @property
    def submission_valid(self) -> bool:
        """Whether it could be an official result by its time; the report words it so, whether or not it was enough."""
        return not self.failed and self.total_s >= max(self.official_s, SHORTEST_OFFICIAL_S)


def read_hpcg(log: Log) -> HpcgReport:
    """The report in a log. Raises ParseError where it is cut off, holds two, or contradicts itself."""
    entries, invalid = _entries(log)
    counts = {name: entries.whole(key, name) for name, key in _COUNTS.items()} | _local_nz(entries)
    official_s = entries.number(_OFFICIAL) if _OFFICIAL in entries.of else SHORTEST_OFFICIAL_S
    total_s = entries.number("Benchmark Time Summary::Total")
    failed = _failed(entries, invalid)
    return HpcgReport(
        version=entries.text("version"),
        counts=counts,
        rates={} if failed else _rates(entries, total_s),
        total_s=total_s,
        official_s=official_s,
        is_reference_code=any("Reference version of" in key for key in entries.of),
        failed=failed,
    )


def _local_nz(entries: _Entries) -> dict[str, int]:
    """The local nz: as stated, else the global one over the processes along z."""
    if _LOCAL_NZ in entries.of:
        return {"nz": entries.whole(_LOCAL_NZ, "nz")}
    whole = entries.whole("Global Problem Dimensions::Global nz", "the global nz")
    processes = entries.whole("Processor Dimensions::npz", "npz")
    return {} if whole % processes else {"nz": whole // processes}


class _Entries(Frozen):
    """Key -> (value, its line)."""

    of: Mapping[str, tuple[str, LogLine]]
    log: Log

    def error(self, key: str, why: str) -> ParseError:
        """The error that the line of this key is wrong."""
        return self.of[key][1].error(why)

    def text(self, key: str) -> str:
        """The value of a key. Raises ParseError where there is none."""
        if key not in self.of:
            raise self.log.error(f"the report has no {key!r}: it is cut off, or of an unknown version")
        return self.of[key][0]

    def number(self, key: str) -> float:
        """The value of a key as a number above zero."""
        token = self.text(key)
        return self.of[key][1].number_of(token, key)

    def whole(self, key: str, what: str) -> int:
        """The value of a key as a whole number from 1 on."""
        token = self.text(key)
        return self.of[key][1].whole_of(token, what)


def _entries(log: Log) -> tuple[_Entries, str]:
    """The entries, and what the report says where its result is invalid.

    Raises ParseError for a report that begins twice or does not end. The levels of coarse grids repeat their keys. A
    last line without its line break counts if it ends as reports do.
    """
    starts = log.found(_TITLE)
    if not starts:
        raise log.error("no line `HPCG-Benchmark` found: give the report HPCG-Benchmark_*.txt")
    if len(starts) > 1:
        first = starts[0].line.number
        raise starts[1].error(f"a second report begins here (the first: line {first}); put each in its own file")
    entries: dict[str, tuple[str, LogLine]] = {}
    invalid = ""
    title = starts[0]
    below = log.lines[title.line.number :]
    texts = [(line, log.text(line)) for line in below]
    if title.match[1] is not None:
        entries["version"] = (title.match[1], title.line)
        texts = list(_of_yaml(below))
    for line, spaced in texts:
        text = _SPACED_FINAL.sub(f"{_FINAL}::", spaced)
        if not line.is_ended and _WHOLE_LAST.fullmatch(text) is None:
            continue
        if _INVALID.match(text):
            invalid = text.removeprefix(f"{_FINAL}::")
        match = _ENTRY.fullmatch(text)
        if match is None:
            continue
        if match[1] in entries and "Coarse Grids" not in match[1]:
            raise line.error(f"duplicate key (first on line {entries[match[1]][1].number})")
        entries[match[1]] = (match[2].strip(), line)
        if _LAST.match(match[1]):
            break
    is_whole = _RATING in entries and any(_LAST.match(key) for key in entries)
    if not invalid and not is_whole:
        raise log.lines[-1].error("the report is cut off: its final summary is incomplete")
    return _Entries(entries, log), invalid


def _of_yaml(lines: Sequence[LogLine]) -> Iterator[tuple[LogLine, str]]:
    """Lines of a report in YAML as later versions write them, `section::key=value`, up to its end."""
    above: list[tuple[int, str]] = []
    for line in lines:
        match = _YAML.fullmatch(body(line).rstrip())
        if match is None:
            continue
        indent, key, value = len(match[1]), match[2].strip("#_ "), (match[3] or "").strip()
        while above and above[-1][0] >= indent:
            above.pop()
        text = f"{'::'.join([*(name for _, name in above), key])}={value}"
        yield line, text
        if _LAST.match(text):
            return
        if not value:
            above.append((indent, key))


def _failed(entries: _Entries, invalid: str) -> str:
    """Why the result is wrong, as the report says; empty where it is not."""
    for test in _TESTS:
        result = entries.text(f"{test}::Result")
        if result != "PASSED":
            return f"{test.partition(' |')[0]}: {result}"
    return invalid


def _rates(entries: _Entries, total_s: float) -> dict[str, float]:
    rating = entries.number(_RATING)
    if entries.text(_RATING) != entries.text(f"GFLOP/s Summary::{_OVERHEAD}"):
        raise entries.error(_RATING, "the rating differs from that of the GFLOP/s summary")
    _check(entries, "GFLOP/s Summary::Raw Total", "Floating Point Operations Summary::Total", total_s)
    for name, kernel in _KERNELS.items():
        time_s = entries.number(f"Benchmark Time Summary::{kernel}")
        _check(entries, _RATES[name], f"Floating Point Operations Summary::Raw {kernel}", time_s)
    raw = entries.number("GFLOP/s Summary::Raw Total")
    if rating > raw * 1.0001:
        raise entries.error(_RATING, "the rating, with its overheads, is above the raw rate")
    _check_bandwidth(entries, rating / raw, _OVERHEADS_DIFFER if total_s < _SHORT_S else 1e-4)
    return {"rating": rating, **{name: entries.number(key) for name, key in _RATES.items()}}


def _check_bandwidth(entries: _Entries, share: float, tolerance: float) -> None:
    """Whether reads and writes make the raw bandwidth, of which overheads leave the same share as of the raw rate: but
    a build was seen that counts them for the bandwidth differently, by 1 % of a run of 0.07 s."""
    group = "GB/s Summary::"
    total = entries.number(f"{group}Raw Total B/W")
    sum_of_both = sum(entries.number(f"{group}Raw {way} B/W") for way in ("Read", "Write"))
    left = entries.number(f"{group}{_OVERHEAD}")
    if abs(sum_of_both - total) > 1e-4 * total:
        raise entries.error(f"{group}Raw Total B/W", "it is not the sum of the bandwidths of reads and writes")
    if abs(left - share * total) > tolerance * total:
        why = (
            f"overheads leave {share:.2%} of the raw rate in this rating, but {left / total:.2%} of the raw bandwidth "
            f"in `{_OVERHEAD}`; these two belong together, so one of the numbers is wrong"
        )
        raise entries.error(_RATING, why)


def _check(entries: _Entries, rate_key: str, work_key: str, time_s: float) -> None:
    """Rate x time = work, to the digits printed."""
    rate, work = entries.number(rate_key), entries.number(work_key) / 1e9
    off = max(_PRINTED, half_unit(entries.text(rate_key)) / rate)
    if abs(rate * time_s - work) > (off + 1.5 * _PRINTED) * work:
        raise entries.error(rate_key, f"this rate x {time_s:g} s does not give the work in the report")
