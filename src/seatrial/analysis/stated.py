"""Figures that an imported table states: a median with its interval, without the repeats behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import value_from_json
from seatrial.model.results.figure_result import STATED, FigureResult, StatedRepeats
from seatrial.model.results.record import RepeatRecord
from seatrial.model.units import UNITS


def stated_figures(record: RepeatRecord) -> tuple[FigureResult, ...]:
    """The figures that a record states; empty if it states none, or not in the form of `stated_document`."""
    stated = record.seen.get(STATED)
    if not isinstance(stated, list):
        return ()
    try:
        return tuple(_figure(one, record) for one in stated)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _figure(one: Mapping[str, Any], record: RepeatRecord) -> FigureResult:
    middle, ends, n = float(one["median"]), one["ci95"], int(one["n_repeats"])
    if one["unit"] not in UNITS or not 1 <= n <= 2**53:
        raise ValueError("not a figure")
    interval = None if ends is None else (float(ends[0]), float(ends[1]))
    repeats = StatedRepeats(record.repeat, record.order, record.t0, middle, n)
    return FigureResult(
        name=str(one["name"]),
        point={str(name): value_from_json(value) for name, value in one["parameters"].items()},
        unit=one["unit"],
        better=Better(one["better"]),
        work="",
        median=middle,
        ci95=interval,
        minimum=middle,
        maximum=middle,
        n_samples=n,
        limit=None,
        repeats=repeats,
    )
