"""Files of an Abaqus job: .dat and .msg (elapsed time), .sta (increments and iterations) and .log (dates).

`WALLCLOCK TIME` counts whole seconds. A .dat has a first summary of times for the pre-processor, before the analysis.
The .sta of Abaqus/Standard has no time at all. The .log has only the dates at which programs began and ended.

Format from documentation: the .sta of Abaqus/Explicit, and Abaqus/Standard on several ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from seatrial.errors import ParseError
from seatrial.imports.reader import Reader
from seatrial.imports.samples import rate_sample, time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import Line, half_unit, number, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample

_TOOL = "Abaqus"
_PAGE = re.compile(r"A(?:baqus|BAQUS) (\S.{0,60}?) Date ([0-9]{1,2}-[A-Za-z]{3}-[0-9]{4}) Time [0-9:]{5,8}")
_STATUS = re.compile(
    r"A(?:baqus|BAQUS)/(Standard|Explicit) (\S.{0,60}?) DATE [0-9]{1,2}-[A-Za-z]{3}-[0-9]{4} TIME [0-9:]{5,8}"
)
_JOB = re.compile(r"A(?:baqus|BAQUS) JOB (\S{1,200})")
_JOB_DONE = re.compile(r"A(?:baqus|BAQUS) JOB (\S{1,200}) COMPLETED")
_LOG_VERSION = re.compile(r"A(?:baqus|BAQUS) ((?:Student Edition |Learning Edition |3DEXPERIENCE )?R?[0-9]\S{0,20})")
_ERROR = re.compile(
    r"^\*\*\*ERROR|HAS NOT BEEN COMPLETED|HAS BEEN TERMINATED|exited with an? error|EXITED WITH ERRORS?|\bABORTED\b"
    r"|Abaqus Error:|[Nn]o licenses? available|\blicense\b.{0,40}(?:not available|denied|could not)"
)
_NOT_FINITE = re.compile(
    r"^(?:AVERAGE|LARGEST|TIME AVG)\b.{0,200}(?<![\w.])[+-]?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE
)
_SUMMARY = re.compile(r"JOB TIME SUMMARY")
_USER_INPUT_READ = re.compile(r"END OF USER INPUT PROCESSING")
_DONE = re.compile(r"THE ANALYSIS HAS BEEN COMPLETED")
_STATUS_DONE = re.compile(r"THE ANALYSIS HAS COMPLETED SUCCESSFULLY")
_TIMES = {
    "user": re.compile(r"USER TIME \(SEC\) = (\S{1,30})"),
    "system": re.compile(r"SYSTEM TIME \(SEC\) = (\S{1,30})"),
    "cpu": re.compile(r"TOTAL CPU TIME \(SEC\) = (\S{1,30})"),
    "wall": re.compile(r"WALLCLOCK TIME \(SEC\) = (\S{1,30})"),
}
_TOTALS = {
    "increments": re.compile(r"TOTAL OF ([0-9]{1,12}) INCREMENTS?"),
    "iterations": re.compile(r"([0-9]{1,12}) ITERATIONS INCLUDING CONTACT ITERATIONS IF PRESENT"),
    "errors": re.compile(r"([0-9]{1,12}) ERROR MESSAGES?"),
}
_COMPLETED = re.compile(r"TIME INCREMENT COMPLETED \S{1,20} ?, FRACTION OF STEP COMPLETED .{1,40}")
_EVERY_INCREMENT = re.compile(r"PRINT OF INCREMENT NUMBER, TIME, ETC\., TO THE MESSAGE FILE EVERY 1 INCREMENTS")
_ITERATIONS = re.compile(r"ITERATION SUMMARY FOR THE INCREMENT: ([0-9]{1,9}) TOTAL ITERATIONS, OF WHICH")
_PLACED = re.compile(
    r"([0-9]{1,7}) HOSTS?:? (?:x )?([0-9]{1,7}) MPI RANKS?(?: PER HOST)? x ([0-9]{1,7}) THREADS?(?: PER RANK)?"
)
_ELEMENTS = re.compile(r"NUMBER OF ELEMENTS IS ([0-9]{1,12})")
_EQUATIONS = re.compile(r"NUMBER OF EQUATIONS: ([0-9]{1,15})")
_VARIABLES = re.compile(r"TOTAL NUMBER OF VARIABLES IN THE MODEL ([0-9]{1,15})")
_ROW = re.compile(
    r"([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,5})(U?) ([0-9]{1,6}) ([0-9]{1,6}) ([0-9]{1,6})"
    r"((?: [0-9.Ee+-]{1,16}){3,5})(?: R)?"
)
_ROW_LIKE = re.compile(r"[0-9]{1,9} [0-9]{1,9} [0-9]{1,5}U?(?: \S{1,30}){3,9}")
_EXPLICIT_ROW = re.compile(r"([0-9]{1,15}) \S{1,16} \S{1,16} ([0-9]{1,5}):([0-5][0-9]):([0-5][0-9])(?: \S{1,20}){1,8}")
_BEGIN = re.compile(r"Begin A(?:baqus|BAQUS)/(Standard|Explicit) Analysis")
_FORMS = (
    "%m/%d/%Y %I:%M:%S %p",
    "%d.%m.%Y %H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%a %d %b %Y %I:%M:%S %p",
    "%a %d %b %Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
    "%a %b %d %I:%M:%S %p %Y",
)
"""The dates of Windows and Linux in several locales, without those whose day and month could be mistaken."""
_ZONE = re.compile(r" (?:[A-Z]{3,5}|[+-][0-9]{2,4})(?= [0-9]{4}$|$)")

Text = Sequence[tuple[Line, str]]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a file of a job states."""

    version: str
    file: str
    samples: tuple[Sample, ...]
    parameters: dict[str, Value] = field(default_factory=dict)
    notes: dict[str, object] = field(default_factory=dict)


def read(data: bytes) -> ImportedFile:
    """One file of a job. Raises ParseError if the job failed, did not end, or took less than a second, and if the file
    holds two jobs or contradicts itself."""
    lines = [(line, " ".join(body(line).split())) for line in read_lines(data, _TOOL)]
    found = _found(lines)
    parameters = {"file": found.file, **found.parameters}
    experiment = ImportedExperiment("imported.abaqus", found.samples, parameters, found.notes)
    return ImportedFile(_TOOL, found.version, (experiment,))


def _found(lines: Text) -> _Found:
    """Read by what the file is. Every kind of file states errors in the same words."""
    is_log = any(_JOB.fullmatch(text) for _, text in lines)
    status = [(line, match) for line, text in lines if (match := _STATUS.fullmatch(text))]
    pages = [(line, match) for line, text in lines if (match := _PAGE.fullmatch(text))]
    if not (is_log or status or pages):
        raise ParseError(_TOOL, None, "", "no heading of Abaqus with version and date: from another program?")
    for line, text in lines:
        if _ERROR.search(text):
            raise line.error(_TOOL, "the job failed: it has no figure")
        if _NOT_FINITE.search(text):
            raise line.error(_TOOL, "the solution is not a number: such a run has no figure")
    if sum(map(bool, (is_log, status, pages))) > 1:
        raise lines[0][0].error(_TOOL, "the file holds several files of a job: import them one by one")
    if is_log:
        return _log(lines)
    if status:
        if len(status) > 1:
            raise status[1][0].error(_TOOL, f"a second job; the first is at line {status[0][0].number}: split the file")
        return _sta(lines, status[0][1][1], status[0][1][2])
    versions = {match[1] for _, match in pages}
    if len(versions) > 1:
        raise pages[-1][0].error(_TOOL, f"the file names {len(versions)} versions of Abaqus: two jobs in one file")
    return _dat_or_msg(lines, versions.pop())


def _dat_or_msg(lines: Text, version: str) -> _Found:
    """The summary of times after the analysis, which the pre-processor's may precede (.dat)."""
    pre = [line for line, text in lines if _USER_INPUT_READ.fullmatch(text)]
    done = [line for line, text in lines if _DONE.fullmatch(text)]
    for found in pre, done:
        if len(found) > 1:
            raise found[1].error(_TOOL, f"a second job; the first is at line {found[0].number}: split the file")
    if not done:
        raise lines[-1][0].error(
            _TOOL, "no `THE ANALYSIS HAS BEEN COMPLETED`: the job has not ended (Abaqus/Explicit: see its .sta)"
        )
    summaries = [i for i, (_, text) in enumerate(lines) if _SUMMARY.fullmatch(text)]
    after = [i for i in summaries if lines[i][0].number > done[0].number]
    if len(after) != 1 or len(summaries) > 1 + len(pre):
        why = f"{len(after)} summaries of times (`JOB TIME SUMMARY`) below this line, expected one"
        raise done[0].error(_TOOL, why)
    wall_line, wall_s, cpu_s = _job_time(lines[after[0] : after[0] + 8])
    parameters, notes = _model(lines), _totals(lines)
    cores = 1
    for name in ("nodes", "ranks", "threads"):
        count = parameters.get(name)
        cores *= count if isinstance(count, int) and name != "nodes" else 1
    if "threads" in parameters and cpu_s > 1.1 * (wall_s + 1.0) * cores:
        raise wall_line.error(_TOOL, f"{cpu_s:g} s of CPU time on {cores} cores take longer than this")
    samples = (time_sample("time", float(wall_s), resolution=1.0 / wall_s), *_counts(notes))
    return _Found(version, "dat" if pre else "msg", samples, parameters, {"cpu_time_s": cpu_s})


def _job_time(block: Text) -> tuple[Line, int, float]:
    """(line of the elapsed time, elapsed seconds, CPU seconds). Raises ParseError if they contradict each other."""
    found: dict[str, tuple[Line, str]] = {}
    for name, pattern in _TIMES.items():
        of_name = [(line, match[1]) for line, text in block if (match := pattern.fullmatch(text))]
        if len(of_name) != 1:
            raise block[0][0].error(_TOOL, f"no {name} time below this line, or two: it is damaged or cut off")
        found[name] = of_name[0]
    seconds = {name: line.number_or_zero(_TOOL, text, f"the {name} time") for name, (line, text) in found.items()}
    slack = 1.01 * sum(half_unit(found[name][1]) for name in ("user", "system", "cpu")) + 0.006 * seconds["cpu"]
    if abs(seconds["user"] + seconds["system"] - seconds["cpu"]) > slack:
        raise found["cpu"][0].error(_TOOL, "user and system time do not add up to the CPU time: a line is damaged")
    line, text = found["wall"]
    if not line.is_ended:
        raise line.error(_TOOL, "the file ends in this line: it may have been cut off")
    wall_s = line.whole_of(_TOOL, text, "the wallclock time", least=0)
    if wall_s == 0:
        raise line.error(_TOOL, "the wallclock time is 0 s: it counts whole seconds, and the job was too short for it")
    return line, wall_s, seconds["cpu"]


def _model(lines: Text) -> dict[str, Value]:
    """Size of the model and placement of the solver, where the file states them."""
    parameters: dict[str, Value] = {}
    for line, text in lines:
        for name, pattern in (("elements", _ELEMENTS), ("variables", _VARIABLES), ("equations", _EQUATIONS)):
            if match := pattern.fullmatch(text):
                parameters[name] = line.whole_of(_TOOL, match[1], f"the number of {name}")
        if match := _PLACED.fullmatch(text):
            hosts, ranks, threads = (line.whole_of(_TOOL, token, "a count") for token in match.groups())
            placed = {"nodes": hosts, "ranks": ranks * (hosts if "PER HOST" in text else 1), "threads": threads}
            if any(parameters.setdefault(name, count) != count for name, count in placed.items()):
                raise line.error(_TOOL, "the solver ran on other ranks or threads before: two jobs in one file?")
    return parameters


def _totals(lines: Text) -> dict[str, int]:
    """The totals that a .msg ends with. Raises ParseError if there were errors, or if increments are missing."""
    totals: dict[str, int] = {}
    for name, pattern in _TOTALS.items():
        of_name = [(line, int(match[1])) for line, text in lines if (match := pattern.fullmatch(text))]
        if len(of_name) > 1:
            raise of_name[1][0].error(_TOOL, f"a second total; the first is at line {of_name[0][0].number}: two jobs")
        if of_name:
            line, totals[name] = of_name[0]
            if name == "errors" and totals[name]:
                raise line.error(_TOOL, "the job reports errors: it has no figure")
            if name == "increments" and any(_EVERY_INCREMENT.fullmatch(text) for _, text in lines):
                count = sum(_COMPLETED.fullmatch(text) is not None for _, text in lines)
                if count != totals[name]:
                    raise line.error(_TOOL, f"the file has {count} increments: it is damaged, or part of it is missing")
    counted = sum(int(match[1]) for _, text in lines if (match := _ITERATIONS.fullmatch(text)))
    if counted > totals.get("iterations", counted):
        raise lines[-1][0].error(
            _TOOL, f"the increments had {counted} iterations, more than {totals['iterations']} in all"
        )
    return {name: count for name, count in totals.items() if name != "errors"}


def _sta(lines: Text, product: str, version: str) -> _Found:
    """The table of a .sta: increments and iterations of Abaqus/Standard, the elapsed time of Abaqus/Explicit."""
    done = [line for line, text in lines if _STATUS_DONE.fullmatch(text)]
    if len(done) != 1:
        why = (
            "no `THE ANALYSIS HAS COMPLETED SUCCESSFULLY`, or two: the job has not ended, or there are two in the file"
        )
        raise lines[-1][0].error(_TOOL, why)
    if product == "Explicit":
        return _Found(version, "sta", _explicit(lines))
    increments, iterations = 0, 0
    step, last, tried, is_open = 0, 0, 0, False
    for line, text in lines:
        match = _ROW.fullmatch(text)
        if match is None:
            if _ROW_LIKE.fullmatch(text):
                raise line.error(_TOOL, "the row is damaged: not step, increment, attempt, iterations and times")
            continue
        if int(match[5]) + int(match[6]) != int(match[7]):
            raise line.error(_TOOL, "the iterations do not add up to their total")
        if any(number(token) is None for token in match[8].split()):
            raise line.error(_TOOL, "a time is not a number")
        here, attempt = (int(match[1]), int(match[2])), int(match[3])
        if is_open:  # another attempt of the same increment
            follows = here == (step, last) and attempt == tried + 1
        else:
            follows = attempt == 1 and (here in ((step, last + 1), (step + 1, 1)) if step else here[1] == 1)
        if not follows or 0 in here:
            raise line.error(_TOOL, f"not the increment after {last} of step {step}: rows are missing or damaged")
        (step, last), tried, is_open = here, attempt, bool(match[4])
        iterations += int(match[7])
        increments += not match[4]
    if not increments:
        raise done[0].error(_TOOL, "no row of an increment above this line")
    return _Found(version, "sta", _counts({"increments": increments, "iterations": iterations}))


def _explicit(lines: Text) -> tuple[Sample, ...]:
    """Elapsed time and increments of the last row of Abaqus/Explicit, whose fourth column is a time of day."""
    rows = [(line, match) for line, text in lines if (match := _EXPLICIT_ROW.fullmatch(text))]
    if not rows:
        raise lines[-1][0].error(_TOOL, "no row with an elapsed time (00:00:00) in its fourth column")
    last, last_s = -1, 0
    for line, match in rows:
        elapsed_s = 3600 * int(match[2]) + 60 * int(match[3]) + int(match[4])
        if int(match[1]) < last or elapsed_s < last_s:
            raise line.error(_TOOL, "increments and elapsed time must grow from row to row")
        last, last_s = int(match[1]), elapsed_s
    if last_s == 0:
        raise rows[-1][0].error(_TOOL, "the elapsed time is 0 s: it counts whole seconds, and the job was too short")
    time = time_sample("time", float(last_s), resolution=1.0 / last_s)
    return (time, *(_counts({"increments": last}) if last else ()))


def _counts(counts: dict[str, int]) -> tuple[Sample, ...]:
    return tuple(rate_sample(name, float(count)) for name, count in counts.items() if count)


def _log(lines: Text) -> _Found:
    """The dates between which the analysis program ran. Raises ParseError if it is unknown how they are written."""
    jobs = [match[1] for _, text in lines if (match := _JOB.fullmatch(text))]
    done = [line for line, text in lines if (match := _JOB_DONE.fullmatch(text))]
    if len(done) != 1 or len(jobs) != 1:
        why = "no `Abaqus JOB ... COMPLETED`, or two: the job has not ended, or there are two in the file"
        raise lines[-1][0].error(_TOOL, why)
    begins = [i for i, (_, text) in enumerate(lines) if _BEGIN.fullmatch(text)]
    if len(begins) != 1:
        raise done[0].error(
            _TOOL, f"{len(begins)} analyses (`Begin Abaqus/... Analysis`) above this line, expected one"
        )
    end = f"End {lines[begins[0]][1].removeprefix('Begin ')}"
    block = [lines[begins[0]]]
    for one in lines[begins[0] + 1 :]:
        block.append(one)
        if one[1] == end:
            break
    dates = [(line, when) for line, text in block if (when := _date(text)) is not None]
    if block[-1][1] != end or len(dates) != 2:
        raise block[0][0].error(_TOOL, f"no two dates between this line and `{end}` that are understood")
    every = [(line, when) for line, text in lines if (when := _date(text)) is not None]
    for (_, before), (line, when) in pairwise(every):
        if when < before:
            raise line.error(_TOOL, "earlier than the date before it: a line is damaged or missing")
    elapsed_s = (dates[1][1] - dates[0][1]).total_seconds()
    if elapsed_s == 0:
        raise dates[1][0].error(_TOOL, "the same as the date before it: dates count whole seconds")
    version = next((match[1] for _, text in lines if (match := _LOG_VERSION.fullmatch(text))), "")
    return _Found(version, "log", (time_sample("process_time", elapsed_s, resolution=1.0 / elapsed_s),))


def _date(text: str) -> datetime | None:
    for form in _FORMS:
        try:
            return datetime.strptime(_ZONE.sub("", text), form)
        except ValueError:
            continue
    return None


READER = Reader("abaqus", read)
