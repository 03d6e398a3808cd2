"""Scene -> picture: sockets side by side, attached devices below, links between processors at the bottom.

The drawing is at most `WIDEST` wide and grows downwards. `planning` offers several divisions; the cheapest is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from seatrial.report.drawing.geometry import (
    HEAD_SIZE,
    LABEL_SIZE,
    LINE_SIZE,
    PAD,
    Box,
    Drawing,
    Text,
    label,
    moved,
    set_text,
    text_width,
    wrap,
)
from seatrial.report.drawing.peer_layout import add_peers
from seatrial.report.drawing.place_layout import (
    DROP,
    FRAME,
    GAP,
    MARGIN,
    WIDEST,
    PlaceLayout,
    Plan,
    cost,
    gap,
    place_width,
    plans,
)
from seatrial.report.drawing.render import add_legend
from seatrial.report.drawing.scene import Area, Between, Domain, Modules, Note, Scene, Socket, Tone

_NARROWEST = 420.0
_PART_GAP = 6.0
_SLOT_WIDTH, _SLOT_HEIGHT = 11.0, 15.0


def lay_out(scene: Scene) -> Drawing:
    """The picture of a scene."""
    sockets = list(scene.sockets)
    tail: list[Socket] = []
    if scene.loose:
        text = "locality unknown"
        hint = f"{text}: no source reports which processor these are near"
        has_gpu = any(card.kind == "gpu" for card in scene.loose.all_cards())
        # Below the links between GPUs, which would otherwise have to pass it.
        end = tail if sockets and scene.peers is not None and not has_gpu else sockets
        end.append(Socket("", domains=(Domain(text, place=scene.loose, hint=hint, assumed=True),)))
    tried = [
        (cost(plan, _Drawer(scene, plan).draw()), number, plan)
        for number, plan in enumerate(plans(scene, sockets, tail))
    ]
    return _Drawer(scene, min(tried, key=lambda each: each[:2])[2]).draw()


class _Drawer(Struct):
    """Draws one plan: once to find the bottom of the lowest GPU, then again with all GPUs aligned there."""

    scene: Scene
    plan: Plan
    picture: Drawing = field(default_factory=Drawing)

    def draw(self) -> Drawing:
        """The whole picture."""
        places = self._pass(None)
        gpus = {device for card in self.scene.cards() if card.kind == "gpu" for device in card.devices}
        if self.scene.peers is not None and self.plan.can_join:
            floor = max((self.picture.boxes[n].bottom for d, n in places.gpu_boxes.items() if d in gpus), default=0.0)
            places = self._pass(floor)
        boxes = {device: number for device, number in places.gpu_boxes.items() if device in gpus}
        if self.scene.peers is not None:
            add_peers(self.picture, self.scene.peers, boxes, can_join=self.plan.can_join, left=MARGIN)
        if self.plan.tail:
            self._row(self.plan.tail, self.picture.lowest + 2 * DROP, PlaceLayout(self.picture, self.plan.shape))
        add_legend(self.picture, self.scene, MARGIN, WIDEST)
        right = max((box.right for box in self.picture.boxes), default=0.0)
        right = max([right, *(text.extent[2] for text in self.picture.labels)])
        self.picture.width = max(right + MARGIN, _NARROWEST)
        self.picture.height = self.picture.lowest + MARGIN
        return self.picture

    def _pass(self, floor: float | None) -> PlaceLayout:
        self.picture = Drawing()
        below = PlaceLayout(self.picture, self.plan.shape, floor)
        whole = max([*(self.plan.widths.row(row) for row in self.plan.rows), _NARROWEST - 2 * MARGIN])
        y = self._head(whole)
        with_bar = self.scene.between is not None and (self.plan.number > 2 or len(self.plan.rows) > 1)
        for number, row in enumerate(self.plan.rows):
            if with_bar and not all(socket.is_continued for socket in row):
                y = self._bar(row, y, whole, is_first=number == 0)
            y = self._row(row, y, below) + 2 * DROP
        return below

    def _head(self, room: float) -> float:
        y = MARGIN
        for piece in wrap(self.scene.title, room, HEAD_SIZE, bold=True):
            self.picture.labels.append(Text(MARGIN, y + 0.9 * HEAD_SIZE, piece, HEAD_SIZE, bold=True))
            y += 1.4 * HEAD_SIZE
        for line in self.scene.lines:
            for piece in wrap(line.text, room, LINE_SIZE, bold=line.tone.is_bold):
                self.picture.labels.append(Text(MARGIN, y + 0.9 * LINE_SIZE, piece, LINE_SIZE, line.tone))
                y += 1.4 * LINE_SIZE
        return y + 10.0

    def _bar(self, row: Sequence[Socket], y: float, whole: float, *, is_first: bool) -> float:
        """The inter-socket links of more than two sockets, as one bar: which sockets they connect is not reported."""
        between = self.scene.between
        if between is None:
            return y
        words = ", ".join((between.name, *between.lines[1:])) if is_first else between.name
        texts, height = set_text("", (Note(words, Tone.MUTED),), whole - 2 * PAD)
        box = Box(MARGIN, y, whole, height + 6.0, "bar", between.hint, moved(texts, MARGIN + PAD, y + 2.0))
        self.picture.add(box)
        x = MARGIN
        for socket in row:
            width = self.plan.widths.socket(socket)
            if not socket.is_continued and not any(domain.assumed for domain in socket.domains):
                middle = min(x + width / 2, box.right - 4)
                self.picture.join((middle, box.bottom), (middle, box.bottom + 12), kind="socket", hint=between.hint)
            x += width + gap(row)
        return box.bottom + 12

    def _row(self, row: Sequence[Socket], y: float, below: PlaceLayout) -> float:
        """Draw sockets side by side, attached devices with `below`. Returns the lowest y."""
        heads = max((_head_height(socket, self.plan.widths.socket(socket)) for socket in row), default=0.0)
        tallest = max((_domain_height(d, w) for socket in row for d, w in self._widths(socket)), default=0.0)
        x, low = MARGIN, y
        frames: list[Box] = []
        for socket in row:
            frame, bottom = self._socket(socket, x, y, heads, tallest, below)
            frames.append(frame)
            low = max(low, bottom)
            x = frame.right + gap(row)
        between = self.scene.between
        if between is not None and len(row) == 2 and self.plan.number == 2 and row is self.plan.rows[0]:
            self._between(frames[0], frames[1], between)
        return low

    def _widths(self, socket: Socket) -> list[tuple[Domain, float]]:
        """The domains of a socket with their widths."""
        own = [self.plan.widths.domain(socket, domain) for domain in socket.domains]
        room = self.plan.widths.socket(socket) - (2 * FRAME if socket.title else 0.0)
        room -= place_width(socket.place, self.plan.shape) + GAP if socket.place else 0.0
        spare = max(0.0, room - sum(own) - GAP * (len(own) - 1)) / max(1, len(own))
        return [(domain, width + spare) for domain, width in zip(socket.domains, own, strict=True)]

    def _between(self, left: Box, right: Box, between: Between) -> None:
        y = left.y + min(30.0, min(left.height, right.height) / 2)
        self.picture.join((left.right, y), (right.x, y), kind="socket", grade=between.grade, hint=between.hint)
        middle = (left.right + right.x) / 2
        room = right.x - left.right - 6
        for number, piece in enumerate(reversed(wrap(between.lines[0], room, LABEL_SIZE))):
            self.picture.labels.append(label(middle, y - 7 - 13 * number, piece))
        below = [piece for text in between.lines[1:3] for piece in wrap(text, room, LABEL_SIZE)]
        for number, piece in enumerate(below):
            self.picture.labels.append(label(middle, y + 16 + 13 * number, piece))

    def _socket(
        self, socket: Socket, x: float, y: float, head: float, tallest: float, below: PlaceLayout
    ) -> tuple[Box, float]:
        """Draw the frame with its domains, and the attached devices below. Returns (frame, lowest y)."""
        inset = FRAME if socket.title else 0.0
        width = self.plan.widths.socket(socket)
        frame = Box(x, y, width, 0.0, "socket", socket.hint, devices=socket.devices, is_frame=True)
        number = self.picture.add(frame) if socket.title else None
        at_x, at_y = x + inset, y
        if number is not None:
            _draw_head(self.picture, socket, frame, number)
            at_y = y + head
        frame.height = at_y - y + (tallest + inset if socket.domains or not socket.title else 0.0)
        low, top = frame.bottom, frame.bottom + DROP
        for domain, wide in self._widths(socket):
            box = self._domain(domain, at_x, at_y, wide, tallest, number)
            if domain.place:
                low = max(low, below.put(domain.place, at_x, top, box.bottom))
            at_x += wide + GAP
        if socket.place:
            start = frame.right - inset - place_width(socket.place, self.plan.shape)
            low = max(low, below.put(socket.place, start, top, frame.bottom))
        return frame, low

    def _domain(self, domain: Domain, x: float, y: float, width: float, height: float, inside: int | None) -> Box:
        texts, title_height = set_text(domain.title, (), width - 2 * PAD)
        box = Box(x, y, width, height, "domain", domain.hint, moved(texts, x + PAD, y + 0.6 * PAD), domain.devices,
                  inside, is_frame=True, assumed=domain.assumed)  # fmt: skip
        number = self.picture.add(box)
        at_x, at_y = x + PAD, y + title_height + 0.6 * PAD
        bottom = box.bottom - PAD
        across = _is_across(width)
        for part, each in zip(domain.parts, _part_widths(domain.parts, width), strict=True):
            lines, part_height = set_text("", part.lines, each - 2 * PAD)
            tall = bottom - at_y if across else part_height + 0.8 * PAD
            self.picture.add(
                Box(at_x, at_y, each, tall, part.kind, "", moved(lines, at_x + PAD, at_y + 0.4 * PAD), inside=number)
            )
            at_x, at_y = (at_x + each + _PART_GAP, at_y) if across else (at_x, at_y + tall + 4.0)
        return box


def _domain_height(domain: Domain, width: float) -> float:
    _, height = set_text(domain.title, (), width - 2 * PAD)
    return height + 1.2 * PAD + _parts_height(domain.parts, width)


def _is_across(width: float) -> bool:
    return width >= 300.0


def _part_widths(parts: Sequence[Area], width: float) -> list[float]:
    """The widths of a domain's parts: side by side, each as wide as its text if that fits."""
    room = width - 2 * PAD
    if not _is_across(width) or not parts:
        return [room] * len(parts)
    room -= _PART_GAP * (len(parts) - 1)
    needed = [max((text_width(line.text, LINE_SIZE) for line in part.lines), default=0.0) + 2 * PAD for part in parts]
    spare = (room - sum(needed)) / len(parts)
    return [need + spare for need in needed] if spare >= 0 else [room / len(parts)] * len(parts)


def _parts_height(parts: Sequence[Area], width: float) -> float:
    """The height of a domain's parts."""
    if not parts:
        return 0.0
    widths = _part_widths(parts, width)
    heights = [set_text("", part.lines, each - 2 * PAD)[1] + 0.8 * PAD
               for part, each in zip(parts, widths, strict=True)]  # fmt: skip
    return max(heights) + PAD * 0.6 if _is_across(width) else sum(heights) + 4.0 * (len(parts) - 1) + PAD * 0.6


def _head_height(socket: Socket, width: float) -> float:
    """The height of the upper part of a socket's frame: name, model, memory modules; 0 for a bare node."""
    if not socket.title:
        return 0.0
    _, text = set_text(socket.title, socket.lines, width - 2 * FRAME)
    modules = 0.0 if socket.modules is None else _module_texts(socket.modules, width - 2 * FRAME)[2] + 3.0
    return text + PAD + modules + 6.0


def _draw_head(picture: Drawing, socket: Socket, frame: Box, number: int) -> None:
    """Draw it into its frame: of the memory a small rectangle for each channel or module, hollow if empty."""
    x, room = frame.x + FRAME, frame.width - 2 * FRAME
    texts, height = set_text(socket.title, socket.lines, room)
    frame.texts = moved(texts, x, frame.y + PAD)
    if socket.modules is None:
        return
    texts, pitch, modules_height = _module_texts(socket.modules, room)
    box = Box(x, frame.y + PAD + height + 3.0, room, modules_height, "memory", "memory modules", inside=number)
    box.texts = moved(texts, x + PAD, box.y + 0.6 * PAD)
    inside = picture.add(box)
    for position, slot in enumerate(socket.modules.slots):
        kind = "slot" if slot.filled else "slot-empty"
        left = x + PAD + position * pitch
        picture.add(Box(left, box.y + PAD, pitch - 3.0, _SLOT_HEIGHT, kind, slot.hint, inside=inside))


def _module_texts(modules: Modules, room: float) -> tuple[tuple[Text, ...], float, float]:
    """(texts, pitch of the slots, height): the texts are beside the slots if there is room, else below."""
    inner = room - 2 * PAD
    pitch = min(_SLOT_WIDTH + 4.0, inner / max(1, len(modules.slots)))
    beside = len(modules.slots) * pitch + 2 * PAD if modules.slots else 0.0
    texts, height = set_text("", modules.lines, inner)
    if beside + max((text.width for text in texts), default=0.0) <= inner:
        down = max(0.0, (_SLOT_HEIGHT + 0.8 * PAD - height) / 2)
        return moved(texts, beside, down), pitch, max(height, _SLOT_HEIGHT) + 1.4 * PAD
    return moved(texts, 0.0, _SLOT_HEIGHT + 6.0), pitch, _SLOT_HEIGHT + 6.0 + height + 1.2 * PAD
