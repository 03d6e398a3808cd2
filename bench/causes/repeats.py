"""Benchmarks and commands that something disturbs, under `seatrial run` and `seatrial check --results`."""

from __future__ import annotations

from causes.case import Case

CASES: tuple[Case, ...] = ()
