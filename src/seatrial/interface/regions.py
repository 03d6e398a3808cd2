"""Where the header is with which a program names its regions."""

from __future__ import annotations

from pathlib import Path

from seatrial.profiler.capture.library import INCLUDE


def include_folder() -> Path:
    """The folder of `seatrial_regions.h`."""
    return INCLUDE
