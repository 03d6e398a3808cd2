"""Links between processors at the bottom of a drawing: lines to a bank of switches, or arcs between processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.analysis.grouped import grouped
from seatrial.report.drawing.geometry import (
    LABEL_SIZE,
    PAD,
    Box,
    Drawing,
    Stroke,
    Text,
    clean,
    label,
    moved,
    runs,
    set_text,
    text_width,
    wrap,
)
from seatrial.report.drawing.scene import Bank, Grade, Note, PeerEdge, Peers, Tone

PEER_DROP = 34.0
_LEVEL = 17.0
_SQUARE = 16.0
_CHIP_WIDTH, _CHIP_HEIGHT = 92.0, 24.0
_BEND = 4 / 3
"""A cubic curve with control points at this multiple of a depth has its vertex at the depth."""


def add_peers(picture: Drawing, peers: Peers, gpus: Mapping[str, int], *, can_join: bool, left: float) -> None:
    """Draw the links below everything else. `gpus`: GPU -> the number of its box."""
    low = max((box.bottom for box in picture.boxes), default=0.0)
    if peers.bank is not None:
        _add_bank(picture, peers.bank, gpus, low, can_join=can_join, left=left)
        return
    order = sorted({gpus[end] for edge in peers.edges for end in (edge.a, edge.b) if end in gpus},
                   key=lambda n: (picture.boxes[n].x, picture.boxes[n].y))  # fmt: skip
    apart = len({picture.boxes[n].x for n in order}) == len(order)
    alone = all(len(picture.boxes[n].devices) == 1 for n in order)
    if can_join and apart and alone and order:
        floor = max(low, *(picture.boxes[n].bottom for n in order)) if order else low
        nodes = {picture.boxes[n].devices[0]: picture.boxes[n] for n in order}
        for box in nodes.values():
            if floor - box.bottom > 1:
                picture.join((box.middle, box.bottom), (box.middle, floor), kind="peer")
    else:
        nodes = _chips(picture, peers, low + PEER_DROP, left)
        floor = max((box.bottom for box in nodes.values()), default=low)
    _add_arcs(picture, peers, nodes, floor)


def _add_bank(
    picture: Drawing, bank: Bank, gpus: Mapping[str, int], low: float, *, can_join: bool, left: float
) -> None:
    ends = [(gpus[name], text) for name, text in bank.counts if name in gpus]
    lines = bank.lines
    if not can_join:
        lines += (Note(f"connected to {len(bank.counts)} GPUs: {runs([name for name, _ in bank.counts])}"),)
    boxes = [picture.boxes[number] for number, _ in ends]
    first = min((box.x for box in boxes), default=left)
    last = max((box.right for box in boxes), default=left)
    is_stacked = len({box.x for box in boxes}) < len(boxes)
    width = max(last - first + (9.0 if is_stacked else 0.0) if can_join else 0.0, 330.0)
    texts, height = set_text(bank.title, lines, width - 2 * PAD)
    squares = _SQUARE + 6.0 if bank.switches > 1 else 0.0
    box = Box(first if can_join else left, low + PEER_DROP, width, height + squares + 1.6 * PAD, "bank", bank.hint,
              devices=bank.devices, assumed=bank.assumed)  # fmt: skip
    box.texts = moved(texts, box.x + PAD, box.y + 0.7 * PAD + squares)
    inside = picture.add(box)
    number = min(bank.switches, 32) if squares else 0
    pitch = (width - 2 * PAD) / max(1, number)
    for n in range(number):
        hint = clean(bank.devices[n]) if n < len(bank.devices) else ""
        wide = min(pitch - 4.0, 84.0)
        chip = Box(box.x + PAD + (n + 0.5) * pitch - wide / 2, box.y + PAD, wide, _SQUARE, "chip", hint, inside=inside)
        if hint and text_width(hint, LABEL_SIZE) <= wide - 6.0:
            chip.texts = (Text(chip.middle, chip.y + 11.0, hint, LABEL_SIZE, anchor="middle"),)
        picture.add(chip)
    if can_join:
        _join_bank(picture, box, ends, assumed=bank.assumed)


def _join_bank(picture: Drawing, bank: Box, ends: Sequence[tuple[int, str]], *, assumed: bool) -> None:
    """A line from each GPU: from the bottom of the lowest one of a column, beside it from those above."""
    columns = grouped((picture.boxes[number].x, (number, text)) for number, text in dict(ends).items())
    labels = {text for _, text in ends}
    for column in columns.values():
        column.sort(key=lambda end: -picture.boxes[end[0]].y)
        is_free = _is_free_below(picture, picture.boxes[column[0][0]], bank.y)
        for place, (number, text) in enumerate(column, start=0 if is_free else 1):
            box = picture.boxes[number]
            x = box.middle if place == 0 else box.right + 3.5 * place
            points = [(x, box.bottom), (x, bank.y)] if place == 0 else [
                (box.right, box.y + box.height / 2), (x, box.y + box.height / 2), (x, bank.y)]  # fmt: skip
            hint = f"{', '.join(box.devices)} to {bank.hint}" + (f", {text}" if text else "")
            picture.join(*points, kind="peer", width=2.0, hint=hint, assumed=assumed)
            if text and len(labels) > 1 and len(column) == 1:
                picture.labels.append(label(x + 5, bank.y - 10, text, anchor="start"))


def _is_free_below(picture: Drawing, box: Box, bottom: float) -> bool:
    """Whether a line can run down from the middle of a box."""
    return not any(
        other.x < box.middle < other.right and box.bottom <= other.y < bottom
        for other in picture.boxes
        if not other.is_frame
    )


def _chips(picture: Drawing, peers: Peers, y: float, left: float) -> dict[str, Box]:
    """The processors again, in a row, if they are too far apart to be connected directly."""
    names = list(dict.fromkeys(end for edge in peers.edges for end in (edge.a, edge.b)))
    picture.labels.append(Text(left, y, f"{peers.name} between GPUs", 12.0, bold=True))
    right = max((box.right for box in picture.boxes), default=left + 400)
    pitch = max(min((right - left) / max(1, len(names)), 140.0), _CHIP_WIDTH * 0.66)
    width = min(_CHIP_WIDTH, pitch - 6.0)
    lines = {name: wrap(clean(name), width - 8.0, 11.0) for name in names}
    height = _CHIP_HEIGHT + 14.0 * (max(map(len, lines.values()), default=1) - 1)
    nodes: dict[str, Box] = {}
    for place, name in enumerate(names):
        box = Box(left + place * pitch, y + 12.0, width, height, "chip", clean(name))
        box.texts = tuple(
            Text(box.middle, box.y + 16.0 + 14.0 * number, text, 11.0, anchor="middle")
            for number, text in enumerate(lines[name])
        )
        picture.add(box)
        nodes[name] = box
    return nodes


def _add_arcs(picture: Drawing, peers: Peers, nodes: Mapping[str, Box], floor: float) -> None:
    """An arc for each edge; longer arcs are deeper, so that no two vertices coincide."""
    order = {name: place for place, name in enumerate(nodes)}
    edges = [edge for edge in peers.edges if edge.a in order and edge.b in order]
    spans = sorted({abs(order[e.a] - order[e.b]) for e in edges})
    same = peers.note != ""
    starts = _starts(edges, nodes, order)
    for name, box in nodes.items():  # a foot, where a line leads down from the box to the arcs
        ends = [x for (here, _), x in starts.items() if here == name]
        if floor - box.bottom > 1 and len(ends) > 1:
            picture.join((min(ends), floor), (max(ends), floor), kind="peer")
    deepest = floor
    for edge in sorted(edges, key=lambda e: -abs(order[e.a] - order[e.b])):
        depth = 20.0 + _LEVEL * spans.index(abs(order[edge.a] - order[edge.b]))
        x1, x2 = starts[edge.a, edge.b], starts[edge.b, edge.a]
        bend = floor + depth * _BEND
        path = f"M{x1:.1f} {floor:.1f}C{x1:.1f} {bend:.1f} {x2:.1f} {bend:.1f} {x2:.1f} {floor:.1f}"
        number = "" if edge.count is None else f"{edge.count} link{'s' if edge.count != 1 else ''}"
        details = ", ".join(part for part in (number, edge.text) if part)
        width = 1.4 + 1.2 * (min(edge.count or 1, 5) - 1 if not same else 0)
        hint = f"{clean(edge.a)} to {clean(edge.b)}: {peers.name}" + (f", {details}" if details else "")
        vertex = ((x1 + x2) / 2, floor + depth)
        picture.strokes.append(Stroke(((x1, floor), vertex, (x2, floor)), "peer", edge.grade, width, hint, path))
        is_plain = edge.grade in (Grade.PLAIN, Grade.UNMEASURED)
        shown = details if not is_plain else "" if same else number
        if shown:
            tone = {Grade.LOW: Tone.WARNING, Grade.POOR: Tone.ALARM}.get(edge.grade, Tone.PLAIN)
            picture.labels.append(label((x1 + x2) / 2, floor + depth + 3.5, shown, tone))
        deepest = max(deepest, floor + depth)
    if peers.note:
        first = min((box.x for box in nodes.values()), default=0.0)
        picture.labels.append(label(first, deepest + 18.0, peers.note, anchor="start"))


def _starts(
    edges: Sequence[PeerEdge], nodes: Mapping[str, Box], order: Mapping[str, int]
) -> dict[tuple[str, str], float]:
    """(processor, partner) -> x where their arc starts, spread along the bottom edge so that arcs do not cross
    there."""
    partners: dict[str, list[str]] = {name: [] for name in nodes}
    for edge in edges:
        partners[edge.a].append(edge.b)
        partners[edge.b].append(edge.a)
    starts: dict[tuple[str, str], float] = {}
    for name, others in partners.items():
        here = order[name]
        leftward = sorted((o for o in others if order[o] < here), key=lambda o: here - order[o])
        rightward = sorted((o for o in others if order[o] > here), key=lambda o: here - order[o])
        box = nodes[name]
        ordered = [*leftward, *rightward]
        step = 0.7 * box.width / max(1, len(ordered))
        for place, other in enumerate(ordered):
            starts[name, other] = box.middle + (place - (len(ordered) - 1) / 2) * min(step, 14.0)
    return starts
