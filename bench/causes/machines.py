"""Dumps of machines with a planted fault, under `seatrial check --from`."""

from __future__ import annotations

from causes.case import Case

CASES: tuple[Case, ...] = ()
