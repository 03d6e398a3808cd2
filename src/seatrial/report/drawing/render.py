"""Picture -> SVG text. All text is cleaned and escaped here."""

from __future__ import annotations

from html import escape

from seatrial.report.drawing import style
from seatrial.report.drawing.geometry import LABEL_SIZE, Box, Picture, Stroke, Text
from seatrial.report.drawing.names import clean
from seatrial.report.drawing.scene import Grade, Tone

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
    rect = (
        f'<rect x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}" rx="{radius}"/>'
    )  # fmt: skip
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
    kinds = [stroke.kind]
    if stroke.grade is not Grade.PLAIN:
        kinds.append(stroke.grade.value)
    if stroke.assumed:
        kinds.append("assumed")
    title = f"<title>{_text(stroke.hint, _LONGEST_HINT)}</title>" if stroke.hint else ""
    if stroke.kind == "socket":  # a double line: the second stroke covers the middle of the first
        hollow = f'<path class="over" d="{path}" stroke-width="2"/>'
        return f'<g>{title}<path class="{" ".join(kinds)}" d="{path}" stroke-width="5"/>{hollow}</g>'
    drawn = f'<path class="{" ".join(kinds)}" d="{path}" stroke-width="{_n(stroke.width)}"'
    return f"{drawn}>{title}</path>" if title else f"{drawn}/>"


def _text(text: str, longest: int = 400) -> str:
    kept = "".join(character if character.isprintable() else " " for character in text[:longest])
    return escape(kept, quote=True)


def _n(value: float) -> str:
    """A number with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


__all__ = ["clean", "document", "fragment"]
