"""OSU micro-benchmarks, 3.x to 7.x: the text that each program prints.

Latency, bandwidth (one and two directions) and allreduce measure the same as `mpi.*`; every other program becomes
`imported.osu`. Column names and widths: osu-micro-benchmarks, c/util/osu_util_mpi.c. Times are in us, and MB is
10^6 B.

A rate is printed without a time: its sample is the work of one second. Max Latency is that of the slowest rank, where
the time of a rank is a mean over iterations. A time of 0.00 us is below the resolution of two decimals and is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec import Struct

from seatrial.applications.reading import figures, tables
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.text import LogLine, Pattern, last_digit
from seatrial.benchmarks.mpi.mpi_benchmark import BUFFERS, RANKS
from seatrial.benchmarks.nodes import NODES
from seatrial.model.benchmark.parameter import UNKNOWN, Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "osu"
_TITLE = Pattern(r"[#>\s]{0,20}OSU\s+(\S.{0,120}?)\s+(?:Test\s+){1,2}v([0-9][\w.-]{0,20})", re.IGNORECASE)
_FAMILY = Pattern(r"MPI(?:-(CUDA MANAGED|CUDA|ROCM|OPENACC|SYCL|MANAGED))?\s+(\S.*)")
_DATATYPE = Pattern(r"#\s*Datatype:\s*(\S{1,64}?)\.?\s*")
_PAIRS = Pattern(r"#\s*\[\s*pairs:\s*([0-9]{1,9})\s*\](?:\s*\[\s*window size:\s*([0-9]{1,9})\s*\])?\s*")
_MEMORY = r"(HOST|DEVICE|MANAGED)\b[^#]{0,40}"
_BUFFERS = Pattern(rf"#\s*(?:Send Buffer|Rank 0 Memory) on {_MEMORY}and (?:Receive Buffer|Rank 1 Memory) on {_MEMORY}")
_SYNCHRONIZATION = Pattern(r"#\s*(Window creation|Synchronization):\s*(\S{1,64})\s*")
_WRONG = Pattern(r"data validation error|validation\s+fail", re.IGNORECASE)

_COLUMNS: tuple[tuple[str, str, int], ...] = (
    (r"Avg\s+Latency\s?\(us\)|(?:Latency|Lat\.?)\s?\(us\)", "time", -6),
    (r"Min\s+Latency\s?\(us\)", "time_min", -6),
    (r"Max\s+Latency\s?\(us\)", "time_max", -6),
    (r"(?:Bi-)?Bandwidth\s?\(MB/s\)|MB/s", "bandwidth", 6),
    (r"Messages/s", "message_rate", 0),
    (r"Overall\s?\(us\)", "overall", -6),
    (r"Compute\s?\(us\)", "compute", -6),
    (r"Coll\. Init\s?\(us\)", "init", -6),
    (r"MPI_Test\s?\(us\)", "test", -6),
    (r"MPI_Wait\s?\(us\)", "wait", -6),
    (r"Pure Comm\.\s?\(us\)", "communication", -6),
    (r"Min Comm\.\s?\(us\)", "communication_min", -6),
    (r"Max Comm\.\s?\(us\)", "communication_max", -6),
    (r"Overlap\s?\(%\)", "overlap", -2),
    (r"P(50|90|99) Tail Lat\s?\(us\)", "latency_p", -6),
    (r"P(50|90|99) Tail BW\s?\(MB/s\)", "bandwidth_p", 6),
    (r"Transmit Size", "transmit", 0),
    (r"Iterations", "iterations", 0),
    (r"Validation", "validation", 0),
    (r"Size", "size", 0),
)
"""Column name -> series here, and the power of ten to SI."""

_LONGEST_HEADER = 4096

_MEASURED = ("time", "bandwidth", "overall")
"""Every table has one of these."""
_PERCENTILES = tuple(f"{name}_p{share}" for name in ("latency", "bandwidth") for share in (50, 90, 99))
_TIMES = (*(name for _, name, exponent in _COLUMNS if exponent == -6), *_PERCENTILES[:3])
_EXTRA = ("iterations", "init", "test", "wait", "communication_min", "communication_max", "transmit")
"""Columns that become extra values of the samples, not figures."""


class _Column(Frozen):
    name: str
    exponent: int
    cell: tables.TextCell


class _Table(Struct):
    """A header with the rows below it, and the title and settings above it."""

    title: str
    version: str
    line: LogLine
    settings: dict[str, Value]
    columns: tuple[_Column, ...]
    rows: list[tables.Row] = []


def read_osu(data: bytes) -> ImportedFile:
    """The output of OSU programs: one experiment per program and datatype.

    Raises ParseError for a damaged or unknown table, or an experiment that occurs twice.
    """
    log = Log(_TOOL, data)
    blocks = _tables(log)
    experiments: list[tuple[ImportedExperiment, LogLine]] = []
    for table in blocks:
        if not table.rows:
            raise table.line.error("no rows below this header: the file was cut off")
        tables.check_aligned([column.cell for column in table.columns], table.rows)
        experiments += ((experiment, table.line) for experiment in _experiments(table))
    tables.check_distinct(
        (((e.benchmark, tuple(sorted(e.parameters.items()))), line) for e, line in experiments), "this program"
    )
    wrong = next((line for line in log.lines if _WRONG.search(line.text)), None)
    failed = "" if wrong is None else f"line {wrong.number}: {wrong.text.strip()[:200]}"
    versions = {table.version for table in blocks}
    if len(versions) > 1:
        raise blocks[-1].line.error(f"versions {' and '.join(sorted(versions))} in one file: split it")
    return ImportedFile("OSU micro-benchmarks", blocks[0].version, tuple(e for e, _ in experiments), failed)


def _tables(log: Log) -> list[_Table]:
    """All tables of the file, in order."""
    blocks: list[_Table] = []
    title: tuple[str, str, LogLine] | None = None
    settings: dict[str, Value] = {}
    current: _Table | None = None
    for line, text in log.numbered():
        if found := _TITLE.fullmatch(text):
            _require_table(title, blocks)
            title, settings, current = (found[1], found[2], line), {}, None
        elif title is None or not text:
            continue
        elif columns := _header(line):
            current = _Table(title[0], title[1], line, dict(settings), columns)
            blocks.append(current)
        elif text.startswith("#"):
            settings.update(_settings(text))
        elif current is not None:
            _add_row(current, line)
        elif _starts_with_number(text) and not tables.is_noise(text):
            raise line.error("a row without a header above it")
    _require_table(title, blocks)
    if not blocks:
        raise log.error("no line such as `# OSU MPI Latency Test v7.4`")
    return blocks


def _require_table(title: tuple[str, str, LogLine] | None, blocks: Sequence[_Table]) -> None:
    """Raise ParseError if the last title has no table."""
    if title is not None and (not blocks or blocks[-1].line.number < title[2].number):
        raise title[2].error("no table of numbers below this title: the file was cut off")


def _header(line: LogLine) -> tuple[_Column, ...]:
    """The columns of a header line; empty for any other line. Raises ParseError for an unknown column."""
    text = tables.body(line)
    at = len(text) - len(text.lstrip("#> \t"))
    if (
        len(text) > _LONGEST_HEADER
        or re.match(r"Size\b|(?:Avg |Overall|Latency|Bandwidth|MB/s)", text[at : at + 20]) is None
    ):
        return ()
    columns: list[_Column] = []
    while at < len(text.rstrip()):
        found = next(
            ((m, name, e) for pattern, name, e in _COLUMNS if (m := re.compile(pattern).match(text, at))), None
        )
        if found is None:
            if not columns or not text.lstrip().startswith("#"):
                return ()
            raise line.error(f"unknown column {text[at : at + 40].strip()!r}")
        match, name, exponent = found
        name = name + match[1] if name.endswith("_p") else name
        columns.append(_Column(name, exponent, tables.TextCell(match[0], match.start(), match.end())))
        at = match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip())
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise line.error("the header has a column twice")
    return tuple(columns) if set(names) & set(_MEASURED) else ()


def _settings(text: str) -> Iterator[tuple[str, Value]]:
    """The settings that a comment above a table states."""
    if found := _DATATYPE.fullmatch(text):
        yield "datatype", found[1]
    elif found := _PAIRS.fullmatch(text):
        yield "pairs", int(found[1])
        if found[2]:
            yield "window", int(found[2])
    elif found := _BUFFERS.match(text):
        sender, receiver = found[1].lower(), found[2].lower()
        yield "buffers", sender if sender == receiver else f"{sender}-{receiver}"
    elif found := _SYNCHRONIZATION.fullmatch(text):
        yield "window_creation" if found[1] == "Window creation" else "synchronization", found[2]


def _starts_with_number(text: str) -> bool:
    return re.match(r"[-+.]?[0-9]|[-+]?(?:nan|inf)", text, re.IGNORECASE) is not None


def _add_row(table: _Table, line: LogLine) -> None:
    """Add the line if it is a row. Raises ParseError if the row is damaged."""
    cells = tables.cells_of(tables.body(line))
    looks_like_row = len(cells) == len(table.columns) and any(
        tables.decimal_of(cell.text) is not None for cell in cells
    )
    if tables.is_noise(line.text) or not (_starts_with_number(cells[0].text) or looks_like_row):
        return
    if len(cells) != len(table.columns):
        raise line.error(f"the row has {len(cells)} cells, but the header has {len(table.columns)} columns")
    for column, cell in zip(table.columns, cells, strict=True):
        is_word = column.name == "validation"
        if (not is_word and tables.decimal_of(cell.text) is None) or (is_word and cell.text not in ("Pass", "Fail")):
            raise line.error(f"{cell.text[:40]!r} under {column.cell.text} is not a number in the form that OSU prints")
    table.rows.append((line, cells))


def _failure(table: _Table) -> str:
    """A message about the first row whose validation failed, or ""."""
    for line, cells in table.rows:
        for column, cell in zip(table.columns, cells, strict=True):
            if column.name == "validation" and cell.text != "Pass":
                return f"line {line.number}: {table.title}: the validation of {cells[0].text} failed"
    return ""


def _experiments(table: _Table) -> Iterator[ImportedExperiment]:
    """The experiment of one table; where it is a benchmark of seatrial, another one with its percentiles, which that
    does not have."""
    yield (main := _experiment(table))
    if main.benchmark != "imported.osu":
        percentiles = {name: name for name in _PERCENTILES}
        samples = tuple(sample for row in table.rows for sample in _samples(table, row, percentiles))
        if samples:
            own = {name: value for name, value in table.settings.items() if name in _OTHER_PARAMETERS}
            yield ImportedExperiment("imported.osu", samples, {**own, "program": table.title}, failed=main.failed)


def _experiment(table: _Table) -> ImportedExperiment:
    """The experiment of one table."""
    family = _FAMILY.fullmatch(table.title)
    program = family[2].lower() if family else table.title
    settings = dict(table.settings)
    if "buffers" not in settings and family is not None:
        settings["buffers"] = "host" if not family[1] else "managed" if "MANAGED" in family[1] else "device"
    notes: dict[str, object] = {"title": table.title}
    benchmark, renamed, accepted = _OURS.get(program if family else "", ("imported.osu", {}, _OTHER_PARAMETERS))
    if benchmark == "imported.osu":
        settings["program"] = table.title
    elif "datatype" not in settings:
        # Releases before 7.0 had fixed ones: osu_allreduce MPI_FLOAT, point-to-point programs MPI_CHAR.
        fixed = "MPI_FLOAT" if benchmark == "mpi.allreduce" else "MPI_CHAR"
        settings["datatype"] = fixed if int(re.split(r"\D", table.version)[0]) < 7 else UNKNOWN
    notes.update({name: value for name, value in settings.items() if name not in accepted})
    settings |= _FIXED.get(benchmark, {})
    samples = tuple(sample for row in table.rows for sample in _samples(table, row, renamed))
    if not samples:
        raise table.line.error("every value below this header is 0.00: nothing was measured")
    tables.check_distinct(((cells[0].text, line) for line, cells in table.rows if _has_size(table)), "this size")
    if not _has_size(table) and len(table.rows) > 1:
        raise table.rows[1][0].error("a second row in a table without sizes: two runs in one file")
    parameters = {name: value for name, value in settings.items() if name in accepted}
    return ImportedExperiment(
        benchmark, samples, parameters, notes, failed=_failure(table), remarks=_remarks(table, benchmark)
    )


def _remarks(table: _Table, benchmark: str) -> tuple[str, ...]:
    """Values without a figure, and rows that may be missing: nothing in the text shows which sizes were asked for."""
    what = f"OSU {table.title}"
    sizes = [tables.whole_number(cells[0].text) if _has_size(table) else None for _, cells in table.rows]
    zeros = [
        (column.cell.text, size)
        for (_, cells), size in zip(table.rows, sizes, strict=True)
        for column, cell in zip(table.columns, cells, strict=True)
        if (column.name in _TIMES or column.name == "bandwidth") and not _is_extra(column.name)
        if tables.decimal_of(cell.text) == 0
    ]
    known = [size for size in sizes if size is not None]
    ends = tables.missing_sizes(known, what)
    usual = _LAST_SIZES.get(benchmark, (1 << 20, 1 << 22))
    if known and known[-1] not in usual:
        default = " or ".join(f"{size >> 20} MiB" for size in usual)
        last = f"{what}: the last size is {known[-1]} B, not {default} as by default"
        ends += (f"{last}: it was chosen (-m), or rows are missing at the end",)
    return (*tables.too_small(zeros, what), *ends)


_LAST_SIZES = {
    **dict.fromkeys(("mpi.latency", "mpi.bandwidth", "mpi.bidirectional"), (1 << 22,)),
    "mpi.allreduce": (1 << 20,),
}
"""The largest message by default, of programs for pairs and of collective operations (osu_util.h); 1 MiB or 4 MiB for
the others."""


_OTHER_PARAMETERS = ("program", "pairs", "window", "buffers", "datatype", "window_creation", "synchronization")
_BANDWIDTH_PARAMETERS = ("ranks", "window", "buffers", "datatype")
_OURS: dict[str, tuple[str, dict[str, str], tuple[str, ...]]] = {
    "latency": ("mpi.latency", {"time": "one_way"}, ("ranks", "buffers", "datatype")),
    "bandwidth": ("mpi.bandwidth", {"bandwidth": "bandwidth"}, _BANDWIDTH_PARAMETERS),
    "bi-directional bandwidth": ("mpi.bidirectional", {"bandwidth": "bandwidth"}, _BANDWIDTH_PARAMETERS),
    "allreduce latency": (
        "mpi.allreduce",
        {"time": "time_mean", "time_max": "time_max"},
        ("buffers", "datatype", "call", "operation", "start"),
    ),
}
"""Title -> our benchmark, its series, and those of its parameters that a file states."""
_FIXED: Mapping[str, Mapping[str, Value]] = {
    "mpi.allreduce": {"call": "blocking", "operation": "sum", "start": "barrier"},
    **{pair: {"ranks": 2} for pair in ("mpi.latency", "mpi.bandwidth", "mpi.bidirectional")},
}
"""What these programs always do: osu_allreduce.c uses MPI_SUM, and those for pairs refuse other numbers of ranks."""


def _has_size(table: _Table) -> bool:
    return table.columns[0].name == "size"


def _samples(table: _Table, row: tables.Row, renamed: Mapping[str, str]) -> Iterator[Sample]:
    """The samples of one row: one per series with a value."""
    line, cells = row
    values: dict[str, Decimal] = {}
    point: dict[str, Value] = {}
    for column, cell in zip(table.columns, cells, strict=True):
        if column.name == "size":
            size = tables.whole_number(cell.text)
            if size is None or size > 2**53:
                raise line.error(f"{cell.text[:40]} is not a size in bytes")
            point["size_B"] = size
        elif column.name != "validation":
            values[column.name] = Decimal(cell.text)  # _add_row accepts only numbers
    tables.check_order(line, [values[name] for name in ("time_min", "time", "time_max") if name in values], "latency")
    extra = {
        f"{column.name}{_SUFFIX[column.exponent]}": tables.scaled(values[column.name], column.exponent)
        for column in table.columns
        if column.name in values and _is_extra(column.name)
    }
    main = next(name for name in _MEASURED if name in values)
    for column in table.columns:
        series = renamed.get(column.name) if renamed else column.name
        if column.name not in values or _is_extra(column.name) or series is None:
            continue
        value = tables.scaled(values[column.name], column.exponent)
        tables.check_possible(line, column.cell.text, column.name, value, _TIMES)
        if value > 0 or column.name == "overlap":
            own = {"resolution": last_digit(str(values[column.name])), **(extra if column.name == main else {})}
            # A time is as it is; a rate or a fraction is the work of one second.
            work = (
                {}
                if column.name in _TIMES
                else {"bytes" if renamed and series not in _PERCENTILES else "amount": value}
            )
            yield Sample(series, 0, 1.0 if work else value, work, point=point, extra=own)


_SUFFIX = {-6: "_s", 6: "_Bps", 0: ""}


def _is_extra(name: str) -> bool:
    return name in _EXTRA


IMPORTED = figures.imported(
    "osu",
    "OSU micro-benchmarks",
    "What did a program of the OSU micro-benchmarks measure?",
    (
        figures.text("program", "title that the program prints, such as MPI Barrier Latency"),
        RANKS,
        NODES,
        *figures.counts(pairs="pairs of ranks that send at once", window="messages in flight"),
        BUFFERS,
        figures.text("datatype", "MPI datatype of the elements"),
        figures.text("window_creation", "how a one-sided program creates its window"),
        figures.text("synchronization", "how a one-sided program synchronizes"),
    ),
    (
        figures.time("time", "one operation, as defined by the program; mean over ranks"),
        figures.time("time_min", "one operation on the fastest rank"),
        figures.time("time_max", "one operation on the slowest rank"),
        figures.rate("bandwidth", "B/s", "bytes as the program counts them (1 MB is 10^6 B)"),
        figures.rate("message_rate", "op/s", "messages of all pairs"),
        *(
            figures.time(f"latency_p{share}", f"{share}th percentile of the time of one operation")
            for share in (50, 90, 99)
        ),
        *(
            figures.rate(f"bandwidth_p{share}", "B/s", f"{share}th percentile of the bandwidth")
            for share in (50, 90, 99)
        ),
        figures.time("overall", "a non-blocking operation with the computation that overlaps it"),
        figures.time("compute", "the overlapping computation"),
        figures.time("communication", "the operation alone, without overlap"),
        figures.rate("overlap", "1", "share of the operation hidden by computation"),
    ),
)

_STARTUP = r"#\s*(OSU MPI (?:Hello World|Init) Test)\b.{0,100}"
"""They print no table: the first has no figure at all, the times of the second are not read."""

READER = figures.Reader("osu", read_osu, (f"(?i:{_TITLE.text})",), aside=_STARTUP)
