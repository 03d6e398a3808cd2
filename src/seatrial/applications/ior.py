"""IOR (2.10 to 4.1): its text, and what `-O summaryFormat=JSON` and `=CSV` give.

Each row is one repeat: bandwidth is all bytes over the total time, which the row and the header state too; the
operations per second are over the time of the transfers alone. Both products must be the bytes that were moved.

`apps.ior`: IOR, many processes that write a file, or one each, and read it again.

Each rank reads what its neighbour wrote (`-C`), which on several nodes is not in its own cache; on one node the data
may come from memory. Writing ends with fsync.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, is_json, read_object
from seatrial.applications.reading.log import Log, Printed
from seatrial.applications.reading.text import LogLine, Pattern
from seatrial.applications.running.given_input import TARGET, Made, application, target, with_target
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.given_input import InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "IOR"
_BANNER = Pattern(r"IOR-([0-9]\S{0,40}): MPI Coordinated Test of Parallel I/O")
_HEADER = Pattern(r"access +bw\(MiB/s\) .{1,200}")
_ROW = Pattern(r"(write|read) .{1,300}")
_CSV_HEADER = Pattern(r"access,bw\(MiB/s\),.{1,200},iter")
_CSV_COLUMNS = {"bw(MiB/s)", "IOPS", "block(KiB)", "xfer(KiB)", "wr/rd(s)", "total(s)", "numTasks", "iter"}
_SUMMARY = Pattern(r"Max (Write|Read): +([0-9]{1,12}\.[0-9]{2}) MiB/sec \(([0-9]{1,12}\.[0-9]{2}) MB/sec\)")
_SUMMARY_LIKE = Pattern(r"(?:Max (?:Write|Read):|Summary of all tests:).{0,200}")
_FINISHED = Pattern(r"(?:Finished|Run finished) *:.{0,80}")
_OPTION = Pattern(
    r"(api|access|segments|ordering in a file|nodes|tasks|clients|repetitions|xfersize|blocksize|aggregate filesize"
    r"|stonewallingTime|Using stonewalling) *[:=] *(.{1,120})"
)
_ACTUAL = Pattern(r"WARNING: Using actual aggregate bytes moved += +([0-9]{1,18})\.?")
_COMMAND = Pattern(r"Command line(?: used)? *: *(.{1,4000})")
_WRONG = Pattern(
    r"(?:(?:ior )?ERROR\b.{0,300}|WARNING: [Ii]ncorrect data on .{1,200}|\*\* (?:error|exiting) \*\*.{0,80}"
    r"|.{0,80}\b[1-9][0-9]{0,15} errors? (?:found|detected).{0,120})"
)
_SIZE = Pattern(r"([0-9]{1,15}(?:\.[0-9]{1,4})?) (bytes|KiB|MiB|GiB|TiB)")
_UNITS = {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_MIB = 2.0**20
_JSON_KEYS = {
    "bw(MiB/s)": "bwMiB",
    "total(s)": "totalTime",
    "wr/rd(s)": "wrRdTime",
    "IOPS": "iops",
    "xfer(KiB)": "xferKiB",
}
"""Column of the table -> key in JSON."""


class _Row(Frozen):
    """One repeat of one direction. `bytes` is what the file states for it; None if it does not."""

    access: str
    i: int
    bandwidth: Printed
    total: Printed
    iops: Printed | None
    transfers: Printed
    """Seconds of the transfers alone."""
    transfer_B: Printed
    bytes: Printed | None


def _row(access: str, i: int, number: Callable[[str], Printed], has_iops: bool, moved: Printed | None) -> _Row:
    """A repeat of which `number` gives the value in a column of the table."""
    bandwidth, total, transfers = (number(column) for column in ("bw(MiB/s)", "total(s)", "wr/rd(s)"))
    iops = number("IOPS") if has_iops else None
    return _Row(access, i, bandwidth, total, iops, transfers, number("xfer(KiB)").scaled(1024.0), moved)


def _cell(line: LogLine, cells: Mapping[str, str], column: str) -> Printed:
    return Printed.of(line.number_of(cells[column], column), cells[column])


def read(data: bytes) -> ImportedFile:
    """One run of IOR. Raises ParseError if it did not end, found wrong data, or its numbers contradict each other."""
    if is_json(data, "Tests"):
        return _read_json(data)
    return _read_csv(data) if b"access,bw(MiB/s)," in data else _read_text(data)


def _read_text(data: bytes) -> ImportedFile:
    log = Log(_TOOL, data)
    banner = log.banner(_BANNER, "IOR-3.4.0: MPI Coordinated Test of Parallel I/O")
    log.refuse(_WRONG, "IOR found an error: the run has no figure")
    header = log.banner(_HEADER, "access bw(MiB/s) ...")
    options = _options(log)
    summaries = log.found(_SUMMARY_LIKE)
    end = summaries[0].line.number if summaries else len(log.lines) + 1
    rows = _text_rows(
        log, header.match[0].split(), [one for one in log.lines if header.line.number < one.number < end], options
    )
    count = options.get("repetitions", "")
    _check_complete(log, rows, int(count) if re.fullmatch("[0-9]{1,6}", count) else None, is_ended=bool(summaries))
    for row in rows:
        _check(row, f"{row.access}, repeat {row.i}")
    if len(summaries) > len(log.found(_SUMMARY)) + 1:
        raise summaries[0].error("a damaged summary")
    for one in log.found(_SUMMARY):
        most = max(
            (row.bandwidth for row in rows if row.access == one.match[1].lower()), key=lambda bw: bw.value, default=None
        )
        stated = one.printed(2, "the bandwidth")
        if most is None or not most.agrees(stated) or not stated.scaled(_MIB / 1e6).agrees(one.printed(3, "MB/s")):
            raise one.error("not the largest of the rows above")
    experiment = ImportedExperiment("imported.ior", _samples(rows), _parameters(options))
    return ImportedFile(_TOOL, banner.text(1), (experiment,))


def _options(log: Log) -> dict[str, str]:
    """The options that the header states; of one that is there twice with two values, none. Raises ParseError for a
    number of repetitions that is there twice."""
    options: dict[str, str] = {}
    for one in log.found(_OPTION):
        name, value = one.match[1], one.text(2)
        if options.setdefault(name, value) != value:
            raise one.error("stated twice: several tests in one file? Put each in its own file")
    return options


def _text_rows(log: Log, columns: Sequence[str], lines: Sequence[LogLine], options: Mapping[str, str]) -> list[_Row]:
    """All rows of the table. Raises ParseError for a damaged one."""
    rows: list[_Row] = []
    actual: Printed | None = None
    stonewall = "stonewallingTime" in options or "Using stonewalling" in options
    expected = None if stonewall else _size(options.get("aggregate filesize", ""))
    for line in lines:
        if found := log.found(_ACTUAL, [line]):
            actual = Printed(found[0].number(1, "the bytes moved"), 0.5)
        if not (found := log.found(_ROW, [line])):
            continue
        words = found[0].match[0].split()
        if len(words) != len(columns):
            raise line.error(f"{len(words)} columns, but the header has {len(columns)}")
        cell = dict(zip(columns, words, strict=True))
        missing = {"access", "bw(MiB/s)", "xfer(KiB)", "wr/rd(s)", "total(s)", "iter"} - set(cell)
        if missing:
            raise line.error(f"the header has no column {min(missing)}")

        i = line.whole_of(cell["iter"], "iter", least=0)
        rows.append(_row(cell["access"], i, partial(_cell, line, cell), "IOPS" in cell, actual or expected))
        actual = None
    if not rows:
        raise log.not_ended("the table of results is empty")
    return rows


def _check_complete(log: Log, rows: Sequence[_Row], count: int | None, *, is_ended: bool) -> None:
    """Raise ParseError if a repeat is missing, or there twice."""
    for access in sorted({row.access for row in rows}):
        repeats = [row.i for row in rows if row.access == access]
        if repeats != list(range(len(repeats))) or (count is not None and len(repeats) != count):
            stated = f" of {count}" if count is not None else ""
            raise log.error(f"{access} has the repeats {str(repeats)[:80]}{stated}: rows are missing, or there twice")
    command = log.maybe(_COMMAND, "command line")
    words = command.match[1].replace("'", " ").replace('"', " ").split() if command is not None else []
    if is_ended or log.found(_FINISHED):
        return
    for option, access in (("-w", "write"), ("-r", "read")):
        if option in words and not any(row.access == access for row in rows):
            raise log.not_ended(f"no row of {access}, for which the command line asks")


def _check(row: _Row, where: str) -> None:
    """Bandwidth x time, and operations x size, must be the bytes moved. Raises ParseError."""
    if not _is_near(row.transfers.value, row.total.value, _share(row.transfers, row.total)) and (
        row.transfers.value > row.total.value
    ):
        raise ParseError(_TOOL, None, "", f"{where}: the transfers took longer than all, {row.total.value:g} s")
    moved = row.bandwidth.value * _MIB * row.total.value
    slack = _share(row.bandwidth, row.total)
    if row.bytes is not None and not _is_near(moved, row.bytes.value, slack + _share(row.bytes)):
        why = f"{row.bandwidth.value:g} MiB/s for {row.total.value:g} s are not {row.bytes.value:.0f} B"
        raise ParseError(_TOOL, None, "", f"{where}: {why}")
    if row.iops is None:
        return
    counted = row.iops.value * row.transfers.value * row.transfer_B.value
    if not _is_near(moved, counted, slack + _share(row.iops, row.transfers, row.transfer_B)):
        why = f"{row.iops.value:g} transfers per second for {row.transfers.value:g} s are not {moved:.4g} B"
        raise ParseError(_TOOL, None, "", f"{where}: {why}")


def _share(*numbers: Printed) -> float:
    return sum(one.share for one in numbers)


def _is_near(a: float, b: float, share: float) -> bool:
    return abs(a - b) <= (1.1 * share + 1e-4) * max(a, b)


def _samples(rows: Sequence[_Row]) -> tuple[Sample, ...]:
    samples: list[Sample] = []
    for row in rows:
        samples.append(row.bandwidth.rate_sample(row.access, _MIB, i=row.i))
        if row.iops is not None:
            samples.append(row.iops.rate_sample(f"{row.access}_iops", i=row.i))
    return tuple(samples)


def _size(text: str) -> Printed | None:
    """A size such as `2.46 TiB`, which is exact if it has no point."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or not float(match[1]):
        return None
    unit = _UNITS[match[2]]
    if "." not in match[1]:
        return Printed(float(match[1]) * unit, 0.0)
    return Printed.of(float(match[1]), match[1]).scaled(unit)


def _parameters(options: Mapping[str, str]) -> dict[str, Value]:
    parameters: dict[str, Value] = {}
    for name, key in (("api", "api"), ("access", "access"), ("order", "ordering in a file")):
        if value := options.get(key):
            parameters[name] = value.removesuffix(" offsets")[:60]
    if (match := re.fullmatch(r"([0-9]{1,9}) \(([0-9]{1,9}) per node\)", options.get("clients", ""))) is not None:
        parameters["ranks"] = int(match[1])
    for name, key in (("nodes", "nodes"), ("ranks", "tasks"), ("segments", "segments")):
        if re.fullmatch(r"[1-9][0-9]{0,14}", options.get(key, "")):
            parameters[name] = int(options[key])
    for name, key in (("transfer_B", "xfersize"), ("block_B", "blocksize")):
        size = _size(options.get(key, ""))
        if size is not None and size.error == 0.0 and size.value < 2**53:
            parameters[name] = int(size.value)
    return parameters


def _read_json(data: bytes) -> ImportedFile:
    document = read_object(data, _TOOL, "Tests", "Command line")
    tests = document.objects("Tests")
    version = document.text("Version") or ""
    if not version or "Command line" not in document:
        raise document.error("no `Version` and `Command line`: this is not JSON output of IOR")
    if len(tests) > 1:
        raise document.error(f"{len(tests)} tests in one file: run each on its own")
    options = {key: str(value)[:200] for key, value in tests[0].object("Options").values.items()}
    rows = _json_rows(tests[0], options)
    count = JsonObject(_TOOL, "", options).whole("repetitions")
    for access in sorted({row.access for row in rows}):
        repeats = sum(row.access == access for row in rows)
        if count is not None and repeats != count:
            raise document.error(f"{repeats} of {count} repeats of {access}: the run did not end")
    for row in rows:
        _check(row, f"{row.access}, repeat {row.i}")
    _check_json_summary(document, rows)
    experiment = ImportedExperiment("imported.ior", _samples(rows), _parameters(options))
    return ImportedFile(_TOOL, version.removeprefix("IOR-"), (experiment,))


def _read_csv(data: bytes) -> ImportedFile:
    """Rows without version, options and end: each is a whole repeat. Of the bytes they state a multiple only."""
    log = Log(_TOOL, data)
    header = log.banner(_CSV_HEADER, "access,bw(MiB/s),IOPS,...")
    log.refuse(_WRONG, "IOR found an error: the run has no figure")
    columns = header.match[0].split(",")
    missing = _CSV_COLUMNS - set(columns)
    if missing or len(set(columns)) < len(columns):
        raise header.error(f"no column {min(missing)}" if missing else "a column twice")
    rows: list[_Row] = []
    sizes: set[tuple[int, ...]] = set()
    for line in log.lines[header.line.number :]:
        words = log.text(line).split(",")
        if words[0] not in ("write", "read"):
            if len(words) > 2:
                raise line.error("a row that is neither write nor read")
            continue
        if len(words) != len(columns) or not line.is_ended:
            raise line.error(f"{len(words)} values, but the header has {len(columns)}: damaged, or cut off")
        row, size = _csv_row(line, dict(zip(columns, words, strict=True)))
        rows.append(row)
        sizes.add(size)
    if not rows:
        raise log.not_ended("the table of results is empty")
    if len(sizes) > 1:
        raise header.error("rows of several sizes or numbers of tasks: several tests in one file")
    _check_complete(log, rows, None, is_ended=True)
    block_B, transfer_B, ranks = sizes.pop()
    parameters: dict[str, Value] = {"block_B": block_B, "transfer_B": transfer_B, "ranks": ranks}
    remark = "CSV of IOR states neither options nor the end of the run: repeats may be missing"
    return ImportedFile(_TOOL, "", (ImportedExperiment("imported.ior", _samples(rows), parameters, remarks=(remark,)),))


def _csv_row(line: LogLine, cell: Mapping[str, str]) -> tuple[_Row, tuple[int, ...]]:
    """A row, and its block and transfer in bytes and number of tasks. Raises ParseError if it contradicts itself."""
    number = partial(_cell, line, cell)
    block, transfer = (round(number(name).value * 1024.0) for name in ("block(KiB)", "xfer(KiB)"))
    ranks = line.whole_of(cell["numTasks"], "numTasks")
    row = _row(cell["access"], line.whole_of(cell["iter"], "iter", least=0), number, True, None)
    _check(row, f"{row.access}, repeat {row.i}")
    moved = row.bandwidth.value * _MIB * row.total.value
    segments = max(1, round(moved / (block * ranks)))
    if not _is_near(moved, segments * block * ranks, _share(row.bandwidth, row.total)):
        raise line.error(f"{moved:.4g} B are not a multiple of {ranks} blocks of {block} B")
    return row, (block, transfer, ranks)


def _json_rows(test: JsonObject, options: Mapping[str, str]) -> list[_Row]:
    """The rows of all repeats. Raises ParseError if there are none."""
    results = test.get("Results")
    entries: list[Any] = []
    for one in results if isinstance(results, list) else []:
        entries += one if isinstance(one, list) else [one]
    stonewall = JsonObject(_TOOL, "", options).whole("stonewallingTime") or "Using stonewalling" in options
    expected = None if stonewall else _size(options.get("aggregate filesize", ""))
    rows: list[_Row] = []
    for found in entries:
        entry = JsonObject(_TOOL, "", found if isinstance(found, dict) else {})
        access = entry.text("access")
        if access not in ("write", "read"):
            if access != "remove":
                raise entry.error("an entry of `Results` that is neither write nor read")
            continue
        i = sum(row.access == access for row in rows)
        number = partial(_json_number, entry.named(f"{access}, repeat {i}"))
        rows.append(_row(access, i, number, "iops" in entry, expected))
    if not rows:
        raise test.error("`Results` is empty: the run did not end")
    return rows


def _json_number(entry: JsonObject, column: str) -> Printed:
    key = _JSON_KEYS[column]
    value = entry.number(key)
    if value == 0:
        raise entry.error(f"{key} is 0")
    return Printed(value, 5e-5)  # four decimals


def _check_json_summary(document: JsonObject, rows: Sequence[_Row]) -> None:
    """Raise ParseError if a summary that is there contradicts the rows."""
    summary = document.get("summary")
    for found in summary if isinstance(summary, list) else []:
        entry = JsonObject(_TOOL, "the summary", found if isinstance(found, dict) else {})
        access = entry.text("operation")
        values = [row.bandwidth.value for row in rows if row.access == access]
        for key, value in (("bwMaxMIB", max(values, default=0.0)), ("bwMinMIB", min(values, default=0.0))):
            if access is None or abs(entry.number(key) - value) > 1e-3 + 1e-5 * value:
                raise entry.error(f"{key} of {access} is not that of the results")


IMPORTED = figures.imported(
    "ior",
    "IOR",
    "How fast did IOR write and read?",
    (
        figures.text("api", "interface: POSIX, MPIIO, HDF5, ..."),
        figures.text("access", "one shared file, or a file per process"),
        figures.text("order", "order of the transfers in a file"),
        figures.size("transfer_B", "size of a transfer (xfersize)"),
        figures.size("block_B", "data of a process in a segment (blocksize)"),
        *figures.counts(segments="segments", nodes="hosts", ranks="processes"),
    ),
    tuple(
        figure
        for way in ("write", "read")
        for figure in (
            figures.rate(
                way, "B/s", "all bytes over the total time, with opening and closing", figures.given_limit("B/s")
            ),
            figures.rate(f"{way}_iops", "op/s", "transfers over the time of the transfers"),
        )
    ),
)

READER = figures.Reader("ior", read, (_BANNER.text,))


def _arguments(params: Params) -> Sequence[str]:
    sizes = ["-t", str(params["transfer_B"]), "-b", str(params["block_B"]), "-s", str(params["segments"])]
    own_file = ["-F"] if params["layout"] == "per-process" else []
    return ["-a", str(params["api"]), *sizes, *own_file, "-w", "-r", "-e", "-C", "-i", "1"]


def _prepare(params: Params) -> Params:
    if whole(params["block_B"]) % whole(params["transfer_B"]):
        raise Skip("the block is not a multiple of the transfer")
    return with_target(params)


def _estimate_s(params: Params) -> float:
    return 5.0 + 2e-8 * whole(params["block_B"]) * whole(params["segments"]) * whole(params["ranks"])


BENCHMARK = application(
    IMPORTED,
    "How fast do many processes write and read files?",
    tool="IOR",
    programs=("ior",),
    install="install IOR (Spack: spack install ior; https://github.com/hpc/ior) and put ior on PATH",
    arguments=_arguments,
    places=lambda params, directory: ["-o", str(target(params, directory))],
    cases=(InputCase("made", "blocks of block_B in segments, in transfers of transfer_B", ""),),
    made=Made(
        parameters=(
            TARGET,
            Parameter.choice("api", "POSIX", "the interface", ("POSIX", "MPIIO", "HDF5")),
            Parameter.choice("layout", "shared", "one file, or one of each process", ("shared", "per-process")),
            Parameter.size("transfer_B", 1 << 20, "bytes of a call", minimum=8),
            Parameter.size("block_B", 64 << 20, "contiguous bytes of a process in a segment", minimum=8),
            Parameter.integer("segments", 1, "segments of a file", minimum=1),
        ),
        prepare=_prepare,
        estimate_s=_estimate_s,
    ),
    has_start=False,
    stated={name: name for name in ("ranks", "transfer_B", "block_B", "segments")},
)
