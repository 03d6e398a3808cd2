"""Intel MPI Benchmarks (3.x, 4.x, 2017 to 2021): the tables that IMB-MPI1, IMB-NBC, IMB-RMA, IMB-P2P, IMB-MT print.

PingPong between two ranks measures the same as `mpi.latency`, and Allreduce the same as `mpi.allreduce`; the rest
becomes `imported.imb`, PingPong's bandwidth included (size over time, one message at a time). "Mbytes/sec" is 2^20 B in
older releases and 10^6 B in newer ones: size, time and bandwidth of the rows show which. If no row is exact enough to
decide, the bandwidth is skipped. A value of 0.00 is below the resolution of two decimals and is skipped as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from decimal import Decimal
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from seatrial.applications.reading import figures, tables
from seatrial.applications.reading.log import Log, Printed
from seatrial.applications.reading.text import LogLine, Pattern, is_product, last_digit
from seatrial.benchmarks.mpi.mpi_benchmark import RANKS
from seatrial.benchmarks.nodes import NODES
from seatrial.model.benchmark.parameter import UNKNOWN, Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "imb"
_VERSION = Pattern(
    r"#?\s*Intel\s?\(R\) MPI Benchmark(?:s| Suite) V?([0-9][\w.]{0,20}(?: (?:Update|Beta) ?[0-9]{1,3})?)\s*,.{0,100}"
)
_TITLE = Pattern(r"#\s*Benchmarking:?\s+((?:Multi-)?[A-Za-z]\w{0,60})")
_PROCESSES = Pattern(r"#\s*#processes\s*=\s*([0-9]{1,9})(?:\s*\(threads: [0-9]+\))?")
_GROUPS = Pattern(r"#\s*\(\s*([0-9]{1,9}) groups? of ([0-9]{1,9}) process(?:es)? each running simultaneous(?:ly)?\s*\)")
_MODE = Pattern(r"#\s*MODE:\s*([A-Z][A-Z -]{0,40})")
_LONGEST = Pattern(r"#\s*Maximum message length in bytes:\s*([0-9]{1,16})")
_LISTED = Pattern(r"#\s*List of Benchmarks to run:?")
_NAME = Pattern(r"#\s*([A-Za-z]\w{0,60})")
_END = Pattern(r"#\s*All processes entering MPI_Finalize")
_SKIPPED = Pattern(r"out-of-mem|time-?out|skipp", re.IGNORECASE)
"""Lines with which IMB explains why a table has no more rows."""
_DATATYPE = Pattern(r"#\s*MPI_Datatype( for reductions)?\s*:\s*(MPI_\w{1,40})")

_COLUMNS: Mapping[str, tuple[str, int]] = {
    "#bytes": ("size", 0),
    "#repetitions": ("repetitions", 0),
    "t[usec]": ("time", -6),
    "t_min[usec]": ("time_min", -6),
    "t_max[usec]": ("time_max", -6),
    "t_avg[usec]": ("time_mean", -6),
    "t_ovrl[usec]": ("overall", -6),
    "t_pure[usec]": ("communication", -6),
    "t_CPU[usec]": ("compute", -6),
    "overlap[%]": ("overlap", -2),
    "Mbytes/sec": ("bandwidth", 6),
    "Msg/sec": ("message_rate", 0),
    "defects": ("defects", 0),
}
"""Column name -> series here, and the power of ten to SI."""

_BARRIERS_SINCE = 2019
"""Releases that begin each call of a collective after a barrier; older ones time calls back to back."""

_TIMES = tuple(name for name, exponent in _COLUMNS.values() if exponent == -6)
_MB = {6: 1e6, 20: 2.0**20}
_MESSAGES = (1, 2, 4)
"""Messages that IMB counts per time: Sendrecv sends and receives, Exchange does so with two neighbours."""

_CHECKED = ("PingPong", "PingPing", "Sendrecv", "Exchange", "Uniband", "Biband")
"""Benchmarks whose bandwidth is whole messages over one of the times: rows that disagree are damaged."""


class _Table(Struct):
    """One benchmark on one number of processes."""

    name: str
    line: LogLine
    settings: dict[str, Value] = {}
    columns: tuple[tables.TextCell, ...] = ()
    rows: list[tables.Row] = []
    skipped: list[str] = []
    """The lines with which IMB explains that sizes are missing."""


def read_imb(data: bytes) -> ImportedFile:
    """The output of IMB: one experiment per benchmark and number of processes.

    Raises ParseError for a damaged table, inconsistent values, or an experiment that occurs twice.
    """
    log = Log(_TOOL, data)
    stated = log.maybe(_VERSION, "release")
    version = "" if stated is None else stated.match[1]
    found: list[tuple[ImportedExperiment, LogLine]] = []
    datatypes = {bool(one.match[1]): one.match[2] for one in log.found(_DATATYPE)}
    blocks = _tables(log)
    longest = {int(one.match[1]) for one in log.found(_LONGEST)}
    remarks = _ending(log, blocks)
    for table in blocks:
        if not table.rows:
            raise table.line.error("no rows below this title: the file was cut off")
        if "ranks" not in table.settings:
            raise table.line.error("no `# #processes = ...` below this title: lines are missing")
        tables.check_aligned(table.columns, table.rows)
        own = (*_remarks(table, longest), *remarks)
        found += [(replace(e, remarks=own), table.line) for e in _experiments(table, datatypes, version)]
    if not found:
        raise log.error("no table below a line such as `# Benchmarking PingPong`")
    tables.check_distinct(
        (((e.benchmark, tuple(sorted(e.parameters.items()))), line) for e, line in found), "this benchmark"
    )
    return ImportedFile("Intel MPI Benchmarks", version, tuple(experiment for experiment, _ in found))


def _ending(log: Log, blocks: Sequence[_Table]) -> tuple[str, ...]:
    """A remark if the last line of IMB is missing. Raises ParseError if a benchmark that it lists then has no table."""
    lists = log.found(_LISTED)
    if not blocks or not lists or log.found(_END):
        return ()
    listed = [one.match[1] for one in log.found(_NAME, log.lines[lists[0].line.number : blocks[0].line.number - 1])]
    measured = {table.name.lower() for table in blocks}
    missing = next((name for name in listed if name.lower() not in measured), None)
    if missing is not None:
        raise lists[0].error(f"{missing}, listed below this line, has no table: the file was cut off")
    return ("`# All processes entering MPI_Finalize`, the last line of IMB, is missing: tables may be missing",)


def _remarks(table: _Table, longest: Set[int]) -> tuple[str, ...]:
    """Values without a figure, and missing rows. Raises ParseError if the table ends before the size that IMB states.

    `longest` is the largest size that the file states, if it does: sizes that a user lists (-msglen) have none.
    """
    names = [_COLUMNS[column.text][0] for column in table.columns]
    sizes = [int(cells[names.index("size")].text) for _, cells in table.rows] if "size" in names else []
    if sizes and longest and sizes[-1] < min(longest) and not table.skipped:
        why = f"the table ends at {sizes[-1]} B, but the file states sizes up to {min(longest)} B: it was cut off"
        raise table.rows[-1][0].error(why)
    zeros = [
        (column.text, size)
        for (_, cells), size in zip_longest(table.rows, sizes)
        for name, column, cell in zip(names, table.columns, cells, strict=True)
        if name in _TIMES or (name == "bandwidth" and size)
        if tables.decimal_of(cell.text) == 0
    ]
    gaps = tables.missing_sizes(sizes, table.name) if longest else ()
    more = f" and {len(table.skipped) - 1} more" if len(table.skipped) > 1 else ""
    short = (f"{table.name}: sizes are missing: {table.skipped[0]}{more}",) if table.skipped else ()
    return (*tables.too_small(zeros, table.name), *gaps, *short)


def _tables(log: Log) -> list[_Table]:
    blocks: list[_Table] = []
    for line, text in log.numbered():
        if title := _TITLE.fullmatch(text):
            blocks.append(_Table(title[1], line))
        elif not blocks or not text:
            continue
        elif columns := _header(line, blocks[-1]):
            if blocks[-1].rows:
                raise line.error("a second table without a title: several outputs are mixed")
            blocks[-1].columns = columns
        elif _SKIPPED.search(text):
            blocks[-1].skipped.append(text[:200])
        elif text.startswith("#"):
            _set(blocks, line, text)
        elif blocks[-1].columns:
            _add_row(blocks[-1], line)
    return blocks


def _set(blocks: list[_Table], line: LogLine, text: str) -> None:
    """Take the settings that a comment states for the table below it."""
    table = blocks[-1]
    settings: dict[str, Value] = {}
    if found := _PROCESSES.fullmatch(text):
        settings = {"ranks": int(found[1])}
    elif found := _GROUPS.fullmatch(text):
        settings = {"groups": int(found[1]), "ranks": int(found[2])}
    elif found := _MODE.fullmatch(text):
        settings = {"mode": found[1].strip()}
        if table.rows:  # the same benchmark again, in another mode
            table = _Table(table.name, line, dict(table.settings))
            blocks.append(table)
            table.settings.pop("mode", None)
    for name, value in settings.items():
        if table.settings.get(name, value) != value or table.rows:
            raise line.error(f"{name} is stated a second time: several outputs are mixed")
        table.settings[name] = value


def _header(line: LogLine, table: _Table) -> tuple[tables.TextCell, ...]:
    """The columns of a header line; empty for any other line. Raises ParseError for an unknown column."""
    cells = tables.cells_of(tables.body(line))
    if not cells or cells[0].text not in ("#bytes", "#repetitions"):
        return ()
    names = [cell.text for cell in cells]
    unknown = next((name for name in names if name not in _COLUMNS), None)
    if unknown is not None:
        raise line.error(f"unknown column {unknown[:40]!r} of {table.name}")
    measured = {_COLUMNS[name][0] for name in names} - {"size", "repetitions", "defects"}
    if len(set(names)) != len(names) or not measured:
        raise line.error("the header has a column twice, or is cut off")
    return cells


def _add_row(table: _Table, line: LogLine) -> None:
    """Add the line if it is a row. Raises ParseError if the row is damaged."""
    cells = tables.cells_of(tables.body(line))
    numbers = sum(tables.decimal_of(cell.text) is not None for cell in cells)
    is_row = re.match(r"[-+.]?[0-9]", cells[0].text) is not None or (len(cells) == len(table.columns) and numbers >= 2)
    if not is_row or tables.is_noise(line.text):
        return
    if len(cells) != len(table.columns):
        raise line.error(f"the row has {len(cells)} cells, but the header has {len(table.columns)} columns")
    for column, cell in zip(table.columns, cells, strict=True):
        is_count = _COLUMNS[column.text][0] in ("size", "repetitions", "defects")
        if tables.decimal_of(cell.text) is None or (
            is_count and tables.whole_number(cell.text) is None and column.text != "defects"
        ):
            raise line.error(f"{cell.text[:40]!r} under {column.text} is not a number in the form that IMB prints")
    table.rows.append((line, cells))


_Values = Mapping[str, str]
"""Series -> its cell, as printed."""


def _experiments(table: _Table, datatypes: Mapping[bool, str], version: str) -> Iterator[ImportedExperiment]:
    """Experiments of `mpi.*` where the measure is the same, the rest as `imported.imb`.

    `datatypes` are the datatypes stated at the top of the file; the key is whether it is that of reductions.
    """
    names = [_COLUMNS[column.text] for column in table.columns]
    rows = [(line, {name: c.text for (name, _), c in zip(names, cells, strict=True)}) for line, cells in table.rows]
    sizes = [(values.get("size", ""), line) for line, values in rows]
    tables.check_distinct(sizes, "this size" if "size" in rows[0][1] else "this table")
    for line, values in rows:
        times = [Decimal(values[name]) for name in ("time_min", "time_mean", "time_max") if name in values]
        tables.check_order(line, times, "time")
    unit = _megabyte(table, rows)
    failed = next(
        (f"line {line.number}: {v['defects']} defects" for line, v in rows if float(v.get("defects", "0")) > 0), ""
    )
    settings: dict[str, Value] = {"test": table.name, **table.settings}
    notes: dict[str, object] = {"test": table.name, **table.settings}
    if unit is not None:
        notes["megabyte_B"] = _MB[unit]
    unused = dict(names)
    alone = "groups" not in settings
    if table.name == "PingPong" and settings["ranks"] == 2 and alone and "time" in unused:
        series = {"time": "one_way"}
        own = tuple(_samples(rows, series, unit))
        parameters: dict[str, Value] = {"ranks": 2, "datatype": datatypes.get(False, UNKNOWN)}
        parameters["buffers"] = "host"
        yield ImportedExperiment("mpi.latency", own, parameters, notes, failed=failed)
        del unused["time"]
    if table.name == "Allreduce" and alone and "time_mean" in unused:
        parameters = {"ranks": settings["ranks"], "datatype": datatypes.get(True, UNKNOWN)}
        parameters |= {"buffers": "host", "call": "blocking"}
        if release := re.match(r"[0-9]{4}", version):
            parameters["start"] = "barrier" if int(release[0]) >= _BARRIERS_SINCE else "back-to-back"
        series = {name: name for name in ("time_mean", "time_max") if name in unused}
        own = tuple(_samples(rows, series, unit))
        yield ImportedExperiment("mpi.allreduce", own, parameters, notes, failed=failed)
        return
    series = {name: name for name in unused if name not in ("size", "repetitions", "defects")}
    if others := tuple(_samples(rows, series, unit)):
        yield ImportedExperiment("imported.imb", others, settings, notes, failed=failed)


def _samples(rows: Sequence[tuple[LogLine, _Values]], series: Mapping[str, str], unit: int | None) -> Iterator[Sample]:
    """The samples of these columns, row by row."""
    exponents = dict(_COLUMNS.values())
    for line, values in rows:
        point: dict[str, Value] = {"size_B": int(values["size"])} if "size" in values else {}
        for name, own in series.items():
            decimal = tables.decimal_of(values[name])
            if decimal is None or (decimal == 0 and name != "overlap"):
                continue
            value = tables.scaled(decimal, exponents[name])
            if name == "bandwidth":
                if unit is None:
                    continue
                value = value if unit == 6 else float(decimal) * _MB[unit]
            tables.check_possible(line, f"a {name}", name, value, _TIMES)
            make = figures.time_sample if name in _TIMES else figures.rate_sample
            yield make(own, value, point=point, resolution=last_digit(values[name]))


def _megabyte(table: _Table, rows: Sequence[tuple[LogLine, _Values]]) -> int | None:
    """6 if a Mbyte is 10^6 B, 20 if it is 2^20 B; None if the rows leave it open.

    Raises ParseError if size, time and bandwidth of a row fit neither, or contradict the rows before.
    """
    ranks = int(str(table.settings["ranks"]))
    counts = {*_MESSAGES, ranks, 2 * ranks, max(1, ranks // 2)}
    possible = {(exponent, messages) for exponent in _MB for messages in counts}
    for line, values in rows:
        times = [values[name] for name in ("time", "time_max", "time_mean") if name in values]
        if not {"bandwidth", "size"} <= set(values) or not (times or "message_rate" in values):
            return None
        size_B, rate = int(values["size"]), _printed(values["bandwidth"])
        fitting = {
            (exponent, messages)
            for exponent, messages in possible
            if any(_is_work(size_B * messages * 1e6 / _MB[exponent], _printed(time), rate) for time in times)
            or (not times and _printed(values["message_rate"]).scaled(size_B / _MB[exponent]).agrees(rate))
        }
        if not fitting and table.name.startswith(_CHECKED):
            raise line.error("size, time and Mbytes/sec are inconsistent, or contradict the rows before")
        possible = fitting
    units = {exponent for exponent, _ in possible}
    return units.pop() if len(units) == 1 else None


def _is_work(work: float, time: Printed, rate: Printed) -> bool:
    return is_product(work, (time.value, time.error), (rate.value, rate.error))


def _printed(token: str) -> Printed:
    return Printed.of(float(token), token)


IMPORTED = figures.imported(
    "imb",
    "Intel MPI Benchmarks",
    "What did the Intel MPI Benchmarks measure?",
    (
        figures.text("test", "benchmark as named by IMB, such as Sendrecv"),
        RANKS,
        NODES,
        figures.count("groups", "groups of so many ranks that run it concurrently"),
        figures.text("mode", "mode of a test that has several, such as AGGREGATE"),
    ),
    (
        figures.time("time", "one message or operation, as defined by IMB"),
        figures.time("time_mean", "one operation, mean over ranks"),
        figures.time("time_min", "one operation on the fastest rank"),
        figures.time("time_max", "one operation on the slowest rank"),
        figures.time("overall", "a non-blocking operation with the computation that overlaps it"),
        figures.time("compute", "the overlapping computation"),
        figures.time("communication", "the operation alone, without overlap"),
        figures.rate("overlap", "1", "share of the operation hidden by computation"),
        figures.rate("bandwidth", "B/s", "bytes as IMB counts them: of one message, two (Sendrecv) or four (Exchange)"),
        figures.rate("message_rate", "op/s", "messages of all ranks"),
    ),
)

READER = figures.Reader("imb", read_imb, (_VERSION.text,))
