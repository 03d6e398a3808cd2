"""The ranks side by side: computing against MPI, bytes sent and received, and the matrix of traffic between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from seatrial.model.frozen import Frozen
from seatrial.model.spelling import count, display_scale, show, show_percent
from seatrial.model.units import Unit
from seatrial.profiler.profile import PairTable, Profile, RankTotals
from seatrial.report.blocks import Cell, Cells, Chart, Svg, Table, right
from seatrial.report.charts import heat
from seatrial.report.charts.vega import SERIES_COLOURS, STROKE_LEGEND, chart, quantity

_WIDTH, _HEIGHT = 620, 170
_MOST_BARS = 128
_MOST_ROWS = 64
_MOST_TICKS = 20


def rank_charts(profile: Profile, ident: str) -> list[Chart]:
    """Time and point-to-point bytes of each rank. Empty with fewer than two ranks."""
    ranks = profile.per_rank
    if len(ranks) < 2:
        return []
    numbers = _table(ranks)
    step = -(-len(ranks) // _MOST_BARS)
    together = f" Each is the mean of {step} neighbouring ranks." if step > 1 else ""
    times = {"computing": [one.compute_s for one in ranks], "MPI": [one.mpi_s for one in ranks]}
    caption = f"If ranks compute for different times, the faster ones wait in MPI for the others.{together}"
    charts = [_chart("Time of each rank", caption, times, "s", ranks, f"{ident}-rank-time", numbers, stacked=True)]
    traffic = {"sent": [float(one.sent_B) for one in ranks], "received": [float(one.received_B) for one in ranks]}
    if any(map(any, traffic.values())):
        caption = f"Point to point, payload only.{together}"
        charts.append(_chart("Bytes of each rank", caption, traffic, "B", ranks, f"{ident}-rank-bytes", numbers))
    return charts


def _chart(
    title: str,
    caption: str,
    series: Mapping[str, Sequence[float]],
    unit: Unit,
    ranks: Sequence[RankTotals],
    ident: str,
    numbers: Table,
    *,
    stacked: bool = False,
) -> Chart:
    scale, unit_name = display_scale([value for values in series.values() for value in values], unit)
    step = -(-len(ranks) // _MOST_BARS)
    rows = []
    for begin in range(0, len(ranks), step):
        group = ranks[begin : begin + step]
        base = 0.0
        for name, values in series.items():
            mean = sum(values[begin : begin + step]) / len(group) / scale
            ends = {"x": group[0].rank - 0.5, "x2": group[-1].rank + 0.5, "y": base, "y2": base + mean}
            rows.append({"part": name, **ends})
            base += mean if stacked else 0.0
    names = list(series)
    colours = [SERIES_COLOURS[2], SERIES_COLOURS[0]] if stacked else [SERIES_COLOURS[0], SERIES_COLOURS[1]]
    axis = {"grid": False, "format": "d", "values": _ticks(ranks[0].rank, ranks[-1].rank)}
    domain = [ranks[0].rank - 0.5, ranks[-1].rank + 0.5]
    x = quantity("x", "rank", axis=axis, scale={"domain": domain, "nice": False})
    y = quantity("y", unit_name, axis={"tickCount": 5}, scale={"zero": True})
    colour: dict[str, Any] = {"field": "part", "type": "nominal", "title": None}
    colour["scale"] = {"domain": names, "range": colours}
    colour["legend"] = {**STROKE_LEGEND, "symbolType": "square", "symbolSize": 120}
    spec: dict[str, Any] = {"width": _WIDTH, "height": _HEIGHT, "data": {"values": rows}}
    if stacked:
        spec["mark"] = {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 0.5 if len(ranks) < _MOST_BARS else 0}
        spec["encoding"] = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}, "color": colour}
    else:  # the two are often equal, and one bar would hide the other
        middle = {**x, "field": "middle"}
        spec["transform"] = [{"calculate": "(datum.x + datum.x2) / 2", "as": "middle"}]
        shape = {**colour, "scale": {"domain": names, "range": ["circle", "cross"]}}
        shape["legend"] = colour["legend"] = {"orient": "bottom"}
        spec["mark"] = {"type": "point", "filled": False, "size": 44, "opacity": 1}
        spec["encoding"] = {"x": middle, "y": {**y, "field": "y2"}, "color": colour, "shape": shape}
    return chart(spec, ident, title, caption, numbers)


def _ticks(first: int, last: int) -> list[int]:
    """Whole ranks, at round steps: an axis that begins at half a rank would put its own between them."""
    step = 1
    while (last - first) / step > _MOST_TICKS:
        step *= 2
    return list(range(-(-first // step) * step, last + 1, step))


def _table(ranks: Sequence[RankTotals]) -> Table:
    order = sorted(ranks, key=lambda one: -one.compute_s)
    shown = order if len(order) <= _MOST_ROWS else [*order[: _MOST_ROWS // 2], *order[-_MOST_ROWS // 2 :]]
    rows: list[Cells] = []
    for one in shown:
        times = [Cell.amount(value, "s", 4) for value in (one.wall_s, one.compute_s, one.mpi_s)]
        sizes = [Cell.amount(value, "B") for value in (one.sent_B, one.received_B, one.collective_B)]
        rows.append([Cell.number(one.rank), one.host, *times, Cell.number(one.calls), *sizes, one.state.value])
    caption = "Ranks by compute time"
    if len(shown) < len(order):
        caption += f": the first and the last {_MOST_ROWS // 2} of {len(order)}"
    numbers = right("Wall", "Computing", "MPI", "Calls", "Sent", "Received", "Collectives")
    return Table.of(caption, [*right("Rank"), "Host", *numbers, "End"], rows)


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Whole = npt.NDArray[np.unsignedinteger[Any]]

_MOST_GROUPS = 64
_SIDE, _LARGEST_CELL, _LABEL = 520.0, 30.0, 16.0
_LEFT, _TOP = 96.0, 44.0
_MOST_PAIRS = 40


class _Order(Frozen):
    """Ranks ordered by node. `groups` are neighbours in that order; `hosts` those of the first rank of each group."""

    groups: Sequence[Sequence[int]]
    hosts: Sequence[str]


def matrix_chart(profile: Profile, ident: str) -> Chart | None:
    """The matrix as a heat map. None without point-to-point messages, or with a single rank."""
    if not len(profile.matrix) or profile.ranks < 2:
        return None
    order = _order(profile)
    values = _values(profile, order)
    if not values:
        return None
    title = "Bytes from rank to rank"
    caption = "Rows send, columns receive; point to point, payload only; blank cells sent nothing. "
    caption += _off_node(profile)
    if len(order.groups) < profile.ranks:
        caption += f" A cell is {count(len(order.groups[0]), 'rank')} by as many, in the order of nodes."
    draw = cache(lambda: _drawn(values, order, f"{ident}-matrix", title, caption))
    return Chart(title, caption, draw, _pairs_table(profile))


def _order(profile: Profile) -> _Order:
    host = {one.rank: one.host for one in profile.per_rank}
    first: dict[str, int] = {}
    for rank in range(profile.ranks):
        first.setdefault(host.get(rank, ""), rank)
    ranks = sorted(range(profile.ranks), key=lambda rank: (first[host.get(rank, "")], rank))
    step = -(-len(ranks) // _MOST_GROUPS)
    groups = [ranks[begin : begin + step] for begin in range(0, len(ranks), step)]
    return _Order(groups, [host.get(group[0], "") for group in groups])


def _values(profile: Profile, order: _Order) -> dict[heat.Place, float]:
    """(row, column) of groups -> bytes."""
    import numpy as np

    place = np.zeros(profile.ranks, np.intp)
    for k, group in enumerate(order.groups):
        place[list(group)] = k
    number_of = len(order.groups)
    src, dst, sent = _columns(profile.matrix)
    summed = np.bincount(place[src] * number_of + place[dst], sent, number_of**2)
    return {divmod(int(k), number_of): float(summed[k]) for k in np.flatnonzero(summed)}


def _columns(pairs: PairTable) -> tuple[Whole, Whole, Whole]:
    """Source, destination and bytes of each pair."""
    import numpy as np

    return (
        np.frombuffer(pairs.src, np.uintc),
        np.frombuffer(pairs.dst, np.uintc),
        np.frombuffer(pairs.bytes, np.uint64),
    )


def _off_node(profile: Profile) -> str:
    """How much of it leaves the node."""
    import numpy as np

    names = {one.rank: one.host for one in profile.per_rank}
    number_of = {host: k for k, host in enumerate(dict.fromkeys(names.values()))}
    if len(number_of) < 2:
        return "All ranks are on one node."
    node = np.array([number_of.get(names.get(rank, ""), -1) for rank in range(profile.ranks)])
    src, dst, sent = _columns(profile.matrix)
    leaves = float(sent[node[src] != node[dst]].sum())
    total = float(sent.sum())
    return f"{show_percent(leaves / total if total else 0.0)} of {show(total, 'B')} leave their node."


def _drawn(values: dict[heat.Place, float], order: _Order, ident: str, title: str, said: str) -> Svg:
    groups = len(order.groups)
    side = min(_LARGEST_CELL, _SIDE / groups)
    edge = side * groups
    scale = heat.heat_scale(list(values.values()), "B")
    parts = [
        heat.rectangle(0, 0, edge, edge, "ground"),
        heat.cells(values, scale, side, side),
        *heat.borders(order.hosts, side, edge),
        heat.rectangle(0, 0, edge, edge, "frame"),
        *_labels(order, side),
        heat.legend(scale, 0, edge + 16, "sent", False),
    ]
    size = (_LEFT + max(edge + 2, heat.LEGEND_WIDTH), _TOP + edge + 20 + heat.LEGEND_HEIGHT)
    return heat.svg(ident, size, title, said, parts, (_LEFT, _TOP))


def _labels(order: _Order, side: float) -> Iterator[str]:
    step = heat.step_of_labels(side, _LABEL)
    longest = max(len(_name(group)) for group in order.groups) * 6.5 + 4
    for k in range(0, len(order.groups), step):
        yield heat.text(-6, (k + 0.5) * side + 4, _name(order.groups[k]), "tick", "end")
    for k in range(0, len(order.groups), max(step, heat.step_of_labels(side, longest))):
        yield heat.text((k + 0.5) * side, -6, _name(order.groups[k]), "tick")
    yield from heat.names_of_hosts(order.hosts, len(order.hosts), side, -24)


def _name(group: Sequence[int]) -> str:
    return str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}"


def _pairs_table(profile: Profile) -> Table:
    """The pairs with most bytes."""
    import numpy as np

    pairs = profile.matrix
    src, dst, sent = _columns(pairs)
    most = min(_MOST_PAIRS, len(pairs))
    chosen = np.argpartition(sent, len(pairs) - most)[len(pairs) - most :]
    order = sorted((int(k) for k in chosen), key=lambda k: (-int(sent[k]), k))
    rows = [(str(src[k]), str(dst[k]), Cell.number(pairs.count[k]), Cell.amount(int(sent[k]), "B")) for k in order]
    more = f", the first {len(rows)} of {len(pairs)}" if len(pairs) > len(rows) else ""
    return Table.of(f"Pairs by bytes{more}", right("From", "To", "Messages", "Bytes"), rows)
