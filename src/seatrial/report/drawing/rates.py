"""The speed of the path to a device: its narrowest link, and links that run below their capability."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from seatrial.model.machine.machine import Link
from seatrial.model.spelling import display_scale, show, show_percent
from seatrial.report.drawing.scene import Grade, Rate

TRAINED_ENOUGH = 0.99
_GOOD, _FAIR = 0.9, 0.75


def rate_of(chain: Sequence[Link], *, has_measured: bool) -> Rate:
    """The rate of a chain of links.

    It is that of the narrowest link; other links trained below their capability are listed as well. `has_measured`:
    some link of the machine is measured, so unmeasured ones are drawn differently.
    """
    known = [link for link in chain if _speed(link) is not None or link.measured_Bps is not None]
    if not known:
        return Rate(grade=Grade.UNMEASURED if has_measured else Grade.PLAIN)
    measured = [link.measured_Bps for link in known if link.measured_Bps is not None]
    with_speed = [(speed, not is_low(link), link) for link in known if (speed := _speed(link)) is not None]
    narrowest = min(with_speed, key=itemgetter(0, 1), default=(None, None, None))[2]
    also = dict.fromkeys(
        f"on the path: {speed_text(link)}" for _, is_full, link in with_speed if link is not narrowest and not is_full
    )
    return Rate(
        speed_text(narrowest, min(measured, default=None)),
        _grade(narrowest, min(measured, default=None), has_measured=has_measured),
        tuple(text for text in also if narrowest is None or text != f"on the path: {speed_text(narrowest)}")[:2],
        _share(narrowest, min(measured, default=None)),
    )


def is_low(link: Link) -> bool:
    """Whether a link is trained below its capability."""
    if link.capable_Bps is None or link.trained_Bps is None:
        return False
    return link.trained_Bps < TRAINED_ENOUGH * link.capable_Bps


def speed_text(link: Link | None, measured_Bps: float | None = None) -> str:
    """Text such as "31.5 GB/s", "trained 3.94 of 31.5 GB/s", "measured 24.1, trained 31.5 GB/s"."""
    if link is None or _speed(link) is None:
        return "" if measured_Bps is None else f"measured {show(measured_Bps, 'B/s')}"
    if is_low(link):
        text = f"trained {_pair(link.trained_Bps, link.capable_Bps, 'of')}"
    elif link.trained_Bps is None:
        text = f"capable {show(link.capable_Bps, 'B/s')}"
    elif link.capable_Bps is None or measured_Bps is not None:
        text = f"trained {show(link.trained_Bps, 'B/s')}"
    else:
        text = show(link.trained_Bps, "B/s")
    if measured_Bps is None:
        return text
    unit = display_scale([_speed(link) or 0.0], "B/s")[1]
    spelled = show(measured_Bps, "B/s")
    return f"measured {spelled.removesuffix(f' {unit}')}, {text}"


def _pair(low: float | None, high: float | None, word: str) -> str:
    """Two rates, with a common unit only once: "3.94 of 31.5 GB/s"."""
    left, right = show(low, "B/s"), show(high, "B/s")
    unit = right.partition(" ")[2]
    return f"{left.removesuffix(f' {unit}')} {word} {right}"


def _share(link: Link | None, measured_Bps: float | None) -> str:
    speed = None if link is None else _speed(link)
    if measured_Bps is None or link is None or not speed:
        return ""
    return f"{show_percent(measured_Bps / speed)} of {'trained' if link.trained_Bps is not None else 'capable'}"


def _speed(link: Link) -> float | None:
    return link.trained_Bps if link.trained_Bps is not None else link.capable_Bps


def _grade(link: Link | None, measured_Bps: float | None, *, has_measured: bool) -> Grade:
    speed = None if link is None else _speed(link)
    if measured_Bps is not None and speed:
        share = measured_Bps / speed
        if share < _FAIR:
            return Grade.POOR
        if share < _GOOD:
            return Grade.FAIR
        return Grade.LOW if link is not None and is_low(link) else Grade.GOOD
    if link is not None and is_low(link):
        return Grade.LOW
    return Grade.UNMEASURED if has_measured and measured_Bps is None else Grade.PLAIN
