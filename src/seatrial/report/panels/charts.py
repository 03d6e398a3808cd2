"""What a panel is, and the panels without their own tables: charts, findings, and what was not measured.

Each panel of charts has a text on what it shows and what to look for. `report.charts` decides which charts exist; a
panel without charts is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import State
from seatrial.model.study.result import NOT_REQUESTED
from seatrial.report.blocks import About, Cells, Table
from seatrial.report.charts.core_to_core import core_to_core
from seatrial.report.charts.devices import devices_side_by_side
from seatrial.report.charts.io_surface import io_surfaces
from seatrial.report.charts.ladder import ladders
from seatrial.report.charts.pairs import device_pairs, rank_pairs
from seatrial.report.charts.power import power_over_time
from seatrial.report.charts.repeats import repeats_in_time
from seatrial.report.charts.roofline import roofline_charts
from seatrial.report.charts.sweep import over_a_number
from seatrial.report.pages.view import BenchmarkView, TrialView

Context = Mapping[str, Any]


class Panel(Frozen):
    """One section. `context` returns the variables of its template, or None to leave the section out.

    The template is `templates/panels/<name>.html.j2`; besides the context it gets `view` and `panel`. `is_blocks`: the
    context has blocks instead, which the template of all blocks renders.
    """

    name: str
    title: str
    context: Callable[[TrialView], Context | None]
    is_blocks: bool = False

    @property
    def file(self) -> str:
        """The path of the template in the folder of templates."""
        return "study/blocks.html.j2" if self.is_blocks else f"panels/{self.name}.html.j2"


def _of_trial(maker: Callable[[TrialView], Iterable[object]], about: str) -> Callable[[TrialView], Context | None]:
    """The context of a panel with what `maker` draws; None without anything."""

    def context(view: TrialView) -> Context | None:
        charts = list(maker(view))
        return {"about": about, "charts": charts, "blocks": (About(about), *charts)} if charts else None

    return context


def _of_each(
    maker: Callable[[TrialView, BenchmarkView], Iterable[object]], about: str
) -> Callable[[TrialView], Context | None]:
    """The same with what `maker` draws for each benchmark."""
    return _of_trial(lambda view: (chart for benchmark in view.benchmarks for chart in maker(view, benchmark)), about)


_ROOFLINE = (
    "A program of a given intensity (flop per byte moved) stays below the lower of the two roofs: memory bandwidth and "
    "arithmetic. The nearer roof is what bounds it, and tuning can gain at most the distance to it. Solid lines were "
    "measured here, dashed ones are hardware limits."
)
_LADDER = (
    "The time of one dependent load over the size of the working set. Flat parts are a cache level or memory; a step "
    "is where a level is full. A step below the size of a cache means that the cache is shared, or that pages conflict "
    "in it. The difference between lines with and without huge pages is the cost of TLB misses."
)
_CORES = "The time to move a cache line between two CPUs: a lower bound for messages between ranks on them."
_RANKS = (
    "Messages between all measured pairs of ranks. A slow cell is a slow pair, a slow row and column a slow rank, and "
    "a slow block a slow node or distant hosts. Framed cells are slow compared with similar pairs, by a test over all "
    "pairs at once."
)
_DEVICES = (
    "Copies between all pairs of devices, and within each device. Blocks show which devices share direct links or a "
    "switch, and which copy through the processor. Both directions of a pair should be equal."
)
_EACH_DEVICE = (
    "Figures of several devices that should be equal. A device that differs may have a lower clock, a narrower link or "
    "other work. If all are slower when they run at once, they share a bottleneck, such as an uplink or host memory."
)
_FILES = (
    "The rate of read and write calls over the sizes of the file and of each record. The rate drops where the file no "
    "longer fits into a cache. It stops rising at the record size that hides the cost of a call. Each row of maps has "
    "its own scale."
)
_SETTINGS = (
    "Figures measured over several values of a numeric parameter. Look for where a line departs from the ideal, and "
    "where it stops rising: larger values gain nothing."
)
_REPEATS = (
    "Each dot is one repeat (one process); 0 is the median of its figure, the band is the 95 % interval, and the "
    "horizontal axis counts all repeats of the trial in order of time. Look for drift, steps and two levels: a median "
    "over them represents neither."
)
_POWER = (
    "What sensors showed while programs ran, and while the machine was idle before and after. Each error holds what "
    "the sensor cannot show: how often it changes, its averaging, its steps. Look for power that falls over time (a "
    "limit, or heat), and for devices that differ."
)
CHART_PANELS = (
    Panel("roofline", "Roofline", _of_trial(roofline_charts, _ROOFLINE), is_blocks=True),
    Panel("latency", "Latency of caches and memory", _of_each(ladders, _LADDER), is_blocks=True),
    Panel("cores", "Core to core", _of_each(core_to_core, _CORES)),
    Panel("ranks", "Rank to rank", _of_each(rank_pairs, _RANKS)),
    Panel("devices", "Device to device", _of_each(device_pairs, _DEVICES), is_blocks=True),
    Panel("each-device", "Device by device", _of_each(devices_side_by_side, _EACH_DEVICE), is_blocks=True),
    Panel("files", "File I/O by file and record size", _of_each(io_surfaces, _FILES), is_blocks=True),
    Panel("power", "Power over time", _of_each(power_over_time, _POWER), is_blocks=True),
    Panel("sweeps", "Parameter sweeps", _of_each(over_a_number, _SETTINGS), is_blocks=True),
    Panel("charts", "Repeats over time", _of_each(repeats_in_time, _REPEATS), is_blocks=True),
)


_IN_SIGHT = 7


def _context(view: TrialView) -> Context:
    """The order is that of `analysis.rules.findings`: known losses first, largest first."""
    findings = view.trial.findings
    return {"shown": findings[:_IN_SIGHT], "folded": findings[_IN_SIGHT:]}


FINDINGS_PANEL = Panel("findings", "Findings, largest loss first", _context)


def _unmeasured(view: TrialView) -> Context | None:
    """A row for each reason, with all that was left out for it; the question only of one that is alone."""
    left_out = [(one.benchmark, one.question, "unsupported", one.need) for one in view.trial.not_measured]
    for benchmark in view.benchmarks:
        for row in benchmark.rows:
            outcome = row.result.outcome
            if outcome.state in (State.SKIPPED, State.UNSUPPORTED):
                name = f"{benchmark.name} ({row.settings})" if row.settings else benchmark.name
                reason = outcome.reason or "no reason recorded"
                left_out.append((name, benchmark.question, outcome.state.value, reason))
    alike = grouped(
        ((state, reason.replace(name, "NAME")), (name, question, reason)) for name, question, state, reason in left_out
    )
    rows: list[Cells] = []
    for (state, reason), found in alike.items():
        name, question, own = found[0]
        several = len(found) > 1
        state = "not requested" if reason.startswith(NOT_REQUESTED) else state
        reason = (reason if several else own).removeprefix(f"{NOT_REQUESTED}: ")
        named = ", ".join(name for name, _, _ in found) if several else f"{name}: {question}"
        rows.append((named, state, reason))
    table = Table.of("Not measured", ["Benchmark", "State", "Reason"], rows)
    return {"blocks": [replace(table, look="reasons")]} if rows else None


UNMEASURED_PANEL = Panel("unmeasured", "Not measured, and why", _unmeasured, is_blocks=True)
