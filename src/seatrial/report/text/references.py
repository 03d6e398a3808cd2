"""Figures beside their stored references, as text."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.reference_check import ReferenceCheck
from seatrial.model.benchmark.parameter import Value
from seatrial.model.spelling import label, show, show_range
from seatrial.report.blocks import Tone
from seatrial.report.text.terminal import PLAIN, Style, clean

_TONES: dict[str, Tone] = {"pass": "direct", "fail": "error", "undecided": "warning"}


def references_text(checks: Sequence[ReferenceCheck], style: Style = PLAIN) -> str:
    """A line for each figure, the failed ones first."""
    order = ("fail", "undecided", "pass")
    ordered = sorted(checks, key=lambda one: order.index(one.verdict))
    names = {name for one in checks for name, value in one.parameters.items() if _differs(name, value, checks)}
    lines = [style.paint("Stored references", "heading")]
    for one in ordered:
        ends = show_range(*one.ends, one.unit, beside=one.median)
        of = "95 % interval" if one.has_interval else "repeats from"
        point = "".join(f" {label(name, value)}" for name, value in one.parameters.items() if name in names)
        seen = f"{one.benchmark} {one.figure}{point} {show(one.median, one.unit)} ({of} {ends})"
        why = f"; not judged: {one.why}" if one.why else ""
        lines.append(
            f"  {style.paint(f'{one.verdict:<9}', _TONES[one.verdict])}  "
            f"{clean(f'{seen}; {one.reference}: {_allowed(one)}{why}')}"
        )
    return "\n".join(lines)


def _differs(name: str, value: Value, checks: Sequence[ReferenceCheck]) -> bool:
    """Whether another check has another value of a parameter."""
    return any(one.parameters.get(name, value) != value for one in checks)


def _allowed(one: ReferenceCheck) -> str:
    low, high = (None if end is None else show(end, one.unit) for end in (one.low, one.high))
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if low is not None else f"at most {high}"
