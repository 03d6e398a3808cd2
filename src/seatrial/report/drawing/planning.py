"""The division of a drawing: sockets per row, column width, cards per column.

All divisions that fit are offered; the layout draws each and keeps the cheapest. Of the column widths with the fewest
rows, only the widest is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.report.drawing.geometry import Picture
from seatrial.report.drawing.place_layout import GAP, Shape, gpus_fit_one_row, place_width
from seatrial.report.drawing.scene import Domain, Place, Scene, Socket

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


class Plan(Frozen):
    """One division. `tail` is drawn below the links between processors."""

    shape: Shape
    rows: tuple[tuple[Socket, ...], ...]
    can_join: bool
    """Whether links between processors can run down from each of them."""
    tail: tuple[Socket, ...] = ()

    @property
    def number(self) -> int:
        """The number of sockets, without the tail."""
        return sum(len(row) for row in self.rows)

    def width(self, socket: Socket) -> float:
        """The width of a socket with all attached devices."""
        return _socket_width(socket, self.shape, self.number)

    def domain_width(self, socket: Socket, domain: Domain) -> float:
        """The minimum width of a domain."""
        return _domain_width(domain, self.shape, _count(socket, self.number))

    def row_width(self, row: Sequence[Socket]) -> float:
        """The width of a row of sockets."""
        return _row_width(row, self.shape, self.number)


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
                shape = Shape(column, per_column, per_row, gpu_rows)
                plan = _plan(sockets, tail, shape, must=is_last and column == _COLUMNS[-1])
                fitting += [plan] if plan is not None else []
            if fitting:
                yield max(fitting, key=lambda plan: (plan.can_join, -len(plan.rows), plan.shape.column))


def cost(plan: Plan, picture: Picture) -> float:
    """Lower is better: low pictures, wide columns, two sockets side by side, links that can be drawn."""
    cramped = max(0.0, 152.0 - plan.shape.column) * 3.0
    stacked = 400.0 * (len(plan.rows) - 1 if plan.number <= 2 else 0)
    unjoined = 500.0 if plan.shape.gpu_rows is not None and not plan.can_join else 0.0
    return picture.height + 0.05 * picture.width + cramped + stacked + unjoined


def gap(row: Sequence[Socket]) -> float:
    """Distance between sockets, with room for the text on the link between two."""
    assumed = any(domain.assumed for socket in row for domain in socket.domains)
    return _SOCKET_GAP if len(row) == 2 and not assumed else _NODE_GAP


def places(socket: Socket) -> list[Place]:
    """The places of a socket."""
    return [*(domain.place for domain in socket.domains), socket.place]


def _plan(sockets: Sequence[Socket], tail: Sequence[Socket], shape: Shape, *, must: bool) -> Plan | None:
    """The sockets in as few rows as possible; None if a socket is too wide, unless `must`."""
    room = WIDEST - 2 * MARGIN
    if (shape.gpu_rows or 1) > 1 and any(not socket.title for socket in sockets):
        room -= FRAME  # for the links beside the last column; frames have that room
    whole = [part for socket in sockets for part in _split(socket, shape, len(sockets), room)]
    widths = [_socket_width(socket, shape, len(whole)) for socket in (*whole, *tail)]
    if widths and max(widths) > room and not must:
        return None
    for number in range(1, len(whole) + 1):
        each = -(-len(whole) // number)
        rows = [tuple(whole[first : first + each]) for first in range(0, len(whole), each)]
        if number == len(whole) or all(_row_width(row, shape, len(whole)) <= room for row in rows):
            fit = all(gpus_fit_one_row(place, shape) for socket in whole for place in places(socket))
            upper = [place for row in rows[:-1] for socket in row for place in places(socket)]
            fit = fit and not any(card.kind == "gpu" for place in upper for card in place.all_cards())
            return Plan(shape, tuple(rows), fit, tuple(tail))
    return Plan(shape, (), can_join=False)


def _split(socket: Socket, shape: Shape, all_sockets: int, room: float) -> list[Socket]:
    """A socket, divided into several frames if its nodes are too wide side by side."""
    own = place_width(socket.place, shape) + GAP if socket.place else 0.0
    groups: list[list[Domain]] = []
    used = 0.0
    for domain in socket.domains:
        width = _domain_width(domain, shape, _count(socket, all_sockets)) + GAP
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


def _count(socket: Socket, all_sockets: int) -> int:
    """The approximate number of domains side by side."""
    return max(1, len(socket.domains)) * min(all_sockets, 4)


def _domain_width(domain: Domain, shape: Shape, all_domains: int) -> float:
    least = 372.0 if all_domains <= 2 else 220.0 if all_domains <= 4 else max(shape.column, 124.0)
    return max(least, place_width(domain.place, shape) if domain.place else 0.0)


def _socket_width(socket: Socket, shape: Shape, all_sockets: int) -> float:
    count = _count(socket, all_sockets)
    widths = [_domain_width(domain, shape, count) for domain in socket.domains]
    widths += [place_width(socket.place, shape)] if socket.place else []
    width = sum(widths) + GAP * max(0, len(widths) - 1)
    return max(width, 230.0) + 2 * FRAME if socket.title else max(width, shape.column)


def _row_width(row: Sequence[Socket], shape: Shape, all_sockets: int) -> float:
    return sum(_socket_width(socket, shape, all_sockets) for socket in row) + gap(row) * (len(row) - 1)
