"""HPC Challenge (hpcc 1.4 and 1.5): the `key=value` summary section of `hpccoutf.txt`.

The body above it has many of the same numbers with more digits; if it is present, they must agree with the summary.

imported.hpcc: the tests of the HPC Challenge.

"Star" tests run on all processes at once and report the mean per process; "single" tests run on one process alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.text import SIX_DIGITS, LogLine, Pattern, is_product, number
from seatrial.model.benchmark.benchmark import Figure
from seatrial.model.benchmark.parameter import UNKNOWN, Params, Value, beyond_caches_B, whole
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "hpcc"
_BEGIN, _END = Pattern(r"Begin of Summary section\."), Pattern(r"End of Summary section\.")
_ENTRY = Pattern(r"([A-Za-z_][A-Za-z0-9_]{0,60})=(.{0,100})")
_SECTION = Pattern(r"(Begin|End) of ([A-Za-z_]{1,40}) section\.")
_HOST = Pattern(r"Hostname: '([^']{1,200})'")
_WRONG = Pattern(r".{0,200}(?:\.{2,9}\s{0,9}FAILED|\(failed\)\.?)")
_DATE = Pattern(r"Current time \(([0-9]{1,12})\) is .{0,80}")


def _dram(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The DRAM bandwidth if the arrays are beyond the caches. Their size follows HPL's N, which may be small."""
    elements = params["stream_elements"]
    least_B = beyond_caches_B(machine, machine.pus)
    is_given = machine.named_limit(figures.GIVEN_BANDWIDTH) is not None
    if not is_given and (elements == UNKNOWN or least_B is None or whole(elements) * 8 < least_B):
        return Limit.unknown("B/s", "the arrays are not known to be beyond the caches")
    return figures.memory_limit(ranks="ranks")(machine, params, samples)


_STREAM = {"Copy": 16, "Scale": 16, "Add": 24, "Triad": 24}
_STAR, _SINGLE = "mean per process while all run", "one process alone"
_WHOSE = {"MPI": "all processes together", "Star": _STAR, "Single": _SINGLE}
_WHICH = {"Min": "minimum", "Avg": "mean", "Max": "maximum"}
_FFT = "5 n log2(n) flop"
_RING = "B in both directions around"

_RATES: Mapping[str, Figure] = {
    "HPL_Tflops": figures.rate(
        "hpl", "flop/s", "2/3 n^3 + 3/2 n^2 flop, as HPL counts", figures.flops_limit(ranks="ranks")
    ),
    "StarDGEMM_Gflops": figures.rate("star_dgemm", "flop/s", f"2 n^3 flop; {_STAR}", figures.flops_limit()),
    "SingleDGEMM_Gflops": figures.rate("single_dgemm", "flop/s", f"2 n^3 flop; {_SINGLE}", figures.flops_limit()),
    "PTRANS_GBs": figures.rate("ptrans", "B/s", "8 n^2 B, as PTRANS counts"),
    **{
        f"{who}RandomAccess{variant}_GUPs": figures.rate(
            f"{who}_random_access{variant}".lower(), "op/s", f"table updates; {whose}{generator}"
        )
        for variant, generator in (("", ""), ("_LCG", "; linear congruential generator"))
        for who, whose in _WHOSE.items()
    },
    **{
        f"{who}STREAM_{kernel}": figures.rate(
            f"{who}_stream_{kernel}".lower(),
            "B/s",
            f"{counted} B per element, as STREAM counts; {_WHOSE[who]}; best pass",
            _dram,
        )
        for who in ("Star", "Single")
        for kernel, counted in _STREAM.items()
    },
    **{
        f"{who}FFT_Gflops": figures.rate(
            f"{who}_fft".lower(),
            "flop/s",
            f"{_FFT}; {whose}",
            figures.flops_limit(ranks="ranks" if who == "MPI" else None),
        )
        for who, whose in _WHOSE.items()
    },
    **{
        f"{which}PingPongBandwidth_GBytes": figures.rate(
            f"ping_pong_bandwidth_{which}".lower(), "B/s", f"2,000,000 B back and forth; {word} over pairs"
        )
        for which, word in _WHICH.items()
    },
    "NaturallyOrderedRingBandwidth_GBytes": figures.rate(
        "natural_ring_bandwidth", "B/s", f"2,000,000 {_RING} a ring, ranks in order"
    ),
    "RandomlyOrderedRingBandwidth_GBytes": figures.rate(
        "random_ring_bandwidth", "B/s", f"2,000,000 {_RING} rings, ranks in random order"
    ),
}
"""Key of the summary -> the figure. hpcc counts decimal gigabytes."""
_TIMES: Mapping[str, Figure] = {
    "HPL_time": figures.time("hpl_time", "time of HPL"),
    **{
        f"{which}PingPongLatency_usec": figures.time(
            f"ping_pong_latency_{which}".lower(), f"8 B one way; {word} over pairs"
        )
        for which, word in _WHICH.items()
    },
    "NaturallyOrderedRingLatency_usec": figures.time("natural_ring_latency", f"8 {_RING} a ring, ranks in order"),
    "RandomlyOrderedRingLatency_usec": figures.time("random_ring_latency", f"8 {_RING} rings, ranks in random order"),
}
_UNITS = {"HPL_Tflops": 1e12, "HPL_time": 1.0, **dict.fromkeys(_TIMES.keys() - {"HPL_time"}, 1e-6)}
"""In SI; that of the other keys is 1e9."""
_PARAMETERS = {
    "ranks": ("CommWorldProcs", "processes"),
    "n": ("HPL_N", "order of HPL's matrix"),
    "nb": ("HPL_NB", "block size of HPL"),
    "p": ("HPL_nprow", "rows of HPL's process grid"),
    "q": ("HPL_npcol", "columns of HPL's process grid"),
    "ptrans_n": ("PTRANS_n", "order of PTRANS' matrix"),
    "dgemm_n": ("DGEMM_N", "order of DGEMM's matrices"),
    "stream_elements": ("STREAM_VectorSize", "elements of each STREAM array, per process"),
    "stream_threads": ("STREAM_Threads", "STREAM threads per process"),
    "fft_n": ("FFT_N", "length of the FFT of each process"),
    "random_access_n": ("RandomAccess_N", "words in the RandomAccess table of each process"),
}
_BODY = {
    "StarDGEMM_Gflops": ("StarDGEMM", "Average Gflop/s"),
    "SingleDGEMM_Gflops": ("SingleDGEMM", "Single DGEMM Gflop/s"),
    "StarFFT_Gflops": ("StarFFT", "Average Gflop/s"),
    "SingleFFT_Gflops": ("SingleFFT", "Single FFT Gflop/s"),
    "MPIFFT_Gflops": ("MPIFFT", "Gflop/s:"),
    **{
        f"{who}RandomAccess{variant}_GUPs": (f"{who}RandomAccess{variant}", f"{label} GUP/s")
        for who, label in (("Star", "Average"), ("Single", "Single"))
        for variant in ("", "_LCG")
    },
    **{f"StarSTREAM_{kernel}": ("StarSTREAM", f"Average {kernel} GB/s") for kernel in _STREAM},
    **{f"SingleSTREAM_{kernel}": ("SingleSTREAM", f"Single STREAM {kernel} GB/s") for kernel in _STREAM},
}
"""Key of the summary -> (section, label) of the same number in the body."""

Entries = Mapping[str, tuple[str, LogLine]]


def read(data: bytes) -> ImportedFile:
    """One run of hpcc. Raises ParseError if the output is cut off, has two runs, or contradicts itself.

    A part that was not run has the value -1 in the summary (0 for a rate) and gives no figure.
    """
    log = Log(_TOOL, data)
    entries = _summary(log)
    if not _whole(entries, "CommWorldProcs"):
        raise entries["CommWorldProcs"][1].error("a run has at least one process")
    samples: list[Sample] = []
    for of, sample in ((_RATES, figures.rate_sample), (_TIMES, figures.time_sample)):
        for key, figure in of.items():
            if (value := _measured(entries, key)) is not None:
                samples.append(sample(figure.name, figures.in_SI(value, _UNITS.get(key, 1e9)), resolution=SIX_DIGITS))
    _check(entries)
    _check_body(log, entries)
    found = {name: _whole(entries, key) for name, (key, _) in _PARAMETERS.items()}
    parameters: dict[str, Value] = {name: value for name, value in found.items() if value is not None}
    version = ".".join(entries[key][0] for key in ("VersionMajor", "VersionMinor", "VersionMicro") if key in entries)
    experiment = ImportedExperiment("imported.hpcc", tuple(samples), parameters, remarks=_remarks(entries))
    hosts, dates = log.found(_HOST), log.found(_DATE)
    return ImportedFile(
        _TOOL,
        version,
        (experiment,),
        _failed(log, entries),
        hosts[0].match[1] if hosts else None,
        date_s=float(dates[0].match[1]) if dates else None,
    )


def _summary(log: Log) -> dict[str, tuple[str, LogLine]]:
    """Key -> (value, line) of the summary section. Raises ParseError if it is incomplete, or there are two."""
    begin = log.only(_BEGIN, "line `Begin of Summary section.`").line
    end = log.only(_END, "line `End of Summary section.`").line
    entries: dict[str, tuple[str, LogLine]] = {}
    for line, text in log.numbered(log.lines[begin.number : end.number - 1]):
        match = _ENTRY.fullmatch(text)
        if match is None:
            raise line.error("expected a line key=value in the summary")
        if match[1] in entries:
            raise line.error(f"this key is in line {entries[match[1]][1].number} too")
        entries[match[1]] = (match[2], line)
    missing = [key for key in ("Success", "CommWorldProcs", *_RATES) if key not in entries]
    needed = [key for key in missing if "_LCG_" not in key]  # hpcc before 1.4 has no LCG variant
    if needed:
        raise begin.error(f"the summary below this line has no {needed[0]}: it is incomplete")
    return entries


def _measured(entries: Entries, key: str) -> float | None:
    """The number under a key; None if it is missing, or marks a part that was not run (0 or -1)."""
    if key not in entries:
        return None
    text, line = entries[key]
    value = number(text)
    if value is None:
        raise line.error(f"{key} is not a plain number")
    return None if value == 0 or value == -1 else line.number_of(text, key)


def _whole(entries: Entries, key: str) -> int | None:
    if key not in entries or entries[key][0].startswith("-"):
        return None
    return entries[key][1].whole_of(entries[key][0], key, least=0)


def _remarks(entries: Entries) -> tuple[str, ...]:
    """Figures that the summary does not have, and parts that were not run."""
    keys = [key for key in (*_RATES, *_TIMES) if "_LCG_" not in key]
    missing = [key for key in keys if key not in entries]
    not_run = [key for key in keys if key in entries and _measured(entries, key) is None]
    return (
        *((f"the summary has no {', '.join(missing)}: no figure",) if missing else ()),
        *((f"not run or below the printed digits: {', '.join(not_run)}",) if not_run else ()),
    )


def _failed(log: Log, entries: Entries) -> str:
    """Why hpcc reports its own run as failed; empty if it does not."""
    if entries["Success"][0] != "1":
        return f"hpcc reports a failure: Success={entries['Success'][0]}"
    wrong = log.found(_WRONG)
    return f"line {wrong[0].line.number}: {wrong[0].match[0]}" if wrong else ""


def _check(entries: Entries) -> None:
    """The redundant numbers must agree: rate x time = work, minimum <= mean <= maximum. Raises ParseError."""
    n, time_s = _whole(entries, "HPL_N"), _measured(entries, "HPL_time")
    if n and time_s is not None and _measured(entries, "HPL_Tflops") is not None:
        _check_rate(entries, "HPL_Tflops", "HPL_time", (2 / 3 * n + 3 / 2) * float(n) * n / 1e12)
    for stem in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        updates = _measured(entries, f"{stem}_ExeUpdates")
        if updates is not None and _measured(entries, f"{stem}_GUPs") is not None:
            _check_rate(entries, f"{stem}_GUPs", f"{stem}_time", updates / 1e9)
    for stem in ("PingPongLatency_usec", "PingPongBandwidth_GBytes"):
        values = [_measured(entries, f"{part}{stem}") for part in ("Min", "Avg", "Max")]
        known = [value for value in values if value is not None]
        if known != sorted(known):
            raise entries[f"Min{stem}"][1].error(f"Min, Avg and Max of {stem} are not in this order")


def _check_rate(entries: Entries, rate_key: str, time_key: str, work: float) -> None:
    rate, time_s = _measured(entries, rate_key), _measured(entries, time_key)
    text, line = entries[rate_key]
    if rate is None or time_s is None:
        raise line.error(f"{time_key} is missing for this rate")
    # Both are printed to six digits.
    if not is_product(work, (rate, half_unit(text) + 1e-5 * rate), (time_s, 1e-5 * time_s)):
        raise line.error(f"this rate x {time_s:g} s is not the work of the run")


def _check_body(log: Log, entries: Entries) -> None:
    """The summary must repeat the numbers of the body, if the file has one. Raises ParseError."""
    sections: dict[str, list[LogLine]] = {}
    current: list[LogLine] | None = None
    for line, text in log.numbered():
        match = _SECTION.fullmatch(text)
        if match is not None:
            current = sections.setdefault(match[2], []) if match[1] == "Begin" else None
        elif current is not None:
            current.append(line)
    for key, (section, label) in _BODY.items():
        value = _measured(entries, key)
        rows = log.found(Pattern(rf"{re.escape(label)} .*?(\S+)"), sections.get(section, ()))
        if value is None or not rows:
            continue
        if len(rows) > 1:
            raise rows[1].error(f"a second line `{label}` of this section: two runs in one file; split it")
        if abs(rows[0].number_or_zero(1, label) - value) > half_unit(rows[0].match[1]) + 1e-5 * value:
            raise entries[key][1].error(f"{key} differs from line {rows[0].line.number} ({rows[0].match[1]})")


IMPORTED = figures.imported(
    "hpcc",
    "the HPC Challenge (hpcc)",
    "What rates and times did the tests of the HPC Challenge report?",
    tuple(figures.count(name, meaning) for name, (_, meaning) in _PARAMETERS.items()),
    (*_RATES.values(), *_TIMES.values()),
)

READER = figures.Reader("hpcc", read, (r"This is the DARPA/DOE HPC Challenge Benchmark version .{0,80}",))
