"""What a damaged text still states: whether figures are in it, and whether its statements contradict each other.

Written without the readers: regular expressions and arithmetic only. `unstated` finds figures that no number in the
text gives; `contradiction` finds a rate, a time and an amount of work, or a mean and its rows, that cannot all be true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from statistics import fmean

import numpy as np
from applications.training_texts import TEXTS as TRAINING

from seatrial.benchmarks import benchmark_named
from seatrial.engine.importing import Given, ImportedRepeat, ResultFile, read_repeats
from seatrial.errors import SeatrialError

Figures = dict[tuple[object, ...], float]
"""(benchmark, parameters, figure, point, number of the sample) -> value in SI."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?|(?<=[:\[])\d+\.?\d*")
_TIMES = [1e-12, 1e-9, 1e-6, 1e-3, 1.0, 60.0, 3600.0, 86400.0]
_RATES = [1e3, 1e6, 1e9, 1e12, 1e15, 0.125, 125.0, 125e3, 125e6, 0.01, 2.0**10, 2.0**20, 2.0**30, 2.0**40, 32.0, 1e5]
_FACTORS = np.array([*_TIMES, *_RATES])
_EXACT = 1e-9
_MOST_OF_PAIRS = 400


def figures_in(repeats: Iterable[ImportedRepeat]) -> Figures:
    """Every figure of the repeats in a file that are not called wrong."""
    found: Figures = {}
    for repeat in repeats:
        if not repeat.outcome.is_ok or not repeat.samples:  # a table of figures may name any benchmark
            continue
        benchmark = benchmark_named(repeat.experiment.benchmark)
        parameters = tuple(sorted((name, str(value)) for name, value in repeat.experiment.parameters.items()))
        for figure in benchmark.figures:
            for number, sample in enumerate(one for one in repeat.samples if one.series == figure.series):
                point = tuple(sorted(sample.point.items()))
                found[benchmark.name, parameters, figure.name, point, number] = figure.value(sample)
    return found


_MEANS = ("hoomd", "nccl-inspector", "star-ccm", *TRAINING)
"""Kinds whose figures are means, sums or differences of rows: no number of the text gives them."""
_BROKEN = "dcgm-diag"
"""Kind whose tables break numbers at the end of a line."""


def text_of(data: bytes) -> str:
    """A text as its reader sees it, without what one encoding or another puts between the characters."""
    return data.replace(b"\0", b"").replace(b"\\t", b" ").decode("utf-8", "replace")


def numbers_in(text: str) -> list[float]:
    """The numbers of a text, each once; of a clock (1:23.5, 1h2m3s) its seconds, too."""
    found = {float(token) for token in _NUMBER.findall(text)} | set(_clocks(text))
    return [value for value in found if value > 0 and math.isfinite(value)]


def _clocks(text: str) -> Iterator[float]:
    for match in re.finditer(r"(?:(\d+)-)?(?:(\d+)\s*[h:]\s*)?(\d+)\s*[m:]\s*(\d+(?:\.\d+)?)", text):
        days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
        yield days * 86400 + hours * 3600 + minutes * 60 + seconds


def unstated(kind: str, found: Figures, true: Figures, text: str) -> list[tuple[object, ...]]:
    """The figures that are neither those of the undamaged text nor given by a number, or by two, of the damaged one."""
    if kind in _MEANS:
        return []
    if kind == _BROKEN:
        text += "".join(part.strip(" |-+") for part in text.splitlines())
    known = {(key[2], value) for key, value in true.items()}
    changed = [(key, value) for key, value in found.items() if (key[2], value) not in known]
    if not changed:
        return []
    numbers = np.array(numbers_in(text))
    direct = np.concatenate([np.outer(numbers, _FACTORS).ravel(), np.outer(1 / numbers, [1.0, 86400.0]).ravel()])
    return [(*key, value) for key, value in changed if not (_is_among(value, direct) or _is_of_two(value, numbers))]


def _is_among(value: float, of: np.ndarray) -> bool:
    return bool(np.any(np.abs(of - value) <= _EXACT * value))


def _is_of_two(value: float, numbers: np.ndarray) -> bool:
    """Whether it is the product or the quotient of two numbers, in some unit."""
    if len(numbers) > _MOST_OF_PAIRS:
        return True
    return any(
        _is_among(value / factor, pairs)
        for pairs in (np.outer(numbers, numbers), np.outer(numbers, 1 / numbers))
        for factor in _FACTORS
    )


def misplaced(found: Figures, text: str) -> list[tuple[object, ...]]:
    """Figures of a message size that no line of the text states beside this size."""
    sized = [(key, value, dict(key[3])["size_B"]) for key, value in found.items() if "size_B" in dict(key[3])]  # type: ignore[call-overload]
    if not sized:
        return []
    beside: dict[float, list[float]] = {}
    for line in text.splitlines():
        own = [float(token) for token in _NUMBER.findall(line)]
        for one in own:
            beside.setdefault(one, []).extend(own)
    return [
        (*key, value)
        for key, value, size in sized
        if not any(
            math.isclose(value, one * factor, rel_tol=_EXACT)
            for one in beside.get(float(size), [])
            for factor in _FACTORS
        )
    ]


def _near(a: float, b: float, off: float = 0.02) -> bool:
    return abs(a - b) <= off * max(abs(a), abs(b))


def _rows(pattern: str, text: str) -> Iterator[list[float]]:
    """The groups of each match, as numbers; a match with a group that is not a number is passed over."""
    for match in re.finditer(pattern, text, re.MULTILINE):
        try:
            yield [float(group) for group in match.groups()]
        except ValueError:
            continue


_F = r"([0-9.eE+-]+)"


def _stream(text: str) -> Iterator[str]:
    arrays = {float(n) for n in re.findall(r"Array size = (\d+)", text)}
    for name, times in (("Copy", 2), ("Scale", 2), ("Add", 3), ("Triad", 3)):
        for rate, mean, least, most in _rows(rf"^{name}: +{_F} +{_F} +{_F} +{_F}\s*$", text):
            if not any(_near(rate * 1e6 * least, times * n * size, 0.03) for n in arrays for size in (4, 8)):
                yield f"{name}: {rate} MB/s in {least} s is not the work of any array"
            if not least * 0.999 <= mean <= most * 1.001:
                yield f"{name}: times not in order"


def _babelstream(text: str) -> Iterator[str]:
    sizes = [
        v * {"M": 1e6, "G": 1e9, "K": 1e3}[u]
        for v, u in re.findall(r"Array size: ([\d.]+) ([KMG])B", text)
        for v in [float(v)]
    ]
    for name, times in (("Copy", 2), ("Mul", 2), ("Add", 3), ("Triad", 3), ("Dot", 2)):
        for rate, least, most, mean in _rows(rf"^{name} +{_F} +{_F} +{_F} +{_F}\s*$", text):
            if sizes and not any(
                _near(rate * unit * least, times * size, 0.03) for size in sizes for unit in (1e6, 2.0**20)
            ):
                yield f"{name}: {rate} in {least} s is not the work of the array"
            if not least * 0.999 <= mean <= most * 1.001:
                yield f"{name}: times not in order"


def _hpl(text: str) -> Iterator[str]:
    for n, time, rate in _rows(rf"^W[RC]\S+ +(\d+) +\d+ +\d+ +\d+ +{_F} +{_F}\s*$", text):
        if not _near(rate * 1e9 * time, 2 / 3 * n**3 + 1.5 * n**2, 0.03 + 0.006 / max(time, 1e-9)):
            yield f"HPL: {rate} Gflop/s in {time} s is not N = {n}"


def _osu(text: str) -> Iterator[str]:
    if "Messages/s" in text:
        for size, rate, messages in _rows(rf"^(\d+) +{_F} +{_F}\s*$", text):
            if rate > 1 and not _near(rate * 1e6, size * messages):
                yield f"{size} B: {rate} MB/s is not {messages} messages/s"
    if re.search(r"Avg Latency\(us\) +Min Latency\(us\) +Max Latency\(us\)", text):
        for size, mean, least, most in _rows(rf"^(\d+) +{_F} +{_F} +{_F}(?: +\d+)?\s*$", text):
            if not least - 0.01 <= mean <= most + 0.01:
                yield f"{size} B: mean {mean} outside {least} to {most}"


def _imb(text: str) -> Iterator[str]:
    for block in re.split(r"# Benchmarking", text)[1:]:
        if "t_avg[usec]" in block and "t_ovrl" not in block:
            for size, _, least, most, mean in _rows(rf"^ +(\d+) +(\d+) +{_F} +{_F} +{_F}(?: .*)?$", block):
                if not least - 0.01 <= mean <= most + 0.01:
                    yield f"{size} B: mean {mean} outside {least} to {most}"
        elif block.lstrip().startswith("Ping"):
            for size, time, rate in _rows(rf"^ +(\d+) +\d+ +{_F} +{_F}\s*$", block):
                off = 0.02 + 0.011 / max(time, 0.01)
                if rate > 5 and not any(_near(rate * unit * time * 1e-6, size, off) for unit in (1e6, 2.0**20)):
                    yield f"{size} B: {rate} Mbytes/s in {time} us"


_BUS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
}


def _nccl(text: str) -> Iterator[str]:
    ops = [op for op in _BUS if re.search(op.replace("_", "_?"), text, re.IGNORECASE)]
    ranks = len(set(re.findall(r"^# +Rank +(\d+) ", text, re.MULTILINE)))
    buses = []
    for row in re.finditer(r"^ +(\d+) +\d+ +\w+ +\w+ +-?\d+ +([\d. ].*)$", text, re.MULTILINE):
        cells = row[2].split()
        for first in (0, 4) if len(cells) >= 8 else (0,):
            try:
                time, algorithm, bus = (float(cell) for cell in cells[first : first + 3])
            except ValueError:
                continue
            buses.append(bus)
            if algorithm > 1 and time > 0 and not _near(algorithm, float(row[1]) / time / 1e3, 0.03):
                yield f"{row[1]} B in {time} us is not {algorithm} GB/s"
            if algorithm > 1 and ranks > 1 and len(ops) == 1 and not _near(bus, algorithm * _BUS[ops[0]](ranks), 0.03):
                yield f"{row[1]} B: busbw {bus} for algbw {algorithm}"
    stated = re.findall(r"^# Avg bus bandwidth +: +([\d.]+)", text, re.MULTILINE)
    if len(stated) == 1 and buses and abs(float(stated[0]) - fmean(buses)) > 0.02 * fmean(buses) + 0.006:
        yield f"average {stated[0]} of rows with {fmean(buses):.3f}"


def _mdtest(text: str) -> Iterator[str]:
    for most, least, mean in _rows(rf"^ +(?:File|Directory|Tree) \w+ *: +{_F} +{_F} +{_F} +[0-9.]+\s*$", text):
        if not least - 0.001 <= mean <= most + 0.001:
            yield f"mean {mean} outside {least} to {most}"


def _ior(text: str) -> Iterator[str]:
    for way in ("write", "read"):
        best = list(_rows(rf"^Max {way.title()}: +{_F} MiB/sec \({_F} MB/sec\)", text))
        rows = [rate for (rate,) in _rows(rf"^{way} +{_F} +[-0-9.N].*\s[0-9]+\s*$", text)]
        for mebi, mega in best:
            if mebi > 1 and not _near(mebi * 1.048576, mega):
                yield f"{mebi} MiB/s is not {mega} MB/s"
            if len(best) == 1 and rows and mebi > 1 and not _near(mebi, max(rows)):
                yield f"Max {way} {mebi} of rows up to {max(rows)}"


def _gromacs(text: str) -> Iterator[str]:
    for day, hour in _rows(rf"^Performance: +{_F} +{_F}\s*$", text):
        if day > 0.5 and hour > 0.05 and not _near(day * hour, 24, 0.03):
            yield f"{day} ns/day and {hour} hours/ns"


def _lammps(text: str) -> Iterator[str]:
    for loop, steps, rate in _rows(
        rf"^Loop time of {_F} on .*? for (\d+) steps[^\n]*\n\s*\n?Performance: [^\n]*?{_F} timesteps/s", text
    ):
        if rate > 1 and not _near(rate * loop, steps):
            yield f"{steps} steps in {loop} s at {rate}/s"


def _namd(text: str) -> Iterator[str]:
    steps = {float(dt) for dt in re.findall(r"^Info: TIMESTEP +([\d.]+)", text, re.MULTILINE)}
    for step, days in _rows(rf"Benchmark time: \d+ CPUs {_F} s/step {_F} days/ns", text):
        if len(steps) == 1 and not _near(days, step * 1e6 / steps.copy().pop() / 86400):
            yield f"{step} s/step is not {days} days/ns"


def _perftest(text: str) -> Iterator[str]:
    if "Gb/sec" in text or "MsgRate" not in text:
        return
    for size, rate, messages in _rows(rf"^ *(\d+) +\d+ +[\d.]+ +{_F}[ \t]+{_F}\s*$", text):
        if rate > 10 and not any(_near(rate * unit, size * messages * 1e6, 0.03) for unit in (1e6, 2.0**20)):
            yield f"{size} B: {rate} MB/s is not {messages} M/s"


def _fio(text: str) -> Iterator[str]:
    for way in re.findall(r'"(?:read|write)"\s*:\s*\{([^{}]*)', text):
        one = {name: float(value) for name, value in re.findall(r'"(\w+)"\s*:\s*([0-9.]+)', way)}
        moved, rate, time = (one.get(name, 0.0) for name in ("io_bytes", "bw_bytes", "runtime"))
        if moved > 1e6 and time > 100 and rate and not _near(rate * time / 1e3, moved):
            yield f"{moved:.0f} B in {time:.0f} ms are not {rate:.0f} B/s"
        if rate > 1e6 and "bw" in one and not _near(one["bw"] * 1024, rate):
            yield f"{one['bw']:.0f} KiB/s are not {rate:.0f} B/s"


def _io500(text: str) -> Iterator[str]:
    rows = list(_rows(rf"SCORE ?\] +Bandwidth +{_F} GI?i?B/s : IOPS +{_F} kiops : TOTAL +{_F}", text))
    for bandwidth, operations, total in rows:
        if not any(_near(one, total) for one in (math.sqrt(bandwidth * operations), bandwidth * operations)):
            yield f"score {total} of {bandwidth} and {operations}"
    for unit, stated in (("GI?i?B/s", 0), ("k(?:iops|IOPS)", 1)):
        found = [rate for (rate,) in _rows(rf"^\[RESULT\] .*? {_F} {unit} : time", text)]
        if len(rows) == 1 and len(found) == (4, 8)[stated]:
            mean = math.exp(fmean(math.log(rate) for rate in found if rate > 0)) if all(found) else 0.0
            if not _near(mean, rows[0][stated]):
                yield f"geometric mean {mean:.5g}, stated {rows[0][stated]}"


def _castep(text: str) -> Iterator[str]:
    parts = [
        v
        for name in ("Initialisation time", "Calculation time   ", "Finalisation time  ")
        for (v,) in _rows(rf"^{name} = +{_F} s", text)
    ]
    for (total,) in _rows(rf"^Total time +=+ +{_F} s", text):
        if len(parts) == 3 and not _near(sum(parts), total):
            yield f"parts of {sum(parts)} s, total {total} s"


def _amber(text: str) -> Iterator[str]:
    for day, seconds in _rows(rf"ns/day = +{_F} +seconds/ns = +{_F}", text):
        if day > 0.5 and not _near(day * seconds, 86400):
            yield f"{day} ns/day and {seconds} s/ns"


def _hpcc(text: str) -> Iterator[str]:
    stated = re.findall(r"^HPL_Tflops=([\d.]+)", text, re.MULTILINE)
    rows = [rate for _, _, rate in _rows(rf"^W[RC]\S+ +(\d+) +\d+ +\d+ +\d+ +{_F} +{_F}\s*$", text)]
    if len(stated) == 1 and len(rows) == 1 and not _near(float(stated[0]) * 1e3, rows[0]):
        yield f"HPL_Tflops {stated[0]}, row {rows[0]}"


def _iperf3(text: str) -> Iterator[str]:
    for way in re.findall(r'"sum(?:_sent|_received)"\s*:\s*\{([^{}]*)', text):
        one = {name: float(value) for name, value in re.findall(r'"(\w+)"\s*:\s*([0-9.]+)', way)}
        bits = one.get("bits_per_second", 0.0) * one.get("seconds", 0.0)
        if bits and "bytes" in one and not _near(bits, 8 * one["bytes"], 0.002):
            yield f"{one}"


_STATEMENTS: Mapping[str, Callable[[str], Iterable[str]]] = {
    "stream": _stream, "babelstream": _babelstream, "hpl": _hpl, "osu": _osu, "imb": _imb, "nccl-tests": _nccl,
    "mdtest": _mdtest, "ior": _ior, "gromacs": _gromacs, "lammps": _lammps, "namd": _namd, "perftest": _perftest,
    "fio-json": _fio, "io500": _io500, "castep": _castep, "amber": _amber, "hpcc": _hpcc, "iperf3": _iperf3,
}  # fmt: skip


def contradiction(kind: str, text: str) -> str:
    """The first two statements of a text that cannot both be true; "" if there are none, or the kind has none."""
    return next(iter(_STATEMENTS.get(kind, lambda text: ())(text)), "")


_CAUTION = re.compile("missing|wrong|left out|may be|contradict|is not read")


@cache
def _read(kind: str, data: bytes) -> tuple[Figures, bool]:
    """The figures of a text, and whether there is a caution about them; none of one that is refused."""
    try:
        repeats = read_repeats((ResultFile(kind, "file", data, 0.0),), Given())
    except SeatrialError as error:
        assert str(error).strip()
        return {}, False
    return figures_in(repeats), any(_CAUTION.search(remark) for repeat in repeats for remark in repeat.remarks)


def wrong_figures(kind: str, undamaged: bytes, data: bytes) -> str:
    """What is wrong with the figures of a damaged text: they are not in it, or it contradicts them; "" for nothing."""
    found, has_caution = _read.__wrapped__(kind, data)
    if not found:
        return ""
    text = text_of(data)
    wrong = [*unstated(kind, found, _read(kind, undamaged)[0], text), *misplaced(found, text)]
    if wrong:
        return f"not in the text: {wrong[:3]}"
    return "" if has_caution else contradiction(kind, text)
