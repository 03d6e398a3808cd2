"""The page in a real browser: no errors, nothing wider than the window, A4 on paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import product

import pytest
from report.headless_browser import run
from report.page_samples import hostile_trial, server_trial, vm_trial
from report.page_samples_node import gpu_trial
from usual import usually, usually_first

from seatrial.model.study.result import Trial
from seatrial.report.pages.page import page

pytestmark = pytest.mark.real

SCHEMES = {"light": ["--blink-settings=preferredColorScheme=1"], "dark": ["--blink-settings=preferredColorScheme=0"]}
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
HARNESS = (
    "<script>addEventListener('load', () => {const wide = [...document.querySelectorAll('body *')].filter("
    "e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, svg, .quiet, .skip'));"
    "document.title = `scroll=${document.documentElement.scrollWidth} inner=${innerWidth} "
    "dark=${matchMedia('(prefers-color-scheme: dark)').matches} "
    "paper=${getComputedStyle(document.body).backgroundColor} "
    "wide=${wide.map(e => e.tagName + '.' + e.className).join(' ')}`})</script></body>"
)
OVERPRINTED = """<script>addEventListener('load', () => {
  const lines = [], found = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode());) {
    const owner = text.parentElement;
    const isTurned = owner.getAttribute('transform')?.includes('rotate');
    const isHidden = owner.closest('.quiet, .skip, script, title, desc') || !owner.checkVisibility();
    if (isTurned || isHidden || !text.data.trim()) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) lines.push([box, text.data.trim()]);
  }
  lines.sort((one, other) => one[0].top - other[0].top);
  lines.forEach(([a, said], n) => {
    for (let k = n + 1; k < lines.length && lines[k][0].top < a.bottom; k++) {
      const [b, other] = lines[k];
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      const isHalo = said === other;
      if (!isHalo && width > 2 && height > 0.45 * Math.min(a.height, b.height)) found.push(said + ' / ' + other);
    }
  });
  document.title += ` overprinted=${found.slice(0, 4).join(' | ')}`;
})</script></body>"""
"""Adds to the title which texts are on top of each other."""


FEW = [
    (vm_trial, 800, "dark"),
    (server_trial, 1280, "light"),
    (hostile_trial, 520, "light"),
    (gpu_trial, 800, "light"),
    (gpu_trial, 520, "dark"),
]
"""Every page, width and scheme; the largest page in both."""


@cache
def page_of(trial: Callable[[], Trial], place: str | None) -> str:
    return page([trial()], place)


@pytest.mark.parametrize(
    ("trial", "width", "scheme"),
    usually(
        product([vm_trial, server_trial, hostile_trial, gpu_trial], [1280, 800, 520], SCHEMES), lambda case: case in FEW
    ),
)
def test_nothing_is_wider_than_the_window_and_nothing_fails(browser, tmp_path, trial, width, scheme):
    file = tmp_path / "page.html"
    file.write_text(
        page_of(trial, "../results").replace("</body>", HARNESS).replace("</body>", OVERPRINTED), encoding="utf-8"
    )
    settings = SCHEMES[scheme]
    done = run(browser, tmp_path, *settings, f"--window-size={width},900", "--dump-dom", file.as_uri())
    title = re.search(
        r"<title>(scroll=(\d+) inner=(\d+) dark=(\w+) paper=(.*?) wide=(.*?) overprinted=(.*?))</title>",
        done.stdout,
        re.DOTALL,
    )
    assert title, done.stdout[:300] + done.stderr[-2000:]
    assert int(title[2]) <= int(title[3]), title[1]
    assert (title[4] == "true") == (scheme == "dark") and title[5] == PAPER[scheme], title[1]
    assert title[6].strip() == "" and title[7].strip() == "", title[1]
    # What the browser says of pages of its own (chrome://) is not about ours.
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "chrome://" not in line]
    assert said == []


@pytest.mark.parametrize("trial", usually_first([gpu_trial, server_trial]))
def test_it_prints_on_a4(browser, tmp_path, trial):
    file, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(page_of(trial, None), encoding="utf-8")
    done = run(browser, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", file.as_uri())
    assert paper.exists(), done.stderr[-2000:]
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper.read_bytes())
    assert 4 <= len(boxes) <= 13
    for width, height in boxes:
        assert abs(float(width) - 595.28) < 1 and abs(float(height) - 841.89) < 1
