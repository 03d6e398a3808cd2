"""Files of an Abaqus job: .dat and .msg (elapsed time), .sta (increments and iterations) and .log (dates).

`WALLCLOCK TIME` counts whole seconds. A .dat has a first summary of times for the pre-processor, before the analysis.
The .sta of Abaqus/Standard has no time at all. The .log has only the dates at which programs began and ended.

Format from documentation: the .sta of Abaqus/Explicit, and Abaqus/Standard on several ranks.

`apps.abaqus`: Abaqus on the user's input deck.
"""

from __future__ import annotations

import re
from itertools import pairwise

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.text import Pattern, moment_of, number
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.benchmark import Better, Figure
from seatrial.model.benchmark.given_input import INPUT, InputCase
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "Abaqus"
_PAGE = Pattern(r"A(?:baqus|BAQUS) (\S.{0,60}?) Date ([0-9]{1,2}-[A-Za-z]{3}-[0-9]{4}) Time [0-9:]{5,8}")
_STATUS = Pattern(
    r"A(?:baqus|BAQUS)/(Standard|Explicit) (\S.{0,60}?) DATE [0-9]{1,2}-[A-Za-z]{3}-[0-9]{4} TIME [0-9:]{5,8}"
)
_JOB = Pattern(r"A(?:baqus|BAQUS) JOB \S{1,200}")
_JOB_DONE = Pattern(r"A(?:baqus|BAQUS) JOB \S{1,200} COMPLETED")
_LOG_VERSION = Pattern(r"A(?:baqus|BAQUS) ((?:Student Edition |Learning Edition |3DEXPERIENCE )?R?[0-9]\S{0,20})")
_ERROR = Pattern(
    r"^\*\*\*ERROR|HAS NOT BEEN COMPLETED|HAS BEEN TERMINATED|exited with an? error|EXITED WITH ERRORS?|\bABORTED\b"
    r"|Abaqus Error:|[Nn]o licenses? available|\blicense\b.{0,40}(?:not available|denied|could not)"
)
_NOT_FINITE = Pattern(
    r"^(?:AVERAGE|LARGEST|TIME AVG)\b.{0,200}(?<![\w.])[+-]?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE
)
_SUMMARY = Pattern(r"JOB TIME SUMMARY")
_USER_INPUT_READ = Pattern(r"END OF USER INPUT PROCESSING")
_DONE = Pattern(r"THE ANALYSIS HAS BEEN COMPLETED")
_STATUS_DONE = Pattern(r"THE ANALYSIS HAS COMPLETED SUCCESSFULLY")
_TIMES = {
    "user": Pattern(r"USER TIME \(SEC\) = (\S{1,30})"),
    "system": Pattern(r"SYSTEM TIME \(SEC\) = (\S{1,30})"),
    "cpu": Pattern(r"TOTAL CPU TIME \(SEC\) = (\S{1,30})"),
    "wall": Pattern(r"WALLCLOCK TIME \(SEC\) = (\S{1,30})"),
}
_TOTALS = {
    "increments": Pattern(r"TOTAL OF ([0-9]{1,12}) INCREMENTS?"),
    "iterations": Pattern(r"([0-9]{1,12}) ITERATIONS INCLUDING CONTACT ITERATIONS IF PRESENT"),
    "errors": Pattern(r"([0-9]{1,12}) ERROR MESSAGES?"),
}
_COMPLETED = Pattern(r"TIME INCREMENT COMPLETED \S{1,20} ?, FRACTION OF STEP COMPLETED .{1,40}")
_EVERY_INCREMENT = Pattern(r"PRINT OF INCREMENT NUMBER, TIME, ETC\., TO THE MESSAGE FILE EVERY 1 INCREMENTS")
_ITERATIONS = Pattern(r"ITERATION SUMMARY FOR THE INCREMENT: ([0-9]{1,9}) TOTAL ITERATIONS, OF WHICH")
_PLACED = Pattern(
    r"([0-9]{1,7}) HOSTS?:? (?:x )?([0-9]{1,7}) MPI RANKS?(?: PER HOST)? x ([0-9]{1,7}) THREADS?(?: PER RANK)?"
)
_ELEMENTS = Pattern(r"NUMBER OF ELEMENTS IS ([0-9]{1,12})")
_EQUATIONS = Pattern(r"NUMBER OF EQUATIONS: ([0-9]{1,15})")
_VARIABLES = Pattern(r"TOTAL NUMBER OF VARIABLES IN THE MODEL ([0-9]{1,15})")
_ROW = Pattern(
    r"([0-9]{1,9}) ([0-9]{1,9}) ([0-9]{1,5})(U?) ([0-9]{1,6}) ([0-9]{1,6}) ([0-9]{1,6})"
    r"((?: [0-9.Ee+-]{1,16}){3,5})(?: R)?"
)
_ROW_LIKE = Pattern(r"[0-9]{1,9} [0-9]{1,9} [0-9]{1,5}U?(?: \S{1,30}){3,9}")
_EXPLICIT_ROW = Pattern(r"([0-9]{1,15}) \S{1,16} \S{1,16} ([0-9]{1,5}):([0-5][0-9]):([0-5][0-9])(?: \S{1,20}){1,8}")
_BEGIN = Pattern(r"Begin A(?:baqus|BAQUS)/(Standard|Explicit) Analysis")
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
_ZONE = Pattern(r" (?:[A-Z]{3,5}|[+-][0-9]{2,4})(?= [0-9]{4}$|$)")


def _measured(log: Log) -> Measured:
    """One file of a job, read by what it is; every kind of file states errors in the same words. Raises ParseError if
    the job failed, did not end, or took less than a second, and if the file holds two jobs or contradicts itself."""
    is_log = bool(log.found(_JOB))
    status, pages = log.found(_STATUS), log.found(_PAGE)
    if not (is_log or status or pages):
        raise log.error("no heading of Abaqus with version and date: from another program?")
    log.refuse_signs((_ERROR, "the job failed"), (_NOT_FINITE, "the solution is not a number"))
    if sum(map(bool, (is_log, status, pages))) > 1:
        raise log.lines[0].error("the file holds several files of a job: import them one by one")
    if is_log:
        return _log(log)
    if status:
        job = log.only(_STATUS, "job")
        return _sta(log, job.match[1], job.match[2])
    versions = {page.match[1] for page in pages}
    if len(versions) > 1:
        raise pages[-1].error(f"the file names {len(versions)} versions of Abaqus: two jobs in one file")
    return _dat_or_msg(log, versions.pop())


def _dat_or_msg(log: Log, version: str) -> Measured:
    """The summary of times after the analysis, which the pre-processor's may precede (.dat)."""
    pre = log.at_most_one(_USER_INPUT_READ, "job")
    done = log.at_most_one(_DONE, "job")
    if done is None:
        raise log.not_ended("no `THE ANALYSIS HAS BEEN COMPLETED` (Abaqus/Explicit: see its .sta)")
    summaries = [one.line.number for one in log.found(_SUMMARY)]
    after = [number for number in summaries if number > done.line.number]
    if len(after) != 1 or len(summaries) > 1 + (pre is not None):
        raise done.error(f"{len(after)} summaries of times (`JOB TIME SUMMARY`) below this line, expected one")
    wall_line, cpu_s = _job_time(log, after[0])
    wall = wall_line.whole_seconds(1, "the wallclock time")
    parameters, notes = _model(log), _totals(log)
    cores = 1
    for name in ("ranks", "threads"):
        count = parameters.get(name)
        cores *= count if isinstance(count, int) else 1
    if "threads" in parameters and cpu_s > 1.1 * (wall.value + 1.0) * cores:
        raise wall_line.error(f"{cpu_s:g} s of CPU time on {cores} cores take longer than this")
    samples = (wall.sample("wall"), *_counts(notes))
    file = "msg" if pre is None else "dat"
    return Measured(samples, {"file": file, **parameters}, {"cpu_time_s": cpu_s}, version=version)


def _job_time(log: Log, first: int) -> tuple[Found, float]:
    """The line of the elapsed time, and CPU seconds. Raises ParseError if the summary contradicts itself."""
    block = log.lines[first - 1 : first + 7]
    found: dict[str, Found] = {}
    for name, pattern in _TIMES.items():
        of_name = log.found(pattern, block)
        if len(of_name) != 1:
            raise block[0].error(f"no {name} time below this line, or two: it is damaged or cut off")
        found[name] = of_name[0]
    texts = {name: one.match[1] for name, one in found.items()}
    seconds = {name: found[name].line.number_or_zero(text, f"the {name} time") for name, text in texts.items()}
    slack = 1.01 * sum(half_unit(texts[name]) for name in ("user", "system", "cpu")) + 0.006 * seconds["cpu"]
    if abs(seconds["user"] + seconds["system"] - seconds["cpu"]) > slack:
        raise found["cpu"].error("user and system time do not add up to the CPU time: a line is damaged")
    return found["wall"], seconds["cpu"]


def _model(log: Log) -> dict[str, Value]:
    """Size of the model and placement of the solver, where the file states them."""
    parameters: dict[str, Value] = {}
    for name, pattern in (("elements", _ELEMENTS), ("variables", _VARIABLES), ("equations", _EQUATIONS)):
        for one in log.found(pattern):
            parameters[name] = one.whole(1, f"the number of {name}")
    for one in log.found(_PLACED):
        hosts, ranks, threads = (one.whole(place, "a count") for place in (1, 2, 3))
        placed = {"nodes": hosts, "ranks": ranks * (hosts if "PER HOST" in one.match[0] else 1), "threads": threads}
        if any(parameters.setdefault(name, count) != count for name, count in placed.items()):
            raise one.error("the solver ran on other ranks or threads before: two jobs in one file?")
    return parameters


def _totals(log: Log) -> dict[str, int]:
    """The totals that a .msg ends with. Raises ParseError if there were errors, or if increments are missing."""
    totals: dict[str, int] = {}
    for name, pattern in _TOTALS.items():
        total = log.at_most_one(pattern, f"total of {name}")
        if total is None:
            continue
        totals[name] = int(total.match[1])
        if name == "errors" and totals[name]:
            raise total.error("the job reports errors: it has no figure")
        if name == "increments" and log.found(_EVERY_INCREMENT):
            count = len(log.found(_COMPLETED))
            if count != totals[name]:
                raise total.error(f"the file has {count} increments: it is damaged, or part of it is missing")
    counted = sum(int(one.match[1]) for one in log.found(_ITERATIONS))
    if counted > totals.get("iterations", counted):
        raise log.error(f"the increments had {counted} iterations, more than {totals['iterations']} in all")
    return {name: count for name, count in totals.items() if name != "errors"}


def _sta(log: Log, product: str, version: str) -> Measured:
    """The table of a .sta: increments and iterations of Abaqus/Standard, the elapsed time of Abaqus/Explicit."""
    done = log.at_most_one(_STATUS_DONE, "job")
    if done is None:
        raise log.not_ended("no `THE ANALYSIS HAS COMPLETED SUCCESSFULLY`")
    if product == "Explicit":
        return Measured(_explicit(log), {"file": "sta"}, version=version)
    increments, iterations = 0, 0
    step, last, tried, is_open = 0, 0, 0, False
    for line, text in log.numbered():
        match = _ROW.fullmatch(text)
        if match is None:
            if _ROW_LIKE.fullmatch(text):
                raise line.error("the row is damaged: not step, increment, attempt, iterations and times")
            continue
        if int(match[5]) + int(match[6]) != int(match[7]):
            raise line.error("the iterations do not add up to their total")
        if any(number(token) is None for token in match[8].split()):
            raise line.error("a time is not a number")
        here, attempt = (int(match[1]), int(match[2])), int(match[3])
        if is_open:  # another attempt of the same increment
            follows = here == (step, last) and attempt == tried + 1
        else:
            follows = attempt == 1 and (here in ((step, last + 1), (step + 1, 1)) if step else here[1] == 1)
        if not follows or 0 in here:
            raise line.error(f"not the increment after {last} of step {step}: rows are missing or damaged")
        (step, last), tried, is_open = here, attempt, bool(match[4])
        iterations += int(match[7])
        increments += not match[4]
    if not increments:
        raise done.error("no row of an increment above this line")
    return Measured(_counts({"increments": increments, "iterations": iterations}), {"file": "sta"}, version=version)


def _explicit(log: Log) -> tuple[Sample, ...]:
    """Elapsed time and increments of the last row of Abaqus/Explicit, whose fourth column is a time of day."""
    rows = log.found(_EXPLICIT_ROW)
    if not rows:
        raise log.error("no row with an elapsed time (00:00:00) in its fourth column")
    last, last_s = -1, 0
    for row in rows:
        increment, hours, minutes, seconds = map(int, row.match.groups())
        elapsed_s = 3600 * hours + 60 * minutes + seconds
        if increment < last or elapsed_s < last_s:
            raise row.error("increments and elapsed time must grow from row to row")
        last, last_s = increment, elapsed_s
    if last_s == 0:
        raise rows[-1].error("the elapsed time is 0 s: it counts whole seconds, and the job was too short")
    return (Printed(float(last_s), 0.5).sample("wall"), *(_counts({"increments": last}) if last else ()))


def _counts(counts: dict[str, int]) -> tuple[Sample, ...]:
    return tuple(figures.rate_sample(name, float(count)) for name, count in counts.items() if count)


def _log(log: Log) -> Measured:
    """The dates between which the analysis program ran. Raises ParseError if it is unknown how they are written."""
    if log.at_most_one(_JOB_DONE, "job") is None:
        raise log.not_ended("no `Abaqus JOB ... COMPLETED`")
    log.only(_JOB, "job")
    begin = log.only(_BEGIN, "analysis (`Begin Abaqus/... Analysis`)")
    end = f"End {begin.match[0].removeprefix('Begin ')}"
    first = begin.line.number - 1
    if end not in log.texts[first:]:
        raise begin.error(f"no `{end}` below this line")
    last = log.texts.index(end, first)
    every = [(line, when) for line, text in log.numbered() if (when := moment_of(_ZONE.sub("", text), *_FORMS))]
    dates = [(line, when) for line, when in every if first < line.number <= last + 1]
    if len(dates) != 2:
        raise begin.error(f"no two dates between this line and `{end}` that are understood")
    for (_, before), (line, when) in pairwise(every):
        if when < before:
            raise line.error("earlier than the date before it: a line is damaged or missing")
    elapsed_s = (dates[1][1] - dates[0][1]).total_seconds()
    if elapsed_s == 0:
        raise dates[1][0].error("the same as the date before it: dates count whole seconds")
    version = next((one.match[1] for one in log.found(_LOG_VERSION)), "")
    return Measured([Printed(elapsed_s, 0.5).sample("process_time")], {"file": "log"}, version=version)


def _count_figure(name: str, work: str) -> Figure:
    return Figure(name, "1", Better.LOWER, lambda sample: sample.work["amount"], work, is_secondary=True)


IMPORTED = figures.imported(
    "abaqus",
    "Abaqus",
    "How long did this Abaqus job take?",
    (
        figures.choice("file", "the job's file that the figures come from", "dat", "msg", "sta", "log"),
        *figures.counts(nodes="hosts", ranks="processes of the solver", threads="threads per process"),
        *figures.counts(elements="elements of the mesh", variables="variables of the model"),
        figures.count("equations", "equations of the solver"),
    ),
    (
        figures.time("wall", "elapsed time of the analysis, in whole seconds (WALLCLOCK TIME)"),
        figures.time("process_time", "from the start of the analysis program to its end, by the dates of the log"),
        _count_figure("increments", "increments that converged"),
        _count_figure("iterations", "iterations, also of attempts that did not converge"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured, is_spaced_once=True)


_SITE = "the Abaqus installation: abaqus fetch job="

BENCHMARK = application(
    IMPORTED,
    "How long does an Abaqus job take?",
    tool="Abaqus",
    programs=("abaqus",),
    install="Abaqus needs a licence (https://www.3ds.com): put abaqus on PATH",
    arguments=lambda params: ["job=run", f"input={params[INPUT]}", f"cpus={params['processes']}", "interactive"],
    output="run.dat",
    cases=(
        InputCase("s2a", "a flywheel, centrifugal load", f"{_SITE}s2a", "s2a.inp"),
        InputCase("s4b", "a cylinder head, 5 million equations", f"{_SITE}s4b", "s4b.inp"),
    ),
    starts="itself",
    stated={},
    needed=("elements",),
    evidence=FORMAT_SEEN,
)
