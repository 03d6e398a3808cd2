"""Picture -> SVG text, and the same in words. All text is cleaned and escaped here.

A fragment uses the colour variables of its page; a document defines its own, with the palette of the page, for light
and dark screens and print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from seatrial.model.spelling import count
from seatrial.printable import printable
from seatrial.report.drawing.geometry import LABEL_SIZE, Box, Drawing, Stroke, Text, clean, text_width
from seatrial.report.drawing.scene import DrawnPlace, Grade, Peers, Scene, Tone
from seatrial.report.pages.view import style_sheet

_ONLY_ON_PAGES = frozenset({"faint", "series-6", "near", "mid", "far"})
"""Colours of the page that no drawing has."""
_COLOUR = re.compile(r"--([\w-]+): (#\w+);")
_FONT = re.compile(r"--sans: (.*);")


def _rules(name: str) -> str:
    """A style sheet of this folder, without the comment at its beginning."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8").partition("*/")[2].strip()


def rules(selector: str) -> str:
    """The style of one drawing; all rules are below `selector`, so they affect nothing else on a page."""
    (font,) = _FONT.findall(style_sheet())
    own = _rules("drawing.css").replace("svg ", f"{selector} ")
    return own.replace("var(--sans, sans-serif)", f"var(--sans, {font})")


def palette() -> str:
    """The variables of a separate document, which are those of the page: light, dark on dark screens, light on
    paper."""
    blocks = style_sheet().split(":root {")[1:3]
    colours = [_COLOUR.findall(block.partition("}")[0]) for block in blocks]
    light, dark = (
        " ".join(f"--{name}: {value};" for name, value in one if name not in _ONLY_ON_PAGES) for one in colours
    )
    on_dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    return f":root {{ color-scheme: light dark; {light} }}\n{on_dark}\n@media print {{ :root {{ {light} }} }}"


_SAMPLE = 30.0
_GRADES = {
    Grade.LOW: "link trained below its capability (idle devices reduce it)",
    Grade.GOOD: "measured, at least 90 % of the trained rate",
    Grade.FAIR: "measured, 75 to 90 %",
    Grade.POOR: "measured, below 75 %",
    Grade.UNMEASURED: "not measured",
}


def add_legend(picture: Drawing, scene: Scene, left: float, widest: float) -> None:
    """Add the legend at the bottom."""
    items = _items(picture, scene)
    if not items or all(stroke.kind == "pcie" and stroke.grade is Grade.PLAIN for stroke, _ in items):
        return
    y = picture.lowest + 26
    right = max([*(box.right for box in picture.boxes), 420.0])
    x = left
    for stroke, text in items:
        width = _SAMPLE + 8 + text_width(text, LABEL_SIZE)
        if x > left and x + width > min(widest - left, max(right, 420.0)):
            x, y = left, y + 18
        picture.strokes.append(
            Stroke(
                ((x, y - 3.5), (x + _SAMPLE, y - 3.5)), stroke.kind, stroke.grade, stroke.width, "", "", stroke.assumed
            )
        )
        picture.labels.append(Text(x + _SAMPLE + 8, y, text, LABEL_SIZE, Tone.MUTED))
        x += width + 22


def _items(picture: Drawing, scene: Scene) -> list[tuple[Stroke, str]]:
    used = {(stroke.kind, stroke.grade) for stroke in picture.strokes if stroke.kind != "rail"}
    items: list[tuple[Stroke, str]] = []
    if any(kind == "pcie" for kind, _ in used):
        items.append((Stroke((), "pcie"), "PCIe link, rate per direction"))
    for grade, text in _GRADES.items():
        if any(used_grade is grade for _, used_grade in used):
            items.append((Stroke((), "pcie", grade, 3.0 if grade in (Grade.GOOD, Grade.FAIR, Grade.POOR) else 1.5),
                          text))  # fmt: skip
    if scene.peers is not None and any(kind == "peer" for kind, _ in used):
        items.append((Stroke((), "peer", width=2.0), f"{scene.peers.name} between GPUs"))
    if scene.between is not None and any(kind == "socket" for kind, _ in used):
        items.append((Stroke((), "socket"), scene.between.name))
    if any(box.assumed for box in picture.boxes):
        items.append((Stroke((), "edge", assumed=True), "dashed: inferred, not reported directly"))
    return items


_LONGEST_HINT = 1200


def document(picture: Drawing, title: str, description: str, beside: str = "") -> str:
    """A complete SVG file with its own colours, light and dark, and a background. `beside` are further elements, for
    which the picture has room."""
    own = [palette(), rules("svg"), *([_rules("heat.css")] if beside else [])]
    head = f"<style>{escape(chr(10).join(own), quote=False)}</style>"
    ground = f'<rect class="ground" width="{_n(picture.width)}" height="{_n(picture.height)}"/>'
    size = f'width="{_n(picture.width)}" height="{_n(picture.height)}" '
    return f"{_opened(picture, size, 'drawing', title, description)}{head}{ground}{_drawn(picture)}{beside}</svg>\n"


def fragment(picture: Drawing, title: str, description: str, key: str) -> str:
    """An element for a page, coloured by its style variables. `key` makes its ids unique."""
    head = f"<style>{escape(rules(f'#{key}'), quote=False)}</style>"
    size = f'id="{key}" width="100%" style="max-width:{_n(picture.width)}px;height:auto" '
    return f"{_opened(picture, size, key, title, description)}{head}{_drawn(picture)}</svg>"


def _opened(picture: Drawing, size: str, key: str, title: str, description: str) -> str:
    box = f'viewBox="0 0 {_n(picture.width)} {_n(picture.height)}"'
    named = f'role="img" aria-labelledby="{key}-title" aria-describedby="{key}-desc"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}{box} {named}>'
        f'<title id="{key}-title">{_text(title)}</title><desc id="{key}-desc">{_text(description, 100_000)}</desc>'
    )


def _drawn(picture: Drawing) -> str:
    frames = "".join(_box(box) for box in picture.boxes if box.is_frame)
    strokes = "".join(_stroke(stroke) for stroke in picture.strokes)
    boxes = "".join(_box(box) for box in picture.boxes if not box.is_frame)
    labels = "".join(_label(text) for text in picture.labels)
    return f'{frames}<g class="lines">{strokes}</g>{boxes}<g class="labels">{labels}</g>'


def _box(box: Box) -> str:
    kinds = " ".join(filter(None, (box.kind, "assumed" if box.assumed else "", "low" if box.low else "")))
    title = f"<title>{_text(box.hint, _LONGEST_HINT)}</title>" if box.hint else ""
    radius = 6 if box.kind == "socket" else 1.5 if box.kind.startswith("slot") else 3
    rect = f'<rect x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}" rx="{radius}"/>'
    return f'<g class="{kinds}">{title}{rect}{"".join(_line_of_text(text) for text in box.texts)}</g>'


def _line_of_text(text: Text) -> str:
    kinds = " ".join(filter(None, ("bold" if text.bold else "", "" if text.tone is Tone.PLAIN else text.tone.value)))
    named = f' class="{kinds}"' if kinds else ""
    anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
    at = f'x="{_n(text.x)}" y="{_n(text.y)}" font-size="{_n(text.size)}"'
    return f"<text{named} {at}{anchor}>{_text(text.text)}</text>"


def _label(text: Text) -> str:
    """Text beside or on a line; small text gets a background, because a line may run behind it."""
    if text.size > LABEL_SIZE:
        return _line_of_text(text)
    left, top, right, bottom = text.extent
    size = f'width="{_n(right - left + 4)}" height="{_n(bottom - top)}"'
    return f'<g><rect class="ground" x="{_n(left - 2)}" y="{_n(top)}" {size}/>{_line_of_text(text)}</g>'


def _stroke(stroke: Stroke) -> str:
    points = stroke.points
    path = stroke.path or "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    grade = "" if stroke.grade is Grade.PLAIN else stroke.grade.value
    kinds = " ".join(filter(None, (stroke.kind, grade, "assumed" if stroke.assumed else "")))
    title = f"<title>{_text(stroke.hint, _LONGEST_HINT)}</title>" if stroke.hint else ""
    if stroke.kind == "socket":  # a double line: the second stroke covers the middle of the first
        hollow = f'<path class="over" d="{path}" stroke-width="2"/>'
        return f'<g>{title}<path class="{kinds}" d="{path}" stroke-width="5"/>{hollow}</g>'
    drawn = f'<path class="{kinds}" d="{path}" stroke-width="{_n(stroke.width)}"'
    return f"{drawn}>{title}</path>" if title else f"{drawn}/>"


def _text(text: str, longest: int = 400) -> str:
    return escape(printable(text[:longest], instead=" "), quote=True)


def _n(value: float) -> str:
    """A number with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


_MOST = 400


def describe(scene: Scene) -> str:
    """The whole drawing as sentences."""
    sentences: list[str] = [f"{scene.title}: {'; '.join(line.text for line in scene.lines) or 'no data'}."]
    for socket in scene.sockets:
        sentences += _sentence(socket.title, [line.text for line in socket.lines])
        if socket.modules is not None:
            sentences += _sentence("memory modules", [line.text for line in socket.modules.lines])
        for domain in socket.domains:
            sentences += _sentence(domain.title, [line.text for part in domain.parts for line in part.lines])
            sentences += _place(domain.place, domain.title or socket.title)
        sentences += _place(socket.place, socket.title)
    sentences += _place(scene.loose, "no known node")
    if scene.between is not None:
        sentences.append(f"{scene.between.hint}.")
    sentences += _peers(scene.peers)
    left = len(sentences) - _MOST
    return " ".join(sentences[:_MOST] + ([f"And {count(left, 'more statement')}."] if left > 0 else []))


def _sentence(what: str, words: list[str]) -> list[str]:
    text = ", ".join(words)
    return [f"{what}: {text}." if text else f"{what}."] if what or text else []


def _place(place: DrawnPlace, at: str) -> Iterator[str]:
    for card in place.cards:
        yield f"On {at}: {', '.join([card.title, *(line.text for line in (*card.lines, *card.rate.lines()))])}."
    for hub in place.hubs:
        yield f"On {at}: {', '.join([hub.title, *(line.text for line in hub.lines)])}."
        if hub.place is not None:
            yield from _place(hub.place, f"the {hub.title}")


def _peers(peers: Peers | None) -> list[str]:
    if peers is None:
        return []
    if peers.bank is not None:
        bank = peers.bank
        names = ", ".join(clean(name) for name, _ in bank.counts)
        return [f"{peers.name}: {bank.title}, {'; '.join(line.text for line in bank.lines)}, connected to {names}."]
    edges = []
    for edge in peers.edges:
        number = "" if edge.count is None else f" {count(edge.count, 'link')}"
        edges.append(f"{clean(edge.a)} to {clean(edge.b)}{number}{f' {edge.text}' if edge.text else ''}")
    return [f"{peers.name}: {', '.join(edges)}."]
