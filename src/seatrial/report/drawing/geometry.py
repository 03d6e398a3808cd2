"""The elements of a layout: boxes with text, strokes between them, text beside strokes, and the width of letters.

Units are pixels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from seatrial.model.frozen import Frozen
from seatrial.printable import printable
from seatrial.report.drawing.scene import Grade, Note, Tone

_REGULAR = (
    "32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 53 "
    "100 68 69 70 77 63 58 77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 84 50 "
    "50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 82 59 59 52 64 34 64 84"
)
_BOLD = (
    "35 46 52 84 70 100 87 31 46 46 52 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 58 "
    "100 77 76 73 83 68 68 82 84 37 37 77 64 100 84 85 73 85 77 72 68 81 77 110 77 72 73 46 37 46 84 50 "
    "50 67 72 59 72 68 44 72 71 34 34 67 34 104 71 69 72 72 49 60 48 71 65 92 65 65 58 71 37 71 84"
)
_FIRST = 32
_OTHERS = {
    "\N{MIDDLE DOT}": 38,
    "\N{MULTIPLICATION SIGN}": 84,
    "\N{EN DASH}": 50,
    "\N{MICRO SIGN}": 74,
    "\N{NO-BREAK SPACE}": 35,
}
_TABLES = {False: [int(w) / 100 for w in _REGULAR.split()], True: [int(w) / 100 for w in _BOLD.split()]}
_BREAKS = re.compile(r"[^ ,_-]*[ ,_-]?")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_QUANTITY = re.compile(r"(?<=[0-9]) (?=[kMGTP]?i?B\b|MT/s)")


@lru_cache(maxsize=1 << 14)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width in the unit of `size`, at least that of a browser."""
    table = _TABLES[bold]
    ems = 0.0
    for character in text:
        place = ord(character) - _FIRST
        ems += table[place] if 0 <= place < len(table) else _OTHERS.get(character, 100) / 100
    return ems * size


def wrap(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """`text` in lines no wider than `room`, whole: a word that is wider is divided. A number is not separated from its
    unit."""
    wrapped: list[str] = []
    current = ""
    for piece in _BREAKS.findall(_QUANTITY.sub(_NO_BREAK, text)):
        if current and text_width((current + piece).rstrip(), size, bold=bold) > room:
            wrapped.append(current)
            current = ""
        *full, current = _divided(current + piece, room, size, bold=bold)
        wrapped += full
    return [line for each in (*wrapped, current) if (line := each.rstrip().replace(_NO_BREAK, " "))]


def _divided(word: str, room: float, size: float, *, bold: bool) -> list[str]:
    """A word in pieces no wider than `room`, of one character at least."""
    if text_width(word.rstrip(), size, bold=bold) <= room:
        return [word]
    pieces: list[str] = []
    start, width = 0, 0.0
    for place, character in enumerate(word):
        wide = text_width(character, size, bold=bold)
        if place > start and width + wide > room:
            pieces.append(word[start:place])
            start, width = place, 0.0
        width += wide
    return [*pieces, word[start:]]


_LONGEST = 200
_NOISE = re.compile(
    r"\((?:R|TM|C|r|tm)\)|[®™]|\b(?:Corporation|Corp\.|Inc\.|Co\., Ltd|Technologies|CPU|Processor)(?=\s|,|$)"
)
_CLOCK = re.compile(r"@ ?[0-9.]{1,8} ?GHz")
_CORES = re.compile(r"\b[0-9]{1,4}-Core\b")
_BRACKET = re.compile(r"\[([^\[\]]{3,60})\]\s*$")
_VENDORS = ("NVIDIA ", "Tesla ", "AMD Instinct ", "Advanced Micro Devices, ", "Mellanox ", "Broadcom ")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})$")


def clean(text: str, longest: int = _LONGEST) -> str:
    """`text` on one line without unprintable characters, cut to a length that a box can show."""
    return " ".join(printable(text[:longest], instead=" ").split())


def model_name(name: str) -> str:
    """A product's name without trade marks, clock and vendor: "Xeon Platinum 8174" keeps "Intel", "A100-SXM4-80GB"."""
    text = clean(name)
    bracket = _BRACKET.search(text)
    if bracket is not None:
        text = bracket[1]
    text = _CORES.sub("", _CLOCK.sub("", _NOISE.sub("", text)))
    for vendor in _VENDORS:
        text = text.removeprefix(vendor)
    return " ".join(text.split()).strip(" ,") or clean(name)


def several(names: Sequence[str]) -> str:
    """As "a", "a, b", "eth0 to eth7" if they are consecutive, else "a, b and 5 more"."""
    spelled = [clean(name) for name in names]
    if len(spelled) <= 2:
        return ", ".join(spelled)
    return _run(spelled) or f"{spelled[0]}, {spelled[1]} and {len(spelled) - 2} more"


def runs(names: Sequence[str]) -> str:
    """All names in their order, consecutive ones as a run: "GPU0 to GPU6, GPU8"."""
    groups: list[list[str]] = []
    for name in map(clean, names):
        if groups and _run([groups[-1][-1], name]) is not None:
            groups[-1].append(name)
        else:
            groups.append([name])
    return ", ".join(f"{group[0]} to {group[-1]}" if len(group) > 2 else ", ".join(group) for group in groups)


def _run(names: Sequence[str]) -> str | None:
    matches = [_NUMBERED.match(name) for name in names]
    parts = [(match[1], int(match[2])) for match in matches if match is not None]
    if len(parts) != len(names) or len({stem for stem, _ in parts}) != 1:
        return None
    numbers = [number for _, number in parts]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    return f"{names[0]} to {names[-1]}"


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


class Drawing(Struct):
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
def set_text(title: str, lines: tuple[Note, ...], room: float) -> tuple[tuple[Text, ...], float]:
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
