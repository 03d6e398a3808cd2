"""LS-DYNA's messag, mes0000 and d3hsp: the times of a run with normal termination.

The whole run is the total of the table of times, on the clock. `Elapsed time` counts whole seconds and begins after the
input is read: it is the time of the solution. CPU times are rounded to seconds. The exit status of LS-DYNA may be 0
after an error, so only `N o r m a l   t e r m i n a t i o n` counts.

Format from documentation: runs with several processes (MPP).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from seatrial.errors import ParseError
from seatrial.imports.reader import Reader
from seatrial.imports.samples import in_SI, time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import Line, half_unit, last_digit, number, only_one, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample

_TOOL = "LS-DYNA"
_BANNER = re.compile(r"\| LS-DYNA, A Program for Nonlinear Dynamic \|")
_NORMAL = re.compile(r"N o r m a l t e r m i n a t i o n(?: .{0,40})?")
_ERROR = re.compile(
    r"^E r r o r t e r m i n a t i o n|^\*\*\* ?Error\b|[Nn]o license|LICENSE ERROR"
    r"|\blicense\b.{0,40}(?:not available|denied|expired)|NaN (?:has been )?detected|out-of-range (?:velocities|forces)"
)
_TABLE = re.compile(r"T i m i n g i n f o r m a t i o n")
_ROW = re.compile(
    r"(\S.{0,40}?) ?(?:\.{1,30})? (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d) (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d)"
)
_TOTALS = re.compile(r"T o t a l s (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d) (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d)")
_TOTALS_LIKE = re.compile(r"T o t a l s .{0,200}")
_ELAPSED = re.compile(r"Elapsed time ([0-9]{1,9}) seconds? ?(?:\((.{5,60})\) ?)?for ([0-9]{1,15}) cycles?(.{0,80})")
_ELAPSED_LIKE = re.compile(r"Elapsed time .{0,200}")
_IN_WORDS = re.compile(r"\(? ?([0-9]{1,7}) hours? ([0-9]{1,3}) min(?:utes?|\.)? ([0-9]{1,3}) sec(?:onds?|\.)? ?\)?")
_CYCLE = re.compile(r"Problem cycle = ([0-9]{1,15})")
_ZONE = re.compile(r"Clock time per zone cycle ?= ?(\S{1,30}) (\w{1,20})")
_START, _END = re.compile(r"Start time (\S{1,12} \S{1,12})"), re.compile(r"End time (\S{1,12} \S{1,12})")
_FIELDS = {
    "version": re.compile(r"\| Version ?: (\S.{0,60}?) ?\|"),
    "revision": re.compile(r"\| (?:Revision|SVN Version) ?: (\S.{0,60}?) ?\|"),
    "precision": re.compile(r"\| Precision ?: (Single|Double) precision.{0,30}\|"),
}
_MPP = (
    re.compile(r".{0,20}(?:MPP|Parallel) execution with ([0-9]{1,9}) (?:MPP )?procs?.{0,40}"),
    re.compile(r".*?([0-9]{1,9}) MPP proc"),
)
_SMP = (re.compile(r"Number of CPU's ([0-9]{1,9})"), re.compile(r".*?([0-9]{1,9}) SMP thread"))
_UNITS = {"picoseconds": 1e-12, "nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}


@dataclass(frozen=True, slots=True)
class _Elapsed:
    """`Elapsed time`: whole seconds, the cycles, and what follows (`using  4 SMP threads`)."""

    line: Line
    seconds: int
    cycles: int
    words: str


def read(data: bytes) -> ImportedFile:
    """The messages of one run. Raises ParseError for a run that failed or did not end, for contradictory times, and for
    two runs in one file."""
    lines = [(line, " ".join(body(line).split())) for line in read_lines(data, _TOOL)]
    for line, text in lines:
        if _ERROR.search(text):
            raise line.error(_TOOL, "the run failed: it has no figure")
    tables = [i for i, (_, text) in enumerate(lines) if _TABLE.fullmatch(text)]
    banners = [line for line, text in lines if _BANNER.fullmatch(text)]
    if not banners and not tables:
        raise ParseError(_TOOL, None, "", "neither LS-DYNA's banner nor its table of times: from another program?")
    for found in banners, [lines[i][0] for i in tables]:
        if len(found) > 1:
            raise found[1].error(_TOOL, f"a second run; the first is at line {found[0].number}: split the file")
    if not tables or not any(_NORMAL.fullmatch(text) for _, text in lines):
        why = "no `N o r m a l    t e r m i n a t i o n` and table of times: the run has not ended"
        raise lines[-1][0].error(_TOOL, why)
    total, total_line = _total(lines[tables[0] :])
    elapsed = _elapsed(lines)
    samples = [time_sample("time", float(total), resolution=last_digit(total))]
    remarks: tuple[str, ...] = ()
    if elapsed.seconds > float(total) + 1.0:
        raise elapsed.line.error(
            _TOOL, f"longer than the whole run, which took {float(total):g} s (line {total_line.number})"
        )
    if elapsed.seconds:
        step = 1.0 / elapsed.seconds
        samples.append(time_sample("solution_time", float(elapsed.seconds), resolution=step))
        samples.append(time_sample("cycle_time", elapsed.seconds / elapsed.cycles, resolution=step))
    else:
        remarks = ("Elapsed time is 0 s: it counts whole seconds, and the solution was too short for it",)
    samples += _zone_cycle(lines)
    fields = {name: _field(lines, pattern) for name, pattern in _FIELDS.items()}
    notes: dict[str, object] = {"cycles": elapsed.cycles, "revision": fields["revision"]}
    parameters = _parameters(lines, elapsed, fields)
    experiment = ImportedExperiment("imported.ls-dyna", tuple(samples), parameters, notes, remarks=remarks)
    return ImportedFile(_TOOL, fields["version"], (experiment,))


def _total(lines: Sequence[tuple[Line, str]]) -> tuple[str, Line]:
    """The clock time of the whole run as printed. Raises ParseError if the rows of the table do not add up to it."""
    line = only_one([line for line, text in lines if _TOTALS_LIKE.fullmatch(text)], _TOOL, "`T o t a l s`")
    match = _TOTALS.fullmatch(" ".join(body(line).split()))
    if match is None:
        raise line.error(_TOOL, "not a total of CPU and clock seconds with their shares: the line is damaged")
    line.number_of(_TOOL, match[3], "the total clock time")
    rows = [
        (len(one.text) - len(one.text.lstrip()), row)
        for one, text in lines
        if one.number < line.number and (row := _ROW.fullmatch(text))
    ]
    least = min((indent for indent, _ in rows), default=0)
    parents = [row for indent, row in rows if indent == least]
    added = sum(float(row[4]) for row in parents)
    slack = sum(half_unit(row[4]) for row in parents) + half_unit(match[3]) + 0.002 * float(match[3])
    if not parents or abs(added - float(match[3])) > slack:
        raise line.error(_TOOL, f"the rows above add up to {added:g} s on the clock: a line is damaged or missing")
    return match[3], line


def _elapsed(lines: Sequence[tuple[Line, str]]) -> _Elapsed:
    """Raises ParseError if it is missing or damaged, or contradicts the dates, or the number of cycles."""
    line = only_one([line for line, text in lines if _ELAPSED_LIKE.fullmatch(text)], _TOOL, "`Elapsed time`")
    match = _ELAPSED.fullmatch(" ".join(body(line).split()))
    if match is None:
        raise line.error(_TOOL, "not of the form `Elapsed time 12 seconds for 345 cycles`: the line is damaged")
    seconds, cycles = int(match[1]), line.whole_of(_TOOL, match[3], "the number of cycles")
    following = next((text for one, text in lines if one.number == line.number + 1), "")
    words = _IN_WORDS.fullmatch((match[2] or following).strip())
    if words is not None and 3600 * int(words[1]) + 60 * int(words[2]) + int(words[3]) != seconds:
        raise line.error(_TOOL, "hours, minutes and seconds are not the elapsed seconds")
    for one, text in lines:
        if (found := _CYCLE.fullmatch(text)) and int(found[1]) != cycles:
            raise one.error(_TOOL, f"the run had {cycles} cycles (line {line.number})")
    dates = [_date(_field(lines, pattern)) for pattern in (_START, _END)]
    if dates[0] is not None and dates[1] is not None:
        between_s = (dates[1] - dates[0]).total_seconds()
        if min(abs(between_s - seconds - hour) for hour in (0, 3600, -3600)) > 2:  # clocks are changed twice a year
            raise line.error(_TOOL, f"start and end are {between_s:g} s apart, which contradicts this")
    return _Elapsed(line, seconds, cycles, match[4])


def _date(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%m/%d/%Y %H:%M:%S")
    except ValueError:
        return None


def _zone_cycle(lines: Sequence[tuple[Line, str]]) -> list[Sample]:
    """The elapsed time per element and cycle, in the unit that its line states."""
    found = [(line, match) for line, text in lines if (match := _ZONE.fullmatch(text))]
    if not found:
        return []
    line, match = found[-1]
    value = line.number_or_zero(_TOOL, match[1], "the clock time per zone cycle")
    if match[2] not in _UNITS:
        raise line.error(_TOOL, f"{match[2]} is no unit of time that LS-DYNA prints")
    if value == 0:
        return []
    return [time_sample("zone_cycle_time", in_SI(value, _UNITS[match[2]]), resolution=last_digit(match[1]))]


def _field(lines: Sequence[tuple[Line, str]], pattern: re.Pattern[str]) -> str:
    return next((match[1].strip() for _, text in lines if (match := pattern.fullmatch(text))), "")


def _parameters(lines: Sequence[tuple[Line, str]], elapsed: _Elapsed, fields: dict[str, str]) -> dict[str, Value]:
    """Processes, threads and precision. Raises ParseError if the file states two numbers of one."""
    parameters: dict[str, Value] = {}
    for name, (of_line, of_words) in (("ranks", _MPP), ("threads", _SMP)):
        stated = {match[1] for _, text in lines if (match := of_line.fullmatch(text))}
        stated |= {match[1] for match in (of_words.match(elapsed.words),) if match}
        if len(stated) > 1:
            raise elapsed.line.error(_TOOL, f"the file states {' and '.join(sorted(stated))} {name}")
        if stated and (count := number(stated.pop())):
            parameters[name] = int(count)
    if fields["version"].startswith("smp"):
        parameters["ranks"] = 1
    if fields["precision"]:
        parameters["precision"] = fields["precision"].lower()
    return parameters


READER = Reader("ls-dyna", read)
