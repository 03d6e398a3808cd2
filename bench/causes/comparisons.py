"""Comparisons whose sides differ by a planted cause, under `seatrial run STUDY` and `seatrial compare`."""

from __future__ import annotations

from causes.case import Case

CASES: tuple[Case, ...] = ()
