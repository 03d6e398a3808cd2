"""The positions of cards and hubs below their parent: columns of cards on a rail, hubs side by side, in rows.

Widths come first (`place_width`), so that the drawing can choose the column width; then everything is placed
(`PlaceLayout.put`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from seatrial.report.drawing.geometry import PAD, Box, Picture, moved, set_text
from seatrial.report.drawing.scene import Card, Grade, Hub, Place

RAIL = 11.0
"""Distance from a column's left edge, where the link runs, to its cards."""
GAP = 12.0
"""Distance between columns; links between processors run there."""
DROP = 16.0
"""Distance from a box to the items below it."""
CARD_GAP = 7.0
_INDENT = 12.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Width of columns, cards per column, and columns per row (None: any number).

    `gpu_rows` is set if GPUs have direct links: they are then at the bottom of the columns, at most this many per
    column. `divided` caches the division of places, which is requested often.
    """

    column: float
    per_column: int
    per_row: int | None
    gpu_rows: int | None = None
    divided: dict[int, tuple[Place, list[list[_Unit]]]] = field(default_factory=dict, compare=False, repr=False)
    """By the id of the place; the place is stored too, so that its id is not reused."""


class _Unit(Struct):
    """A hub with everything below it, or the cards of a place in columns."""

    width: float
    hub: Hub | None = None
    columns: list[tuple[list[Card], list[Card]]] = []


def place_width(place: Place, shape: Shape) -> float:
    """The width of a place."""
    rows = _rows(place, shape)
    indent = _INDENT if len(rows) > 1 else 0.0
    return indent + max((_row_width(row) for row in rows), default=0.0)


def gpus_fit_one_row(place: Place, shape: Shape) -> bool:
    """Whether all GPUs are in the lowest row of their place, so that links can run down from each."""
    rows = _rows(place, shape)
    upper = [unit for row in rows[:-1] for unit in row]
    if any(_has_gpu(unit) for unit in upper):
        return False
    return all(gpus_fit_one_row(unit.hub.place, shape) for row in rows for unit in row if unit.hub and unit.hub.place)


class PlaceLayout(Struct):
    """Draws places. `gpu_floor` is the bottom of the lowest GPUs; None in the first pass, which measures it."""

    picture: Picture
    shape: Shape
    gpu_floor: float | None = None
    gpu_boxes: dict[str, int] = {}
    """Device -> the number of its box."""

    def put(self, place: Place, x: float, y: float, from_y: float) -> float:
        """Draw a place with its left edge at `x` and its top at `y`; links come from `from_y`.

        Returns its lowest y.
        """
        rows = _rows(place, self.shape)
        indent = _INDENT if len(rows) > 1 else 0.0
        low, top = y, y
        for number, row in enumerate(rows):
            at = x + indent
            if number:
                top = low + DROP
                self.picture.join((x + 3, from_y), (x + 3, top - DROP / 2), kind="rail")
            for unit in row:
                start = (x + 3, top - DROP / 2) if number else (None, from_y)
                bottom = self._unit(unit, at, top, start)
                low = max(low, bottom)
                at += unit.width + GAP
        return low

    def _unit(self, unit: _Unit, x: float, y: float, start: tuple[float | None, float]) -> float:
        if unit.hub is not None:
            return self._hub(unit.hub, x, y, unit.width, start)
        low = y
        for upper, gpus in unit.columns:
            low = max(low, self._column(upper, gpus, x, y, start))
            x += self.shape.column + GAP
        return low

    def _hub(self, hub: Hub, x: float, y: float, width: float, start: tuple[float | None, float]) -> float:
        texts, height = set_text(hub.title, hub.lines, width - 2 * PAD)
        box = Box(
            x, y, width, height + 1.4 * PAD, "hub", hub.hint, moved(texts, x + PAD, y + 0.6 * PAD), hub.devices,
            assumed=hub.assumed, low=hub.rate.is_low,
        )  # fmt: skip
        self.picture.add(box)
        self._link(start, box.middle, y, hub.rate.grade, hub.hint, assumed=hub.assumed)
        if not hub.place:
            return box.bottom
        return self.put(hub.place, x, box.bottom + DROP, box.bottom)

    def _link(self, start: tuple[float | None, float], x: float, y: float, grade: Grade, hint: str, *,
              assumed: bool = False) -> None:  # fmt: skip
        """Draw a link from its start to the top of a box at `x`."""
        from_x, from_y = start
        if from_x is None:
            self.picture.join((x, from_y), (x, y), grade=grade, hint=hint, assumed=assumed)
        else:
            self.picture.join((from_x, from_y), (x, from_y), (x, y), grade=grade, hint=hint, assumed=assumed)

    def _column(self, upper: Sequence[Card], gpus: Sequence[Card], x: float, y: float,
                start: tuple[float | None, float]) -> float:  # fmt: skip
        """Cards in a column on a rail; GPUs with direct links at the bottom."""
        ends: list[tuple[float, Card]] = []
        at = y
        for card in upper:
            at = self._card(card, x, at, ends) + CARD_GAP
        if gpus:
            heights = [self._height(card) for card in gpus]
            whole = sum(heights) + CARD_GAP * (len(gpus) - 1)
            if self.gpu_floor is not None:
                at = max(at, self.gpu_floor - whole)
            for card in gpus:
                at = self._card(card, x, at, ends) + CARD_GAP
        rail = x + 3
        from_x, from_y = start
        if from_x is not None:
            self.picture.join((from_x, from_y), (rail, from_y), kind="rail")
        if len(ends) == 1:
            (end, card), *_ = ends
            self.picture.join((rail, from_y), (rail, end), (x + RAIL, end), grade=card.rate.grade, hint=card.hint)
        elif ends:
            self.picture.join((rail, from_y), (rail, ends[-1][0]), kind="rail")
            for end, card in ends:
                self.picture.join((rail, end), (x + RAIL, end), grade=card.rate.grade, hint=card.hint)
        return at - CARD_GAP

    def _height(self, card: Card) -> float:
        _, height = set_text(card.title, (*card.lines, *card.rate.lines()), self.shape.column - RAIL - 2 * PAD)
        return height + 1.4 * PAD

    def _card(self, card: Card, x: float, y: float, ends: list[tuple[float, Card]]) -> float:
        """Draw one card; append the end of its link to `ends`. Returns its lower edge."""
        width = self.shape.column - RAIL
        texts, height = set_text(card.title, (*card.lines, *card.rate.lines()), width - 2 * PAD)
        left = x + RAIL
        box = Box(
            left, y, width, height + 1.4 * PAD, card.kind, card.hint, moved(texts, left + PAD, y + 0.6 * PAD),
            card.devices, low=card.rate.is_low,
        )  # fmt: skip
        number = self.picture.add(box)
        for device in card.devices:
            self.gpu_boxes[device] = number
        ends.append((y + min(14.0, box.height / 2), card))
        return box.bottom


def _rows(place: Place, shape: Shape) -> list[list[_Unit]]:
    """Rows of units; rows with GPUs are last if links run down from them."""
    known = shape.divided.get(id(place))
    if known is None:
        known = shape.divided[id(place)] = (place, _divided(place, shape))
    return known[1]


def _divided(place: Place, shape: Shape) -> list[list[_Unit]]:
    units = [_cards_unit(place.cards, shape)] if place.cards else []
    for hub in place.hubs:
        below = place_width(hub.place, shape) if hub.place else 0.0
        units.append(_Unit(max(below, shape.column), hub))
    if shape.per_row is None:
        return [units] if units else []
    if shape.gpu_rows is not None:
        units.sort(key=_has_gpu)
    room = shape.per_row * (shape.column + GAP)
    rows: list[list[_Unit]] = []
    for unit in units:
        if rows and _row_width([*rows[-1], unit]) <= room:
            rows[-1].append(unit)
        else:
            rows.append([unit])
    return rows


def _cards_unit(cards: Sequence[Card], shape: Shape) -> _Unit:
    gpus = [card for card in cards if card.kind == "gpu"] if shape.gpu_rows is not None else []
    others = [card for card in cards if card not in gpus]
    wanted = max(-(-len(gpus) // (shape.gpu_rows or 1)), -(-len(others) // shape.per_column), 1)
    columns = min(wanted, shape.per_row) if shape.per_row is not None else wanted
    unit = _Unit(columns * shape.column + (columns - 1) * GAP)
    unit.columns = [(list(_share(others, columns, n)), list(_share(gpus, columns, n))) for n in range(columns)]
    unit.columns = [column for column in unit.columns if column[0] or column[1]]
    return unit


def _share(cards: Sequence[Card], columns: int, number: int) -> Sequence[Card]:
    """The cards of one column, in column order; the first columns get one more if they do not divide evenly."""
    each, more = divmod(len(cards), columns)
    first = number * each + min(number, more)
    return cards[first : first + each + (number < more)]


def _has_gpu(unit: _Unit) -> bool:
    if unit.hub is not None:
        return unit.hub.place is not None and any(card.kind == "gpu" for card in unit.hub.place.all_cards())
    return any(card.kind == "gpu" for column in unit.columns for card in (*column[0], *column[1]))


def _row_width(row: Sequence[_Unit]) -> float:
    return sum(unit.width for unit in row) + GAP * max(0, len(row) - 1)
