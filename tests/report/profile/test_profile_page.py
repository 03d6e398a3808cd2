"""The page of a profile: its content, in a real browser too; text from outside does not become markup."""

from __future__ import annotations

import re

import pytest
from report.headless_browser import run
from report.profile.profile_samples import SAMPLES, crash, hostile, nothing
from report.test_page_browser import HARNESS, OVERPRINTED, PAPER, SCHEMES
from report.test_study_page_browser import CUT

from seatrial.report.profile.charts.calls import wall_time_chart
from seatrial.report.profile.page import profile_page

SECTIONS = (
    "What takes the time",
    "Reliability",
    "Where the wall time goes",
    "Calls with the most time",
    "Over time",
    "Message sizes",
    "Ranks",
)


def test_it_has_every_section() -> None:
    html = profile_page([crash()])
    assert (
        "MPI_Allreduce (4 B) takes 25 % of wall time: waiting for rank 5 on node1, which computes longest (more work "
        "or a slower CPU)." in html
    )
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    assert titles == [*SECTIONS, "Traffic between ranks", "Call sites", "What to try next"]
    assert "8.9 % of 153 GB leave their node" in html and "reduce_energy energy.f90:212" in html
    assert "http://" not in html and "https://" not in html


def test_computing_and_mpi_of_a_rank_make_up_its_wall_time() -> None:
    chart = wall_time_chart(crash(), "x")
    assert chart is not None
    shares = {row[0].text: re.findall(r"(\d+) %", f"{row[1].text} {row[2].text}") for row in chart.table.rows[:2]}
    mean, least, most = (int(share) for share in shares["MPI"])
    assert 0 < least < mean < most < 100
    assert [int(share) for share in shares["computing"]] == [100 - mean, 100 - most, 100 - least]


def test_ids_are_unique_and_links_lead_somewhere() -> None:
    html = profile_page([crash(), crash(4, 2)])
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= {*ids}


def test_nothing_recorded_still_is_a_page() -> None:
    html = profile_page([nothing()])
    assert "No MPI call was recorded." in html and "Reliability" in html


def test_names_from_outside_are_text() -> None:
    html = profile_page([hostile()])
    assert "<script" not in html and "\x1b" not in html and "\u202e" not in html


def test_a_large_world_stays_small() -> None:
    html = profile_page([SAMPLES["large"]()])
    assert len(html) < 500_000 and "A cell is 10 ranks by as many" in html


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("crash", 800, "light"),
        ("large", 1280, "dark"),
        ("incomplete", 520, "dark"),
        ("hostile", 520, "light"),
        ("io", 520, "dark"),
    ],
)
def test_nothing_is_wider_than_the_window_and_nothing_is_cut(browser, tmp_path, name, width, scheme) -> None:
    file = tmp_path / "page.html"
    html = profile_page([SAMPLES[name]()])
    for script in (HARNESS, CUT, OVERPRINTED):
        html = html.replace("</body>", script)
    file.write_text(html, encoding="utf-8")
    done = run(browser, tmp_path, *SCHEMES[scheme], f"--window-size={width},900", "--dump-dom", file.as_uri())
    said = r"<title>scroll=(\d+) inner=(\d+) dark=\w+ paper=(.*?) wide=(.*?) cut=(.*?) overprinted=(.*?)</title>"
    title = re.search(said, done.stdout, re.DOTALL)
    assert title, done.stdout[:300] + done.stderr[-2000:]
    assert int(title[1]) <= int(title[2]), title[0]
    assert title[3] == PAPER[scheme] and title[4].strip() == "", title[0]
    assert title[5].strip() == "" and title[6].strip() == "", title[0]
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line and "chrome://" not in line] == []


@pytest.mark.real
def test_it_prints_on_a4(browser, tmp_path) -> None:
    file, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(profile_page([crash()]), encoding="utf-8")
    done = run(browser, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={paper}", file.as_uri())
    assert paper.exists(), done.stderr[-2000:]
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper.read_bytes())
    assert 3 <= len(boxes) <= 12
    for width, height in boxes:
        assert abs(float(width) - 595.28) < 1 and abs(float(height) - 841.89) < 1
