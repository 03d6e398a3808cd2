"""The page: complete, escaped, self-contained, and with the numbers of the figures and no others."""

from __future__ import annotations

import dataclasses
import itertools
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from report.page_samples import (
    GB,
    HOSTILE,
    experiment,
    facts,
    figure,
    hostile_trial,
    server_trial,
    vm_machine,
    vm_trial,
)
from report.page_samples_node import gpu_trial

import seatrial.report
from seatrial.analysis.results import not_measured
from seatrial.analysis.rules import findings
from seatrial.model.benchmark.benchmark import Attainable, Better
from seatrial.model.machine.fact import Severity
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.sample import NO_TIME, Outcome, Stage
from seatrial.model.study.result import NotMeasured, Trial
from seatrial.report.blocks import Detail
from seatrial.report.charts.heat import CLASSES, heat_scale, legend
from seatrial.report.charts.roofline_devices import roofline
from seatrial.report.pages.fingerprint import fact_lines
from seatrial.report.pages.page import page, page_pieces
from seatrial.report.pages.view import trial_view
from seatrial.report.text.machine import machine_text
from seatrial.report.text.results import results_text
from seatrial.report.trial_verdict import verdict

VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "col", "base", "source", "wbr"})


class Outline(HTMLParser):
    """Checks that every element is closed in order, and keeps what tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


outline_of = cache(Outline)


def empty_trial(machine: Machine | None = None, **changes) -> Trial:
    return dataclasses.replace(Trial(machine or Machine("bare"), (), (), (), {}), **changes)


def one_experiment_trial() -> Trial:
    limit = Limit(50 * GB, "B/s", "made up", Basis.PHYSICAL)
    result = experiment("made.up", "Does it work?", {"threads": 1}, [figure("rate", 45.678 * GB, limit)])
    return empty_trial(results=(result,))


def all_outcomes_trial() -> Trial:
    outcomes = (
        Outcome.skipped("too small a machine"),
        Outcome.unsupported("root", "run it as root"),
        Outcome.invalid("checksum", "3 differ"),
        Outcome.failed(Stage.RUN, "signal 11", "Segmentation fault"),
        Outcome.timed_out(20.0),
    )
    results = [experiment("made.up", "?", {"k": k}, outcome=outcome) for k, outcome in enumerate(outcomes)]
    return empty_trial(results=(*results, *one_experiment_trial().results))


TRIALS = {
    "none": lambda: [],
    "nothing known": lambda: [empty_trial()],
    "machine only": lambda: [empty_trial(vm_machine(), not_measured=(NotMeasured("mpi.latency", "?", "no MPI"),))],
    "one experiment": lambda: [one_experiment_trial()],
    "all outcomes": lambda: [all_outcomes_trial()],
    "virtual machine": lambda: [vm_trial()],
    "unsteady": lambda: [vm_trial(steady=False)],
    "server": lambda: [server_trial()],
    "whole node": lambda: [gpu_trial()],
    "hostile": lambda: [hostile_trial()],
    "several": lambda: [vm_trial(), server_trial(), hostile_trial()],
}


@cache
def page_of(name: str) -> str:
    return page(TRIALS[name](), "../results")


@cache
def page_without_records(name: str) -> str:
    return page(TRIALS[name]())


@pytest.fixture(scope="module", params=TRIALS)
def html(request) -> str:
    return page_of(request.param)


def test_elements_are_closed_in_order_and_ids_are_unique(html):
    outline = outline_of(html)
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for link in outline.all("a"):
        if (link.get("href") or "").startswith("#"):
            assert link["href"][1:] in ids, link
    for _, attributes in outline.elements:
        for reference in (attributes.get("aria-labelledby") or "").split():
            assert reference in ids, reference


def test_it_is_self_contained_and_runs_nothing(html):
    outline = outline_of(html)
    assert not {"script", "img", "iframe", "link", "object", "embed", "base", "image", "use"} & {
        tag for tag, _ in outline.elements
    }
    for tag, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert not {"src", "xlink:href", "srcset"} & set(attributes), (tag, attributes)
        href = attributes.get("href") or ""
        assert href.startswith(("#", "../results/")) or tag != "a", href
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style and "<" not in style


def test_landmarks_headings_tables_and_pictures_are_named(html):
    outline = outline_of(html)
    assert outline.all("html")[0]["lang"] == "en"
    assert len(outline.all("main")) == 1 and len(outline.all("h1")) == 1 and len(outline.all("title")) >= 1
    assert all(th.get("scope") for th in outline.all("th"))
    for svg in outline.all("svg"):
        assert svg.get("aria-hidden") == "true" or svg.get("role") == "img", svg
    assert html.count("<svg") == len(re.findall(r"<svg[^>]*aria-hidden|<svg[^>]*><title", html))


def test_names_from_outside_are_text_and_nothing_else():
    html = page_of("hostile")
    outline = outline_of(html)
    assert HOSTILE in "".join(outline.text)
    assert "<img" not in html and "</script" not in html and "javascript:" not in html
    assert "{{7*7}}" in html and "49" not in outline.words.split()  # templates are not evaluated twice


def test_a_results_link_with_another_scheme_is_not_linked():
    html = page([vm_trial()], "javascript:alert(1)//")
    assert "javascript:" not in html
    assert "line 1" in html


def test_numbers_are_those_of_the_figures():
    trial = vm_trial()
    outline = outline_of(page_without_records("virtual machine"))
    shown = {attributes["value"] for attributes in outline.all("data")}
    for result in trial.results:
        for made in result.figures:
            assert str(made.median) in shown
            assert f"{made.ci95[0]} {made.ci95[1]}" in shown
            if made.fraction_of_limit is not None:
                assert str(made.fraction_of_limit) in shown
            for repeat in made.repeats:
                assert str(repeat.value) in shown
    expected = {
        number
        for result in trial.results
        for made in result.figures
        for number in (
            str(made.median),
            f"{made.ci95[0]} {made.ci95[1]}",
            str(made.fraction_of_limit),
            *(str(repeat.value) for repeat in made.repeats),
        )
    }
    made = roofline(trial_view(trial, 1, None))
    derived = [*(roof.value for roof in made.roofs), *(point.rate for point in made.points)]
    derived += [point.intensity for point in made.points]
    derived += [number for ridge in made.ridges for number in (ridge.intensity, ridge.rate)]
    others = shown - expected - {str(number) for number in derived}
    assert all(float(number) == int(float(number)) for number in others), others  # counts and sizes only


def test_a_figure_is_shown_with_all_that_belongs_to_it():
    trial = one_experiment_trial()
    words = Outline(page([trial], None)).words
    made = trial.results[0].figures[0]
    assert f"{made.median / GB:.1f} GB/s" in words
    assert "↑" in words and "12 / 480" in words and "50.0 GB/s physical" in words and "made up" in words
    assert "Does it work?" in words and "threads 1" in words


def test_the_attainable_share_is_in_the_derivation():
    plain = Attainable(0.75, "plain stores: at most 75 % of it can be counted")
    limit = Limit(50 * GB, "B/s", "2 channels", Basis.PHYSICAL)
    made = figure("rate", 0.7 * 50 * GB, limit, attainable=plain)
    trial = empty_trial(results=(experiment("made.up", "?", {}, [made]),))
    words = Outline(page([trial])).words
    assert "2 channels; plain stores: at most 75 % of it can be counted" in words
    assert verdict(trial).line == "1 of 1 experiment as expected"
    assert "2 channels; plain stores" in results_text(trial.results, detail=Detail.FULL)


def test_findings_and_table_spell_a_share_alike():
    """99.8 % was "100 %" in a finding and "99.8 %" in the table."""
    ceiling = Limit(10 * GB, "B/s", "measured", Basis.MEASURED)
    results = tuple(
        experiment("made.up", "?", {"k": k}, [figure("rate", share * 10 * GB, ceiling, spread=0.0)])
        for k, share in enumerate((1.03, 1.0049, 0.998))
    )
    found = findings(Machine("m"), results)
    words = Outline(page([empty_trial(results=results, findings=found)])).words
    assert words.count("103 %") >= 2 and "99.8 %" in words and "100.5 %" in words


def test_the_facts_name_the_vector_instructions_and_not_every_feature():
    package = Device("package-0", DeviceKind.PACKAGE, "CPU", facts=facts(isa="fpu vme de sse2", vector_isa="sse2"))
    lines = {line.label: line.value for line in fact_lines(Machine("m", (package,)))}
    assert lines == {"Vector instructions": "sse2"}
    assert "vector instructions      sse2" in machine_text(Machine("m", (package,)))


def test_below_six_repeats_there_is_no_interval():
    result = experiment("made.up", "?", {}, [figure("rate", GB, None, n=5)])
    words = Outline(page([empty_trial(results=(result,))])).words
    assert "needs 6 repeats" in words and "none" in words


def test_a_remark_of_most_figures_is_said_once():
    """Each row said in red that it was rounded by the timer, and why it had no interval."""
    rounded = [msgspec.structs.replace(figure(f"rate{k}", GB, None), resolution=0.01 * k) for k in (1, 2, 3)]
    few = [figure(f"few{k}", GB, None, n=5) for k in range(4)]
    result = experiment("made.up", "?", {}, [*rounded, *few])
    html = page([empty_trial(results=(result,))])
    words = Outline(html).words
    assert words.count("rounded to") == 1 and "† 4 of 7 figures: no interval, needs 6 repeats." in words
    assert "* 3 of 7 figures: rounded to 1 to 3 % by the timer or the printed digits." in words
    assert words.count("needs 6 repeats") == 1 and "remark" not in html.partition("</style>")[2]
    text = results_text([result])
    assert text.count("rounded to") == 1 and text.count("needs 6 repeats") == 1


def test_what_was_not_measured_for_one_reason_is_one_row():
    """A trial listed 100 benchmarks that were not requested, on three sheets of paper."""
    missing = (NotMeasured("gpu.fft", "How fast is it?", "no GPU was found"),)
    trial = empty_trial(not_measured=(*not_measured(()), *missing))
    section = page([trial]).partition('id="m1-unmeasured"')[2].partition("</section>")[0]
    words = Outline(section).words
    assert section.count("<tr") == 3 and "seatrial run NAME" in words and "gpu.fft: How fast is it?" in words


def test_outcomes_replace_numbers_in_the_table():
    words = Outline(page([all_outcomes_trial()])).words
    for text in (
        "skipped too small a machine",
        "unsupported root: run it as root",
        "invalid checksum: 3 differ",
        "failed run: signal 11",
        "Segmentation fault",
        "timed out ended after 20 s, with its children",
    ):
        assert text in words, text


@pytest.mark.parametrize(
    ("trial", "line"),
    [
        (empty_trial(), "Nothing was measured"),
        (empty_trial(not_measured=(NotMeasured("a", "?", "b"),)), "Nothing was measured"),
        (one_experiment_trial(), "1 of 1 experiment as expected"),
        (all_outcomes_trial(), "1 of 4 experiments as expected, 3 defects"),
        (vm_trial(), "5 of 8 experiments as expected, 3 not judged"),
        (vm_trial(steady=False), "2 of 8 experiments too unsteady to judge, 5 as expected, 1 not judged"),
    ],
    ids=["nothing", "nothing but reasons", "one", "all outcomes", "virtual machine", "unsteady"],
)
def test_the_verdict_counts_the_records(trial, line):
    assert verdict(trial).line == line


def test_what_there_was_no_time_for_counts_and_what_the_machine_cannot_have_does_not():
    trial = empty_trial(
        results=(
            experiment("made.up", "?", {"k": 1}, outcome=Outcome.skipped(f"{NO_TIME} of 60 s: it needs about 3 s")),
            experiment("made.up", "?", {"k": 2}, outcome=Outcome.unsupported("gpu", "no device")),
        )
    )
    assert verdict(trial).sentence.startswith("1 not measured: no time left; next: run it again with a larger budget")


def test_the_verdict_and_the_findings_agree():
    trial = server_trial()
    rules = {finding.rule for finding in trial.findings}
    made = verdict(trial)
    assert made.defects == 4
    assert made.wrong.startswith(next(f for f in trial.findings if f.severity is Severity.ERROR).observation[:40])
    assert made.todo and made.sentence.startswith(f"{made.line}; wrong: ")
    assert {"experiment-invalid", "experiment-failed", "experiment-timed-out", "below-physical-limit"} <= rules


def test_at_most_seven_findings_are_in_sight():
    trial = server_trial()
    assert len(trial.findings) > 7
    html = page_without_records("server")
    section = html[html.index('<ol class="findings">') :]
    in_sight = section[: section.index("</ol>")]
    assert in_sight.count("<li ") == 7
    assert f"{len(trial.findings) - 7} more findings" in html


def test_a_long_sweep_is_folded_and_drawn():
    html = page_without_records("server")
    assert "26 more rows of memory.latency" in html
    assert "memory.latency: access latency over the working set" in html
    assert "512\N{NO-BREAK SPACE}KiB" in html


def test_two_numbers_that_vary_inside_the_program_make_rows_but_no_line():
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    made = [
        figure("one_way", 25e-9 + a * 1e-9, None, unit="s", better=Better.LOWER, point={"cpu_a": a, "cpu_b": b}, seed=a)
        for a, b in pairs
    ]
    html = page([empty_trial(results=(experiment("cpu.linebounce", "?", {}, made),))])
    assert "18 more rows" in html and "over cpu" not in html
    assert "The 16 of 30 series with the largest spread are shown" in html


def test_raw_records_are_linked():
    trial = vm_trial()
    links = {
        a["href"] for a in outline_of(page_of("virtual machine")).all("a") if not (a["href"] or "").startswith("#")
    }
    assert links == {f"../results/{place.path}" for place in trial.places.values()}


def test_provenance_names_builds_and_sources():
    words = outline_of(page_without_records("virtual machine")).words
    for text in (
        "-march=znver4",
        "cannot be read without root",
        "no GPU was found",
        "huge_pages granted",
        "hwloc 2.9.0",
        "--cpus 0,1",
    ):
        assert text in words, text


def _luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_in_light_dark_and_print():
    """WCAG 2.1: 4.5 for text, 3 for what a chart is read from."""
    style = (Path(seatrial.report.__file__).parent / "pages" / "templates" / "style.css").read_text()
    schemes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in re.findall(r":root \{(.*?)\}", style, re.S)
    ]
    assert len(schemes) == 3
    for scheme in schemes:
        for paper in ("paper", "raised"):
            for ink in ("ink", "muted", "accent", "alarm", "caution"):
                assert _contrast(scheme[ink], scheme[paper]) >= 4.5, (ink, scheme)
        for line in (f"series-{number}" for number in range(1, 7)):
            assert _contrast(scheme[line], scheme["paper"]) >= 3, (line, scheme)
        assert _contrast(scheme["accent"], scheme["track"]) >= 3
        for tone in ("near", "mid", "far"):
            assert _contrast(scheme["ink"], scheme[tone]) >= 4.5, (tone, scheme)


def test_a_colour_of_the_legend_is_between_its_bounds():
    drawn = legend(heat_scale([1e9, 9e9], "B/s"), 10.0, 0.0, "more is better", False)
    swatches = [
        tuple(map(float, one)) for one in re.findall(r'<rect class="h\d+" x="([\d.]+)".*? width="([\d.]+)"', drawn)
    ]
    ticks = [float(x) for x in re.findall(r'<text [^>]*x="([\d.]+)"', drawn)][: len(swatches) + 1]
    assert len(swatches) == CLASSES
    assert [(x, x + width) for x, width in swatches] == [pytest.approx(pair) for pair in itertools.pairwise(ticks)]


def test_heat_colours_are_in_order_and_leave_numbers_legible():
    """Lightness alone must tell the order, for those who see no hues; half of the classes take ink, half paper."""
    style = (Path(seatrial.report.__file__).parent / "pages" / "templates" / "style.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    schemes = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks]
    assert len(schemes) == 3
    for scheme in schemes:
        light = [_luminance(scheme[f"heat-{k}"]) for k in range(1, CLASSES + 1)]
        assert light in (sorted(light), sorted(light, reverse=True))
        for k in range(1, CLASSES + 1):
            ink = "ink" if k <= CLASSES // 2 else "paper"
            assert _contrast(scheme[ink], scheme[f"heat-{k}"]) >= 4.5, (k, ink)


def test_a_page_of_a_large_trial_is_made_quickly_and_stays_small():
    assert len(page_of("server")) < 1_500_000
    assert len(page_of("whole node")) < 2_500_000


def test_a_page_is_written_in_pieces():
    rates = [experiment("some.rate", "?", {"label": f"l{n}"}, [figure("rate", 1e9, None, n=2)]) for n in range(400)]
    large = Trial(vm_machine(), tuple(rates), (), (), {})
    pieces = list(page_pieces([large]))
    assert "".join(pieces) == page([large])
    assert max(map(len, pieces)) < sum(map(len, pieces)) / 4, "it would be in memory as a whole"
