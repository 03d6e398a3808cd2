"""Pages of studies and comparisons: whole, escaped, self-contained; unintended differences first; numbers agree."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import cache

import pytest
from report.page_samples import HOSTILE, experiment, figure, vm_trial
from report.study_samples import (
    BASE,
    CANDIDATE,
    COMPARED,
    STUDIES,
    best_of,
    compared,
    comparison,
    contained,
    fair,
    many,
    one,
    outliers,
    scaling,
    several_candidates,
    study,
    whole_study,
)
from report.test_page import Outline, page_of

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.figure_result import ExperimentResult, ScreenResult
from seatrial.model.study.comparison import Verdict
from seatrial.model.study.result import Contender
from seatrial.report.charts.best_map import best_map
from seatrial.report.charts.distributions import blocks, drift, in_order
from seatrial.report.charts.forest import forest
from seatrial.report.pages.bars import overhead_bar
from seatrial.report.pages.page import compare_page, page
from seatrial.report.studies.container_section import start_sections
from seatrial.report.studies.effect import effect_of, overheads
from seatrial.report.studies.verdicts import subjects
from seatrial.report.text.compare import study_text


def _pages() -> dict[str, Callable[[], str]]:
    made = {f"compared {name}": lambda make=make: compare_page([make()]) for name, make in COMPARED.items()}
    made |= {f"study {name}": lambda make=make: page([], None, [make()]) for name, make in STUDIES.items()}
    made["outliers"] = lambda: compare_page([], ScreenResult(outliers()))
    made["no outlier"] = lambda: compare_page([], ScreenResult())
    made["studies and a machine"] = lambda: page([vm_trial()], "../results", [whole_study(), several_candidates()])
    return {name: cache(make) for name, make in made.items()}


PAGES = _pages()
"""Each is written once: nobody changes text."""


@pytest.fixture(scope="module", params=PAGES)
def html(request) -> str:
    return PAGES[request.param]()


def test_the_best_of_two_axes_is_a_map_with_the_leader_framed() -> None:
    names = [f"{'a long way down ' * 6}{k}" for k in range(10)]  # 100 characters
    contenders = [
        Contender({"policy": name, "block_B": 1 << (10 + k)}, f"{n}-{k}", 1e9 + n * 1e6 + k, None, 3)
        for n, name in enumerate(names)
        for k in range(10)
    ]
    result = dataclasses.replace(
        best_of(), over=("policy", "block_B"), contenders=tuple(reversed(contenders)), untested=tuple(range(1, 100))
    )
    chart = best_map(result, "s1")
    assert chart is not None and chart.svg.text.count('class="slow"') == 1
    cells = re.findall(r'<text class="on-', chart.svg.text)
    assert len(cells) == 100 and "512 KiB" in chart.svg.text
    assert all(f"…long way down {k}<" in chart.svg.text for k in range(10))
    html = page([], None, [study(best_of=(result,))])
    assert "read over policy and block." in html
    words = Outline(html).words
    assert "99 contenders have too few repeats for a test" in words and "undecided: needs" not in words
    assert best_map(dataclasses.replace(result, over=("policy",)), "s1") is None


def test_figures_that_restate_each_other_have_one_chart() -> None:
    step = scaling(name="step", better=Better.LOWER)
    per_day = dataclasses.replace(
        step,
        figure="ns/day",
        unit="op/s",
        better=Better.HIGHER,
        points=tuple(dataclasses.replace(one, value=one.value and 86.4 / one.value) for one in step.points),
    )
    html = page([], None, [study(scaling=(step, per_day))])
    assert html.count("It restates step, which has the charts.") == 1
    assert html.count("Efficiency of ") == page([], None, [study(scaling=(step,))]).count("Efficiency of ")


def test_labels_of_the_ratio_chart_are_whole() -> None:
    """The factor of a large ratio was cut, and long names that differ at their ends looked alike."""
    one = comparison(ratio=900.0, half=0.5)
    names = [f"{'x' * 60} {side}" for side in ("first", "second")]
    (chart,) = forest([one, one], names, "s1")
    assert "higher by a factor of 900.0 [545.9, 1483.8]<" in chart.svg.text
    assert all(f"…xx {side}"[-8:] in chart.svg.text for side in ("first", "second"))


def test_published_values_are_below_the_verdicts() -> None:
    named = ("s6.double-over-single", "s6.summary-fdr-over-10gbe", "other-site.unknown")
    one = study(compared=(fair(),))
    asked = dataclasses.replace(one, study=dataclasses.replace(one.study, references=named))
    html = page([], None, [asked])
    assert "Published values" in html and html.index("Published values</h2>") > html.index("Verdicts</h2>")
    assert html.index("Published values</h2>") < html.index("Ratios with their intervals</h2>")
    assert "apps.pam-crash time_ratio" in html and "1.54" in html and "HPC Advisory Council" in html
    assert "contradicts s6." in html and "other-site" not in html
    assert "Published values" not in page([], None, [one])
    text = " ".join(study_text(asked).split())
    assert "1.54 \N{DOWNWARDS ARROW}" in text and "s6.double-over-single" in text
    assert text.startswith("answer: ") and "Published values" in text and "on the page" not in text


def test_a_page_is_whole_stands_alone_and_runs_nothing(html):
    outline = Outline(html)
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    tags = {tag for tag, _ in outline.elements}
    assert not {"script", "img", "iframe", "link", "object", "embed", "base", "image", "use"} & tags
    assert len(outline.all("h1")) == 1
    for _, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on")], attributes
        for reference in (attributes.get("aria-labelledby") or "").split():
            assert reference in ids, reference
    for link in outline.all("a"):
        href = link.get("href") or ""
        assert href.startswith("../results/") or href[1:] in ids, href
    for svg in outline.all("svg"):
        assert svg.get("aria-hidden") == "true" or svg.get("role") == "img"
    assert "NaN" not in html and "undefined" not in html
    assert not re.search(r"[>\s]nan[<\s]", html)


@pytest.mark.parametrize("name", ["compared hostile", "study hostile"])
def test_names_from_outside_are_text_and_nothing_else(name):
    html = PAGES[name]()
    assert HOSTILE in "".join(Outline(html).text)
    assert "<img" not in html and "</script" not in html and "{{7*7}}" in html


def test_the_fairness_box_comes_before_the_verdicts_and_unintended_differences_before_the_rest():
    words = Outline(PAGES["compared unfair"]()).words
    places = [words.index(text) for text in ("fact governor", "Is it a fair comparison?", "Verdicts")]
    assert places[0] < places[1] or words.count("fact governor") > 1
    box = words[words.rindex("Is it a fair comparison?") :]
    order = ["2 unintended differences", "fact governor", "absent", "parameter nontemporal", "not interleaved"]
    order += [
        "two machines: n1 is compared with n2",
        "Scope",
        "nontemporal true is higher by a factor of 2.31 [2.24, 2.38]",
    ]
    found = [box.index(text) for text in order]
    assert found == sorted(found)


def test_unintended_differences_stand_beside_the_answer_and_a_fair_comparison_says_so():
    alarm = '<p class="alarm-line">'
    assert alarm in PAGES["compared unfair"]() and alarm in PAGES["study several candidates"]()
    html = PAGES["compared fair"]()
    assert alarm not in html and "No differences found other than the intended ones" in html


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (comparison(ratio=1.16), "nontemporal true is 16 % higher [14, 18] than"),
        (comparison(ratio=0.86, better=Better.LOWER, unit="s"), "nontemporal true is 14 % lower [12, 16] than"),
        (comparison(ratio=1.16, better=Better.LOWER, unit="s", half=0.03), "is 16 % higher [13, 20] than"),
        (comparison(ratio=0.8, better=Better.LOWER, unit="W"), "nontemporal true is 20 % lower [18, 22] than"),
        (comparison(ratio=1.003, half=0.011), "are the same within 2 %: +0.3 % [\N{MINUS SIGN}0.8, +1.4]"),
        (comparison(ratio=1.03, half=0.03), "consistent with the same or faster"),
        (comparison(ratio=1.0, half=0.05), "consistent with slower or the same or faster"),
        (
            comparison(ratio=1.4, n=4, has_interval=False),
            "nontemporal true against nontemporal false: +40 %, no interval",
        ),
    ],
)
def test_a_verdict_is_one_sentence_with_the_interval_it_rests_on(made, text):
    assert text in Outline(compare_page([compared(made)])).words


def test_an_ambiguous_comparison_has_advice():
    few = Outline(compare_page([compared(comparison(n=4, has_interval=False, family=1))])).words
    assert re.search(r"An interval needs \d+ blocks; 4 were made", few)
    near = Outline(compare_page([compared(comparison(ratio=1.06, half=0.06))])).words
    assert re.search(r"About \d+ more blocks might decide", near)
    edge = Outline(compare_page([compared(comparison(ratio=1.0201, half=0.01))])).words
    assert "more repeats may never decide" in edge
    noise = Outline(compare_page([compared(comparison(ratio=1.0201, half=0.21))])).words
    assert "noise is too large to decide" in noise and "edge of the margin of" not in noise, "+2 % [-17, +26]"
    assert "needs about 1700 repeats (15 made)" in noise and "--wait-quiet" in noise
    reference = Outline(PAGES["compared reference"]()).words
    assert "A published value has no interval" in reference and "against a published value" in reference


def test_a_verdict_that_its_interval_does_not_bear_out_is_marked():
    wrong = dataclasses.replace(comparison(ratio=1.01, half=0.02), verdict=Verdict.FASTER)
    assert "do not trust it" in compare_page([compared(wrong)])
    assert "do not trust it" not in "".join(PAGES[name]() for name in ("compared many", "compared fair"))


def test_the_head_counts_the_verdicts_that_are_listed():
    html = PAGES["compared many"]()
    words = Outline(html).words
    verdicts = words[words.index("Verdicts nontemporal true against") :]
    counts = re.findall(r"(\d+) (slower|faster|undecided|same)", verdicts[: verdicts.index(".")])
    head = {word.replace("undecided", "ambiguous"): int(number) for number, word in counts}
    told = {word: sum(c.verdict.value == word for c in many().comparisons) for word in head}
    assert sum(told.values()) == 60
    for verdict in Verdict:
        listed = len(re.findall(rf'<li class="statement {verdict.value}">', html))
        assert listed == sum(c.verdict is verdict for c in many().comparisons)
    assert all(told[word] == number for word, number in head.items())


def test_the_table_holds_the_numbers_of_the_model():
    shown = {a["value"] for a in Outline(PAGES["compared fair"]()).all("data")}
    for made in fair().comparisons:
        for number in (made.baseline.median, made.candidate.median, made.ratio, made.p_family):
            assert str(number) in shown
        for side in (made.baseline, made.candidate):
            assert {str(repeat.value) for repeat in side.values} <= shown


def test_right_is_better_in_each_chart_of_the_forest_and_its_numbers_are_those_of_the_table():
    for made in fair().comparisons:
        effect = effect_of(made)
        assert effect.family[0] <= effect.plain[0] <= effect.advantage <= effect.plain[1] <= effect.family[1]
        assert (effect.advantage > 1) == ((made.ratio > 1) == (made.better is Better.HIGHER))
    higher, lower = forest(fair().comparisons, subjects([fair()]), "x")
    assert higher.title.endswith("higher is better") and lower.title.endswith("lower is better")
    assert "the axis runs from high to low" in lower.caption and "from high" not in higher.caption
    for chart in (higher, lower):
        assert "← slower" in chart.svg.text and "faster →" in chart.svg.text
    assert "14 % lower [12, 16]" in lower.svg.text and "14 % lower" not in higher.svg.text
    mark = re.search(r'role-mark layer_4_marks"><path transform="translate\(([\d.]+)', lower.svg.text)
    equal = re.search('translate\\(([\\d.]+),[\\d.]+\\)"[^>]*>1\N{MULTIPLICATION SIGN}<', lower.svg.text)
    assert mark and equal and float(mark[1]) > float(equal[1])  # 0.86 is to the right of 1
    places = re.findall(r'_marks"><path transform="translate\(([\d.]+),([\d.]+)\)', higher.svg.text)
    assert sorted(float(y) for _, y in places) == [12, 36, 60, 84]  # a row for each
    by_row = [float(x) for x, y in sorted(places, key=lambda place: float(place[1]))]
    ratios = [made.ratio for made in fair().comparisons if made.better is Better.HIGHER]
    assert [sorted(by_row).index(x) for x in by_row] == [sorted(ratios).index(ratio) for ratio in ratios]


def test_the_page_says_what_undecided_comparisons_need():
    made = several_candidates()
    ids = {key for one in made.compared for each in one.comparisons for key in each.candidate.experiments}
    ids |= {key for one in made.compared for each in one.comparisons for key in each.baseline.experiments}
    html = page([], None, [dataclasses.replace(made, repeat_s=dict.fromkeys(ids, 1.5))])
    (words,) = re.findall(r'<p class="needed">([^<]*)</p>', html)
    assert re.match(r"1 of 5 undecided: about \d+ repeats needed \(15 made\), about .* more\. With --budget \d", words)
    assert 'class="needed"' not in page([], None, [made])  # the time of a repeat is unknown


def test_many_comparisons_make_charts_that_fit_on_paper_and_one_makes_one():
    charts = forest(many(100).comparisons, subjects([many(100)]), "x")
    assert [len(chart.table.rows) for chart in charts] == [36, 14, 36, 14]
    assert [len(chart.table.rows) for chart in forest(one().comparisons, ["wall"], "x")] == [1]
    assert forest((), (), "x") == []


def test_blocks_are_joined_only_where_the_sides_bear_them_out():
    made = comparison()
    assert [(a.value, b.value) for a, b in blocks(made)] == list(made.pairs)
    assert blocks(dataclasses.replace(made, pairs=made.pairs[::-1])) == []
    assert blocks(comparison(interleaved=False)) == []
    caption = in_order([made], ["triad"], "x").caption
    assert "joins the repeats of one block" in caption
    assert "run at different times" in in_order([comparison(interleaved=False)], ["triad"], "x").caption


def test_a_drift_is_reported():
    moved = comparison("add", drift=0.3, half=0.001)
    assert drift(moved.baseline) == pytest.approx(0.2 / 1.05, rel=0.1)
    assert "from the first to the last third of its repeats" in compare_page([compared(moved)])
    assert drift(comparison(n=8).baseline) is None


def test_subjects_name_what_distinguishes_comparisons_and_nothing_else():
    assert subjects([one()]) == ["wall"]
    assert subjects([fair()])[0] == "memory.stream · copy"
    names = subjects(several_candidates().compared)
    assert names[0] == "read · record 8 KiB" and len(set(names)) == 5
    assert len(set(subjects([many()]))) == 60


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        (
            scaling(numbers=(1, 2, 4, 8, 16, 32)),
            [
                "wall: at least 80 % efficient up to 8 threads, 68 % [66, 70] at 16 threads",
                "Strong scaling",
                "Amdahl",
                "Efficiency falls below 80 % between",
            ],
        ),
        (scaling(numbers=(1, 2, 4)), ["80 % efficient up to 4 threads, the most", "at least 5 are needed"]),
        (scaling(serial=0.5, numbers=(1, 2, 4)), ["below 80 % efficient from the first step on"]),
        (
            scaling(failed=(32,)),
            ["no result at 32 threads", "run: signal 11", "Crosses mark experiments without a result"],
        ),
        (scaling(failed=(2, 4, 8, 16, 32)), ["only the point at 1 thread succeeded"]),
        (scaling(failed=(1, 2, 4, 8, 16, 32)), ["no point succeeded"]),
        (scaling(kind="weak", better=Better.HIGHER), ["Weak scaling", "the rate per worker over that of the baseline"]),
        (scaling(winners=True), ["batch 64", "prefetch 4", "Winning settings"]),
    ],
)
def test_scaling_is_shown_with_its_baseline_its_failures_and_its_fits(result, texts):
    words = Outline(page([], None, [study(scaling=(result,))])).words
    for text in (*texts, "Fixed: size 1"):
        assert text in words, text


def test_sweeps_name_the_winner_or_say_that_there_is_none():
    words = Outline(PAGES["study whole"]()).words
    assert "is the best with 3.42 GB/s" in words
    assert "the best is undecided" in words and "Not distinguished from the leader" in words
    assert "tie" not in words.split()
    assert "48 repeats of 5 contenders in 96.4 s" in words and "O_DIRECT was refused" in words


def test_what_gave_no_result_is_on_the_page():
    words = Outline(PAGES["study only measured"]()).words
    assert "2 of 3 experiments succeeded, 1 failed" in words and "run: signal 11" in words


def test_studies_come_before_machines_and_link_to_their_records():
    trial = vm_trial()
    first = trial.results[0]
    html = page([trial], "../results", [study(results=(first,))])
    words = Outline(html).words
    assert html.index('id="s1-top"') < html.index('id="m1-top"') and words.startswith("Study stores and 1 machine")
    start = html[html.index('id="s1-top"') : html.index('id="m1-top"')]
    assert "../results/" in start
    assert 'id="s1-top"' not in page_of("virtual machine")


def test_a_page_of_many_comparisons_stays_small():
    assert len(compare_page([many(600)])) < 4_000_000


def test_names_of_sides_are_whole_in_headings():
    html = PAGES["compared fair"]()
    assert f"<title>{CANDIDATE} against {BASE}</title>" in html


def test_overheads_are_extra_time_beside_the_margin() -> None:
    """A time and a rate of the same factor cost the same; the bar of a small one is inside the band."""
    made = contained()
    found = overheads(made.comparisons, subjects([made]))
    twice = "\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}2.5"
    assert [each.words for each in found] == ["+43 %", "+0.20 %", "+1.5 %", twice]
    for each in found:
        low, high = each.interval or (0.0, 0.0)
        assert low < each.extra < high and each.margin == "2 %"
        drawn = overhead_bar(each).text
        is_beyond = each.extra > 0.08
        assert drawn.count('class="arrow"') == (2 if is_beyond else 0) and drawn.count('class="band"') == 1
        assert ("<circle" in drawn) is not is_beyond
    text = " ".join("".join(Outline(PAGES["compared contained"]()).text).split())
    assert "What the container changes" in text and "What costs" in text and "twice instead of once" in text
    assert "not recorded" in text and "Alike on both sides: libraries" in text


def test_a_start_is_told_for_each_container_cache_and_number() -> None:
    def start(cache: str, number: int) -> ExperimentResult:
        times = [
            figure(name, time_s, None, unit="s", better=Better.LOWER)
            for name, time_s in (("start", 0.005 * number), ("bare_start", 1e-4))
        ]
        made = experiment("container.start", "How long?", {"cache": cache, "at_once": number}, times)
        return dataclasses.replace(made, container="app (Charliecloud)")

    pairs = [(cache, number) for cache in ("warm", "cold") for number in (1, 16)]
    (section,) = start_sections([start(*pair) for pair in pairs])
    rows = [[cell.text for cell in row] for row in section.blocks[1].rows]
    assert [row[:3] for row in rows] == [[cache, str(number), "app (Charliecloud)"] for cache, number in pairs]
    assert (
        rows[1][3].endswith(" ms")
        and rows[0][5].endswith(" µs")
        and not start_sections([experiment("memory.stream", "", {})])
    )
