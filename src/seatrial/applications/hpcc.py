"""HPC Challenge (hpcc 1.4 and 1.5): the `key=value` summary section of `hpccoutf.txt`.

The body above it has many of the same numbers with more digits; if it is present, they must agree with the summary.

imported.hpcc: the tests of the HPC Challenge.

"Star" tests run on all processes at once and report the mean per process; "single" tests run on one process alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.text import SIX_DIGITS, Line, Pattern, is_product, number, only_one, read_lines
from seatrial.model.benchmark.benchmark import Figure
from seatrial.model.benchmark.parameter import UNKNOWN, Params, Value, beyond_caches_B, whole
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.printed import half_unit
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "hpcc"
_BEGIN, _END = "Begin of Summary section.", "End of Summary section."
_ENTRY = Pattern(r"([A-Za-z_][A-Za-z0-9_]{0,60})=(.{0,100})")
_SECTION = Pattern(r"(Begin|End) of ([A-Za-z_]{1,40}) section\.")
_HOST = Pattern(r"Hostname: '([^']{0,200})'")
_WRONG = Pattern(r".{0,200}(?:\.{2,9}\s{0,9}FAILED|\(failed\)\.?)\s*")
_DATE = Pattern(r"Current time \(([0-9]{1,12})\) is .{0,80}")

_RATES: dict[str, tuple[str, float]] = {
    "hpl": ("HPL_Tflops", 1e12),
    "star_dgemm": ("StarDGEMM_Gflops", 1e9),
    "single_dgemm": ("SingleDGEMM_Gflops", 1e9),
    "ptrans": ("PTRANS_GBs", 1e9),
    "mpi_random_access": ("MPIRandomAccess_GUPs", 1e9),
    "mpi_random_access_lcg": ("MPIRandomAccess_LCG_GUPs", 1e9),
    "star_random_access": ("StarRandomAccess_GUPs", 1e9),
    "single_random_access": ("SingleRandomAccess_GUPs", 1e9),
    "star_random_access_lcg": ("StarRandomAccess_LCG_GUPs", 1e9),
    "single_random_access_lcg": ("SingleRandomAccess_LCG_GUPs", 1e9),
    **{f"star_stream_{name.lower()}": (f"StarSTREAM_{name}", 1e9) for name in ("Copy", "Scale", "Add", "Triad")},
    **{f"single_stream_{name.lower()}": (f"SingleSTREAM_{name}", 1e9) for name in ("Copy", "Scale", "Add", "Triad")},
    "mpi_fft": ("MPIFFT_Gflops", 1e9),
    "star_fft": ("StarFFT_Gflops", 1e9),
    "single_fft": ("SingleFFT_Gflops", 1e9),
    "ping_pong_bandwidth_min": ("MinPingPongBandwidth_GBytes", 1e9),
    "ping_pong_bandwidth_avg": ("AvgPingPongBandwidth_GBytes", 1e9),
    "ping_pong_bandwidth_max": ("MaxPingPongBandwidth_GBytes", 1e9),
    "natural_ring_bandwidth": ("NaturallyOrderedRingBandwidth_GBytes", 1e9),
    "random_ring_bandwidth": ("RandomlyOrderedRingBandwidth_GBytes", 1e9),
}
"""Figure -> key of the summary, and its unit in SI (hpcc counts decimal gigabytes)."""
_TIMES: dict[str, tuple[str, float]] = {
    "hpl_time": ("HPL_time", 1.0),
    "ping_pong_latency_min": ("MinPingPongLatency_usec", 1e-6),
    "ping_pong_latency_avg": ("AvgPingPongLatency_usec", 1e-6),
    "ping_pong_latency_max": ("MaxPingPongLatency_usec", 1e-6),
    "natural_ring_latency": ("NaturallyOrderedRingLatency_usec", 1e-6),
    "random_ring_latency": ("RandomlyOrderedRingLatency_usec", 1e-6),
}
_PARAMETERS = {
    "ranks": "CommWorldProcs",
    "n": "HPL_N",
    "nb": "HPL_NB",
    "p": "HPL_nprow",
    "q": "HPL_npcol",
    "ptrans_n": "PTRANS_n",
    "dgemm_n": "DGEMM_N",
    "stream_elements": "STREAM_VectorSize",
    "stream_threads": "STREAM_Threads",
    "fft_n": "FFT_N",
    "random_access_n": "RandomAccess_N",
}
_BODY: dict[str, tuple[str, str]] = {
    "StarDGEMM_Gflops": ("StarDGEMM", "Average Gflop/s"),
    "SingleDGEMM_Gflops": ("SingleDGEMM", "Single DGEMM Gflop/s"),
    "StarFFT_Gflops": ("StarFFT", "Average Gflop/s"),
    "SingleFFT_Gflops": ("SingleFFT", "Single FFT Gflop/s"),
    "MPIFFT_Gflops": ("MPIFFT", "Gflop/s:"),
    "StarRandomAccess_GUPs": ("StarRandomAccess", "Average GUP/s"),
    "SingleRandomAccess_GUPs": ("SingleRandomAccess", "Single GUP/s"),
    "StarRandomAccess_LCG_GUPs": ("StarRandomAccess_LCG", "Average GUP/s"),
    "SingleRandomAccess_LCG_GUPs": ("SingleRandomAccess_LCG", "Single GUP/s"),
    **{f"StarSTREAM_{k}": ("StarSTREAM", f"Average {k} GB/s") for k in ("Copy", "Scale", "Add", "Triad")},
    **{f"SingleSTREAM_{k}": ("SingleSTREAM", f"Single STREAM {k} GB/s") for k in ("Copy", "Scale", "Add", "Triad")},
}
"""Key of the summary -> (section, label) of the same number in the body."""

Entries = Mapping[str, tuple[str, Line]]


def read(data: bytes) -> ImportedFile:
    """One run of hpcc. Raises ParseError if the output is cut off, has two runs, or contradicts itself.

    A part that was not run has the value -1 in the summary (0 for a rate) and gives no figure.
    """
    lines = read_lines(data, _TOOL)
    entries = _summary(lines)
    ranks = _whole(entries, "CommWorldProcs")
    if not ranks:
        raise entries["CommWorldProcs"][1].error("a run has at least one process")
    samples: list[Sample] = []
    for name, (key, scale) in _RATES.items():
        if (value := _measured(entries, key)) is not None:
            samples.append(figures.rate_sample(name, figures.in_SI(value, scale), resolution=SIX_DIGITS))
    for name, (key, scale) in _TIMES.items():
        if (value := _measured(entries, key)) is not None:
            samples.append(figures.time_sample(name, figures.in_SI(value, scale), resolution=SIX_DIGITS))
    _check(entries)
    _check_body(lines, entries)
    found = {name: _whole(entries, key) for name, key in _PARAMETERS.items()}
    parameters: dict[str, Value] = {name: value for name, value in found.items() if value is not None}
    version = ".".join(entries[key][0] for key in ("VersionMajor", "VersionMinor", "VersionMicro") if key in entries)
    experiment = ImportedExperiment("imported.hpcc", tuple(samples), parameters, remarks=_remarks(entries))
    return ImportedFile(
        _TOOL, version, (experiment,), _failed(lines, entries), _first(lines, _HOST), date_s=_date(_first(lines, _DATE))
    )


def _summary(lines: Sequence[Line]) -> dict[str, tuple[str, Line]]:
    """Key -> (value, line) of the summary section. Raises ParseError if it is incomplete, or there are two."""
    begin = only_one([line for line in lines if line.text.strip() == _BEGIN], _TOOL, f"line `{_BEGIN}`")
    end = only_one([line for line in lines if line.text.strip() == _END], _TOOL, f"line `{_END}`")
    entries: dict[str, tuple[str, Line]] = {}
    for line in lines[begin.number : end.number - 1]:
        match = _ENTRY.fullmatch(line.text.strip())
        if match is None:
            raise line.error("expected a line key=value in the summary")
        if match[1] in entries:
            raise line.error(f"this key is in line {entries[match[1]][1].number} too")
        entries[match[1]] = (match[2], line)
    missing = [key for key in ("Success", "CommWorldProcs", *(key for key, _ in _RATES.values())) if key not in entries]
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
    keys = [key for key, _ in (*_RATES.values(), *_TIMES.values()) if "_LCG_" not in key]
    missing = [key for key in keys if key not in entries]
    not_run = [key for key in keys if key in entries and _measured(entries, key) is None]
    return (
        *((f"the summary has no {', '.join(missing)}: no figure",) if missing else ()),
        *((f"not run or below the printed digits: {', '.join(not_run)}",) if not_run else ()),
    )


def _failed(lines: Sequence[Line], entries: Entries) -> str:
    """Why hpcc reports its own run as failed; empty if it does not."""
    if entries["Success"][0] != "1":
        return f"hpcc reports a failure: Success={entries['Success'][0]}"
    wrong = next((line for line in lines if _WRONG.fullmatch(line.text)), None)
    return "" if wrong is None else f"line {wrong.number}: {wrong.text.strip()}"


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


def _check_body(lines: Sequence[Line], entries: Entries) -> None:
    """The summary must repeat the numbers of the body, if the file has one. Raises ParseError."""
    sections: dict[str, list[Line]] = {}
    current: list[Line] | None = None
    for line in lines:
        match = _SECTION.fullmatch(line.text.strip())
        if match is not None:
            current = sections.setdefault(match[2], []) if match[1] == "Begin" else None
        elif current is not None:
            current.append(line)
    for key, (section, label) in _BODY.items():
        value = _measured(entries, key)
        rows = [line for line in sections.get(section, ()) if line.text.strip().startswith(f"{label} ")]
        if value is None or not rows:
            continue
        word = only_one(rows, _TOOL, f"line `{label}` of this section").words[-1]
        detailed = rows[0].number_or_zero(word, label)
        if abs(detailed - value) > half_unit(word) + 1e-5 * value:
            raise entries[key][1].error(f"{key} differs from line {rows[0].number} ({word})")


def _first(lines: Sequence[Line], pattern: Pattern) -> str | None:
    match = next((match for line in lines if (match := pattern.fullmatch(line.text.strip()))), None)
    return (match[1] or None) if match is not None else None


def _date(text: str | None) -> float | None:
    return None if text is None else float(text)


_STREAM = {"copy": 16, "scale": 16, "add": 24, "triad": 24}


def _dram(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The DRAM bandwidth if the arrays are beyond the caches. Their size follows HPL's N, which may be small."""
    elements = params["stream_elements"]
    least_B = beyond_caches_B(machine, machine.pus)
    is_given = machine.named_limit(figures.GIVEN_BANDWIDTH) is not None
    if not is_given and (elements == UNKNOWN or least_B is None or whole(elements) * 8 < least_B):
        return Limit.unknown("B/s", "the arrays are not known to be beyond the caches")
    return figures.memory_limit(ranks="ranks")(machine, params, samples)


def _streams() -> tuple[Figure, ...]:
    return tuple(
        figures.rate(
            f"{who}_stream_{name}", "B/s", f"{counted} B per element, as STREAM counts; {whose}; best pass", _dram
        )
        for who, whose in (("star", "mean per process while all run"), ("single", "one process alone"))
        for name, counted in _STREAM.items()
    )


IMPORTED = figures.imported(
    "hpcc",
    "the HPC Challenge (hpcc)",
    "What rates and times did the tests of the HPC Challenge report?",
    (
        figures.count("ranks", "processes"),
        figures.count("n", "order of HPL's matrix"),
        figures.count("nb", "block size of HPL"),
        figures.count("p", "rows of HPL's process grid"),
        figures.count("q", "columns of HPL's process grid"),
        figures.count("ptrans_n", "order of PTRANS' matrix"),
        figures.count("dgemm_n", "order of DGEMM's matrices"),
        figures.count("stream_elements", "elements of each STREAM array, per process"),
        figures.count("stream_threads", "STREAM threads per process"),
        figures.count("fft_n", "length of the FFT of each process"),
        figures.count("random_access_n", "words in the RandomAccess table of each process"),
    ),
    (
        figures.rate("hpl", "flop/s", "2/3 n^3 + 3/2 n^2 flop, as HPL counts", figures.flops_limit(ranks="ranks")),
        figures.rate("star_dgemm", "flop/s", "2 n^3 flop; mean per process while all run", figures.flops_limit()),
        figures.rate("single_dgemm", "flop/s", "2 n^3 flop; one process alone", figures.flops_limit()),
        figures.rate("ptrans", "B/s", "8 n^2 B, as PTRANS counts"),
        *(
            figures.rate(f"{who}_random_access{variant}", "op/s", f"table updates; {whose}{generator}")
            for variant, generator in (("", ""), ("_lcg", "; linear congruential generator"))
            for who, whose in (
                ("mpi", "all processes together"),
                ("star", "mean per process while all run"),
                ("single", "one process alone"),
            )
        ),
        *_streams(),
        figures.rate(
            "mpi_fft", "flop/s", "5 n log2(n) flop; all processes together", figures.flops_limit(ranks="ranks")
        ),
        figures.rate("star_fft", "flop/s", "5 n log2(n) flop; mean per process while all run", figures.flops_limit()),
        figures.rate("single_fft", "flop/s", "5 n log2(n) flop; one process alone", figures.flops_limit()),
        *(
            figures.rate(f"ping_pong_bandwidth_{which}", "B/s", f"2,000,000 B back and forth; {word} over pairs")
            for which, word in (("min", "minimum"), ("avg", "mean"), ("max", "maximum"))
        ),
        figures.rate("natural_ring_bandwidth", "B/s", "2,000,000 B in both directions around a ring, ranks in order"),
        figures.rate(
            "random_ring_bandwidth", "B/s", "2,000,000 B in both directions around rings, ranks in random order"
        ),
        figures.time("hpl_time", "time of HPL"),
        *(
            figures.time(f"ping_pong_latency_{which}", f"8 B one way; {word} over pairs")
            for which, word in (("min", "minimum"), ("avg", "mean"), ("max", "maximum"))
        ),
        figures.time("natural_ring_latency", "8 B in both directions around a ring, ranks in order"),
        figures.time("random_ring_latency", "8 B in both directions around rings, ranks in random order"),
    ),
)

READER = figures.Reader("hpcc", read)
