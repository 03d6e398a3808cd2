"""SVG that may stand in the page as it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Svg:
    """Text of an inline `<svg>` element whose parts were escaped, or allowed one by one, by whoever made it."""

    text: str

    def __html__(self) -> str:
        """What templates with autoescaping take instead of escaping the object."""
        return self.text
