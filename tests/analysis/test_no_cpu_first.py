"""That programs had no CPU is the first sentence of every answer, and what it explains is not judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy, side_by_side
from analysis.made_up_sweeps import figure
from analysis.made_up_sweeps import result as swept
from cli.in_process import seatrial_here
from msgspec.structs import replace

from seatrial.analysis.answer import answer_of_study, reaches_of
from seatrial.analysis.results import trials_of
from seatrial.analysis.rules.expectation import Judge, Judgement
from seatrial.analysis.scaling import scaling
from seatrial.analysis.screening.inputs import folder_to_screen, screen_input
from seatrial.analysis.screening.screen import screen_cluster
from seatrial.analysis.study_results import study_results
from seatrial.diagnosis.disturbance.missing import missing_and_beside, missing_cpu
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.model.study.study import Axis, Compare, Study, StudyBenchmark
from seatrial.report.documents.compare import study_document
from seatrial.report.documents.history import screen_document
from seatrial.report.documents.results import results_document
from seatrial.report.pages.page import page
from seatrial.report.screen.article import cluster_article
from seatrial.report.studies.answer_words import answer_sentence, reach_sentence
from seatrial.report.text.compare import study_text
from seatrial.report.text.history import screen_text
from seatrial.report.text.results import results_text
from seatrial.report.trial_verdict import verdict

LEVEL = 60e9
TAKEN = {
    "program_s": 1.0,
    "used": {"cpu_s": 0.4, "leader_cpu_s": 0.4, "leader_delay_s": 0.6, "major_faults": 0},
    "cpu_window_s": 2.0,
    "others_s": 1.6,
    "steal_s": 0.0,
    "busy_s": {"0": 1.0, "1": 1.0},
    "affinity": [[0], [1]],
}
"""A repeat that waited 60 % of its time for a CPU, because others used 1.6 of two."""
FREE = {
    **TAKEN,
    "used": {"cpu_s": 1.0, "leader_cpu_s": 1.0, "leader_delay_s": 0.0},
    "others_s": 0.0,
    "busy_s": {"0": 1.0, "1": 0.0},
}
FIRST = "had no CPU for 60 % of the time (other processes used 1.6 of the 2 CPUs)"
BY_OTHERS = NoCpu("2 threads", 0.6, "other-processes", "other processes used 1.6 of the 2 CPUs")


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> MadeUpFolder:
    """A study of two sides that both waited, one experiment each."""
    made = MadeUpFolder(tmp_path_factory.mktemp("busy") / "r")
    points = []
    for cores, level in (("one", 0.2 * LEVEL), ("all", 0.18 * LEVEL)):
        key = made.add(noisy(level, 12), cores=cores, seen=TAKEN, blocks=side_by_side(12))
        points.append((key, {"cores": cores}))
    axes = (Axis("cores", ("one", "all")),)
    made.keep(
        Study("s", "q", benchmarks=(StudyBenchmark("cpu.peak", {}),), axes=axes, compare=Compare("cores", "one")),
        points,
    )
    return made


def first(text: str) -> str:
    return " ".join(text.split())[:200]


def test_the_answer_of_a_trial_on_the_terminal_the_page_and_in_json(busy: MadeUpFolder) -> None:
    (trial,) = trials_of(busy.contents)
    said = verdict(trial)
    assert FIRST in said.sentence.split(". ")[0] and "not judged" in said.sentence.split(". ")[0]
    assert said.sentence.count(FIRST) == 1, "said once"
    assert "physical limit" not in said.sentence and said.defects == 0
    assert trial.findings[0].rule == "repeats-waited-for-cpu"
    assert not [one for one in trial.findings if one.rule in ("below-physical-limit", "far-below-limit")]
    judge = Judge(trial.results)
    assert {judge.figure(one, own) for one in trial.results for own in one.figures} == {Judgement.UNJUDGED}
    document = results_document(trial.results, {}, trial)
    assert FIRST in document["answer"]["said"][:200] and len(document["answer"]["no_cpu"]) == 2
    assert [one["no_cpu"]["share"] for one in document["experiments"]] == pytest.approx([0.6, 0.6])
    text = results_text(trial.results)
    assert FIRST in first(text) and "not judged" in text
    html = page([trial])
    assert "% of the limit" not in html and "% of the physical limit" not in html
    assert FIRST in html[html.index('class="verdict') :][:200] and "reaches 15 %" not in html


def test_the_answer_of_a_study(busy: MadeUpFolder) -> None:
    (found,) = study_results(busy.contents)
    answer = answer_of_study(found)
    assert FIRST in answer_sentence(answer).split(". ")[0]
    assert FIRST in first(study_text(found))
    document = study_document(found)
    assert FIRST in document["answer"]["said"][:200]
    (one,) = document["comparisons"]
    assert [side["cause"] for side in one["no_cpu"]] == ["other-processes"] * 2
    assert "no CPU for 60 % of the time (baseline)" in one["note"]
    html = page([], studies=[found])
    assert FIRST in html[html.index('class="verdict') :][:200]
    fairness = html[html.index("Is it a fair comparison?</h2>") :]
    assert "had no CPU for 60 % of the time" in fairness[:600]


def test_compare_and_history(busy: MadeUpFolder, tmp_path: Path) -> None:
    free = MadeUpFolder(tmp_path / "free")
    free.add(noisy(LEVEL, 12), cores="one", seen=FREE)
    folders = (str(tmp_path / "free"), str(busy.folder.path))

    def shown(*arguments: str) -> str:
        return seatrial_here(*arguments, cwd=tmp_path).stdout

    assert FIRST in json.loads(shown("compare", *folders, "--format", "json"))["answer"]["said"][:300]
    assert FIRST in first(shown("compare", *folders))
    assert FIRST in first(shown("history", "cpu.peak:fma", *folders))
    document = json.loads(shown("history", "cpu.peak:fma", *folders, "--format", "json"))
    sessions = [session["no_cpu"] for series in document["series"] for session in series["sessions"]]
    assert None in sessions and any(one and one["share"] == pytest.approx(0.6) for one in sessions)


def threads(numbers: Sequence[int], taken: Sequence[int], missing: NoCpu = BY_OTHERS):
    made = (swept(figure([1.0 / (1 + 0.1 * n)] * 7), threads=n) for n in numbers)
    return [replace(one, no_cpu=missing) if n in taken else one for n, one in zip(numbers, made, strict=True)]


def test_an_efficiency_without_cpus_is_not_judged() -> None:
    (found,) = scaling(threads((1, 2, 4), (2, 4)), "strong", "threads", {})
    assert found.crossing is None and found.crossing_bounds == (1, None)
    (reach,) = reaches_of([found])
    assert "not judged" in reach_sentence(reach) and "below 80 %" not in reach_sentence(reach)
    (found,) = scaling(threads((1, 2, 4), (1,)), "strong", "threads", {})
    assert len(reaches_of([found])[0].unjudged) == 2, "nothing is judged beside a baseline without its CPU"
    own = replace(BY_OTHERS, is_own=True)
    (found,) = scaling(threads((1, 2, 4), (4,), own), "strong", "threads", {})
    assert reaches_of([found])[0].below, "threads that wait for each other are what scaling shows"


def beside(seen: Sequence[Mapping[str, Any]], benchmark: str = "") -> str:
    """Of repeats in a row."""
    return missing_and_beside(
        [RepeatRecord("e", k, k, float(k), 1.0, Outcome.ok(), seen=one) for k, one in enumerate(seen)], benchmark
    )[1]


def test_load_beside_is_said_where_no_program_waited() -> None:
    assert missing_cpu([TAKEN] * 3, "x") and missing_cpu([FREE] * 3, "x") is None
    assert beside([FREE] * 3, "") == ""
    loaded = {**FREE, "others_s": 0.9, "busy_s": {"0": 1.0, "1": 0.9}}
    assert beside([loaded] * 3, "") == "other processes used 0.9 of 2 CPUs"
    few = {**FREE, "others_s": 0.5 / 64 * 2, "busy_s": {str(cpu): 0.1 for cpu in range(64)}, "cpu_window_s": 2.0}
    assert beside([few] * 3, "cpu.peak") == ""
    assert "may take memory bandwidth, which all CPUs share" in beside([few] * 3, "memory.stream")
    assert "5.0 % of the CPU time to other guests" in beside([{**FREE, "steal_s": 0.1}] * 3, "")
    unknown = {name: value for name, value in FREE.items() if name != "others_s"} | {"load_1m": 7.5}
    assert beside([unknown] * 3, "") == "the load average was 7.5 on 2 CPUs"


def test_the_load_beside_is_the_first_sentence_of_the_page(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    made.add(noisy(LEVEL, 12), seen={**FREE, "others_s": 0.9, "busy_s": {"0": 1.0, "1": 0.9}})
    html = page(trials_of(made.contents))
    assert (
        "Measured beside other load: other processes used 0.9 of 2 CPUs" in html[html.index('class="verdict') :][:200]
    )


LOADED = {**FREE, "others_s": 0.9, "busy_s": {"0": 1.0, "1": 0.9}}
EACH = [LOADED if n % 5 == 3 else FREE for n in range(20)]
"""A neighbour of one second in five."""
WHEN = "in 4 of 20 repeats (3, 8, 13, 18), 4 times about 5.00 s apart"


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_a_neighbour_that_comes_and_goes_is_said_by_run_report_and_compare(tmp_path: Path) -> None:
    folders = [MadeUpFolder(tmp_path / name) for name in ("a", "b", "quiet")]
    for made, each in zip(folders, (EACH, EACH, [FREE] * 20), strict=True):
        made.add(noisy(LEVEL, 20), each=each)
    said = f"Measured beside other load: other processes used 0.9 of 2 CPUs {WHEN}"
    (trial,) = trials_of(folders[0].contents)
    assert said in unwrapped(results_text(trial.results)) and said in unwrapped(page([trial]))
    done = seatrial_here("compare", str(tmp_path / "a"), str(tmp_path / "b"), cwd=tmp_path)
    assert said in unwrapped(done.stdout), done.stderr
    done = seatrial_here("compare", str(tmp_path / "a"), str(tmp_path / "quiet"), cwd=tmp_path)
    assert "0.9 CPUs during 4 of 20 repeats, 4 times about 5.00 s apart" in unwrapped(done.stdout)
    waited = [TAKEN if n % 5 == 3 else FREE for n in range(20)]
    late = MadeUpFolder(tmp_path / "late")
    late.add(noisy(LEVEL, 20), each=waited)
    (missing,) = (one.no_cpu for trial in trials_of(late.contents) for one in trial.results if one.no_cpu)
    assert missing.why == f"other processes used 1.6 of 2 CPUs {WHEN}"


def test_a_node_that_had_no_cpu_is_the_first_sentence_of_a_screen(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    for node in range(6):
        made.add(noisy(LEVEL if node else 0.5 * LEVEL, 8, seed=node), host=f"n{node}", seen=FREE if node else TAKEN)
    found = screen_cluster(screen_input([folder_to_screen(tmp_path / "r")]))
    (node,) = found.no_cpu
    assert node.who == "n0" and node.share == pytest.approx(0.6) and found.odd[0].nodes == ("n0",)
    assert first(screen_text(found)).startswith(f"n0 {FIRST}: what is odd there may be this load.")
    assert screen_document(found)["no_cpu"][0]["who"] == "n0"
    html = str(cluster_article(found, "c", ()).html.__html__())
    assert f"n0 {FIRST}" in html[html.index('class="verdict') :][:200]
