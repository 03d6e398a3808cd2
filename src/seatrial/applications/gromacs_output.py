"""What GROMACS' mdrun prints in its log and on the terminal alike: elapsed time and rates. And a run whose terminal
output is all there is (without md.log): it states neither the time step nor the temperature."""

from __future__ import annotations

from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.text import Pattern
from seatrial.model.benchmark.parameter import Value

AN_HOUR_S = 3600.0
_A_DAY_S = 86400.0
_TIME_LIKE = Pattern(r"Time: +[0-9].{1,200}")
_TIME = Pattern(r"Time: +(\S{1,40}) +(\S{1,40}) +(\S{1,40})")
_COLUMNS = Pattern(r"Core t \(s\) +Wall t \(s\) +\(%\)")
_PERFORMANCE = Pattern(r"Performance: +(\S{1,40}) +(\S{1,40})")
_RATES = Pattern(r"\(ns/day\) +\(hour/ns\)")
_STARTING = Pattern(r"starting mdrun '.{0,200}'")
_ASKED = Pattern(r"([0-9]{1,15}) steps, +([0-9]{1,12}\.[0-9]) ps(?: \(continuing .{1,80})?\.?")
_OTHER_COUNT = Pattern(
    r"(?i).{0,40}(?:resetting all time and cycle counters|run time exceeded|continuing from).{0,200}"
)
"""Of such runs other steps were counted than were asked for."""


def time_and_rates(log: Log) -> tuple[Found, Found]:
    """The line of the elapsed time, and that of the performance. Raises ParseError if one is missing or damaged."""
    time = log.of_form(_TIME_LIKE, _TIME, "Time: CORE WALL PERCENT")
    if not log.found(_COLUMNS, log.lines[: time.line.number - 1]):
        raise time.error("no header `Core t (s) Wall t (s) (%)` above it")
    rates = log.only(_PERFORMANCE, "`Performance:`")
    if not log.found(_RATES, log.lines[: rates.line.number - 1]):
        raise rates.error("no header `(ns/day) (hour/ns)` above it")
    return time, rates


def by_day(rates: Found) -> Printed:
    """Seconds per simulated nanosecond, from ns/day."""
    return rates.printed(1, "ns/day").ns_time_from_rate()


def by_hours(rates: Found) -> Printed:
    """Seconds per simulated nanosecond, from hour/ns."""
    return rates.printed(2, "hour/ns").scaled(AN_HOUR_S)


def is_of_terminal(log: Log) -> bool:
    """Whether this is what mdrun printed on the terminal until it ended, and not its log."""
    return bool(log.found(_STARTING) and log.found(_ASKED) and log.found(_PERFORMANCE))


def read_terminal(log: Log, version: str) -> Measured:
    """The run in such a text. Raises ParseError if it has two, or its numbers contradict each other."""
    first, *again = log.found(_PERFORMANCE)
    other = next((one for one in again if one.match.groups() != first.match.groups()), None)
    if other is not None:
        raise other.error(f"another performance than on line {first.line.number}: two runs in one file; split it")
    asked = log.only(_ASKED, "`N steps, T ps.`")
    log = log.until(first.line)  # the end of the log may be below it
    time, rates = time_and_rates(log)
    wall, day, hours = time.printed(2, "the wall time"), by_day(rates), by_hours(rates)
    if not day.agrees(hours):
        raise rates.error("ns/day and hour/ns contradict each other")
    parameters: dict[str, Value] = {}
    if not log.found(_OTHER_COUNT):
        steps = asked.whole(1, "the steps")
        parameters["steps"] = steps
        simulated = asked.number_or_zero(2, "the simulated time")
        ns = Printed(simulated * (steps + 1) / steps / 1000, 0.05 * (steps + 1) / steps / 1000)
        took = Printed(day.value * ns.value, day.value * ns.error + day.error * ns.value + 1e-3 * wall.value)
        if not took.agrees(wall):
            raise rates.error(f"{asked.text(0)} in {wall.value:g} s are not {rates.match[1]} ns/day")
    remark = (
        "what mdrun printed on the terminal: the temperature is not in it, so a simulation that exploded is not noticed"
    )
    samples = (min((day, hours), key=lambda one: one.error / one.value).sample("ns_time"), wall.sample("time"))
    return Measured(samples, parameters, remarks=(remark,), version=version)
