"""The page of a cluster: what is odd first, figures, map, pairs, facts and jobs."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from analysis.made_up_fleets import Planted, fleet

from seatrial.analysis.screening.screen import screen_cluster
from seatrial.jobs.screen import JobRow
from seatrial.model.study.screen import Item, Screen, ScreenInput
from seatrial.report.blocks import Cell, Detail, Table
from seatrial.report.screen.article import cluster_page, job_lines
from seatrial.report.screen.article import sections as sections_of
from seatrial.report.text.history import screen_text


@pytest.fixture(scope="module")
def odd_fleet() -> Screen:
    planted = Planted(quota={"n2": 0.8}, link={"n3": 0.5}, facts={"n1": {"memory": 16 << 30, "kernel": "5.10"}})
    return screen_cluster(fleet(random.Random(1), 8, 4, planted))


def heading(page: str) -> str:
    found = re.search(r'<p class="verdict">(.*?)</p>', page, re.DOTALL)
    assert found
    return found[1]


def sections(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]+)</h2>", page)


def test_the_odd_ones_come_first(odd_fleet: Screen) -> None:
    page = cluster_page(odd_fleet)
    assert heading(page).startswith("3 odd in 8 nodes: node n1, link n3 - s1, node n2")
    assert sections(page)[:4] == ["What is odd", "Figures over nodes", "Nodes by switch", "Between nodes"]
    assert "scontrol" in page and "16 GiB where the others have 64 GiB" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "Facts that differ" in page and "5.10" in page


def test_a_sound_cluster_has_no_section_for_what_is_odd() -> None:
    page = cluster_page(screen_cluster(fleet(random.Random(2), 8, 4)))
    assert heading(page).startswith("Nothing is odd in 8 nodes") and "What is odd" not in sections(page)


def test_a_sweep_of_many_points_hides_no_other_figure() -> None:
    """Of each figure one point comes first, with odd ones if there are any; what is too much is counted."""
    given = fleet(random.Random(1), 8, 4, Planted(quota={"n2": 0.8}))
    first, *others = given.figures
    sweep = [replace(first, parameters={"set": n}) for n in range(70)]
    usual = [replace(one, values=tuple([1.0, 1.01] for _ in one.items)) for one in sweep]
    found = screen_cluster(replace(given, figures=(*usual[:65], *sweep[65:], *others)))
    page = cluster_page(found)
    shown, folded = page[page.index("over-nodes") :].rsplit("more figures</summary>", 1)
    for one in others:
        assert f"{one.benchmark} {one.figure}" in shown
    assert shown.index("set=65") < shown.index("set=0<")
    assert len(found.figures) > 70
    assert f"{len(found.figures) - 60} more figures were screened, and are not drawn here." in folded


def test_names_from_outside_are_escaped() -> None:
    given = fleet(random.Random(3), 4, 4, Planted(quota={"n2": 0.8}))
    bad = '<script>alert("x")</script>'
    renamed = {node: bad if node == "n2" else node for node in given.nodes}
    figures = tuple(replace(one, items=tuple(Item(renamed[item.node]) for item in one.items)) for one in given.figures)
    hostile = replace(
        given,
        nodes=tuple(renamed.values()),
        figures=figures,
        pairs=(),
        facts={bad: {"kernel": bad}, "n1": {"kernel": "6"}, "n3": {"kernel": "6"}, "n4": {"kernel": "6"}},
        switch_of={renamed[node]: bad for node in given.nodes},
    )
    page = cluster_page(screen_cluster(hostile), jobs=[JobRow(bad, bad, bad, 1, 1.0, 2.0, 3.0, bad, bad)])
    assert "<script" not in page and "&lt;script&gt;" in page


def test_jobs_say_where_when_how_long_they_waited_and_node_hours(odd_fleet: Screen) -> None:
    jobs = [
        JobRow("4711", "tera:compute", "n1", 4, 1.7e9, 1.7e9 + 60, 1.7e9 + 960, "ended", "cpu.peak"),
        JobRow("4712", "tera:compute", "", 1, 1.7e9, None, None, "waiting", "io.file"),
    ]
    page = cluster_page(odd_fleet, jobs=jobs)
    assert sections(page)[-1] == "Jobs" and "4711" in page and "2023-11-14 22:13:20" in page
    (line,) = job_lines(jobs)
    assert line.startswith("1 node-hours in 1 job; 1 job of which start or end is unknown: not included.")
    assert line.endswith("They waited 60 s (median).")


def large(n: int = 4000, of_switch: int = 20) -> ScreenInput:
    source = random.Random(4)
    small = fleet(source, 4, 4)
    nodes = tuple(f"node{k:05}" for k in range(n))
    figures = tuple(
        replace(
            one,
            items=tuple(map(Item, nodes)),
            values=tuple(
                [one.values[0][0] * source.lognormvariate(0, 0.01) * (0.6 if k == 77 else 1)] for k in range(n)
            ),
        )
        for one in small.figures[:2]
    )
    pairs = tuple((nodes[k], nodes[(k * 7 + 13) % n]) for k in range(n) if k != (k * 7 + 13) % n)
    folded = replace(small.pairs[1], pairs=pairs, values=tuple([1e9 * source.lognormvariate(0, 0.01)] for _ in pairs))
    switch_of = {node: f"leaf{k // of_switch:03}" for k, node in enumerate(nodes)}
    return ScreenInput(nodes, figures, (folded,), switch_of=switch_of)


def test_thousands_of_nodes_are_folded() -> None:
    found = screen_cluster(large())
    page = cluster_page(found)
    assert heading(page).startswith("1 odd in 4000 nodes: node node00077")
    assert "4000 nodes on 200 switches" in page and "a row is a block of switches" in page
    assert "3999 nodes with nothing odd: left out here" in page and len(page) < 1_500_000


def sections_rows(found: Screen) -> list[Sequence[Cell]]:
    blocks = [block for one in sections_of(found, has_pictures=False) for block in one.blocks]
    return [row for block in blocks if isinstance(block, Table) for row in block.rows]


def test_text_groups_the_figures_of_what_is_odd(odd_fleet: Screen) -> None:
    text = screen_text(odd_fleet)
    assert text.splitlines()[0] == "3 odd in 8 nodes: node n1, link n3 - s1, node n2"
    assert "nodes differ in 2 facts" in text and "to do: scontrol" in text
    assert len(text.splitlines()) <= 14 and "n1 differs in kernel: 5.10; most have 6.1" in text
    full = screen_text(odd_fleet, detail=Detail.FULL)
    assert "5.10 on 1: n1" in full and all(row[0].text in full for row in sections_rows(odd_fleet))
    assert "middle 90 %" in full and "memory.stream triad" in full
