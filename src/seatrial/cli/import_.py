"""`seatrial import`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What was asked for on the command line, as text."""

    files: tuple[str, ...]
    dumps: tuple[str, ...]
    live: bool
    settings: tuple[str, ...]
    results: Path


def import_command(request: ImportRequest, *, as_json: bool) -> int:
    """Import and print; the exit status of CONTRACT."""
    raise NotImplementedError
