"""The latency ladder: access latency over the working set, with the cache sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from seatrial.analysis.roles import LatencyLevel, levels
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.spelling import setting_number, show
from seatrial.report.blocks import Cell, Cells, Chart, Table, right
from seatrial.report.charts import vega
from seatrial.report.charts.lines import Series, lines_over
from seatrial.report.pages.view import MEDIAN_COLUMNS, BenchmarkView, TrialView, median_cells

_AXIS = "working_set_B"
_FEWEST_POINTS = 3
_WIDTH, _HEIGHT = 860, 320
_NS = 1e-9
_ALIKE = 0.10
"""Levels of two lines that differ by less than this are labelled once."""
_TICKS_EVERY = 4
_ROOM_BELOW, _ROOM_ABOVE = 0.75, 1.5


class CacheSize(Frozen):
    """A cache of the measured CPU."""

    name: str
    size_B: int


class Rung(Frozen):
    """A level of one line. `is_labelled`: whether the chart shows its latency."""

    line: str
    level: LatencyLevel
    is_labelled: bool


def ladders(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """One chart of all lines over working sets of a benchmark that have three points or more."""
    measured = [(row, figure) for row, figure in benchmark.measured if vega.working_set(figure) is not None]
    lines = [line for line in lines_over(measured, _AXIS) if len(line.points) >= _FEWEST_POINTS]
    if not lines:
        return
    shown = lines[: len(vega.SERIES_COLOURS)]
    machine = view.trial.machine
    cpu = _cpu(view, shown)
    caches = data_caches(machine, cpu)
    rungs = _rungs(machine, shown, cpu)
    title = f"{benchmark.name}: access latency over the working set"
    caption = _in_words(rungs, caches, shown)
    if len(shown) < len(lines):
        caption += f" {len(shown)} of {len(lines)} lines are shown; the table of figures has all."
    ident = view.anchor(f"{benchmark.name}-ladder")
    yield vega.chart(_spec(shown, caches, rungs), ident, title, caption, _table(shown, rungs))


def data_caches(machine: Machine, cpu: int | None) -> tuple[CacheSize, ...]:
    """The data and unified caches of a CPU with known sizes, innermost first."""
    pu = machine.pus.get(cpu) if cpu is not None else None
    found = []
    for device in machine.ancestors(pu) if pu is not None else ():
        facts = device.facts
        level, size_B = facts.integer("level"), facts.integer("size")
        if device.kind is DeviceKind.CACHE and facts.text("type") != "instruction" and level and size_B:
            found.append(CacheSize(f"L{level}", size_B))
    return tuple(found)


def _cpu(view: TrialView, lines: Sequence[Series]) -> int | None:
    """The CPU that the thread of the first line was bound to, as its repeats recorded; else the first allowed one."""
    for line in lines:
        for repeat in line.points[0][1].repeats:
            masks = view.trial.seen.get((line.rows[0].result.id, repeat.repeat), {}).get("affinity")
            if isinstance(masks, list) and masks and isinstance(masks[0], list) and len(masks[0]) == 1:
                cpu = masks[0][0]
                if isinstance(cpu, int):
                    return cpu
    machine = view.trial.machine
    return next(iter(machine.allowed_cpus or sorted(machine.pus)), None)


def _rungs(machine: Machine, lines: Sequence[Series], cpu: int | None) -> list[Rung]:
    """The levels of all lines; of two nearly equal ones, only the first is labelled."""
    rungs: list[Rung] = []
    for line in lines:
        for level in levels(machine, [figure for _, figure in line.points], cpu):
            same = (rung.level for rung in rungs if rung.level.name == level.name and rung.is_labelled)
            is_new = all(abs(level.latency_s / other.latency_s - 1) > _ALIKE for other in same)
            rungs.append(Rung(line.name, level, is_new))
    return rungs


def _spec(lines: Sequence[Series], caches: Sequence[CacheSize], rungs: Sequence[Rung]) -> dict[str, Any]:
    names = [line.name for line in lines]
    rows: list[dict[str, Any]] = [
        {"line": line.name, "x": x, "y": figure.median / _NS, **vega.ends_of(figure, _NS)}
        for line in lines
        for x, figure in line.points
    ]
    low = min(row["low"] for row in rows) * _ROOM_BELOW
    high = max(row["high"] for row in rows) * _ROOM_ABOVE
    sizes = sorted({x for line in lines for x, _ in line.points})
    colour, dash = vega.series("line", names)
    scale = {"type": "log", "base": 2, "domain": [sizes[0] * 0.9, sizes[-1] * 1.25], "nice": False}
    ticks = {
        **vega.named_ticks(_size_ticks(sizes), partial(setting_number, _AXIS)),
        "grid": False,
        "labelOverlap": False,
    }
    x = vega.quantity("x", "working set", scale=scale, axis=ticks)
    y = vega.logarithmic("y", "ns per access, lower is better", low, high)
    return {
        "data": {"values": rows},
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            *_cache_marks(caches, x, y, sizes, high),
            vega.layer("rule", {**vega.between(x, y), "color": colour}, strokeWidth=1.2, opacity=0.7),
            vega.layer("line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, strokeWidth=2),
            vega.layer("point", {"x": x, "y": y, "color": colour}, filled=True, size=26, opacity=1),
            *_rung_marks(rungs, names, x, y),
        ],
    }


def _cache_marks(
    caches: Sequence[CacheSize], x: dict[str, Any], y: dict[str, Any], sizes: Sequence[float], high: float
) -> list[dict[str, Any]]:
    """A vertical line at the size of each cache, its name on top."""
    rows = [
        {"x": cache.size_B, "y": high, "text": f"{cache.name} {setting_number(_AXIS, cache.size_B)}"}
        for cache in caches
        if sizes[0] <= cache.size_B <= sizes[-1] * 1.25
    ]
    if not rows:
        return []
    names = {"align": "right", "baseline": "top", "dx": -5, "dy": 3, "fill": "var(--muted)"}
    return [
        vega.layer("rule", {"x": x}, rows, color="var(--axis)", strokeDash=[4, 3]),
        *vega.text_layers(rows, names, x, y),
    ]


def _rung_marks(
    rungs: Sequence[Rung], names: Sequence[str], x: dict[str, Any], y: dict[str, Any]
) -> list[dict[str, Any]]:
    """The latency of each level next to its point: above the line, or below if another line is higher."""
    labelled = [rung for rung in rungs if rung.is_labelled]
    layers: list[dict[str, Any]] = []
    for rung in labelled:
        same_level = [other.level for other in labelled if other.level.name == rung.level.name]
        is_above = all(level.latency_s <= rung.level.latency_s for level in same_level)
        row = {
            "x": rung.level.working_set_B,
            "y": rung.level.latency_s / _NS,
            "text": f"{rung.level.name} {show(rung.level.latency_s, 's')}",
        }
        mark = {"align": "right", "dx": 4, "dy": -13 if is_above else 16, "fontWeight": 600}
        layers += vega.text_layers([row], {**mark, "fill": vega.SERIES_COLOURS[names.index(rung.line)]}, x, y)
    return layers


def _size_ticks(sizes: Sequence[float]) -> list[float]:
    """Powers of four from the smallest set on: 4 KiB, 16 KiB, ..."""
    ticks = [sizes[0]]
    while ticks[-1] * _TICKS_EVERY <= sizes[-1]:
        ticks.append(ticks[-1] * _TICKS_EVERY)
    return ticks


def _in_words(rungs: Sequence[Rung], caches: Sequence[CacheSize], lines: Sequence[Series]) -> str:
    sentences = []
    for line in lines:
        own = [rung.level for rung in rungs if rung.line == line.name]
        if own:
            latencies = ", ".join(f"{level.name} {show(level.latency_s, 's')}" for level in own)
        else:
            (x, first), (end, last) = line.points[0], line.points[-1]
            latencies = (
                f"from {show(first.median, 's')} at {setting_number(_AXIS, x)} "
                f"to {show(last.median, 's')} at {setting_number(_AXIS, end)}"
            )
        sentences.append(f"{line.name}: {latencies}." if len(lines) > 1 else f"{latencies}.")
    if not caches:
        sentences.append("Cache sizes are unknown.")
    return " ".join(sentences)


def _table(lines: Sequence[Series], rungs: Sequence[Rung]) -> Table:
    names = {(rung.line, rung.level.working_set_B): rung.level.name for rung in rungs}
    rows: list[Cells] = [
        [line.name, Cell(setting_number(_AXIS, x), x), *median_cells(figure), names.get((line.name, int(x)), "")]
        for line in lines
        for x, figure in line.points
    ]
    return Table.of("Latency ladder", ["Line", *right("Working set"), *MEDIAN_COLUMNS, "Level"], rows)
