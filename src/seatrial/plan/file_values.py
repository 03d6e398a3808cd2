"""Values that several kinds of files take: paths and times."""

from __future__ import annotations

from pathlib import Path

from seatrial.model.units import parse_seconds
from seatrial.plan.file_model import Kind, Spot, text


def path_of(spot: Spot, value: str) -> Path:
    """The path of a text, with the home folder for ~. Raises PlaceError."""
    if not value.isprintable() or not value.startswith(("/", "~/")):
        raise spot.cannot_be()
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise spot.refuse("no home directory for ~", "give the full path") from None


PATH = text(pattern=r"[~/].*").then(path_of)


def seconds(least_s: float) -> Kind[float]:
    """A time of at least so many seconds."""
    kind = text().parsed(parse_seconds)
    return kind.only(lambda value: least_s <= value < float("inf"), todo=f"at least {least_s:g}s")
