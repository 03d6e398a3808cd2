"""Pages of studies in a real browser: no errors, nothing wider than the window, no text cut, A4 on paper."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest
from analysis.made_up_fleets import Planted, fleet
from report.headless_browser import run
from report.study_samples import COMPARED, STUDIES
from report.test_page_browser import HARNESS, OVERPRINTED, PAPER, SCHEMES
from usual import usually

from seatrial.analysis.screening.screen import screen_cluster
from seatrial.report.pages.page import compare_page, page
from seatrial.report.screen.article import cluster_page

pytestmark = pytest.mark.real

CUT = (
    "<script>addEventListener('load', () => {const cut = [...document.querySelectorAll('svg[role=img]')].flatMap("
    "svg => {const box = svg.getBoundingClientRect(); return [...svg.querySelectorAll('text')].filter(text => "
    "{const at = text.getBoundingClientRect(); return at.width && (at.left < box.left - 1 || at.right > box.right + 1 "
    "|| at.top < box.top - 1 || at.bottom > box.bottom + 1)}).map(text => text.textContent)});"
    "document.title += ` cut=${cut.join('|')}`})</script></body>"
)
PAGES = {
    "many": lambda: compare_page([COMPARED["many"]()]),
    "unfair": lambda: compare_page([COMPARED["unfair"]()]),
    "hostile": lambda: compare_page([COMPARED["hostile"]()]),
    "whole": lambda: page([], None, [STUDIES["whole"]()]),
    "hostile study": lambda: page([], None, [STUDIES["hostile"]()]),
    "screen": lambda: cluster_page(screen_cluster(fleet(random.Random(1), 8, 4, Planted(quota={"n2": 0.8})))),
}


@cache
def page_named(name: str) -> str:
    return PAGES[name]()


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    usually(
        ((name, *look) for look in ((1280, "light"), (800, "light"), (520, "dark")) for name in PAGES),
        lambda case: case[1] == (800 if case[0] in ("unfair", "hostile", "screen") else 520),
    ),
)
def test_nothing_is_wider_than_the_window_and_nothing_fails(browser, tmp_path, name, width, scheme):
    file = tmp_path / "page.html"
    html = page_named(name).replace("</body>", HARNESS).replace("</body>", CUT).replace("</body>", OVERPRINTED)
    file.write_text(html, encoding="utf-8")
    done = run(browser, tmp_path, *SCHEMES[scheme], f"--window-size={width},900", "--dump-dom", file.as_uri())
    said = r"<title>scroll=(\d+) inner=(\d+) dark=\w+ paper=(.*?) wide=(.*?) cut=(.*?) overprinted=(.*?)</title>"
    title = re.search(said, done.stdout, re.DOTALL)
    assert title, done.stdout[:300] + done.stderr[-2000:]
    assert int(title[1]) <= int(title[2]), title[0]
    assert title[3] == PAPER[scheme] and title[4].strip() == "", title[0]
    assert title[5].strip() == "" and title[6].strip() == "", title[0]
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line and "chrome://" not in line] == []


@pytest.mark.parametrize("name", ["many", "whole"])
def test_it_prints_on_a4(browser, tmp_path, name):
    file, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(page_named(name), encoding="utf-8")
    done = run(browser, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", file.as_uri())
    assert paper.exists(), done.stderr[-2000:]
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper.read_bytes())
    assert 3 <= len(boxes) <= 14
    for width, height in boxes:
        assert abs(float(width) - 595.28) < 1 and abs(float(height) - 841.89) < 1
