"""Text about references: the published value, the machine, the source."""

from __future__ import annotations

from collections.abc import Collection

from seatrial.model.results.history import Qualifier, Reference
from seatrial.model.spelling import show

ANOTHER_MACHINE = "another machine, no interval"
_MOST_DIGITS = 9
_RATIO = "1"
_ENDS = {Qualifier.LOWEST: "lowest of a range", Qualifier.HIGHEST: "highest of a range"}
_SHOWN_SEPARATELY = ("machine", "of", "over")
_LONG_S = 120.0
"""Longer times are shown in minutes elsewhere; a published number of seconds keeps its digits."""


def value_text(reference: Reference) -> str:
    """The value with its published digits and qualifier: "about 5.5 TFLOP/s"."""
    value, unit = reference.value, reference.unit
    digits = next(d for d in range(1, _MOST_DIGITS + 1) if _is_same(value, d) or d == _MOST_DIGITS)
    is_long = unit == "s" and value >= _LONG_S
    number = f"{value:.10g}{' s' if is_long else ''}" if is_long or unit == _RATIO else show(value, unit, digits)
    if reference.qualifier in _ENDS:
        return f"{number} ({_ENDS[reference.qualifier]})"
    return f"{reference.qualifier.value} {number}".strip()


def machine_of(reference: Reference) -> str:
    """The machine as published, or ""."""
    return reference.configuration.get("machine", "")


def configuration_text(reference: Reference, without: Collection[str] = ()) -> str:
    """The other published settings: "V100 over P100; gpus: 1, 2 and 4". `without` are names to skip."""
    settings = reference.configuration
    of, over = settings.get("of"), settings.get("over")
    quotient = f"{of or ''} over {over}".strip() if over else of or ""
    others = (
        f"{name.replace('_', ' ')}: {text}"
        for name, text in settings.items()
        if name not in (*_SHOWN_SEPARATELY, *without)
    )
    return "; ".join(filter(None, (quotient, *others)))


def source_text(reference: Reference) -> str:
    """The source, with the year if the source does not contain it."""
    year = "" if reference.year is None or str(reference.year) in reference.source else str(reference.year)
    return ", ".join(filter(None, (reference.source, year))) or "no source given"


def contradiction_text(reference: Reference) -> str:
    """The values of its source that it contradicts, or ""."""
    return f"contradicts {', '.join(reference.contradicts)}" if reference.contradicts else ""


def _is_same(value: float, digits: int) -> bool:
    return abs(float(f"{value:.{digits - 1}e}") - value) <= 1e-9 * abs(value)
