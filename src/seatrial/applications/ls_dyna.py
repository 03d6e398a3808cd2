"""LS-DYNA's messag, mes0000 and d3hsp: the times of a run with normal termination.

The whole run is the total of the table of times, on the clock. `Elapsed time` counts whole seconds and begins after the
input is read: it is the time of the solution. CPU times are rounded to seconds. The exit status of LS-DYNA may be 0
after an error, so only `N o r m a l   t e r m i n a t i o n` counts.

Format from documentation: runs with several processes (MPP).

`apps.ls-dyna`: the crash code LS-DYNA (shared memory) on the user's input.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.text import Pattern, last_digit, moment_of, number
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import INPUT, InputCase
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "LS-DYNA"
_BANNER = Pattern(r"\| LS-DYNA, A Program for Nonlinear Dynamic \|")
_NORMAL = Pattern(r"N o r m a l t e r m i n a t i o n(?: .{0,40})?")
_ERROR = Pattern(
    r"^E r r o r t e r m i n a t i o n|^\*\*\* ?Error\b|[Nn]o license|LICENSE ERROR"
    r"|\blicense\b.{0,40}(?:not available|denied|expired)|NaN (?:has been )?detected|out-of-range (?:velocities|forces)"
)
_TABLE = Pattern(r"T i m i n g i n f o r m a t i o n")
_ROW = Pattern(r"(\S.{0,40}?) ?(?:\.{1,30})? (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d) (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d)")
_TOTALS = Pattern(r"T o t a l s (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d) (\d\.\d{4}E[+-]\d\d) (\d{1,3}\.\d\d)")
_TOTALS_LIKE = Pattern(r"T o t a l s .{0,200}")
_ELAPSED = Pattern(r"Elapsed time ([0-9]{1,9}) seconds? ?(?:\((.{5,60})\) ?)?for ([0-9]{1,15}) cycles?(.{0,80})")
_ELAPSED_LIKE = Pattern(r"Elapsed time .{0,200}")
_IN_WORDS = Pattern(r"\(? ?([0-9]{1,7}) hours? ([0-9]{1,3}) min(?:utes?|\.)? ([0-9]{1,3}) sec(?:onds?|\.)? ?\)?")
_CYCLE = Pattern(r"Problem cycle = ([0-9]{1,15})")
_ZONE = Pattern(r"Clock time per zone cycle ?= ?(\S{1,30}) (\w{1,20})")
_START, _END = Pattern(r"Start time (\S{1,12} \S{1,12})"), Pattern(r"End time (\S{1,12} \S{1,12})")
_FIELDS = {
    "version": Pattern(r"\| Version ?: (\S.{0,60}?) ?\|"),
    "revision": Pattern(r"\| (?:Revision|SVN Version) ?: (\S.{0,60}?) ?\|"),
    "precision": Pattern(r"\| Precision ?: (Single|Double) precision.{0,30}\|"),
}
_MPP = (
    Pattern(r".{0,20}(?:MPP|Parallel) execution with ([0-9]{1,9}) (?:MPP )?procs?.{0,40}"),
    Pattern(r".*?([0-9]{1,9}) MPP proc"),
)
_SMP = (Pattern(r"Number of CPU's ([0-9]{1,9})"), Pattern(r".*?([0-9]{1,9}) SMP thread"))
_UNITS = {"picoseconds": 1e-12, "nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}


def _measured(log: Log) -> Measured:
    """The messages of one run. Raises ParseError for a run that failed or did not end, for contradictory times, and for
    two runs in one file."""
    log.refuse_signs((_ERROR, "the run failed"))
    table = log.at_most_one(_TABLE, "table of times")
    if log.at_most_one(_BANNER, "banner") is None and table is None:
        raise log.error("neither LS-DYNA's banner nor its table of times: from another program?")
    if table is None or not log.found(_NORMAL):
        raise log.not_ended("no `N o r m a l    t e r m i n a t i o n` and table of times")
    total = _total(log, table)
    total_s = total.printed(3, "the total clock time")
    elapsed = _elapsed(log)
    seconds, cycles = int(elapsed.match[1]), elapsed.whole(3, "the number of cycles")
    samples = [total_s.sample("wall")]
    remarks: tuple[str, ...] = ()
    if seconds > total_s.value + 1.0:
        raise elapsed.error(f"longer than the whole run, which took {total_s.value:g} s (line {total.line.number})")
    if seconds:
        solution = Printed(float(seconds), 0.5)
        samples += [solution.sample("solution_time"), solution.sample("step", count=cycles)]
    else:
        remarks = ("Elapsed time is 0 s: it counts whole seconds, and the solution was too short for it",)
    samples += _zone_cycle(log)
    fields = {name: _field(log, pattern) for name, pattern in _FIELDS.items()}
    notes: dict[str, object] = {"cycles": cycles, "revision": fields["revision"]}
    return Measured(samples, _parameters(log, elapsed, fields), notes, remarks, fields["version"])


def _total(log: Log, table: Found) -> Found:
    """The line with the clock time of the whole run. Raises ParseError if the rows of the table do not add up to it."""
    total = log.of_form(_TOTALS_LIKE, _TOTALS, "T o t a l s 1.2345E+01 100.00 1.3456E+01 100.00")
    total_s = total.printed(3, "the total clock time")
    rows = [
        (len(row.line.text) - len(row.line.text.lstrip()), row.match[4])
        for row in log.found(_ROW, log.lines[table.line.number - 1 : total.line.number - 1])
    ]
    least = min((indent for indent, _ in rows), default=0)
    parents = [seconds for indent, seconds in rows if indent == least]
    added = sum(map(float, parents))
    slack = sum(map(half_unit, parents)) + total_s.error + 0.002 * total_s.value
    if not parents or abs(added - total_s.value) > slack:
        raise total.error(f"the rows above add up to {added:g} s on the clock: a line is damaged or missing")
    return total


def _elapsed(log: Log) -> Found:
    """Whole seconds, the cycles, and what follows (`using  4 SMP threads`). Raises ParseError if the line is missing or
    damaged, or contradicts the dates, or the number of cycles."""
    found = log.of_form(_ELAPSED_LIKE, _ELAPSED, "Elapsed time 12 seconds for 345 cycles")
    seconds, cycles = int(found.match[1]), found.whole(3, "the number of cycles")
    following = " ".join(log.texts[found.line.number : found.line.number + 1])
    words = _IN_WORDS.fullmatch((found.match[2] or following).strip())
    if words is not None and 3600 * int(words[1]) + 60 * int(words[2]) + int(words[3]) != seconds:
        raise found.error("hours, minutes and seconds are not the elapsed seconds")
    for one in log.found(_CYCLE):
        if int(one.match[1]) != cycles:
            raise one.error(f"the run had {cycles} cycles (line {found.line.number})")
    dates = [moment_of(_field(log, pattern), "%m/%d/%Y %H:%M:%S") for pattern in (_START, _END)]
    if dates[0] is not None and dates[1] is not None:
        between_s = (dates[1] - dates[0]).total_seconds()
        if min(abs(between_s - seconds - hour) for hour in (0, 3600, -3600)) > 2:  # clocks are changed twice a year
            raise found.error(f"start and end are {between_s:g} s apart, which contradicts this")
    return found


def _zone_cycle(log: Log) -> list[Sample]:
    """The elapsed time per element and cycle, in the unit that its line states."""
    found = log.found(_ZONE)
    if not found:
        return []
    value_text, unit = found[-1].match.groups()
    value = found[-1].line.number_or_zero(value_text, "the clock time per zone cycle")
    if unit not in _UNITS:
        raise found[-1].error(f"{unit} is not a unit of time that LS-DYNA prints")
    if value == 0:
        return []
    return [
        figures.time_sample("zone_cycle_time", figures.in_SI(value, _UNITS[unit]), resolution=last_digit(value_text))
    ]


def _field(log: Log, pattern: Pattern) -> str:
    return next((one.match[1].strip() for one in log.found(pattern)), "")


def _parameters(log: Log, elapsed: Found, fields: dict[str, str]) -> dict[str, Value]:
    """Processes, threads and precision. Raises ParseError if the file states two numbers of one."""
    parameters: dict[str, Value] = {}
    for name, (of_line, of_words) in (("ranks", _MPP), ("threads", _SMP)):
        stated = {one.match[1] for one in log.found(of_line)}
        stated |= {match[1] for match in (of_words.match(elapsed.match[4]),) if match}
        if len(stated) > 1:
            raise elapsed.error(f"the file states {' and '.join(sorted(stated))} {name}")
        if stated and (count := number(stated.pop())):
            parameters[name] = int(count)
    if fields["version"].startswith("smp"):
        parameters["ranks"] = 1
    if fields["precision"]:
        parameters["precision"] = fields["precision"].lower()
    return parameters


IMPORTED = figures.imported(
    "ls-dyna",
    "LS-DYNA",
    "How long did LS-DYNA take?",
    (
        *figures.counts(ranks="processes (MPP)", threads="threads per process (SMP)"),
        figures.choice("precision", "precision of the solver", "single", "double"),
    ),
    (
        figures.time("wall", "elapsed time of the whole run, with reading the input"),
        figures.time("solution_time", "elapsed time after the input was read, in whole seconds"),
        figures.time("step", "mean elapsed time of one cycle, after the input was read"),
        figures.time("zone_cycle_time", "elapsed time per element and cycle, as LS-DYNA computes it"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured, is_spaced_once=True)


_SITE = "https://www.topcrunch.org"

BENCHMARK = application(
    IMPORTED,
    "How long does LS-DYNA take?",
    tool="LS-DYNA",
    programs=("ls-dyna_smp_d", "ls-dyna_smp_s", "lsdyna", "ls-dyna"),
    install="LS-DYNA needs a licence (https://lsdyna.ansys.com): put the SMP solver on PATH as ls-dyna_smp_d or lsdyna",
    arguments=lambda params: [f"i={params[INPUT]}", f"ncpu={params['processes']}"],
    output="messag",
    cases=(
        InputCase("neon", "a frontal crash of one car", _SITE),
        InputCase("car2car", "a collision of two cars", _SITE),
    ),
    starts="itself",
    stated={"threads": "processes"},
    evidence=FORMAT_SEEN,
)
