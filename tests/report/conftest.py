"""What the tests of pages share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest
from report.headless_browser import find_browser

from seatrial.report.charts import renderer, vega


@pytest.fixture(scope="session")
def browser() -> str:
    """The path of a real browser."""
    return find_browser()


@pytest.fixture(scope="session", autouse=True)
def each_chart_drawn_once() -> Iterator[None]:
    """A chart of the same specification is drawn once for all pages that it stands on: drawing takes most of a page's
    time. What is made of the drawing, its ids, title and description, is made for each page."""
    original = renderer.draw

    @cache
    def drawn(text: str) -> str:
        return original(json.loads(text))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vega, "draw", lambda spec: drawn(json.dumps(spec)))
        yield
    renderer.close()
