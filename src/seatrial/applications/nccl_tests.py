"""nccl-tests and rccl-tests: the table that all_reduce_perf and the other programs print, and their JSON (`-J`).

Older releases print `error` (the largest deviation) where newer ones print `#wrong` (the number of wrong elements), and
have no column `root` or `redop` for operations without one; the header shows which columns there are. Size, time and
the two bandwidths of a row depend on each other (doc/PERFORMANCE.md of nccl-tests), so a damaged number is detected.
Only newer releases state the operation; else it follows from the columns and the bus bandwidth factor, if these leave
only one. A bandwidth of 0.00 GB/s is below the resolution of two decimals and is skipped.

imported.nccl-tests: collective operations between GPUs, by nccl-tests or rccl-tests.

Bus bandwidth is algorithm bandwidth times the minimum data movement of the operation, such as 2(n-1)/n for an
all-reduce of n ranks (nccl-tests, doc/PERFORMANCE.md). Reductions in the network may exceed it, so no limit is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from seatrial.applications.reading import figures, tables
from seatrial.applications.reading.job import ProgramOptions, named
from seatrial.applications.reading.json_text import JsonObject, is_json, read_object
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.runs import JSON_BEGIN
from seatrial.applications.reading.text import LogLine, Pattern, last_digit
from seatrial.model.benchmark.parameter import UNKNOWN, Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "nccl-tests"
_BEGIN = Pattern(r"#\s*nThread:?\s+[0-9]+\s+nGpus:?\s+[0-9]+\s.{0,400}")
_SIZES = Pattern(r"minBytes ([0-9]{1,16}) maxBytes ([0-9]{1,16}) step:\s*([0-9]{1,16})\s*\((factor|bytes)\)")
_REDUCED = Pattern(r"#\s*Reducing maxBytes to ([0-9]{1,16})\b")
_RANK = Pattern(
    r"#\s*Rank\s+([0-9]{1,7})\s+(?:Group\s+[0-9]{1,7}\s+)?Pid\s+[0-9]+\s+on\s+(\S{1,256})\s+device\s+[0-9]+\s+"
    r"\[[0-9A-Fa-fx:.]{1,20}\]\s*(.{0,200})"
)
_OPERATIONS = (
    *("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "alltoallv"),
    *("gather", "scatter", "sendrecv", "hypercube"),
)
_PROGRAM = Pattern(rf"(?<![A-Za-z_])({'|'.join(_OPERATIONS)})_perf(?![A-Za-z_])")
_STARTING = Pattern(rf"#\s*Collective test starting:\s*({'|'.join(_OPERATIONS)})_perf(?![A-Za-z_])")
_CONCLUDED = Pattern(r"#\s*Collective test concluded:")
_LIBRARY = Pattern(r"\b([NR]CCL version)\s*:?\s*([0-9][\w.+-]{0,60})")
_RELEASE = Pattern(r"#\s*([nr]ccl-tests) version\s+([0-9][\w.:+-]{0,60}).{0,200}")
_BOUNDS = Pattern(r"#\s*Out of bounds values\s*:\s*([0-9]{1,18})\s+(OK|FAILED)")
_FAILURE = Pattern(r"Test (?:NCCL|CUDA|HIP|RCCL)? ?failure|: Test failure", re.IGNORECASE)
_AVERAGE = Pattern(r"#\s*Avg bus bandwidth\s*:\s*([0-9.]{1,20})(?: .{0,20})?")
_LEFT_OUT = Pattern(r"\[?(?:\.{2,}|\N{HORIZONTAL ELLIPSIS})\]?")
"""A line that stands for rows which somebody left out."""
_NONE = "N/A"
_GROUP = ("time", "algbw", "busbw")
_UNITS = Pattern(r"#(?:\s{0,80}\([A-Za-z/]{1,20}\)){3,12}")
_UNITS_READ = frozenset(("(B)", "(elements)", "(us)", "(GB/s)", "(%)"))
_PER_ITERATION = ("i_min", "i_max", "i_p99", "i_cv%")
"""Columns of `-I`: of the single iterations of a time."""
_KNOWN = frozenset((*_GROUP, *_PER_ITERATION, "size", "count", "type", "redop", "root", "error", "#wrong"))
_ROUNDED_GBps = 0.006
_PLACES = (False, True)
"""Whether each group of columns, from the left, is in place."""


class _Run(Struct):
    """The output of one program."""

    begin: LogLine | None
    header: LogLine | None = None
    columns: tuple[tables.TextCell, ...] = ()
    rows: list[tables.Row] = []
    hosts: dict[int, str] = {}
    devices: list[str] = []
    program: str | None = None
    failed: str = ""
    is_whole: bool = False
    average: float | None = None
    """The mean bus bandwidth (GB/s) that the program states."""
    left_out: LogLine | None = None
    most_B: int = 1 << 60
    """The largest size that fits into memory, if the program states it."""

    @property
    def ranks(self) -> int | None:
        """The number of ranks; None if the list of ranks is incomplete."""
        return len(self.hosts) if self.hosts and set(self.hosts) == set(range(len(self.hosts))) else None


def read_nccl_tests(data: bytes) -> ImportedFile:
    """The output of nccl-tests: one experiment per program, datatype, reduction and root.

    Raises ParseError for a damaged table, inconsistent values, or an experiment that occurs twice.
    """
    if is_json(data, "out_of_bounds"):
        return _read_json(read_object(data, _TOOL, "config", "out_of_bounds"))
    log = Log(_TOOL, data)
    runs = _runs(log)
    found: list[tuple[ImportedExperiment, LogLine]] = []
    for run in runs:
        if run.header is None or not run.rows:
            at = run.header or run.begin or log.lines[-1]
            raise at.error("no rows of results below this line: it is cut off, or several outputs are mixed")
        tables.check_aligned(run.columns, run.rows)
        if run.begin is not None and not run.is_whole and not run.failed:
            raise run.rows[-1][0].error("no line `# Out of bounds values` below the table: it was cut off")
        rows = [_values(run, row) for row in run.rows]
        own = list(_experiments(run, rows))
        own[0] = replace(own[0], remarks=(*_average(run, rows), *own[0].remarks))
        found += [(experiment, run.header) for experiment in own]
    tables.check_distinct(((tuple(sorted(e.parameters.items())), line) for e, line in found), "this operation")
    text = "\n".join(line.text for line in log.lines if "version" in line.text)
    release = _RELEASE.search(text)
    libraries = dict.fromkeys(f"{match[1].removesuffix(' version')} {match[2]}" for match in _LIBRARY.finditer(text))
    return ImportedFile(
        tool=release[1] if release else _TOOL,
        version=release[2] if release else "",
        experiments=tuple(experiment for experiment, _ in found),
        host=next((run.hosts[0] for run in runs if 0 in run.hosts), None),
        libraries=tuple(libraries),
    )


def _runs(log: Log) -> list[_Run]:
    """The programs of the file, in order. Raises ParseError if there is none."""
    runs = [_Run(None)]
    named: set[str] = set()
    for line, text in log.numbered():
        if starting := _STARTING.match(text):
            named = {starting[1]}
        elif "_perf" in text:
            named.update(one[1] for one in _PROGRAM.finditer(text))
        if _BEGIN.fullmatch(text):
            runs.append(_Run(line))
        elif columns := _header(line):
            run = runs[-1]
            if run.header is not None:
                raise line.error(f"a second table; the first is at line {run.header.number}: several outputs are mixed")
            run.header, run.columns = line, columns
            run.program = next(iter(named)) if len(named) == 1 else None
            named = set()
        elif _CONCLUDED.match(text):
            run, program = runs[-1], next(iter(named), runs[-1].program)
            if run.program not in (None, program):
                raise line.error(f"the table above is of {run.program}: outputs of several programs are mixed")
            run.program, named = program, set()
        else:
            _read(runs[-1], line, text)
    if runs[0].header is None and not runs[0].rows and len(runs) > 1:
        del runs[0]
    if len(runs) == 1 and runs[0].begin is None and runs[0].header is None:
        raise log.error("no header such as `#  size  count  type  redop  time ...`")
    return runs


def _header(line: LogLine) -> tuple[tables.TextCell, ...]:
    """The columns of a header line; empty for any other line. Raises ParseError for an unknown column."""
    text = tables.body(line)
    start = len(text) - len(text.lstrip("# \t"))
    columns = tuple(tables.TextCell(c.text, c.start + start, c.end + start) for c in tables.cells_of(text[start:]))
    if [column.text for column in columns[:3]] != ["size", "count", "type"]:
        return ()
    unknown = next((column.text for column in columns if column.text not in _KNOWN), None)
    if unknown is not None:
        raise line.error(f"unknown column {unknown[:40]!r}")
    if not set(_GROUP) <= {column.text for column in columns}:
        raise line.error("the header is cut off: time, algbw or busbw is missing")
    named = [column.text for column in columns if column.text in _GROUP]
    if named != [*_GROUP] * (len(named) // len(_GROUP)):
        raise line.error(f"the header is damaged: expected {', '.join(_GROUP)} in this order, once or twice")
    return columns


def _read(run: _Run, line: LogLine, text: str) -> None:
    """Take a line inside a program's output: a rank, a verdict or a row."""
    if rank := _RANK.fullmatch(text):
        number = int(rank[1])
        if number in run.hosts:
            raise line.error(f"rank {number} occurs twice: outputs of several programs are mixed")
        run.hosts[number] = rank[2]
        run.devices.append(rank[3].strip())
    elif bounds := _BOUNDS.fullmatch(text):
        run.is_whole = True
        if bounds[2] != "OK" or int(bounds[1]) > 0:
            run.failed = f"line {line.number}: {bounds[1]} values out of bounds"
    elif average := _AVERAGE.fullmatch(text):
        run.average = line.number_or_zero(average[1], "the average bus bandwidth")
    elif _LEFT_OUT.fullmatch(text):
        run.left_out = line
    elif reduced := _REDUCED.match(text):
        run.most_B = int(reduced[1])
    elif _FAILURE.search(text):
        run.failed = run.failed or f"line {line.number}: {text[:200]}"
    elif _UNITS.fullmatch(text):
        unknown = next((unit for unit in text[1:].split() if unit not in _UNITS_READ), None)
        if unknown is not None:
            raise line.error(f"the unit {unknown} is not one that nccl-tests prints")
    elif run.header is not None and text and not text.startswith("#"):
        cells = tables.cells_of(tables.body(line))
        numbers = sum(tables.decimal_of(cell.text) is not None for cell in cells)
        if re.match(r"[-+.]?[0-9.,]+\Z", cells[0].text) or (len(cells) == len(run.columns) and numbers >= 4):
            if len(cells) != len(run.columns):
                raise line.error(f"the row has {len(cells)} cells, but the header has {len(run.columns)} columns")
            run.rows.append((line, cells))


class _Values(Frozen):
    """One parsed row: its settings, its size, and per group of columns time (us), algbw and busbw as printed, None if
    the group was not measured."""

    line: LogLine
    settings: tuple[str, str, str]
    size_B: int
    groups: tuple[tuple[str, str, str] | None, ...]
    wrong: int
    has_redop: bool


def _values(run: _Run, row: tables.Row) -> _Values:
    line, cells = row
    settings: dict[str, str] = {}
    groups: list[dict[str, str]] = []
    wrong = 0
    for column, cell in zip(run.columns, cells, strict=True):
        name, text = column.text, cell.text
        if name == "time":
            groups.append({})
        is_word = name in ("type", "redop", "root")
        if is_word or name in ("size", "count"):
            settings[name] = text
        elif text != _NONE and tables.decimal_of(text) is None:
            raise line.error(f"{text[:40]!r} under {name} is not a number in the form that nccl-tests prints")
        elif name == "#wrong":
            wrong += 0 if text == _NONE else _whole(line, name, text)
        elif name in _GROUP or name in _PER_ITERATION:
            groups[-1][name] = text
    root = settings.get("root", "-1")
    if re.fullmatch(r"-1|[0-9]{1,7}", root) is None:
        raise line.error(f"{root[:40]!r} is not a rank")
    words = (settings["type"], settings.get("redop", "none"), "none" if root == "-1" else root)
    if any(re.fullmatch(r"[A-Za-z0-9_]{1,32}", word) is None for word in words):
        raise line.error("a type or reduction contains characters that NCCL does not use in names")
    size_B = _whole(line, "size", settings["size"])
    if _whole(line, "count", settings["count"]) > max(size_B, 1):
        raise line.error("more elements than bytes")
    printed = tuple(None if one["time"] == _NONE else (one["time"], one["algbw"], one["busbw"]) for one in groups)
    for one in groups:
        if one["time"] != _NONE and "i_min" in one:
            tables.check_order(line, [Decimal(one[name]) for name in ("i_min", "time", "i_max")], "time")
    return _Values(line, words, size_B, printed, wrong, "redop" in settings)


_JSON_GROUP = {"time": "time", "algbw": "alg_bw", "busbw": "bus_bw"}


def _read_json(document: JsonObject) -> ImportedFile:
    """The JSON of one program (nccl-tests 2.19, src/util.cu). Raises ParseError as for its text."""
    words = document.get("args")
    arguments = " ".join(map(str, words)) if isinstance(words, list) else ""
    program = _PROGRAM.search(arguments)
    bounds, config = document.object("out_of_bounds"), document.object("config")
    run = _Run(None, program=program[1] if program else None, is_whole=True)
    if bounds.number("count") > 0 or bounds.get("okay") is not True:
        run.failed = f"{bounds.number('count'):.0f} values out of bounds"
    for device in config.objects("devices"):
        number = device.whole("rank")
        if number is None or number in run.hosts:
            raise device.error("a rank is missing or occurs twice")
        run.hosts[number] = device.text("hostname") or ""
        run.devices.append(device.text("device_info") or "")
    rows = [_json_row(run, row) for row in document.objects("results")]
    if not rows:
        raise document.error("no results")
    version = document.whole("nccl_version")
    return ImportedFile(
        _TOOL,
        "",
        tuple(_experiments(run, rows)),
        host=run.hosts.get(0) or None,
        libraries=(f"NCCL {version // 10000}.{version // 100 % 100}.{version % 100}",) if version else (),
    )


def _json_row(run: _Run, row: JsonObject) -> _Values:
    """One row, as its text would have it."""
    names = ["size", "count", "type", *(name for name in ("redop", "root") if name in row)]
    words = [str(row.get(name)).strip() for name in names]
    for place in ("out_of_place", "in_place"):
        if isinstance(row.get(place), dict):
            group = row.object(place)
            names += [*_GROUP, "#wrong"]
            words += [f"{group.number(_JSON_GROUP[name]):.6f}" for name in _GROUP]
            words.append(f"{group.number('nwrong'):.0f}" if "nwrong" in group else "0")
    line = LogLine(_TOOL, 1, " ".join(words))
    cells = tuple(tables.TextCell(word, 0, 0) for word in words)
    columns = tuple(tables.TextCell(name, 0, 0) for name in names)
    return _values(_Run(None, columns=columns), (line, cells))


def _whole(line: LogLine, name: str, text: str) -> int:
    value = tables.whole_number(text)
    if value is None or value > 2**53:
        raise line.error(f"{text[:40]!r} under {name} is not a count")
    return value


def _experiments(run: _Run, rows: Sequence[_Values]) -> Iterator[ImportedExperiment]:
    """The experiments of one program: one per datatype, reduction and root."""
    together: dict[tuple[str, str, str], list[_Values]] = {}
    for row in rows:
        together.setdefault(row.settings, []).append(row)
    for (datatype, redop, root), own in together.items():
        _check_cycles(own)
        factor = _factor(own, run)
        has_redop = any(row.has_redop for row in own)
        op = run.program or _operation(factor, run.ranks, redop, root, has_redop=has_redop)
        wrong = next((row for row in own if row.wrong), None)
        failed = run.failed
        if wrong is not None:
            failed = failed or f"line {wrong.line.number}: {wrong.wrong} wrong elements of {wrong.size_B} B"
        parameters: dict[str, Value] = {"op": op, "datatype": datatype, "redop": redop, "root": root}
        if run.ranks is not None:
            parameters.update(ranks=run.ranks, nodes=len(set(run.hosts.values())))
        notes: dict[str, object] = {"is_whole": run.is_whole}
        if run.begin is not None:
            notes["settings"] = run.begin.text.strip("# ")
        if run.devices:
            notes["devices"] = sorted(set(run.devices))
            if all(run.devices):
                parameters["device"] = named(run.devices)
        samples, remarks = tuple(_samples(own, is_of_several=run.ranks != 1)), _remarks(run, own)
        yield ImportedExperiment("imported.nccl-tests", samples, parameters, notes, failed=failed, remarks=remarks)


def _check_cycles(rows: Sequence[_Values]) -> None:
    """Sizes never fall, but for another cycle (`-N`), which has the same sizes again. Raises ParseError for rows that
    were mixed or repeated."""
    sizes = [row.size_B for row in rows]
    begins = [0, *(i for i in range(1, len(sizes)) if sizes[i] < sizes[i - 1])]
    first = sizes[: begins[1]] if len(begins) > 1 else sizes
    for begin, end in pairwise([*begins, len(sizes)]):
        own = sizes[begin:end]
        if own != first[: len(own)] or (len(own) < len(first) and end < len(sizes)):
            why = "smaller than the size before it, and not the same sizes again: rows are mixed or repeated"
            raise rows[begin].line.error(why)


def _remarks(run: _Run, rows: Sequence[_Values]) -> tuple[str, ...]:
    """Bandwidths without a figure, and a table that does not show whether it is whole."""
    if run.ranks == 1:
        return ("one rank: nothing passes between GPUs, so algbw and busbw are not figures", *_missing_rows(run, rows))
    zeros = [
        (name, row.size_B)
        for row in rows
        for group in row.groups
        if group is not None and row.size_B
        for name, text in zip(("algbw", "busbw"), group[1:], strict=True)
        if text != _NONE and float(text) == 0
    ]
    is_ended = run.is_whole or run.failed
    cut = () if is_ended else ("no line `# Out of bounds values` below the table: rows may be missing",)
    return (*tables.too_small(zeros, "bandwidth"), *_missing_rows(run, rows), *cut)


def _average(run: _Run, rows: Sequence[_Values]) -> tuple[str, ...]:
    """A remark if rows were left out, or do not have the average that the program states."""
    if run.left_out is not None and run.header is not None and run.left_out.number > run.header.number:
        return (f"line {run.left_out.number}: rows are left out here",)
    rates = [float(group[2]) for row in rows for group in row.groups if group is not None and group[2] != _NONE]
    if run.average is None or not rates or run.ranks == 1:
        return ()
    mean = fmean(rates)
    if abs(mean - run.average) <= _ROUNDED_GBps + 1e-3 * mean:
        return ()
    why = "rows are missing, or one of the numbers is wrong"
    return (f"the text states an average busbw of {run.average:g} GB/s, but its rows have {mean:.6g}: {why}",)


def _missing_rows(run: _Run, rows: Sequence[_Values]) -> tuple[str, ...]:
    """A remark if there are fewer rows than sizes from the smallest to the largest that the first line states.

    Sizes are rounded down to whole elements for all ranks, so that small ones may coincide: they are not counted.
    """
    stated = _SIZES.search(run.begin.text) if run.begin is not None else None
    if stated is None:
        return ()
    size, most, step = int(stated[1]), min(int(stated[2]), run.most_B), int(stated[3])
    least, is_factor, slack = size, stated[4] == "factor", 64 * (run.ranks or 1)
    measured = len({row.size_B for row in rows if 2 * row.size_B >= slack})
    wanted = 0
    while size <= most and wanted <= measured and step > is_factor:
        wanted += size >= slack
        size = size * step if is_factor else size + step
    if wanted <= measured:
        return ()
    return (f"fewer rows than sizes from {least} to {most} B, as the first line states: rows may be missing",)


def _samples(rows: Sequence[_Values], *, is_of_several: bool) -> Iterator[Sample]:
    """The samples of the rows; one rank alone has times, but nothing passes between GPUs."""
    counted: dict[tuple[int, bool], int] = {}
    for row in rows:
        for in_place, group in zip(_PLACES, row.groups, strict=False):
            if group is None:
                continue
            point: dict[str, Value] = {"size_B": row.size_B, "in_place": in_place}
            i = counted.get((row.size_B, in_place), 0)
            counted[row.size_B, in_place] = i + 1
            time, algbw, busbw = group
            yield figures.time_sample("time", _seconds(row.line, time), i=i, point=point, resolution=last_digit(time))
            for series, text in (("algbw", algbw), ("busbw", busbw)) if is_of_several else ():
                if text != _NONE and (rate := _scaled(text, 9)) > 0:
                    yield figures.rate_sample(series, rate, i=i, point=point, resolution=last_digit(text))


def _seconds(line: LogLine, text: str) -> float:
    seconds = _scaled(text, -6)
    if not 0 < seconds <= tables.MOST_SECONDS:
        raise line.error(f"a time of {text[:40]} us is impossible")
    return seconds


def _scaled(text: str, exponent: int) -> float:
    value = tables.decimal_of(text)
    return 0.0 if value is None else tables.scaled(value, exponent)


def _factor(rows: Sequence[_Values], run: _Run) -> float | None:
    """Bus bandwidth over size / time, the same for all rows; None if no row is exact enough.

    Raises ParseError if size, time and bandwidths of a row are inconsistent, or do not fit the operation.
    """
    low, high = 0.0, float("inf")
    # Older all_gather and reduce_scatter omit the rank's own part.
    least_share = 0.5 if run.ranks is None else (run.ranks - 1) / run.ranks
    for row in rows:
        for group in row.groups:
            if group is None or row.size_B == 0:
                continue
            time, algbw, busbw = group
            _seconds(row.line, time)
            if algbw != _NONE:
                least, most = _bounds(row.size_B, time, algbw)
                if most < least_share or least > 1:
                    raise row.line.error(f"{algbw} GB/s is not {row.size_B} B in {time} us")
            if busbw != _NONE:
                least, most = _bounds(row.size_B, time, busbw)
                low, high = max(low, least), min(high, most)
                if low > high:
                    why = (
                        f"a bus bandwidth of {busbw} GB/s does not fit {row.size_B} B in {time} us and the rows before"
                    )
                    raise row.line.error(why)
    expected = _expected(run.program, run.ranks) if run.program else None
    if expected is not None and not low <= expected <= high:
        raise rows[0].line.error(f"the bus bandwidths below do not fit {run.program} with {run.ranks} ranks")
    return (low + high) / 2 if high - low < 0.02 else None


def _bounds(size_B: int, time: str, rate: str) -> tuple[float, float]:
    """The smallest and largest rate x time / size within the printed decimals."""
    us, GBps = float(time), float(rate)
    off_us, off_GBps = half_unit(time), half_unit(rate)
    scale = 1e3 / size_B
    return (
        max(0.0, us - off_us) * max(0.0, GBps - off_GBps) * scale * (1 - 1e-6),
        (us + off_us) * (GBps + off_GBps) * scale * (1 + 1e-6),
    )


def _expected(op: str, ranks: int | None) -> float | None:
    """Bus bandwidth over size / time of an operation (doc/PERFORMANCE.md); None if not defined, or `ranks` is
    unknown."""
    if ranks is None or op in ("alltoallv", "hypercube"):
        return None
    share = (ranks - 1) / ranks
    if op == "all_reduce":
        return 2 * share
    return share if op in ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter") else 1.0


def _operation(factor: float | None, ranks: int | None, redop: str, root: str, *, has_redop: bool) -> str:
    """The only operation that fits the columns and the factor, or "unknown"."""
    if factor is None or ranks is None or ranks < 2:
        return UNKNOWN
    reduces, rooted = has_redop and redop != "none", root != "none"
    candidates = {
        (True, False): ("all_reduce", "reduce_scatter"),
        (True, True): ("reduce",),
        (False, True): ("broadcast", "gather", "scatter"),
        (False, False): ("all_gather", "alltoall", "sendrecv"),
    }[reduces, rooted]
    left = [op for op in candidates if abs((_expected(op, ranks) or 0.0) - factor) < 0.02]
    return left[0] if len(left) == 1 else UNKNOWN


IMPORTED = figures.imported(
    "nccl-tests",
    "nccl-tests or rccl-tests",
    "How fast are collective operations between GPUs?",
    (
        figures.choice("op", "the collective operation", *_OPERATIONS),
        *figures.counts(ranks="ranks, each with a GPU", nodes="nodes that the ranks run on"),
        figures.text("device", "the GPUs, as named in the file"),
        figures.text("datatype", "element type, as named by NCCL"),
        figures.text("redop", "reduction operation, as named by NCCL; none: no reduction"),
        figures.text("root", "root rank; none: the operation has no root"),
    ),
    (
        figures.time("time", "one operation"),
        figures.rate("algbw", "B/s", "bytes of the operation (size_B) over its time"),
        figures.rate("busbw", "B/s", "minimum bytes that each link must move, as nccl-tests counts, over the time"),
    ),
)

READER = figures.Reader(
    "nccl-tests",
    read_nccl_tests,
    (
        rf"{_RELEASE.text}|{JSON_BEGIN}",
        rf"{_STARTING.text}.{{0,200}}",
        _BEGIN.text,
        r"#\s+size\s+count\s+type\b.{0,400}",
    ),
    ProgramOptions(each_process=(("-g", "--ngpus"), ("-t", "--nthreads"))),
)
