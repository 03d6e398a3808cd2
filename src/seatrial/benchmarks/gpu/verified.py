"""Which benchmarks of devices ran rightly on a GPU, and on which: the table that bench/gpu_trial.py writes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from seatrial.model.frozen import Frozen

TABLE = Path(__file__).with_suffix(".json")


class Verified(Frozen):
    """The device and its driver, as these name themselves, and the date."""

    device: str
    driver: str
    date: str


@cache
def table() -> dict[str, Verified]:
    """Benchmark -> where it was verified."""
    return msgspec.json.decode(TABLE.read_bytes(), type=dict[str, Verified])


def is_verified(name: str) -> bool:
    """Whether a benchmark ran rightly on a GPU."""
    return name in table()


def evidence(name: str) -> str:
    """Such as: "checked on NVIDIA H200, CUDA 13.0, 2026-12-01"; "" if it was never run on a GPU."""
    found = table().get(name)
    return "" if found is None else f"checked on {found.device}, {found.driver}, {found.date}"
