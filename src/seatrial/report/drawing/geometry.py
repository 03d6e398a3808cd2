"""The elements of a layout: boxes with text, strokes between them, text beside strokes. Units are pixels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from seatrial.model.frozen import Frozen
from seatrial.report.drawing.labels import text_width, wrap
from seatrial.report.drawing.scene import Grade, Line, Tone

TITLE_SIZE, LINE_SIZE, LABEL_SIZE, HEAD_SIZE = 12.0, 11.0, 10.0, 16.0
_LEADING = 1.32
PAD = 6.0
"""Distance between the edge of a box and its text."""


class Text(Frozen):
    """A line of text; `x`, `y` are the start of its baseline (its middle if `anchor` is "middle")."""

    x: float
    y: float
    text: str
    size: float
    tone: Tone = Tone.PLAIN
    bold: bool = False
    anchor: str = "start"

    @property
    def width(self) -> float:
        """An upper bound of the width. Warnings are bold."""
        return text_width(self.text, self.size, bold=self.bold or self.tone.is_bold)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """(left, top, right, bottom)."""
        left = self.x - self.width / 2 if self.anchor == "middle" else self.x
        return left, self.y - 0.8 * self.size, left + self.width, self.y + 0.25 * self.size


class Box(Struct):
    """A rectangle. `kind` is its style, `inside` the number of the enclosing box, `hint` its description."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    hint: str = ""
    texts: tuple[Text, ...] = ()
    devices: tuple[str, ...] = ()
    inside: int | None = None
    is_frame: bool = False
    assumed: bool = False
    low: bool = False

    @property
    def right(self) -> float:
        """The x of its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """The y of its lower edge."""
        return self.y + self.height

    @property
    def middle(self) -> float:
        """The x of its middle."""
        return self.x + self.width / 2


class Stroke(Frozen):
    """A line through points, or a curve if `path` is given. `kind` is its style: pcie, peer, socket, rail."""

    points: tuple[tuple[float, float], ...]
    kind: str
    grade: Grade = Grade.PLAIN
    width: float = 1.5
    hint: str = ""
    path: str = ""
    assumed: bool = False


class Picture(Struct):
    """All elements with their positions."""

    width: float = 0.0
    height: float = 0.0
    boxes: list[Box] = []
    strokes: list[Stroke] = []
    labels: list[Text] = []

    @property
    def lowest(self) -> float:
        """The y of the lowest element."""
        ends = [y for stroke in self.strokes for _, y in stroke.points]
        return max([0.0, *ends, *(box.bottom for box in self.boxes), *(text.extent[3] for text in self.labels)])

    def add(self, box: Box) -> int:
        """Add a box. Returns its number."""
        self.boxes.append(box)
        return len(self.boxes) - 1

    def join(self, *points: tuple[float, float], kind: str = "pcie", grade: Grade = Grade.PLAIN, hint: str = "",
             width: float = 1.5, assumed: bool = False) -> None:  # fmt: skip
        """Draw a line through points."""
        self.strokes.append(Stroke(points, kind, grade, width, hint, assumed=assumed))


@lru_cache(maxsize=4096)
def set_text(title: str, lines: tuple[Line, ...], room: float) -> tuple[tuple[Text, ...], float]:
    """A bold title with lines below, from (0, 0) at the upper left: (texts, height)."""
    texts: list[Text] = []
    y = 0.0
    for piece in wrap(title, room, TITLE_SIZE, bold=True) if title else []:
        texts.append(Text(0.0, y + 0.95 * TITLE_SIZE, piece, TITLE_SIZE, bold=True))
        y += TITLE_SIZE * _LEADING
    for line in lines:
        for piece in wrap(line.text, room, LINE_SIZE, bold=line.tone.is_bold):
            texts.append(Text(0.0, y + 0.95 * LINE_SIZE, piece, LINE_SIZE, line.tone))
            y += LINE_SIZE * _LEADING
    return tuple(texts), y


def moved(texts: Sequence[Text], x: float, y: float) -> tuple[Text, ...]:
    """The texts, shifted."""
    return tuple(
        Text(text.x + x, text.y + y, text.text, text.size, text.tone, text.bold, text.anchor) for text in texts
    )


def label(x: float, y: float, text: str, tone: Tone = Tone.MUTED, anchor: str = "middle") -> Text:
    """One line beside a stroke."""
    return Text(x, y, text, LABEL_SIZE, tone, anchor=anchor)
