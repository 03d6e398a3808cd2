"""Formats numbers, settings and facts: nothing else gives SI numbers prefixes and are rounded.

Findings, the terminal and the page all use these functions, so that a number looks the same everywhere. Rates and times
have decimal prefixes; memory and caches have binary ones with `binary=True`, as they are sold and as other tools print
them. Nothing shows more digits than requested, unless two values would look the same (`digits_to_tell`).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.environment.container import CONTAINER, NO_CONTAINER
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.study.study import ENVIRONMENT_PREFIX, is_of_environment
from seatrial.model.units import Unit, takes_prefix


def half_unit(token: str) -> float:
    """Half a unit in the last printed digit of a number: its largest rounding error."""
    mantissa, _, exponent = token.lower().partition("e")
    if float(mantissa) == 0:  # "0.0e14" is as exact as "0.0"
        exponent = ""
    decimals = len(mantissa.partition(".")[2])
    return float(0.5 * 10.0 ** (int(exponent or 0) - decimals))


DIGITS = 3
_MOST_DIGITS = 7
"""More are noise: a clock with a resolution of 1 ns cannot resolve ten digits of a time below ten seconds."""

_DECIMAL = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
_BINARY_POWERS = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"), (0, ""))
_BINARY = tuple((2.0**power, prefix) for power, prefix in _BINARY_POWERS)
_CLOCK = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_NAMES: dict[Unit, str] = {"flop/s": "FLOP/s", "flop/J": "FLOP/s/W", "op/J": "op/s/W", "B/J": "B/s/W"}
_COUNTED: tuple[Unit, ...] = ("B",)
_FRACTIONS: tuple[Unit, ...] = ("s", "J", "W")
"""Units with small values, for which milli, micro and nano make sense."""


def show(value: float | None, unit: Unit, digits: int = DIGITS, *, binary: bool = False) -> str:
    """`value` (in SI units) as text: "57.3 GB/s", "118 GFLOP/s", "24.8 ns", with `binary` "32 MiB".

    None is "unknown". A number of bytes that is exact with its prefix has no decimals ("64 KiB").
    """
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return f"{'not a number' if math.isnan(value) else 'infinite'} ({unit})"
    scale, prefix, name = _scale(value, unit, digits, binary)
    number = _number(value / scale, digits, exact=unit in _COUNTED)
    return f"{number} {prefix}{name}".rstrip()


def show_alike(values: Sequence[float], unit: Unit, digits: int = DIGITS) -> list[str]:
    """Values of one row under one prefix, that of the largest: "0.9980 µs" beside "1.020 µs"."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    scale, prefix, name = _scale(largest, unit, digits, binary=False)
    return [
        f"{_number(value / scale, digits, exact=unit in _COUNTED)} {prefix}{name}".rstrip()
        if math.isfinite(value)
        else show(value, unit, digits)
        for value in values
    ]


def show_range(
    low: float, high: float, unit: Unit, digits: int = DIGITS, *, binary: bool = False, beside: float | None = None
) -> str:
    """An interval under one prefix: "57.1 to 57.6 GB/s". It has enough digits that its ends differ. `beside` is the
    value in the same row whose prefix it has; by default that of its larger end."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{show(low, unit)} to {show(high, unit)}"
    leading = max(low, high, key=abs) if beside is None else beside
    _, prefix, name = _scale(leading, unit, digits, binary)
    return f"{show_ends(low, high, leading, unit, digits, binary=binary)} {prefix}{name}".rstrip()


def show_ends(low: float, high: float, beside: float, unit: Unit, digits: int = DIGITS, *, binary: bool = False) -> str:
    """An interval without its unit, to be shown right after `beside` and with the same prefix: "57.1 to 57.6"."""
    digits = digits_to_tell((low, high), digits)
    scale, _, _ = _scale(beside, unit, digits, binary)
    return " to ".join(_at_scale(value / scale, high / scale, digits) for value in (low, high))


def show_percent(share: float | None, digits: int = 2) -> str:
    """A share as a whole percentage, with a decimal below 10 % and close to 100 %."""
    if share is None:
        return "unknown"
    percent = share * 100
    decimals = 0 if abs(percent) >= 10 ** (digits - 1) else 1
    if decimals == 0 and 0.05 < abs(percent - 100) <= 1:
        decimals = 1
    return f"{percent:.{decimals}f} %"


def digits_to_tell(values: Iterable[float], digits: int = DIGITS) -> int:
    """The smallest number of significant digits, at least `digits`, that shows different values differently."""
    distinct = sorted({value for value in values if math.isfinite(value)})
    for enough in range(digits, _MOST_DIGITS):
        if len({f"{value:.{enough - 1}e}" for value in distinct}) == len(distinct):
            return enough
    return _MOST_DIGITS if distinct else digits


def display_scale(values: Iterable[float], unit: Unit) -> tuple[float, str]:
    """One scale for a whole axis: (divisor, name of the scaled unit), chosen by the largest value."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    scale, prefix, name = _scale(largest, unit, DIGITS, binary=False)
    return scale, prefix + name


def day(seconds: float) -> str:
    """The time in UTC, to the minute; "?" if it is not a date."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


def count(number: float, noun: str, plural: str = "") -> str:
    """Number and noun: "1 core", "2 cores", "1.5 CPUs"."""
    spelled = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{spelled} {noun if number == 1 else plural or noun + 's'}"


def cpu_list(numbers: Iterable[object]) -> str:
    """CPU numbers as Linux writes them, in the order given, with ranges: "0-3,8"."""
    runs: list[tuple[object, object]] = []
    for number in numbers:
        last = runs[-1][1] if runs else None
        if isinstance(number, int) and isinstance(last, int) and number == last + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def show_transfers(rate_MTps: float | None) -> str:
    """The speed of memory modules: "4800 MT/s"."""
    return "unknown" if rate_MTps is None else f"{rate_MTps:g} MT/s"


_UNIT_OF_SUFFIX: dict[str, Unit] = {"_B": "B", "_s": "s", "_Hz": "Hz", "_Bps": "B/s", "_W": "W"}


UNSET = "unset"
"""A variable of an environment that a study unsets."""


def written(name: str, value: Value | None) -> str:
    """A setting's exact value as on the command line: "true", "2", "64MiB"; a list of arguments is quoted for a shell,
    and a variable that is not set is "unset"."""
    if value is None:
        return UNSET
    if isinstance(value, tuple):
        return shlex.join(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if name.endswith("_B") and isinstance(value, int):
        scale, prefix = next((s, p) for s, p in _BINARY if (value and value % s == 0) or s == 1.0)
        return f"{value // int(scale)}{prefix}B"
    return repr(value) if isinstance(value, float) else str(value)


PROGRAM = "argv"
"""The parameter that a command line has after `--`."""


def settings(params: Params, between: str = " ") -> str:
    """Settings as on the command line: "nontemporal=true threads=2", "warmup=1 -- ./app input"."""
    named = [f"{name}={written(name, value)}" for name, value in params.items() if name != PROGRAM]
    typed = [written(PROGRAM, params[PROGRAM])] if PROGRAM in params else []
    return between.join([*named, *(["--"] if typed and between == " " else []), *typed])


def label(name: str, value: Value | None) -> str:
    """A setting as text: "threads 2", "size 64 KiB" (the suffix of the name is the unit), "nontemporal true"; a command
    by itself."""
    if name == PROGRAM:
        return written(name, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{name} {written(name, value)}"
    number = setting_number(name, value).replace(" ", "\N{NO-BREAK SPACE}")
    return f"{bare_name(name)} {number}"


def side_label(along: str, value: Value | None) -> str:
    """The name of a side of a comparison along an axis: as `label`, but "no container" and "container app"."""
    if along == ENVIRONMENT_PREFIX + CONTAINER:
        return f"no {CONTAINER}" if value == NO_CONTAINER else f"{CONTAINER} {written(along, value)}"
    return label(along, value)


_BARS = "▁▂▃▄▅▆▇█"
_WIDE = 20.0
"""Bars of values that differ by more are on a logarithmic scale."""


def spark_line(values: Sequence[float]) -> str:
    """A bar for each value, from the smallest to the largest."""
    low, high = min(values), max(values)
    if low > 0 and high > _WIDE * low:
        values, low, high = [math.log(one) for one in values], math.log(low), math.log(high)
    return "".join(_BARS[round((one - low) / ((high - low) or 1.0) * (len(_BARS) - 1))] for one in values)


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters: a longer one without its middle, since names differ at their ends."""
    return text if len(text) <= most else f"{text[: most // 2].rstrip()}…{text[len(text) - (most - 1) // 2 :].lstrip()}"


def setting_number(name: str, value: float) -> str:
    """The value of a numeric setting, in the unit that the suffix of its name states."""
    for suffix, unit in _UNIT_OF_SUFFIX.items():
        if name.endswith(suffix):
            return show(value, unit, binary=unit == "B" and value % 1024 == 0)
    return f"{value:.10g}"


def workers_text(along: str, *numbers: float, more: int = 0) -> str:
    """Numbers of workers with their name: "16 threads", "1 node", "OMP_NUM_THREADS=4", "size 1 KiB", "2, 4 and 3 more
    threads". `more`: how many are not named."""
    words = [*(setting_number(along, number) for number in numbers), *([f"{more} more"] if more else [])]
    spelled = " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    if is_of_environment(along):
        return f"{along.removeprefix(ENVIRONMENT_PREFIX)}={spelled}"
    name = bare_name(along)
    if name != along:
        return f"{name} {spelled}"
    return f"{spelled} {singular(name) if numbers == (1,) else name}"


def singular(workers: str) -> str:
    """One of what the name of a setting counts: "thread", "process"."""
    return workers.removesuffix("es" if workers.endswith("sses") else "s")


def bare_name(name: str) -> str:
    """A setting's name without the suffix for its unit."""
    for suffix in _UNIT_OF_SUFFIX:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name


_SWITCHES = frozenset({"numa_balancing"})
"""Facts that the kernel reports as 0 or 1 and that are not counts."""


def show_fact(name: str, fact: Fact) -> str:
    """A fact's value as text: sizes with binary prefixes, rates with decimal ones."""
    value = fact.value
    if isinstance(value, bool | str):
        return plain(value)
    if name in _SWITCHES and value in (0, 1):
        return "on" if value else "off"
    if name.endswith("_share"):
        return show_percent(value)
    if fact.unit in (None, "1"):
        return plain(value)
    return show(value, fact.unit, binary=fact.unit == "B")


def plain(value: object) -> str:
    """Any value of a record in one line: lists with spaces (a command), mappings as "name value"."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {plain(item)}" for name, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return " ".join(plain(item) for item in value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "unknown" if value is None else str(value)


def surrounding(facts: Facts, name: str) -> str | None:
    """The name of the `hypervisor` or `container` that the machine runs in; None if there is none or it is unknown."""
    text = facts.text(name)
    return None if text in (None, "", "none") else text


NO_VALUE = "\N{EN DASH}"
"""The text of an empty cell."""


def arrow(better: Better) -> str:
    """Whether higher or lower is better, as one character."""
    return "↑" if better is Better.HIGHER else "↓"


def arrow_meaning(better: Better) -> str:
    """The same in words, for screen readers."""
    return f"{better.value} is better"


def few_names(names: Sequence[object], most: int) -> str:
    """The first names, and how many more: "a, b and 9 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(map(str, names[:most]))}{more}"


def _scale(value: float, unit: Unit, digits: int, binary: bool) -> tuple[float, str, str]:
    """(divisor, prefix, name of the unit) that leaves one to three digits before the point, also after rounding."""
    name = "" if unit == "1" else _NAMES.get(unit, unit)
    size = abs(value)
    if unit == "s" and size >= 120.0:
        for seconds, clock_name in _CLOCK:
            if size >= 2 * seconds or seconds == _CLOCK[-1][0]:
                return seconds, "", clock_name
    if unit == "1" or size == 0.0 or not takes_prefix(unit):
        return 1.0, "", name
    steps = _BINARY if binary else _DECIMAL + (_SMALL[1:] if unit in _FRACTIONS else ())
    for position, (scale, prefix) in enumerate(steps):
        shown = float(f"{size / scale:.{max(digits, 1) - 1}e}")
        if shown >= 1.0 or position == len(steps) - 1:
            return scale, prefix, name
    raise AssertionError("unreachable: the last step always fits")


def _number(value: float, digits: int, *, exact: bool) -> str:
    """`value` to `digits` significant digits, in exponent form only if very large or small."""
    if value == 0:
        return "0"
    if exact and value == int(value) and abs(value) < 10**6:
        return str(int(value))
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    return _at_scale(value, value, digits)


def _at_scale(value: float, leading: float, digits: int) -> str:
    """`value` with as many decimals as `leading` has with `digits` significant digits."""
    exponent = int(f"{abs(leading):.{digits - 1}e}".rpartition("e")[2]) if leading else 0
    return f"{value:.{max(0, digits - 1 - exponent)}f}"
