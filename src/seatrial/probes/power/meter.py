"""The power that an external meter wrote into a CSV file: a column of time and one of power.

Only differences of its times are used: its clock and time zone are unknown, so its curve is aligned by the edges of the
load (stats/alignment.py). What it measures, and how exactly, is not in the file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.model.results.energy import MeasuredEnergy
from seatrial.model.spelling import show
from seatrial.probes.power.measured import measured
from seatrial.probes.power.source import Reading, Sensor
from seatrial.stats.alignment import aligned

_LONGEST_B = 256 << 20
_FEWEST = 10
_POWER = re.compile(r"(?i)\b(?:active |real )?power\b|\bwatts?\b|^p$|^w$|\bp[_ ]?(?:total|sum|avg|mean)\b|power")
_NOT_POWER = re.compile(r"(?i)factor|apparent|reactive|energy|limit|\bva\b|\bvar\b|wh\b")
_TIME = re.compile(r"(?i)time|date|stamp|elapsed|seconds|^t$|uhr|datum|zeit")
_UNITS = (("kw", 1e3), ("mw", 1e-3))
_FORMATS = (
    "%d.%m.%Y %H:%M:%S.%f",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%Y/%m/%d %H:%M:%S.%f",
    "%Y/%m/%d %H:%M:%S",
    "%H:%M:%S.%f",
    "%H:%M:%S",
)
_EPOCHS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Times since 1970 above these numbers are in ns, us or ms."""
_DAY_S = 86_400.0
_TODO = "name its columns, such as time,power_W"


class Meter(Frozen):
    """What a meter showed: times in seconds on its own clock, strictly rising, and W."""

    file: str
    at_s: tuple[float, ...]
    watts: tuple[float, ...]


def read_meter(file: Path) -> Meter:
    """The curve in a file. Raises UsageError."""
    try:
        with file.open("rb") as stream:
            data = stream.read(_LONGEST_B + 1)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", "give the CSV file that the meter wrote") from None
    if len(data) > _LONGEST_B:
        raise UsageError(f"{file} is longer than {_LONGEST_B >> 20} MiB", "cut it to the time of the program")
    return meter_of(data, str(file))


def meter_of(data: bytes, file: str) -> Meter:
    """The curve in the bytes of a file. Raises UsageError."""
    text = data.decode("utf-8-sig", "replace").replace("\0", "")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = next((one for one in ";\t" if sum(one in line for line in lines) > len(lines) / 2), ",")
    try:
        rows = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise UsageError(f"{file}: {error}", _TODO) from None
    start = next((k for k, row in enumerate(rows) if _values(row, delimiter) >= 2), None)
    if start is None:
        raise UsageError(f"{file}: no rows with a time and a power found", "a CSV file has a row for each value")
    times, power, factor = _columns(rows[start - 1] if start else [], rows[start], file)
    pairs = _pairs(rows[start:], times, power, factor, delimiter)
    return _meter(pairs, file)


def _columns(header: Sequence[str], row: Sequence[str], file: str) -> tuple[list[int], int, float]:
    """The columns of time (date and time may be two), that of power, and what a value of it is in W."""
    if not header:
        if len(row) != 2:
            raise UsageError(
                f"{file}: no header found, and {len(row)} columns", "name its columns, such as time,power_W"
            )
        return [0], 1, 1.0
    names = [name.strip() for name in header]
    powers = [k for k, name in enumerate(names) if _POWER.search(name) and not _NOT_POWER.search(name)]
    times = [k for k, name in enumerate(names) if _TIME.search(name) and k not in powers]
    if len(powers) != 1 or not times:
        what = "column of time" if not times else "column of power" if not powers else "single column of power"
        raise UsageError(f"{file}: no {what} among {', '.join(names)[:200]}", _TODO)
    unit = next((factor for unit, factor in _UNITS if re.search(rf"(?i)(?:\b|_){unit}\b", names[powers[0]])), 1.0)
    if "MW" in names[powers[0]]:
        unit = 1e6
    return times[:2], powers[0], unit


def _pairs(
    rows: Sequence[Sequence[str]], times: Sequence[int], power: int, factor: float, delimiter: str
) -> list[tuple[float, float]]:
    """(time, W) of the rows that have both."""
    found = []
    for row in rows:
        if len(row) > max(*times, power):
            at_s = _time_s(" ".join(row[k].strip() for k in times), delimiter)
            if at_s is None and len(times) > 1:
                at_s = _time_s(row[times[0]].strip(), delimiter)
            watts = _number(row[power], delimiter)
            if at_s is not None and watts is not None:
                found.append((at_s, watts * factor))
    return found


def _meter(pairs: Sequence[tuple[float, float]], file: str) -> Meter:
    """Values of one time (a meter that writes whole seconds more often) are averaged."""
    grouped: dict[float, list[float]] = {}
    last, days_s = None, 0.0
    for at, watts in pairs:
        if last is not None and at + days_s < last - _DAY_S / 2 and at < _DAY_S:
            days_s += _DAY_S  # a time of day after midnight
        if last is not None and at + days_s < last:
            why = f"{file}: its times go backwards by {show(last - at - days_s, 's')}"
            raise UsageError(why, "cut it to the time of the program")
        last = at + days_s
        grouped.setdefault(last, []).append(watts)
    if len(grouped) < _FEWEST:
        raise UsageError(f"{file}: only {len(grouped)} values", f"at least {_FEWEST} are needed, before and after too")
    return Meter(file, tuple(grouped), tuple(fmean(values) for values in grouped.values()))


def energies_by_meter(file: Path, phases: Sequence[tuple[float, float]]) -> list[MeasuredEnergy]:
    """The same from a file; if it cannot be read, no energy, and why: what ran has its exit status."""
    try:
        return energies(read_meter(file), phases)
    except UsageError as error:
        return [_unknown(_sensor(str(file), None), end - start, str(error.args[0])) for start, end in phases]


def energies(meter: Meter, phases: Sequence[tuple[float, float]]) -> list[MeasuredEnergy]:
    """The energy of each phase (start, end; in seconds on any clock of the program), by the meter."""
    interval_s = median(later - earlier for earlier, later in pairwise(meter.at_s))
    sensor = _sensor(meter.file, interval_s)
    found, why = aligned(meter.at_s, meter.watts, _busy(phases, interval_s))
    if found is None:
        return [_unknown(sensor, end - start, why) for start, end in phases]
    later_s = (interval_s + 2 * found.error_s) / 2  # what `measured` takes off for a reading that is late
    readings = [
        Reading(at - found.offset_s + later_s, 2 * found.error_s, watts)
        for at, watts in zip(meter.at_s, meter.watts, strict=True)
    ]
    note = f"aligned by the edges of the load, to {show(found.error_s, 's')}"
    return [_noted(measured(sensor, readings, start, end), note) for start, end in phases]


def _sensor(file: str, interval_s: float | None) -> Sensor:
    read = lambda: Reading(0.0)  # noqa: E731 - it is read from its file
    name = f"meter:{Path(file).name}"
    return Sensor(name, Scope.NODE, SourceKind.GAUGE, "what the meter feeds", read, refresh_s=interval_s)


def _busy(phases: Sequence[tuple[float, float]], interval_s: float) -> list[tuple[float, float]]:
    """The phases, joined where the meter cannot show the pause between them."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(phases):
        if found and start - found[-1][1] < 6 * interval_s:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _noted(one: MeasuredEnergy, note: str) -> MeasuredEnergy:
    return replace(one, reason=f"{note}; {one.reason}" if one.reason else note)


def _unknown(sensor: Sensor, elapsed_s: float, why: str) -> MeasuredEnergy:
    return replace(measured(sensor, [], 0.0, elapsed_s), reason=why)


def _values(row: Sequence[str], delimiter: str) -> int:
    """How many cells are a number or a time."""
    cells = [cell.strip() for cell in row]
    return sum(_number(cell, delimiter) is not None or _time_s(cell, delimiter) is not None for cell in cells)


def _number(cell: str, delimiter: str) -> float | None:
    text = cell.strip().removesuffix("W").strip()
    if delimiter == ";" and "." not in text:
        text = text.replace(",", ".")
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) < 1e300 else None


def _time_s(cell: str, delimiter: str) -> float | None:
    """Seconds on some clock; None for a text that is not a time."""
    if (found := _number(cell, delimiter)) is not None:
        return found * next((unit for least, unit in _EPOCHS if found > least), 1.0)
    text = cell.strip().replace(",", ".")
    parsed = (one for form in (None, *_FORMATS) if (one := _parsed(text, form)) is not None)
    at = next(parsed, None)
    if at is None:
        return None
    start = datetime(1970 if at.year > 1900 else 1900, 1, 1, tzinfo=at.tzinfo)  # a time of day is of 1900
    return (at - start) / timedelta(seconds=1)


def _parsed(text: str, form: str | None) -> datetime | None:
    """In this form; None: of ISO 8601."""
    try:
        return datetime.fromisoformat(text) if form is None else datetime.strptime(text, form)
    except ValueError:
        return None
