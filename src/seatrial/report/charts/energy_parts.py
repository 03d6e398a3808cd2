"""The energy of a node above that of its parts: what each sensor shows, and what all of them leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from seatrial.model.benchmark.power import SCOPES
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, Supply
from seatrial.model.results.energy import MeasuredEnergy
from seatrial.model.spelling import NO_VALUE, display_scale, show_percent
from seatrial.probes.power.scopes import sensors_of
from seatrial.report.blocks import Cell, Cells, Chart, Table, headings, right
from seatrial.report.charts import vega
from seatrial.report.power_words import with_error

_WIDTH, _ROW = 560, 30
_PIXELS_OF_A_CHARACTER = 7
_MOST_NODES = 16
_MOST_NAMED = 5
_HERE = "this node"
_REST, _OTHERS = "not measured apart", "other parts"
_LEFT_OUT = {
    Scope.PACKAGE: "memory modules, board, devices, losses of supplies",
    Scope.MEMORY: "all but the memory modules",
    Scope.DEVICE: "all but the device",
}
_OF_NODE = {
    Supply.AC: "network, storage and cooling outside of the node",
    Supply.DC: "the losses of the power supplies; network, storage and cooling outside of the node",
    Supply.UNKNOWN: "network, storage and cooling outside of the node; the losses of the power supplies may be missing",
}


class _Bar(Frozen):
    """A part of a bar. `sensor` None: what no sensor shows."""

    row: str
    name: str
    scope: str
    joules: float
    error: float
    leaves_out: str
    sensor: str | None = None


def energy_by_part(ident: str, title: str, energies: Sequence[MeasuredEnergy]) -> Chart | None:
    """The energy of each node, and below it that of its parts. None if there is no node whose energy is known, or
    nothing to hold against it."""
    nodes = dict.fromkeys(one.node for one in sensors_of(Scope.NODE, energies) if one.energy is not None)
    bars = [bar for node in list(nodes)[:_MOST_NODES] for bar in _of_node(node, energies)]
    if len(bars) < 2:
        return None
    caption = "Energy of the same phase by each sensor: the node above, its parts below."
    if any(bar.sensor is None for bar in bars):
        caption += f' "{_REST.capitalize()}" is the node less its parts: board, fans, drives, network cards, losses.'
    if len(nodes) > _MOST_NODES:
        caption += f" The first {_MOST_NODES} of {len(nodes)} nodes."
    words = " ".join(f"{bar.row}, {bar.name}: {with_error(bar.joules, bar.error, 'J')}." for bar in bars)
    return vega.chart(_spec(bars), ident, title, caption, _table(title, bars), words)


def _of_node(node: str, energies: Sequence[MeasuredEnergy]) -> Iterator[_Bar]:
    own = [one for one in energies if one.node == node]
    (whole, *_) = sensors_of(Scope.NODE, own)
    name = node or _HERE
    yield _bar(name, "node", whole, _OF_NODE[whole.supply])
    parts = [one for scope in SCOPES[1:] for one in sensors_of(scope, own) if one.energy is not None]
    row = f"parts of {name}"
    for one in parts:
        yield _bar(row, one.of or one.source, one, _LEFT_OUT[one.scope])
    rest = (whole.energy or 0.0) - sum(one.energy or 0.0 for one in parts)
    if parts and rest > 0:
        error = (whole.energy_error or 0.0) + sum(one.energy_error or 0.0 for one in parts)
        yield _Bar(row, _REST, NO_VALUE, rest, error, "")


def _bar(row: str, name: str, one: MeasuredEnergy, leaves_out: str) -> _Bar:
    return _Bar(row, name, one.scope, one.energy or 0.0, one.energy_error or 0.0, leaves_out, one.source)


def _table(title: str, bars: Sequence[_Bar]) -> Table:
    of_node = 0.0
    rows: list[Cells] = []
    for bar in bars:
        of_node = bar.joules if bar.name == "node" else of_node
        share = bar.joules / of_node if of_node else None
        energy = Cell(with_error(bar.joules, bar.error, "J"), bar.joules)
        sensor = bar.sensor or NO_VALUE
        rows.append([bar.row, bar.name, bar.scope, energy, Cell(show_percent(share), share), sensor, bar.leaves_out])
    columns = headings("Of", "Part", "Scope", *right("Energy", "Of the node"), "Sensor", "Leaves out")
    return Table.of(title, columns, rows)


def _spec(bars: Sequence[_Bar]) -> dict[str, Any]:
    scale, unit = display_scale([bar.joules for bar in bars], "J")
    order = list(dict.fromkeys(bar.row for bar in bars))
    names = [name for name in dict.fromkeys(bar.name for bar in bars) if name not in ("node", _REST)]
    shown, others = names[:_MOST_NAMED], names[_MOST_NAMED:]
    rows = [
        {"row": bar.row, "part": _OTHERS if bar.name in others else bar.name, "x": bar.joules / scale} for bar in bars
    ]
    parts = ["node", *shown, _OTHERS, _REST]
    parts = [part for part in parts if any(row["part"] == part for row in rows)]
    colours = dict(zip(shown, vega.SERIES_COLOURS[1:], strict=False))
    fills = [colours.get(part, "var(--muted)" if part != "node" else vega.SERIES_COLOURS[0]) for part in parts]
    axis = {"labelLimit": 260, "minExtent": _PIXELS_OF_A_CHARACTER * max(map(len, order)) + 8}
    legend = {**vega.STROKE_LEGEND, "symbolType": "square", "symbolSize": 120, "columns": 3}
    encoding = {
        "x": vega.quantity("x", f"energy, {unit}", stack="zero", axis={"tickCount": 8}),
        "y": {"field": "row", "type": "nominal", "sort": order, "title": None, "axis": axis},
        "color": {
            "field": "part",
            "type": "nominal",
            "title": None,
            "scale": {"domain": parts, "range": fills},
            "legend": legend,
        },
        "order": {"field": "place", "type": "quantitative"},
    }
    placed = [{**row, "place": parts.index(str(row["part"]))} for row in rows]
    bar = vega.layer("bar", encoding, placed, size=18, stroke="var(--paper)", strokeWidth=1)
    return {"width": _WIDTH, "height": _ROW * len(order), "layer": [bar]}
