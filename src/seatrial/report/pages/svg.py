"""SVG that is safe to insert into a page."""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class Svg(Frozen):
    """An inline `<svg>` element. Its author has escaped all text in it. `is_picture`: not a sentence in its place."""

    text: str
    is_picture: bool = True

    def __html__(self) -> str:
        """The text for templates with autoescaping."""
        return self.text
