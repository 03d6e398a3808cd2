"""Intel MPI Benchmarks (3.x, 4.x, 2017 to 2021): the tables that IMB-MPI1, IMB-NBC, IMB-RMA, IMB-P2P, IMB-MT print.

PingPong between two ranks measures what `mpi.latency` does and Allreduce what `mpi.allreduce` does; the rest is
`imported.imb`, PingPong's bandwidth too (size over time, one message at a time). "Mbytes/sec" is 2^20 B in older
releases and 10^6 B in newer ones: size, time and bandwidth of the rows tell which. Where no row is exact enough to tell
the two apart, the bandwidth is left out. A value of 0.00 is below what two decimals tell, and is left out as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from seatrial.benchmarks.mpi.ranks import UNKNOWN
from seatrial.errors import ParseError
from seatrial.imports.reader import Reader
from seatrial.imports.samples import rate_sample, time_sample
from seatrial.imports.tables import (
    MOST_PER_SECOND,
    MOST_SECONDS,
    Cell,
    Row,
    body,
    cells_of,
    check_aligned,
    check_distinct,
    decimal_of,
    is_noise,
    scaled,
    whole_number,
)
from seatrial.imports.text import Line, half_unit, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample

_TOOL = "imb"
_VERSION = re.compile(
    r"#?\s*Intel\s?\(R\) MPI Benchmark(?:s| Suite) V?([0-9][\w.]{0,20}(?: (?:Update|Beta) ?[0-9]{1,3})?)\s*,.{0,100}"
)
_TITLE = re.compile(r"#\s*Benchmarking:?\s+([A-Za-z]\w{0,60})")
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]{1,9})(?:\s*\(threads: [0-9]+\))?")
_GROUPS = re.compile(
    r"#\s*\(\s*([0-9]{1,9}) groups? of [0-9]{1,9} process(?:es)? each running simultaneous(?:ly)?\s*\)"
)
_MODE = re.compile(r"#\s*MODE:\s*([A-Z][A-Z -]{0,40})")
_DATATYPE = re.compile(r"#\s*MPI_Datatype( for reductions)?\s*:\s*(MPI_\w{1,40})")

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
"""Name of a column -> what it is here, and the power of ten to SI."""

_TIMES = tuple(name for name, exponent in _COLUMNS.values() if exponent == -6)
_MB = {6: 1e6, 20: 2.0**20}
_MESSAGES = (1, 2, 4)
"""Messages that IMB counts for one time: Sendrecv sends and receives, Exchange does so with two neighbours."""

_CHECKED = ("PingPong", "PingPing", "Sendrecv", "Exchange", "Uniband", "Biband")
"""Benchmarks whose bandwidth is that of whole messages over one of the times: rows that do not fit are damaged."""


@dataclass(slots=True)
class _Table:
    """One benchmark on so many processes."""

    name: str
    line: Line
    settings: dict[str, Value] = field(default_factory=dict)
    columns: tuple[Cell, ...] = ()
    rows: list[Row] = field(default_factory=list)


def read_imb(data: bytes) -> ImportedFile:
    """What the output of IMB says: an experiment for each benchmark and number of processes.

    Raises ParseError for a damaged table, for values that do not fit together, and where one experiment comes twice.
    """
    lines = read_lines(data, _TOOL)
    version = _version(lines)
    found: list[tuple[ImportedExperiment, Line]] = []
    datatypes = {bool(m[1]): m[2] for line in lines if (m := _DATATYPE.fullmatch(body(line).strip()))}
    for table in _tables(lines):
        if not table.rows:
            raise table.line.error(_TOOL, "there is no row below this title: the file was cut off")
        if "ranks" not in table.settings:
            raise table.line.error(_TOOL, "there is no `# #processes = ...` below this title: lines are missing")
        check_aligned(table.columns, table.rows, _TOOL)
        found += [(experiment, table.line) for experiment in _experiments(table, datatypes)]
    if not found:
        raise ParseError(_TOOL, None, "", "there is no table below a line such as `# Benchmarking PingPong` in it")
    check_distinct(
        (((e.benchmark, tuple(sorted(e.parameters.items()))), line) for e, line in found), _TOOL, "this benchmark"
    )
    return ImportedFile("Intel MPI Benchmarks", version, tuple(experiment for experiment, _ in found))


def _version(lines: Sequence[Line]) -> str:
    """The release, "" where no line tells it. Raises ParseError where there are two: two outputs in one file."""
    told = [(match[1], line) for line in lines if (match := _VERSION.fullmatch(body(line).strip()))]
    different = next((line for version, line in told if version != told[0][0]), None)
    if different is not None:
        raise different.error(_TOOL, f"another release than that of line {told[0][1].number}: split the file")
    return told[0][0] if told else ""


def _tables(lines: Sequence[Line]) -> list[_Table]:
    tables: list[_Table] = []
    for line in lines:
        text = body(line).strip()
        if title := _TITLE.fullmatch(text):
            tables.append(_Table(title[1], line))
        elif not tables or not text:
            continue
        elif columns := _header(line, tables[-1]):
            _begin(tables, line, columns)
        elif text.startswith("#"):
            _set(tables, line, text)
        elif tables[-1].columns:
            _add_row(tables[-1], line)
    return tables


def _begin(tables: list[_Table], line: Line, columns: tuple[Cell, ...]) -> None:
    """A header. A second one under one title is that of another mode."""
    if tables[-1].rows:
        raise line.error(_TOOL, "a second table without a title of its own: outputs run together")
    tables[-1].columns = columns


def _set(tables: list[_Table], line: Line, text: str) -> None:
    """What a comment says about the table below it."""
    table = tables[-1]
    told: tuple[str, Value] | None = None
    if found := _PROCESSES.fullmatch(text):
        told = ("ranks", int(found[1]))
    elif found := _GROUPS.fullmatch(text):
        told = ("groups", int(found[1]))
    elif found := _MODE.fullmatch(text):
        told = ("mode", found[1].strip())
        if table.rows:  # the same benchmark again, in another mode
            table = _Table(table.name, line, dict(table.settings))
            tables.append(table)
            table.settings.pop("mode", None)
    if told is not None:
        if table.settings.get(told[0], told[1]) != told[1] or table.rows:
            raise line.error(_TOOL, f"{told[0]} is told a second time: outputs run together")
        table.settings[told[0]] = told[1]


def _header(line: Line, table: _Table) -> tuple[Cell, ...]:
    """The columns that a line names; none where it is no header. Raises ParseError at one we do not know."""
    cells = cells_of(body(line))
    if not cells or cells[0].text not in ("#bytes", "#repetitions"):
        return ()
    names = [cell.text for cell in cells]
    unknown = next((name for name in names if name not in _COLUMNS), None)
    if unknown is not None:
        raise line.error(_TOOL, f"seatrial does not know the column {unknown[:40]!r} of {table.name}")
    measured = {_COLUMNS[name][0] for name in names} - {"size", "repetitions", "defects"}
    if len(set(names)) != len(names) or not measured:
        raise line.error(_TOOL, "a column comes twice in the header, or it is cut off")
    return cells


def _add_row(table: _Table, line: Line) -> None:
    """The line as a row, where it is one. Raises ParseError where it is a damaged one."""
    cells = cells_of(body(line))
    numbers = sum(decimal_of(cell.text) is not None for cell in cells)
    is_row = re.match(r"[-+.]?[0-9]", cells[0].text) is not None or (len(cells) == len(table.columns) and numbers >= 2)
    if not is_row or is_noise(line.text):
        return
    if len(cells) != len(table.columns):
        raise line.error(_TOOL, f"the row has {len(cells)} cells, but the header names {len(table.columns)} columns")
    for column, cell in zip(table.columns, cells, strict=True):
        is_count = _COLUMNS[column.text][0] in ("size", "repetitions", "defects")
        if decimal_of(cell.text) is None or (is_count and whole_number(cell.text) is None and column.text != "defects"):
            raise line.error(_TOOL, f"{cell.text[:40]!r} under {column.text} is not a number as IMB prints it")
    table.rows.append((line, cells))


_Values = Mapping[str, str]
"""What a column is here -> its cell, as printed."""


def _experiments(table: _Table, datatypes: Mapping[bool, str]) -> Iterator[ImportedExperiment]:
    """Ours where the measure is the same, with the rest as `imported.imb`.

    `datatypes` are those that the head of the file tells, by whether they are those of reductions.
    """
    names = [_COLUMNS[column.text] for column in table.columns]
    rows = [(line, {name: c.text for (name, _), c in zip(names, cells, strict=True)}) for line, cells in table.rows]
    sizes = [(values.get("size", ""), line) for line, values in rows]
    check_distinct(sizes, _TOOL, "this size" if "size" in rows[0][1] else "this table")
    for line, values in rows:
        _check_order(line, values)
    unit = _megabyte(table, rows)
    failed = next((f"line {line.number}: {v['defects']} defects" for line, v in rows if _is_defect(v)), "")
    settings: dict[str, Value] = {"test": table.name, **table.settings}
    notes: dict[str, object] = {"test": table.name, **table.settings}
    if unit is not None:
        notes["megabyte_B"] = _MB[unit]
    left = dict(names)
    alone = "groups" not in settings
    if table.name == "PingPong" and settings["ranks"] == 2 and alone and "time" in left:
        series = {"time": "one_way"}
        own = tuple(_samples(rows, series, unit))
        told: dict[str, Value] = {"datatype": datatypes.get(False, UNKNOWN)}
        yield ImportedExperiment("mpi.latency", own, told, notes, failed=failed)
        del left["time"]
    if table.name == "Allreduce" and alone and "time_mean" in left:
        parameters: dict[str, Value] = {"ranks": settings["ranks"], "datatype": datatypes.get(True, UNKNOWN)}
        series = {name: name for name in ("time_mean", "time_max") if name in left}
        own = tuple(_samples(rows, series, unit))
        yield ImportedExperiment("mpi.allreduce", own, parameters, notes, failed=failed)
        return
    series = {name: name for name in left if name not in ("size", "repetitions", "defects")}
    if others := tuple(_samples(rows, series, unit)):
        yield ImportedExperiment("imported.imb", others, settings, notes, failed=failed)


def _is_defect(values: _Values) -> bool:
    return float(values.get("defects", "0")) > 0


def _samples(rows: Sequence[tuple[Line, _Values]], series: Mapping[str, str], unit: int | None) -> Iterator[Sample]:
    """The samples of these columns, row by row."""
    exponents = dict(_COLUMNS.values())
    for line, values in rows:
        point: dict[str, Value] = {"size_B": int(values["size"])} if "size" in values else {}
        for name, own in series.items():
            decimal = decimal_of(values[name])
            if decimal is None or (decimal == 0 and name != "overlap"):
                continue
            value = scaled(decimal, exponents[name])
            if name == "bandwidth":
                if unit is None:
                    continue
                value = value if unit == 6 else float(decimal) * _MB[unit]
            _check_possible(line, name, value)
            yield time_sample(own, value, point=point) if name in _TIMES else rate_sample(own, value, point=point)


def _check_possible(line: Line, name: str, value: float) -> None:
    most = MOST_SECONDS if name in _TIMES else 1.0 if name == "overlap" else MOST_PER_SECOND
    if value > most:
        raise line.error(_TOOL, f"a {name} of {value:g} (SI) cannot be")


def _check_order(line: Line, values: _Values) -> None:
    """The mean lies between the fastest and the slowest rank, as far as the printed decimals tell."""
    told = [float(values[name]) for name in ("time_min", "time_mean", "time_max") if name in values]
    if any(told[k] > told[k + 1] + 0.011 for k in range(len(told) - 1)):
        raise line.error(_TOOL, "the least, the mean and the greatest time are not in this order")


def _megabyte(table: _Table, rows: Sequence[tuple[Line, _Values]]) -> int | None:
    """6 where a Mbyte is 10^6 B, 20 where it is 2^20 B; None where the rows do not tell.

    Raises ParseError where size, time and bandwidth of a row fit to neither, or not to that of the rows before.
    """
    ranks = int(str(table.settings["ranks"]))
    counts = {*_MESSAGES, ranks, 2 * ranks, max(1, ranks // 2)}
    possible = {(exponent, messages) for exponent in _MB for messages in counts}
    for line, values in rows:
        told = [values[name] for name in ("time", "time_max", "time_mean") if name in values]
        if not {"bandwidth", "size"} <= set(values) or not (told or "message_rate" in values):
            return None
        size_B, rate = int(values["size"]), values["bandwidth"]
        fitting = {
            (exponent, messages)
            for exponent, messages in possible
            if any(_fits(size_B * messages / _MB[exponent], time, rate) for time in told)
            or (not told and _is_rate(size_B / _MB[exponent], values["message_rate"], rate))
        }
        if not fitting and table.name.startswith(_CHECKED):
            raise line.error(_TOOL, "size, time and Mbytes/sec do not fit together, or not as in the rows before")
        possible = fitting
    units = {exponent for exponent, _ in possible}
    return units.pop() if len(units) == 1 else None


def _is_rate(megabytes: float, per_second: str, rate: str) -> bool:
    """Whether messages of so many megabytes, so many a second, can be that rate."""
    messages, off = float(per_second), half_unit(per_second)
    least, most = megabytes * max(0.0, messages - off), megabytes * (messages + off)
    return least * (1 - 1e-6) - half_unit(rate) <= float(rate) <= most * (1 + 1e-6) + half_unit(rate)


def _fits(megabytes: float, time: str, rate: str) -> bool:
    """Whether rate x time can be so many megabytes, by what the printed decimals leave open."""
    us, MBps, off_us, off_MBps = float(time), float(rate), half_unit(time), half_unit(rate)
    least = max(0.0, us - off_us) * max(0.0, MBps - off_MBps) * 1e-6
    most = (us + off_us) * (MBps + off_MBps) * 1e-6
    return least * (1 - 1e-6) <= megabytes <= most * (1 + 1e-6)


READER = Reader(kind="imb", read=read_imb)
