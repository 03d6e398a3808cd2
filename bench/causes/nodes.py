"""What a node computes with: memory, arithmetic, threads, under `seatrial profile`."""

from __future__ import annotations

from causes.case import Case

CASES: tuple[Case, ...] = ()
