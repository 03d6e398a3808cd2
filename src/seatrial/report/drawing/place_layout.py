"""The positions of cards and hubs below their parent, and the divisions of a drawing.

Columns of cards are on a rail, hubs side by side, in rows. Widths come first (`place_width`), so that the drawing can
choose the column width; then everything is placed (`PlaceLayout.put`).

A division is: sockets per row, column width, cards per column. All that fit are offered (`plans`); the layout draws
each and keeps the cheapest. Of the column widths with the fewest rows, only the widest is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.report.drawing.geometry import PAD, Box, Drawing, moved, set_text
from seatrial.report.drawing.scene import Card, Domain, DrawnPlace, Grade, Hub, Scene, Socket

RAIL = 11.0
"""Distance from a column's left edge, where the link runs, to its cards."""
GAP = 12.0
"""Distance between columns; links between processors run there."""
DROP = 16.0
"""Distance from a box to the items below it."""
CARD_GAP = 7.0
_INDENT = 12.0


@dataclass(frozen=True, slots=True)
class CardShape:
    """Width of columns, cards per column, and columns per row (None: any number).

    `gpu_rows` is set if GPUs have direct links: they are then at the bottom of the columns, at most this many per
    column. `divided` caches the division of boxes, which is requested often.
    """

    column: float
    per_column: int
    per_row: int | None
    gpu_rows: int | None = None
    divided: dict[int, tuple[DrawnPlace, list[list[_Unit]]]] = field(default_factory=dict, compare=False, repr=False)
    """By the id of the box; the box is stored too, so that its id is not reused."""


class _Unit(Struct):
    """A hub with everything below it, or the cards of a box in columns."""

    width: float
    hub: Hub | None = None
    columns: list[tuple[list[Card], list[Card]]] = []


def place_width(place: DrawnPlace, shape: CardShape) -> float:
    """The width of a box."""
    rows = _rows(place, shape)
    indent = _INDENT if len(rows) > 1 else 0.0
    return indent + max((_row_width(row) for row in rows), default=0.0)


def gpus_fit_one_row(place: DrawnPlace, shape: CardShape) -> bool:
    """Whether all GPUs are in the lowest row of their box, so that links can run down from each."""
    rows = _rows(place, shape)
    upper = [unit for row in rows[:-1] for unit in row]
    if any(_has_gpu(unit) for unit in upper):
        return False
    return all(gpus_fit_one_row(unit.hub.place, shape) for row in rows for unit in row if unit.hub and unit.hub.place)


class PlaceLayout(Struct):
    """Draws places. `gpu_floor` is the bottom of the lowest GPUs; None in the first pass, which measures it."""

    picture: Drawing
    shape: CardShape
    gpu_floor: float | None = None
    gpu_boxes: dict[str, int] = {}
    """Device -> the number of its box."""

    def put(self, place: DrawnPlace, x: float, y: float, from_y: float) -> float:
        """Draw a box with its left edge at `x` and its top at `y`; links come from `from_y`.

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
                low = max(low, self._unit(unit, at, top, start))
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
            whole = sum([self._height(card) for card in gpus]) + CARD_GAP * (len(gpus) - 1)
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


def _rows(place: DrawnPlace, shape: CardShape) -> list[list[_Unit]]:
    """Rows of units; rows with GPUs are last if links run down from them."""
    known = shape.divided.get(id(place))
    if known is None:
        known = shape.divided[id(place)] = (place, _divided(place, shape))
    return known[1]


def _divided(place: DrawnPlace, shape: CardShape) -> list[list[_Unit]]:
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


def _cards_unit(cards: Sequence[Card], shape: CardShape) -> _Unit:
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


WIDEST = 1200.0
MARGIN = 14.0
FRAME = 10.0
"""Distance from a socket's frame to its content."""
_SOCKET_GAP = 76.0
_NODE_GAP = 26.0
_COLUMNS = (184.0, 170.0, 158.0, 146.0, 136.0, 128.0, 123.0, 118.0, 112.0)
_GPUS_IN_A_ROW = 8
_ROOMY = 60
"""With more cards, fewer divisions are tried."""


class Widths(Frozen):
    """The widths of the parts of a drawing with this shape and so many sockets."""

    shape: CardShape
    sockets: int

    def domain(self, socket: Socket, domain: Domain) -> float:
        """The minimum width of a domain, by the approximate number of domains side by side."""
        beside = max(1, len(socket.domains)) * min(self.sockets, 4)
        least = 372.0 if beside <= 2 else 220.0 if beside <= 4 else max(self.shape.column, 124.0)
        return max(least, place_width(domain.place, self.shape) if domain.place else 0.0)

    def socket(self, socket: Socket) -> float:
        """The width of a socket with all attached devices."""
        widths = [self.domain(socket, domain) for domain in socket.domains]
        widths += [place_width(socket.place, self.shape)] if socket.place else []
        width = sum(widths) + GAP * max(0, len(widths) - 1)
        return max(width, 230.0) + 2 * FRAME if socket.title else max(width, self.shape.column)

    def row(self, row: Sequence[Socket]) -> float:
        """The width of a row of sockets."""
        return sum(map(self.socket, row)) + gap(row) * (len(row) - 1)


class Plan(Frozen):
    """One division. `tail` is drawn below the links between processors."""

    widths: Widths
    rows: tuple[tuple[Socket, ...], ...]
    can_join: bool
    """Whether links between processors can run down from each of them."""
    tail: tuple[Socket, ...] = ()

    @property
    def shape(self) -> CardShape:
        """The width of columns, and what they hold."""
        return self.widths.shape

    @property
    def number(self) -> int:
        """The number of sockets, without the tail."""
        return self.widths.sockets


def plans(scene: Scene, sockets: Sequence[Socket], tail: Sequence[Socket]) -> Iterator[Plan]:
    """The divisions to try; at least one."""
    cards = list(scene.cards())
    gpus = sum(card.kind == "gpu" for card in cards)
    gpu_rows = (min(3, -(-gpus // _GPUS_IN_A_ROW)) or 1) if scene.peers is not None else None
    is_roomy = len(cards) <= _ROOMY
    for per_row in (None, 6, 4, 3, 2, 1) if is_roomy else (None, 4, 2, 1):
        for per_column in (1, 2, 3, 4, 6, 9) if is_roomy else (2, 4, 9):
            is_last = per_row == 1 and per_column == 9
            fitting: list[Plan] = []
            for column in _COLUMNS:
                shape = CardShape(column, per_column, per_row, gpu_rows)
                plan = _plan(sockets, tail, shape, must=is_last and column == _COLUMNS[-1])
                fitting += [plan] if plan is not None else []
            if fitting:
                yield max(fitting, key=lambda plan: (plan.can_join, -len(plan.rows), plan.shape.column))


def cost(plan: Plan, picture: Drawing) -> float:
    """Lower is better: low pictures, wide columns, two sockets side by side, links that can be drawn."""
    cramped = max(0.0, 152.0 - plan.shape.column) * 3.0
    stacked = 400.0 * (len(plan.rows) - 1 if plan.number <= 2 else 0)
    unjoined = 500.0 if plan.shape.gpu_rows is not None and not plan.can_join else 0.0
    return picture.height + 0.05 * picture.width + cramped + stacked + unjoined


def gap(row: Sequence[Socket]) -> float:
    """Distance between sockets, with room for the text on the link between two."""
    assumed = any(domain.assumed for socket in row for domain in socket.domains)
    return _SOCKET_GAP if len(row) == 2 and not assumed else _NODE_GAP


def places(socket: Socket) -> list[DrawnPlace]:
    """The places of a socket."""
    return [*(domain.place for domain in socket.domains), socket.place]


def _plan(sockets: Sequence[Socket], tail: Sequence[Socket], shape: CardShape, *, must: bool) -> Plan | None:
    """The sockets in as few rows as possible; None if a socket is too wide, unless `must`."""
    room = WIDEST - 2 * MARGIN
    if (shape.gpu_rows or 1) > 1 and any(not socket.title for socket in sockets):
        room -= FRAME  # for the links beside the last column; frames have that room
    whole = [part for socket in sockets for part in _split(socket, Widths(shape, len(sockets)), room)]
    widths = Widths(shape, len(whole))
    if max(map(widths.socket, (*whole, *tail)), default=0.0) > room and not must:
        return None
    for number in range(1, len(whole) + 1):
        each = -(-len(whole) // number)
        rows = [tuple(whole[first : first + each]) for first in range(0, len(whole), each)]
        if number == len(whole) or all(widths.row(row) <= room for row in rows):
            fit = all(gpus_fit_one_row(place, shape) for socket in whole for place in places(socket))
            upper = [place for row in rows[:-1] for socket in row for place in places(socket)]
            fit = fit and not any(card.kind == "gpu" for place in upper for card in place.all_cards())
            return Plan(widths, tuple(rows), fit, tuple(tail))
    return Plan(widths, (), can_join=False)


def _split(socket: Socket, widths: Widths, room: float) -> list[Socket]:
    """A socket, divided into several frames if its nodes are too wide side by side."""
    own = place_width(socket.place, widths.shape) + GAP if socket.place else 0.0
    groups: list[list[Domain]] = []
    used = 0.0
    for domain in socket.domains:
        width = widths.domain(socket, domain) + GAP
        if not groups or used + width > room - 2 * FRAME:
            groups.append([])
            used = own if len(groups) == 1 else 0.0
        groups[-1].append(domain)
        used += width
    if len(groups) < 2:
        return [socket]
    first = replace(socket, domains=tuple(groups[0]))
    title = f"{socket.title}, continued" if socket.title else ""
    rest = [Socket(title, domains=tuple(group), hint=socket.hint, is_continued=True) for group in groups[1:]]
    return [first, *rest]
