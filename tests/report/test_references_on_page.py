"""Triangles of references on the page: at their value, with an explained number, not overlapping."""

from __future__ import annotations

import re
from html import escape

import pytest
from report.headless_browser import run
from report.page_samples import ENVIRONMENTS, HOSTILE, experiment, figure, seen_and_places, stream, vm_machine

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.study.result import Trial
from seatrial.report.pages.bars import Tick, bar, merged_labels
from seatrial.report.pages.page import page

LIMIT = Limit(100e9, "B/s", "by hand", Basis.PHYSICAL)
OWN = """study = "site"
source = "Fleet of <b>nodes</b>"
[configuration]
machine = '<script>alert("x")</script>'
"""


@pytest.fixture(autouse=True)
def own_file(monkeypatch, tmp_path):
    """The site's own file of this test: there is none until it is written."""
    monkeypatch.delenv("SEATRIAL_REFERENCES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "seatrial").mkdir()
    return tmp_path / "seatrial" / "references.toml"


def own(file, values) -> None:
    entries = (
        f'[[reference]]\nid = "r{n}"\nbenchmark = "memory.stream"\nfigure = "copy"\nvalue = "{value}GB/s"\n'
        f"parameters = {{ threads = 2 }}\n"
        for n, value in enumerate(values)
    )
    file.write_text(OWN + "".join(entries), encoding="utf-8")


def trial(*results) -> Trial:
    seen, places = seen_and_places(results)
    return Trial(vm_machine(), results, (), (), ENVIRONMENTS, places, seen, "0.1.0")


def ticked(values, *, limit=LIMIT, median=80e9) -> str:
    ticks = [Tick(str(n), value, f"{value:g}") for n, value in enumerate(values, start=1)]
    return str(bar(figure("copy", median, limit, spread=0.0), median, ticks).__html__())


def test_a_triangle_is_at_its_value_on_the_scale_of_the_bar():
    drawn = ticked([51.5e9])
    assert re.findall(r'<svg aria-hidden="true" x="([\d.]+)%"', drawn) == ["50.00"]
    assert re.search(r'class="limit physical" x1="97.09%"', drawn)
    assert "published for other machines: 1: 5.15e+10" in drawn and "beyond" not in drawn


def test_a_reference_beyond_the_end_is_an_arrow_there_and_said_and_never_changes_the_scale():
    drawn, bare = ticked([400e9]), ticked([])
    assert re.findall(r'<svg aria-hidden="true" x="([\d.]+)%"', drawn) == ["100.00"]
    assert "(beyond the end of the bar)" in drawn and "M-3.5 0h7" not in drawn
    for shape in re.findall(r"<rect[^>]*>", bare):
        assert shape in drawn


def test_a_bar_without_references_is_as_it_was():
    assert "reference" not in ticked([]) and 'height="20"' in ticked([])
    assert 'height="30"' in ticked([50e9])


@pytest.mark.parametrize(
    ("places", "labels"),
    [
        ({"1": 0.5}, ["1"]),
        ({"1": 0.2, "2": 0.8}, ["1", "2"]),
        ({"1": 0.50, "2": 0.48}, ["2, 1"]),
        ({"1": 0.50, "2": 0.52, "3": 0.54}, ["1\N{EN DASH}3"]),
        ({"1": 0.50, "2": 0.52, "4": 0.54}, ["1, 2, 4"]),
        ({"1": 0.5, "2": 0.5, "3": 0.5, "9": 0.5}, ["4 values"]),
        ({"1": 1.0, "2": 1.0}, ["1, 2"]),
        ({"1": 0.1, "2": 0.2, "3": 0.9, "4": 1.0, "5": 1.0, "6": 1.0}, ["1, 2", "3\N{EN DASH}6"]),
        ({"1": 0.0, "2": 0.01, "3": 0.9}, ["1, 2", "3"]),
    ],
)
def test_labels_that_would_overlap_become_one(places, labels):
    assert [text for text, _, _ in merged_labels(places, 60.0, 5.5)] == labels


def test_the_page_explains_each_number_with_value_machine_and_source():
    html = page([trial(*stream(LIMIT, (38e9, 57e9), 2))])
    assert "another machine, no interval" in html
    for text in ("38.5 GB/s", "41.3 GB/s", "57 GB/s", "STREAM", "BabelStream", "levels.triad-stream"):
        assert text in html
    assert html.count("Virtual machine, 2 cores of an EPYC (Zen 4) (another machine, no interval)") == 3
    assert len(re.findall(r'<path class="reference" d="M-3.5 0h7', html)) == 3
    numbers = re.findall(r"<dt>(\d+)</dt>", html)
    assert numbers == ["1", "2", "3"]


def test_many_references_are_folded_but_for_paper(own_file):
    results = stream(LIMIT, (60e9, 80e9), 2)
    own(own_file, range(40, 45))
    assert "<summary>Published values" not in page([trial(*results)])
    own(own_file, range(40, 60))
    html = page([trial(*results)])
    assert re.search(r'<details class="on-paper"><summary>Published values', html) and "site.r19" in html


def test_a_page_without_references_does_not_mention_them():
    html = page([trial(*stream(LIMIT, (38e9, 57e9), 48))])
    assert 'class="reference"' not in html and "published value" not in html


def test_what_states_no_parameter_is_on_no_bar():
    read = figure("read", 3e9, None, point={"file_B": 1 << 30, "record_B": 1 << 20})
    assert 'class="reference"' not in page([trial(experiment("io.file", "?", {"direct": True}, [read]))])


def test_the_own_file_is_on_the_page_and_escaped(own_file):
    own(own_file, [42])
    html = page([trial(*stream(LIMIT, (38e9, 57e9), 2))])
    assert "42 GB/s" in html and "site.r0" in html
    assert "<script>" not in html and escape('<script>alert("x")</script>', quote=False) in html.replace("&#34;", '"')
    assert "Fleet of &lt;b&gt;nodes" in html


def test_lower_is_better_and_no_limit():
    one_way = figure("one_way", 30e-9, None, unit="s", better=Better.LOWER, point={"cpu_a": 0, "cpu_b": 1})
    html = page([trial(experiment("cpu.linebounce", HOSTILE, {"threads": 2, "pairs": 1}, [one_way]))])
    assert "1: 25 ns" in html


GEOMETRY = """<script>addEventListener('load', () => {
  const boxes = [...document.querySelectorAll('td.bar-cell > svg')].map(bar => {
    const whole = bar.getBoundingClientRect();
    const texts = [...bar.querySelectorAll('text')].map(t => t.getBoundingClientRect());
    const hit = texts.some((a, i) => texts.some((b, j) => i < j && a.left < b.right && b.left < a.right));
    const out = texts.some(t => t.left < whole.left - 1 || t.right > whole.right + 1 || t.bottom > whole.bottom + 2);
    const at = [...bar.querySelectorAll('path.stem')].map(p => {
      const box = p.getBoundingClientRect(); return ((box.left + box.right) / 2 - whole.left) / whole.width; });
    return `${hit ? 'hit' : ''}${out ? 'out' : ''}[${at.map(x => x.toFixed(3)).join(' ')}]`;
  });
  document.title = 'bars ' + boxes.join(';') + ' end';
});</script></body>"""


@pytest.mark.real
@pytest.mark.parametrize("width", [1280, 800, 420])
def test_in_a_browser_labels_do_not_overlap_and_triangles_are_in_place(browser, tmp_path, own_file, width):
    values = [1, 3, 20, 21, 22, 40, 44, 48, 60, 70, 90, 95, 99, 250, 300]
    own(own_file, values)
    file = tmp_path / "page.html"
    html = page([trial(*stream(LIMIT, (60e9, 80e9), 2))])
    file.write_text(html.replace("</body>", GEOMETRY), encoding="utf-8")
    done = run(browser, tmp_path, f"--window-size={width},900", "--dump-dom", file.as_uri())
    title = re.search(r"<title>bars (.*?) end</title>", done.stdout)
    assert title, done.stderr[-2000:]
    assert "hit" not in title[1] and "out" not in title[1], title[1]
    first = [float(place) for place in title[1].split(";")[0].strip("[]").split()]
    assert first == pytest.approx([value / 103 for value in values if value <= 103], abs=0.006)
