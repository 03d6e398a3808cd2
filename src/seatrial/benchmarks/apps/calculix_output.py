"""What CalculiX CrunchiX (ccx) leaves: its output, and the results that it was asked to print (`.dat`).

The patterns of its output are those by which `seatrial import calculix=FILE` reads other runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from seatrial.benchmarks.apps.output import Text
from seatrial.model.frozen import Frozen
from seatrial.model.protocol import ProgramRecord
from seatrial.model.sample import Sample

BANNER = re.compile(r"CalculiX Version (\d[\w.]{0,20}), Copyright.{0,80}")
TOTAL = re.compile(r"Total CalculiX Time: ([0-9]{1,9}\.[0-9]{6})")
"""Elapsed time of the whole run, in s; since version 2.16."""
FINISHED = re.compile(r"Job finished")
THREADS = re.compile(r"Using up to ([0-9]{1,9}) cpu\(s\) for .{1,80}")
COUNT = re.compile(r"(nodes|elements): {1,30}([0-9]{1,12})")
FAILED = re.compile(r"^\*ERROR\b|Segmentation fault|best solution and residuals are in")

_STRESSES = re.compile(r"Using up to ([0-9]{1,9}) cpu\(s\) for the stress calculation\.")
_SELECTED = re.compile(r"SELECTED time increment: ?([0-9.eE+-]{1,30})")
_REMAINDER = re.compile(r"the increment size exceeds the remainder of the step and is decreased to ([0-9.eE+-]{1,30})")
_HEADING = re.compile(
    r"(displacements|total .{1,30}?) (?:\(vx,vy,vz\) )?for set (\w{1,40}) and time +([0-9.E+-]{1,30})"
)
_MOST_OFF = 0.01
"""Of an increment: how far its times are from a whole number of increments, as they have 7 digits."""
_MOST_INCREMENTS = 1e9
_LONG_EXPONENT = re.compile(r"([0-9])([+-][0-9]{3})")
"""Fortran leaves the E out of 1.5E-110."""

INCREMENTS = "increments"


def read_ccx(data: bytes) -> ProgramRecord:
    """The output of one run with explicit time integration: its time, threads and elements. Not `ended` if it stopped
    early. Raises ProtocolError for output of other programs, of two runs, and damaged numbers."""
    text = Text("CalculiX", data)
    if not data.strip():
        return ProgramRecord()
    banners = text.found(BANNER)
    if len(banners) != 1:
        raise text.error(
            f"it has {len(banners) or 'no'} lines such as `CalculiX Version 2.20, Copyright ...`, expected one"
        )
    notes: dict[str, Any] = {"version": banners[0][1]}
    if failed := [line for line in text.lines if FAILED.search(line.strip())]:
        return ProgramRecord(notes={**notes, "error": failed[0].strip()[:300]})
    if not text.found(FINISHED):
        return ProgramRecord(notes=notes)
    total_s = text.number(
        text.only(TOTAL, "`Total CalculiX Time`, which versions before 2.16 do not print")[1], "the time"
    )
    step_s = text.number(text.only(_SELECTED, "the time increment")[1], "the time increment")
    rests = text.found(_REMAINDER)
    counts = {one[1]: text.whole(one[2], f"the number of {one[1]}") for one in text.found(COUNT)}
    if not total_s or not step_s:
        raise text.error(f"time {total_s:g} s, increment {step_s:g} s")
    extra = {"increment_s": step_s, "rest_s": text.number(rests[-1][1], "an increment") if rests else 0.0}
    checks: dict[str, float | None] = {
        "threads": float(text.whole(text.only(_STRESSES, "the threads of the stresses")[1], "the threads")),
        "elements": float(counts["elements"]) if "elements" in counts else None,
    }
    sample = Sample(INCREMENTS, 0, total_s, extra=extra)
    return ProgramRecord(samples=(sample,), checks=checks, notes=notes, ended=True)


class Results(Frozen):
    """What a `.dat` file has of one time (s of the simulation): numbers by (quantity, set)."""

    time_s: float
    values: Mapping[tuple[str, str], tuple[float, ...]]


def read_results(data: bytes) -> Results:
    """The printed results of one time. Raises ProtocolError for several times, twice the same, and damaged numbers."""
    text = Text("CalculiX", data)
    values: dict[tuple[str, str], tuple[float, ...]] = {}
    times: set[float] = set()
    key: tuple[str, str] | None = None
    for line in text.lines:
        stripped = line.strip()
        if heading := _HEADING.fullmatch(stripped):
            key = (heading[1], heading[2])
            times.add(text.number(heading[3], "a time"))
        elif stripped:
            if key is None or key in values:
                raise text.error(f"in its results, {stripped[:60]!r} is not where it is expected")
            words = (_LONG_EXPONENT.sub(r"\1E\2", word) for word in stripped.split())
            values[key] = tuple(text.number(word, "a result") for word in words)
    if len(times) != 1:
        raise text.error(f"its results are of {len(times)} times, expected one")
    return Results(times.pop(), values)


def with_increments(record: ProgramRecord, time_s: float) -> ProgramRecord:
    """The record with the number of increments that make this time (s of the simulation): equal ones, and the last the
    rest. Raises ProtocolError if they do not."""
    (sample,) = record.samples
    equal = (time_s - sample.extra["rest_s"]) / sample.extra["increment_s"]
    if not 0 <= equal < _MOST_INCREMENTS or not time_s or abs(equal - round(equal)) > _MOST_OFF:
        raise Text("CalculiX", b"").error(f"its increments make a time of {time_s:g} s with {equal:g} increments")
    count = round(equal) + (1 if sample.extra["rest_s"] else 0)
    return replace(record, samples=(replace(sample, work={"increments": float(count)}),))
