"""Picture -> SVG text, and the same in words. All text is cleaned and escaped here."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from seatrial.model.spelling import count
from seatrial.report.drawing import style
from seatrial.report.drawing.geometry import LABEL_SIZE, Box, Picture, Stroke, Text
from seatrial.report.drawing.labels import clean
from seatrial.report.drawing.scene import Grade, Peers, Place, Scene, Tone

_LONGEST_HINT = 1200


def document(picture: Picture, title: str, description: str, beside: str = "") -> str:
    """A complete SVG file with its own colours, light and dark, and a background. `beside` are further elements, for
    which the picture has room."""
    own = [style.palette(), style.rules("svg"), *([style.heat_rules()] if beside else [])]
    head = f"<style>{escape(chr(10).join(own), quote=False)}</style>"
    ground = f'<rect class="ground" width="{_n(picture.width)}" height="{_n(picture.height)}"/>'
    size = f'width="{_n(picture.width)}" height="{_n(picture.height)}" '
    return f"{_opened(picture, size, 'drawing', title, description)}{head}{ground}{_drawn(picture)}{beside}</svg>\n"


def fragment(picture: Picture, title: str, description: str, key: str) -> str:
    """An element for a page, coloured by its style variables. `key` makes its ids unique."""
    head = f"<style>{escape(style.rules(f'#{key}'), quote=False)}</style>"
    size = f'id="{key}" width="100%" style="max-width:{_n(picture.width)}px;height:auto" '
    return f"{_opened(picture, size, key, title, description)}{head}{_drawn(picture)}</svg>"


def _opened(picture: Picture, size: str, key: str, title: str, description: str) -> str:
    box = f'viewBox="0 0 {_n(picture.width)} {_n(picture.height)}"'
    named = f'role="img" aria-labelledby="{key}-title" aria-describedby="{key}-desc"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}{box} {named}>'
        f'<title id="{key}-title">{_text(title)}</title><desc id="{key}-desc">{_text(description, 100_000)}</desc>'
    )


def _drawn(picture: Picture) -> str:
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
    kept = "".join(character if character.isprintable() else " " for character in text[:longest])
    return escape(kept, quote=True)


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


def _place(place: Place, at: str) -> Iterator[str]:
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
