"""mdtest (1.9 to 4.1): the table of operations per second.

The figure is the mean of the iterations. 0.000 means that an operation was not run. Newer versions print a second
table of the same form with times.

`apps.mdtest`: mdtest, many processes that make, look at, read and remove files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.text import LogLine, Pattern
from seatrial.applications.running.given_input import TARGET, Made, application, target, with_target
from seatrial.model.benchmark.given_input import InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole

_TOOL = "mdtest"
_BANNER = Pattern(
    r"mdtest-([0-9]\S{0,40}) was launched with +([0-9]{1,9}) total task\(s\) on +([0-9]{1,9}) node(?:\(s\)|s)\.?"
)
_MOMENT = r"([0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2})"
_FORM = "%m/%d/%Y %H:%M:%S"
_STARTED = Pattern(rf"-- started at {_MOMENT} --")
_FINISHED = Pattern(rf"-- finished at {_MOMENT} --")
_FINISHED_LIKE = Pattern(r"-- finished at .{1,60}")
_TABLE_LIKE = Pattern(r"SUMMARY.{0,80}")
_RATES = Pattern(r"SUMMARY(?: rate(?: \(in ops/sec\))?)?: \(of ([0-9]{1,6}) iterations\)")
_COLUMNS = Pattern(r"Operation .{0,80}Max +Min +Mean +Std Dev")
_TIMES = Pattern(r"SUMMARY time: \(of 1 iterations\)")
_ROW_LIKE = Pattern(r"(?:Directory|File|Tree) .{1,200}", re.IGNORECASE)
_ROW = Pattern(
    r"(Directory|File|Tree) (creation|stat|read|rename|removal) *:?"
    r"(?: +[0-9]{1,15}\.[0-9]{3}){0,3}" + 4 * r" +([0-9]{1,15}\.[0-9]{3})",  # of each rank
    re.IGNORECASE,
)
_AT_STONEWALL = Pattern(r"(?:File|Directory) create \(stonewall\) *:?(?: +[0-9.NA]{1,20}){4}")
"""The rate until the first rank stopped; the row of creation counts all."""
_ITEMS = Pattern(r"([0-9]{1,9}) tasks, ([0-9]{1,15}) (?:files|directories|files/directories)")
_STONEWALL = Pattern(
    r"(?:(?:Continue )?stonewall hit.{0,120}|Command line used: .{1,4000} ['\"]?-[xW]['\"]? .{1,2000})"
)
"""The run may end before all items are made, or work on those that another such run made."""
_FAILED = Pattern(
    r"(?:ERROR\b.{0,300}|.{0,80}\bFAILED\b.{0,200}|(?:WARNING: )?.{0,80}[1-9][0-9]{0,12} errors? .{0,80})"
)
_RANKS_DIFFER = 0.1
"""The most by which the rates of one iteration differ where each rank computes one: 6 % was the most in 700 published
files, 0.1 % in most."""
_NAMES = {"creation": "create", "stat": "stat", "read": "read", "rename": "rename", "removal": "remove"}


def _measured(log: Log) -> Measured:
    """One run of mdtest. Raises ParseError if it did not end, failed, ran nothing, or its numbers contradict each
    other."""
    banner = log.banner(_BANNER, "mdtest-3.4.0 was launched with 4 total task(s) on 1 node(s)")
    log.refuse(_FAILED, "mdtest found an error: the run has no figure")
    if not log.found(_FINISHED_LIKE):
        raise log.not_ended("there is no `-- finished at`")
    finished = log.only(_FINISHED, "`-- finished at`")
    table = log.only(_RATES, "table `SUMMARY rate`")
    iterations = table.whole(1, "the iterations")
    if not log.found(_COLUMNS, log.lines[table.line.number : table.line.number + 1]):
        raise table.error("not followed by the header of its columns")
    tables = [one.line.number for one in log.found(_TABLE_LIKE)]
    end = min([*(number for number in tables if number > table.line.number), finished.line.number])
    if end < table.line.number:
        raise finished.error("the table of results is not above it")
    inside = [line for line in log.lines if table.line.number < line.number < end]
    headers = log.found(_COLUMNS, inside)
    if len(headers) > 1:
        raise headers[1].error("a second header in the table of rates: rows of another table, such as that of times")
    rates = _rates(log, inside, iterations)
    parameters: dict[str, Value] = {"ranks": banner.whole(2, "tasks"), "nodes": banner.whole(3, "nodes")}
    notes: dict[str, object] = {"iterations": iterations}
    items = log.found(_ITEMS)
    if len(items) == 1:
        parameters["items"] = items[0].whole(2, "items")
        if items[0].match[1] != banner.match[2]:
            raise items[0].error(f"mdtest was launched with {banner.match[2]} tasks")
        if not log.found(_STONEWALL):
            _check_span(log, finished, rates, items[0].whole(2, "items") * iterations)
    samples = [one.rate_sample(name) for name, one in rates.items()]
    _check_times(log, finished)
    return Measured(samples, parameters, notes, version=banner.text(1))


def _rates(log: Log, lines: Sequence[LogLine], iterations: int) -> dict[str, Printed]:
    """Operation -> its mean rate, of those that were run. Raises ParseError for a row that contradicts itself."""
    inside = [one for one in log.found(_ROW_LIKE, lines) if not _AT_STONEWALL.fullmatch(log.text(one.line))]
    rates: dict[str, Printed] = {}
    seen: set[str] = set()
    for row in log.each_of_form(_ROW_LIKE, _ROW, "a damaged row of the table", [one.line for one in inside]):
        name = f"{row.match[1].lower()}_{_NAMES[row.match[2].lower()]}"
        if name in seen:
            raise row.error("there is another row of this operation: two tables, or two runs")
        seen.add(name)
        rate = _mean(row, iterations)
        if rate is not None:
            rates[name] = rate
    kinds = {name.partition("_")[0] for name in seen}
    expected = [f"{kind}_{name}" for kind in sorted(kinds - {"tree"}) for name in ("create", "stat", "remove")]
    missing = {*expected, "tree_create", "tree_remove"} - seen
    if not expected or missing:
        raise log.error(
            f"the table has no row {', '.join(sorted(missing)) or 'of files or directories'}: rows are missing"
        )
    if not rates:
        raise log.error("no operation was run: every rate is missing or 0.000")
    return rates


def _mean(row: Found, iterations: int) -> Printed | None:
    """The mean rate; None if the operation was not run. Raises ParseError if the row contradicts itself."""
    most, least, mean, deviation = (row.number_or_zero(group, "a rate") for group in (3, 4, 5, 6))
    if most == least == mean == 0:
        return None
    slack = 0.0011 + 1e-9 * most
    if iterations == 1 and most - least > slack + _RANKS_DIFFER * most:
        raise row.error("one iteration, but maximum, minimum and mean differ")
    if not 0 < least <= mean + slack <= most + 2 * slack or deviation > most - least + slack:
        raise row.error("not min <= mean <= max, or the deviation is larger than their difference")
    if iterations == 2 and abs(most + least - 2 * mean) > 4 * slack:
        raise row.error("the mean of two iterations is not in the middle")
    return row.printed(5, "the rate")


def _check_times(log: Log, finished: Found) -> None:
    """Raise ParseError if the times of a second table (of one iteration) are longer than the run."""
    table, started = log.maybe(_TIMES, "table of times"), log.only(_STARTED, "`-- started at`")
    if table is None:
        return
    span_s = (finished.moment(1, _FORM) - started.moment(1, _FORM)).total_seconds()
    below = [line for line in log.lines if table.line.number < line.number < finished.line.number]
    took_s = sum(one.number_or_zero(5, "a time") for one in log.found(_ROW, below))
    if took_s > span_s + 2:
        raise finished.error(f"{span_s:g} s after the begin, but the operations took {took_s:g} s")


def _check_span(log: Log, finished: Found, rates: dict[str, Printed], items: int) -> None:
    """Raise ParseError if the operations take longer than from the begin to the end of the run, in whole seconds."""
    started = log.only(_STARTED, "`-- started at`")
    span_s = (finished.moment(1, _FORM) - started.moment(1, _FORM)).total_seconds()
    kinds = {name.partition("_")[0] for name in rates} - {"tree"}
    times = [items / rate.value for name, rate in rates.items() if not name.startswith("tree")]
    # Of files and directories, the number counts each, or both: then the longest operation alone is a bound.
    least_s = sum(times) if len(kinds) == 1 else max(times, default=0.0) / 2
    if span_s < 0 or least_s > span_s + 2:
        raise finished.error(f"{span_s:g} s after the begin, but the operations take {least_s:.0f} s at these rates")


_OPERATIONS = {
    "directory": ("create", "stat", "rename", "remove"),
    "file": ("create", "stat", "read", "rename", "remove"),
    "tree": ("create", "remove"),
}

IMPORTED = figures.imported(
    "mdtest",
    "mdtest",
    "How many operations on files and directories per second did mdtest reach?",
    figures.counts(items="files and directories of all processes, as planned", nodes="hosts", ranks="processes"),
    tuple(
        figures.rate(f"{kind}_{operation}", "op/s", f"{operation} of all processes, mean of the iterations ({kind})")
        for kind, operations in _OPERATIONS.items()
        for operation in operations
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured, begins=_STARTED.text)


_FEWEST_PER_S = 200.0
_IMPORTED = replace(IMPORTED, figures=tuple(figure for figure in IMPORTED.figures if figure.name.startswith("file")))
"""Files alone are made: of folders, only the tree that they are in."""


def _arguments(params: Params) -> Sequence[str]:
    own_folder = ["-u"] if params["layout"] == "per-process" else []
    bytes_of_a_file = [word for option in ("-w", "-e") for word in (option, str(params["file_B"]))]
    return ["-n", str(params["files"]), "-i", "1", "-F", "-C", "-T", "-E", "-r", *own_folder, *bytes_of_a_file]


BENCHMARK = application(
    _IMPORTED,
    "How many operations on files per second do many processes reach?",
    tool="mdtest",
    programs=("mdtest",),
    install="install IOR with mdtest (Spack: spack install ior; https://github.com/hpc/ior) and put mdtest on PATH",
    arguments=_arguments,
    places=lambda params, directory: ["-d", str(target(params, directory))],
    cases=(InputCase("made", "as many files of each process, made, looked at, read and removed", ""),),
    made=Made(
        parameters=(
            TARGET,
            Parameter.integer("files", 1000, "files of each process", minimum=1),
            Parameter.size("file_B", 0, "bytes that are written to each file, and read"),
            Parameter.choice("layout", "shared", "one folder, or one of each process", ("shared", "per-process")),
        ),
        prepare=with_target,
        estimate_s=lambda params: 5.0 + whole(params["files"]) * whole(params["ranks"]) / _FEWEST_PER_S,
    ),
    has_start=False,
    stated={"ranks": "ranks"},
)
