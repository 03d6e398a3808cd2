"""What the tests of pages share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from report.headless_browser import find_browser


@pytest.fixture(scope="session")
def browser() -> str:
    """The path of a real browser."""
    return find_browser()


@pytest.fixture(scope="session", autouse=True)
def each_chart_drawn_once() -> Iterator[None]:
    """A chart of the same specification is drawn once for all pages that it stands on: drawing takes most of a page's
    time. What is made of the drawing, its ids, title and description, is made for each page."""
    import vl_convert

    draw = vl_convert.vegalite_to_svg

    @cache
    def drawn(text: str) -> str:
        return draw(json.loads(text))

    def vegalite_to_svg(spec: dict[str, Any]) -> str:
        return drawn(json.dumps(spec))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", vegalite_to_svg)
        yield
