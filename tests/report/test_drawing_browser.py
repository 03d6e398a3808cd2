"""The drawing in a real browser: light, dark and on paper; text no wider than was reckoned."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from report.drawing_machines import eight_with_adapters, hybrid_cube_mesh, two_gpus
from report.headless_browser import run

from seatrial.report.drawing import machine_svg, machine_svg_fragment

pytestmark = pytest.mark.real

HARNESS = (
    "<script>addEventListener('load', () => {"
    "const out = {wide: [], drawn: 0, ids: document.querySelectorAll('[id]').length};"
    "for (const g of document.querySelectorAll('svg g')) { const r = g.querySelector(':scope > rect');"
    " if (!r) continue; const b = r.getBBox(); for (const t of g.querySelectorAll(':scope > text')) {"
    " const w = t.getBBox(); out.drawn += 1;"
    " if (w.x < b.x || w.x + w.width > b.x + b.width + 0.5) out.wide.push(t.textContent); } }"
    "const s = document.querySelector('svg .gpu > rect'); out.stroke = getComputedStyle(s).stroke;"
    "out.ink = getComputedStyle(document.querySelector('svg text')).fill;"
    "out.right = document.documentElement.scrollWidth <= innerWidth;"
    "document.body.dataset.out = JSON.stringify(out); })</script>"
)


def look(browser: str, tmp_path: Path, body: str, *arguments: str, width: int = 1280) -> dict[str, object]:
    """What the harness finds in a page with this body."""
    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset='utf-8'><body>{body}{HARNESS}</body>", encoding="utf-8")
    done = run(browser, tmp_path, f"--window-size={width},900", *arguments, "--dump-dom", file.as_uri())
    found = re.search(r'data-out="([^"]*)"', done.stdout)
    assert found, done.stderr[-2000:]
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "chrome://" not in line]
    assert said == []
    result: dict[str, object] = json.loads(found[1].replace("&quot;", '"'))
    return result


@pytest.mark.parametrize("build", [eight_with_adapters, hybrid_cube_mesh, two_gpus])
def test_text_is_no_wider_than_its_box(browser: str, tmp_path: Path, build) -> None:
    found = look(browser, tmp_path, machine_svg(build()))
    assert found["wide"] == []
    assert isinstance(found["drawn"], int) and found["drawn"] > 20


def test_it_is_light_or_dark_as_the_reader_wants(browser: str, tmp_path: Path) -> None:
    svg = machine_svg(two_gpus())
    light = look(browser, tmp_path, svg)
    dark = look(browser, tmp_path, svg, "--blink-settings=preferredColorScheme=0")
    assert light["ink"] == "rgb(26, 31, 36)" and dark["ink"] == "rgb(230, 233, 236)"
    assert light["stroke"] != dark["stroke"]


def test_two_fragments_stand_in_one_page_with_its_colours(browser: str, tmp_path: Path) -> None:
    style = "<style>:root { --ink: rgb(1, 2, 3); --series-3: rgb(4, 5, 6); }</style>"
    drawings = "".join(machine_svg_fragment(build(), f"m{n}").text for n, build in enumerate((two_gpus, two_gpus), 1))
    found = look(browser, tmp_path, style + drawings, width=600)
    assert found["ink"] == "rgb(1, 2, 3)" and found["stroke"] == "rgb(4, 5, 6)"
    assert found["ids"] == 6 and found["right"] is True, "it shrinks with the window"


def test_it_prints_on_one_sheet_of_a4(browser: str, tmp_path: Path) -> None:
    file, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    fragment = machine_svg_fragment(eight_with_adapters()).text
    file.write_text(f"<!doctype html><style>@page {{ size: A4 landscape }}</style>{fragment}", encoding="utf-8")
    done = run(browser, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", file.as_uri())
    assert paper.exists(), done.stderr[-2000:]
    assert len(re.findall(rb"/MediaBox", paper.read_bytes())) == 1
