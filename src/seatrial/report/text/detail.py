"""How much a text says: what `--quiet` and `--verbose` choose."""

from __future__ import annotations

from enum import Enum


class Detail(Enum):
    """The result alone, what fits a screen, or everything that is known."""

    BRIEF = "brief"
    USUAL = "usual"
    FULL = "full"
