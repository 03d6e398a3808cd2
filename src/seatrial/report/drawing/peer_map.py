"""The heat map of copies between GPUs beside a drawing, with the GPU names of the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.device_copies import PeerRates
from seatrial.model.role import Role
from seatrial.report.charts.heat import LEGEND_WIDTH, Place, number, text
from seatrial.report.charts.pair_matrix import CELL_WITH_LABEL, Matrix
from seatrial.report.drawing.geometry import HEAD_SIZE, Picture, Text
from seatrial.report.drawing.names import clean
from seatrial.report.drawing.planning import MARGIN
from seatrial.report.drawing.scene import Tone
from seatrial.report.drawing.text_width import text_width
from seatrial.report.units import arrow_meaning, count, show, show_range

_WIDEST = 1900.0
"""The maximum width of a drawing with the map on its right; else the map is below."""
_GAP = 30.0
_HEAD = 44.0
_LABEL_ROOM = 68.0
_LABEL = 11.5
_LEFT, _ABOVE, _BELOW = 76.0, 40.0, 54.0
"""The space that `Matrix` leaves around its square for labels and the colour legend."""


def with_peer_map(picture: Picture, peers: Sequence[PeerRates]) -> tuple[str, str]:
    """(the map as SVG, its description); enlarges the picture for it. Both are empty if nothing was measured."""
    rates = _shown(peers)
    if rates is None:
        return "", ""
    values = {place: figure.median for place, figure in rates.values.items() if place[0] != place[1]}
    some = next(figure for place, figure in rates.values.items() if place[0] != place[1])
    matrix = Matrix(values, len(rates.devices), some.unit, arrow_meaning(some.better), CELL_WITH_LABEL)
    width = _LEFT + max(matrix.edge + 2, LEGEND_WIDTH)
    height = _HEAD + _ABOVE + matrix.edge + _BELOW
    is_right = picture.width + _GAP + width <= _WIDEST
    x, y = (picture.width + _GAP - MARGIN, MARGIN) if is_right else (MARGIN, picture.height + _GAP - MARGIN)
    picture.width = max(picture.width, x + width + MARGIN)
    picture.height = max(picture.height, y + height + MARGIN)
    how = "directly" if rates.is_direct else "not directly"
    subtitle = f"{how}, from row to column, medians of {count(some.n_repeats, 'repeat')}"
    picture.labels.append(Text(x, y + HEAD_SIZE, rates.title, HEAD_SIZE, bold=True))
    picture.labels.append(Text(x, y + HEAD_SIZE + 18, subtitle, 12.0, Tone.MUTED))
    description = f"{rates.title}, {subtitle}: {_in_words(rates, values)}"
    drawn = matrix.drawn("peers", rates.title, description, _labels(rates, matrix.side))
    return f'<g transform="translate({number(x)} {number(y + _HEAD)})">{drawn}</g>', description


def _shown(peers: Sequence[PeerRates]) -> PeerRates | None:
    """The latest matrix of bandwidths in one direction, direct ones before others."""
    able = [
        rates for rates in peers if rates.role is Role.PEER_COPY and any(row != column for row, column in rates.values)
    ]
    direct = [rates for rates in able if rates.is_direct]
    chosen = direct or able
    return chosen[-1] if chosen else None


def _labels(rates: PeerRates, side: float) -> Iterator[str]:
    if side < CELL_WITH_LABEL:
        return
    for at, device in enumerate(rates.devices):
        name = clean(device.label)
        row = name if text_width(name, _LABEL) <= _LABEL_ROOM else str(device.number)
        yield text(-6, (at + 0.5) * side + 4, row, "tick", "end")
        short = name if text_width(name, _LABEL) <= side - 3 else str(device.number)
        if text_width(short, _LABEL) <= side - 2:
            yield text((at + 0.5) * side, -6, short, "tick")


def _in_words(rates: PeerRates, values: dict[Place, float]) -> str:
    unit = next(iter(rates.values.values())).unit
    (low, high) = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    names = [clean(device.label) for device in rates.devices]
    if values[low] == values[high]:
        return f"{show(values[low], unit)} between all {count(len(names), 'device')}."
    return (
        f"{show_range(values[low], values[high], unit)}, lowest from {names[low[0]]} to {names[low[1]]}, highest from "
        f"{names[high[0]]} to {names[high[1]]}."
    )
