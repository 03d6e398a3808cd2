"""perftest (linux-rdma): the text of ib_write_bw, ib_read_lat and the other programs, 4 to 6.

Rates are in MiB/s, which releases before 4.5 call MB/sec, or in 10^9 bit/s (`--report_gbits`). Rate and message rate
depend on each other (perftest_parameters.c, print_report_bw), so a damaged number is detected. Both ends of a test
print the same table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from msgspec import Struct

from seatrial.applications.reading import figures, tables
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.text import LogLine, Pattern, last_digit
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "perftest"
_TITLE = Pattern(r"((?:RDMA_Write|RDMA_Read|Send|Atomic|Raw_?Ethernet|Write_with_Imm)\b.{0,40}?) Test")
_SETTING = Pattern(r"([A-Za-z][\w.*() -]{1,30}?)\s*:\s+(\S{1,40})(?:\s+([A-Z][\w -]{1,30}?)\s*:\s+(\S{1,40}))?")
_STATED = {
    "Device": "device",
    "Number of qps": "pairs",
    "Connection type": "connection",
    "Link type": "link",
    "Mtu": "mtu_B",
}
"""Setting that a test prints -> parameter."""
_GPU = ("Use CUDA memory", "Use ROCm memory", "Use HL memory")
_COLUMNS: Mapping[str, str] = {
    "#bytes": "size",
    "#iterations": "iterations",
    "BW peak": "bandwidth_peak",
    "BW average": "bandwidth",
    "MsgRate[Mpps]": "message_rate",
    "t_min[usec]": "time_min",
    "t_max[usec]": "time_max",
    "t_typical[usec]": "time",
    "t_avg[usec]": "time_mean",
    "t_stdev[usec]": "time_deviation",
    "99% percentile[usec]": "time_p99",
    "99.9% percentile[usec]": "time_p999",
    "tps average": "message_rate",
    "CPU_Util[%]": "cpu",
}
_NAMES = re.compile("|".join(re.escape(name) for name in sorted(_COLUMNS, key=len, reverse=True)))
_UNIT = Pattern(r"BW (?:peak|average)\[(MB/sec|MiB/sec|Gb/sec)\]")
_RATES = {"MB/sec": 2.0**20, "MiB/sec": 2.0**20, "Gb/sec": 1e9 / 8}
_SECONDARY = ("iterations", "time_deviation", "cpu")


class _Table(Struct):
    """A header with the rows below it, and the title and settings above it."""

    line: LogLine
    columns: tuple[str, ...]
    unit: float | None
    test: str | None
    settings: dict[str, Value]
    rows: list[tables.Row] = []


def read(data: bytes) -> ImportedFile:
    """One experiment per test. Raises ParseError for a damaged table, or a test that occurs twice."""
    log = Log(_TOOL, data)
    found = _tables(log)
    if not found:
        raise log.error("no header such as `#bytes #iterations BW peak[MiB/sec] BW average[MiB/sec]`")
    experiments = [(_experiment(table), table.line) for table in found]
    tables.check_distinct(((tuple(sorted(e.parameters.items())), line) for e, line in experiments), "this test")
    return ImportedFile(_TOOL, "", tuple(experiment for experiment, _ in experiments))


def _tables(log: Log) -> list[_Table]:
    found: list[_Table] = []
    test: str | None = None
    settings: dict[str, Value] = {}
    for line, text in log.numbered():
        if title := _TITLE.fullmatch(text):
            test, settings = title[1], {}
        elif text.startswith("#bytes"):
            unit = _UNIT.search(text)
            names = tuple(_COLUMNS[name] for name in _NAMES.findall(re.sub(r"\[(?:MB|MiB|Gb)/sec\]", "", text)))
            if _NAMES.sub("", re.sub(r"\[(?:MB|MiB|Gb)/sec\]", "", text)).strip() or len(names) < 3:
                raise line.error("a column is unknown, or the header is cut off")
            found.append(_Table(line, names, _RATES[unit[1]] if unit else None, test, settings))
            test, settings = None, {}
        elif (stated := _SETTING.fullmatch(text)) and test is not None:
            settings |= dict(_settings(stated.groups()))
        elif found and re.match(r"[0-9]+\s+[0-9]+\s", text):
            cells = tables.cells_of(text)
            if len(cells) != len(found[-1].columns):
                raise line.error(f"the row has {len(cells)} cells, but the header {len(found[-1].columns)} columns")
            found[-1].rows.append((line, cells))
    return found


def _settings(groups: tuple[str | None, ...]) -> Iterator[tuple[str, Value]]:
    for name, value in zip(groups[::2], groups[1::2], strict=True):
        if name is None or value is None:
            continue
        if name in _GPU and value == "ON":
            yield "buffers", "device"
        elif (parameter := _STATED.get(name)) is not None:
            digits = value.removesuffix("[B]")
            yield parameter, int(digits) if parameter in ("pairs", "mtu_B") and digits.isdecimal() else value


def _experiment(table: _Table) -> ImportedExperiment:
    if not table.rows:
        raise table.line.error("no rows below this header: the output is cut off, or the test did not end")
    tables.check_distinct(((cells[0].text, line) for line, cells in table.rows), "this size")
    samples = [sample for row in table.rows for sample in _samples(table, row)]
    parameters = dict(table.settings)
    if table.test is not None:
        parameters["test"] = table.test
        parameters.setdefault("buffers", "host")
    return ImportedExperiment("imported.perftest", tuple(samples), parameters)


def _samples(table: _Table, row: tables.Row) -> Iterator[Sample]:
    line, cells = row
    values: dict[str, Decimal] = {}
    for name, cell in zip(table.columns, cells, strict=True):
        value = tables.decimal_of(cell.text)
        if value is None:
            raise line.error(f"{cell.text[:40]!r} is not a number in the form that perftest prints")
        values[name] = value
    point: dict[str, Value] = {"size_B": int(values["size"])}
    order = ("time_min", "time", "time_p99", "time_p999", "time_max")
    tables.check_order(line, [values[name] for name in order if name in values], "time")
    tables.check_order(line, [values[n] for n in ("time_min", "time_mean", "time_max") if n in values], "time")
    if table.unit and "message_rate" in values:
        moved = float(values["message_rate"]) * 1e6 * int(values["size"])
        rate = float(values["bandwidth"]) * table.unit
        slack = 5e-7 * 1e6 * int(values["size"]) + 5e-3 * table.unit + 1e-3 * rate
        if abs(moved - rate) > slack:
            raise line.error("the average rate is not that of the message rate: the row is damaged")
    for name, cell in zip(table.columns, cells, strict=True):
        value = values[name]
        if name in (*_SECONDARY, "size") or value == 0:  # the peak is 0 if the test ran for a time (-D)
            continue
        resolution = last_digit(cell.text)
        if name.startswith("time"):
            seconds = tables.scaled(value, -6)
            tables.check_possible(line, name, "time", seconds, ("time",))
            yield figures.time_sample(name, seconds, point=point, resolution=resolution)
        else:
            unit = (1e6 if "tps" not in table.line.text else 1.0) if name == "message_rate" else table.unit
            if unit is None:
                raise table.line.error("the unit of the rate is missing")
            own = figures.in_SI(float(value), unit)
            tables.check_possible(line, name, name, own, ())
            yield figures.rate_sample(name, own, point=point, resolution=resolution)


IMPORTED = figures.imported(
    "perftest",
    "perftest",
    "What did a program of perftest measure between two adapters?",
    (
        figures.text("test", "as the program names it, such as RDMA_Write BW"),
        figures.text("device", "adapter of the end that printed the text"),
        figures.text("connection", "transport: RC, UC, UD, ..."),
        figures.text("link", "link layer: IB or Ethernet"),
        figures.text("buffers", "where the messages are: host or device"),
        *figures.counts(pairs="queue pairs", mtu_B="bytes of a packet, at most"),
    ),
    (
        figures.rate("bandwidth", "B/s", "mean over the test; both directions together, if it is bidirectional"),
        figures.rate("bandwidth_peak", "B/s", "of the fastest iterations", is_secondary=True),
        figures.rate("message_rate", "op/s", "messages"),
        figures.time("time", "of a message: the median (t_typical); half a round trip for write and send"),
        figures.time("time_mean", "of a message, mean"),
        figures.time("time_min", "of the fastest message"),
        figures.time("time_max", "of the slowest message"),
        figures.time("time_p99", "99th percentile"),
        figures.time("time_p999", "99.9th percentile"),
    ),
)

READER = figures.Reader("perftest", read, (_TITLE.text, "#bytes.{0,400}"), is_from_documentation=True)
