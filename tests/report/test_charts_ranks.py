"""Pairs of ranks on the page, as text and as JSON: cells, frames around slow ones, borders between hosts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest
from report.page_samples import experiment, figure, vm_machine

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.figure_result import ExperimentResult, Outlier, Screening
from seatrial.model.study.result import Trial
from seatrial.report.charts.pairs import RankPairs, rank_pairs
from seatrial.report.documents.results import results_document
from seatrial.report.pages.page import page
from seatrial.report.pages.view import trial_view
from seatrial.report.text.results import results_text

US = 1e-6


def outlier(what: str, **which: int | str) -> Outlier:
    return Outlier(what, "mpi.pairs", "latency", which, 9 * US, 9.0, 0.9999, 0.01, 28)


def measured(*outliers: Outlier, ranks: int = 8, why_not: str = "") -> ExperimentResult:
    figures = [
        figure("latency", 9 * US if (a, b) == (3, 5) else US, None, unit="s", better=Better.LOWER,
               point={"a": a, "b": b}, spread=0.0)
        for a, b in combinations(range(ranks), 2)
    ]  # fmt: skip
    screening = Screening(outliers, len(figures), "pairs of ranks", 0.01, why_not, is_inconclusive=bool(why_not))
    result = experiment("mpi.pairs", "Which pair is slow?", {"ranks": ranks}, figures)
    return replace(result, screening=screening)


def trial(result: ExperimentResult, hosts: list[str] | None = None) -> Trial:
    seen = {(result.id, 0): {"hosts": hosts} if hosts else {}}
    return Trial(vm_machine(), (result,), (), (), {}, seen=seen)


def drawn(result: ExperimentResult, hosts: list[str] | None = None) -> RankPairs:
    view = trial_view(trial(result, hosts), 1, None)
    (made,) = rank_pairs(view, view.benchmarks[0])
    return made


def rectangles(made: RankPairs, kind: str) -> set[tuple[float, ...]]:
    assert made.picture is not None
    root = ElementTree.fromstring(made.picture.text)
    found = (each for each in root.iter("rect") if each.get("class") == kind)
    return {tuple(float(each.get(name, "nan")) / 46 for name in ("x", "y", "width", "height")) for each in found}


def test_the_slow_pair_is_framed_on_both_sides_of_the_diagonal() -> None:
    made = drawn(measured(outlier("pair 3-5", a=3, b=5)))
    assert rectangles(made, "slow") == {(5, 3, 1, 1), (3, 5, 1, 1)}
    assert any("pair 3-5: latency 9 x its peers" in line for line in made.found)
    assert [cell.text for cell in made.numbers.rows[0]][:2] == ["3", "5"] and made.numbers.rows[0][-1].text == "slow"
    assert sum(row[-1].text == "slow" for row in made.numbers.rows) == 1


def test_a_slow_rank_is_framed_along_row_and_column() -> None:
    assert rectangles(drawn(measured(outlier("rank 2", rank=2))), "slow") == {(0, 2, 8, 1), (2, 0, 1, 8)}


def test_a_slow_node_is_framed_with_all_its_ranks_and_hosts_have_borders() -> None:
    hosts = ["n1"] * 4 + ["n2"] * 4
    made = drawn(measured(outlier("node n2", host="n2")), hosts)
    assert len(rectangles(made, "slow")) == 8
    assert made.picture is not None and made.picture.text.count("border-node") == 1


def test_nothing_is_framed_if_nothing_is_slow() -> None:
    made = drawn(measured())
    assert not rectangles(made, "slow") and "none of 28 pairs of ranks is slow" in made.found[0]


def test_cells_have_the_colour_of_their_pair() -> None:
    made = drawn(measured())
    assert made.picture is not None
    classes = {path.get("class"): path.get("d") for path in ElementTree.fromstring(made.picture.text).iter("path")}
    dark = re.findall(r"M([\d.]+) ([\d.]+)h", classes["h8"] or "")
    assert sorted((float(y) / 46, float(x) / 46) for x, y in dark) == [(3, 5), (5, 3)]


def test_a_thousand_ranks_make_a_small_picture() -> None:
    points = [{"a": a, "b": a + 500} for a in range(500)]
    figures = [figure("latency", US, None, unit="s", better=Better.LOWER, point=p, spread=0.0) for p in points]
    made = drawn(experiment("mpi.pairs", "?", {"ranks": 1000}, figures))
    assert made.picture is not None and len(made.picture.text) < 120_000


def test_the_page_has_the_panel_and_no_line_chart_of_ranks() -> None:
    hostile = "n<script>alert(1)</script>"
    html = page([trial(measured(outlier(f"pair 3-5 on {hostile}", a=3, b=5)), [hostile, *["n2"] * 7])])
    assert "Rank to rank" in html and "<script>alert" not in html
    assert 'id="m1-sweeps"' not in html


def test_the_text_names_slow_ranks_in_a_few_lines() -> None:
    lines = results_text([measured(outlier("pair 3-5", a=3, b=5))]).splitlines()
    assert len(lines) < 8
    assert any(line.split()[:5] == ["latency", "a=3", "b=5", "9.00", "µs"] for line in lines)
    assert any("slow: pair 3-5" in line and "1 % of cases" in line for line in lines)
    assert any("none of 28 pairs of ranks is slow" in line for line in results_text([measured()]).splitlines())
    assert "nobody knows" in results_text([measured(ranks=3, why_not="nobody knows")])


def test_a_few_pairs_are_listed_one_by_one() -> None:
    lines = results_text([measured(ranks=4)]).splitlines()
    assert sum(line.lstrip().startswith("latency a=") for line in lines) == 6


@pytest.mark.parametrize("found", [(), (outlier("pair 3-5", a=3, b=5),)])
def test_the_document_has_the_outliers_if_pairs_were_screened(found: tuple[Outlier, ...]) -> None:
    result = measured(*found)
    document = json.loads(json.dumps(results_document([result], {}), allow_nan=False))
    assert [(one["what"], one["experiment"]) for one in document["outliers"]] == [(o.what, result.id) for o in found]
    assert "outliers" not in results_document([replace(result, screening=None)], {})
