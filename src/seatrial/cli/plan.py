"""`seatrial plan`."""

from __future__ import annotations

from pathlib import Path


def plan_command(study: Path, *, as_json: bool) -> None:
    """Print what the study would run."""
    raise NotImplementedError
