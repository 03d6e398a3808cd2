"""A comparison on a terminal and as a document: the same verdicts, no control characters, valid JSON."""

from __future__ import annotations

import dataclasses
import json
import math

import jsonschema
import pytest
from report.page_samples import HOSTILE
from report.study_samples import (
    COMPARED,
    STUDIES,
    best_of,
    broken_numbers,
    compared,
    comparison,
    fair,
    outliers,
    scaling,
    several_candidates,
    unfair,
    whole_study,
)
from report.terminals import COLOURED

from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.study.comparison import Difference, Stopped, Verdict
from seatrial.report.blocks import Detail
from seatrial.report.documents.compare import compare_document, study_document
from seatrial.report.schemas import schema
from seatrial.report.studies.design import spoken
from seatrial.report.studies.verdicts import more_repeats
from seatrial.report.text.compare import compare_text, study_text
from seatrial.stats.interval import least_repeats

VALIDATOR = jsonschema.Draft202012Validator(schema("compare-1"))


def _valid(document: dict) -> dict:
    text = json.dumps(document, allow_nan=False)
    read = json.loads(text)
    VALIDATOR.validate(read)
    return read


@pytest.mark.parametrize("name", COMPARED)
def test_every_document_follows_the_schema(name):
    made = COMPARED[name]()
    read = _valid(compare_document([made], ScreenResult(outliers())))
    assert [one["verdict"] for one in read["comparisons"]] == [one.verdict.value for one in made.comparisons]


@pytest.mark.parametrize("name", STUDIES)
def test_the_parts_of_a_study_follow_the_schema_too(name):
    made = STUDIES[name]()
    read = study_document(made)
    told = [read.pop(name) for name in ("study", "question", "spent_s", "needed")]
    assert told == ["stores", made.study.question, made.spent_s, None]
    _valid({"schema": "seatrial.compare/1", **read})


def test_the_schema_is_valid_and_rejects_a_verdict_without_an_interval():
    jsonschema.Draft202012Validator.check_schema(schema("compare-1"))
    document = _valid(compare_document([fair()]))
    document["comparisons"][0]["ci95_family"] = None
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)


@pytest.mark.parametrize("stopped", list(Stopped))
def test_every_reason_to_stop_is_in_the_schema_and_in_words(stopped):
    made = compared(comparison(stopped=stopped))
    _valid(compare_document([made]))
    assert "stopped: " in compare_text([made])


def test_the_numbers_are_those_of_the_model():
    made = fair()
    for read, one in zip(compare_document([made])["comparisons"], made.comparisons, strict=True):
        assert (read["baseline"], read["candidate"]) == (one.baseline.median, one.candidate.median)
        assert (read["ratio"], read["ci95"], read["ci95_family"]) == (one.ratio, [*one.ci95], [*one.ci95_family])
        assert (read["unit"], read["n_repeats"], read["margin"]) == (one.unit, one.n_repeats, one.margin)


def test_values_that_are_not_finite_are_null():
    read = _valid(compare_document([broken_numbers()]))
    assert [one["ratio"] for one in read["comparisons"]] == [0.0, None, 1.16, 1.0]
    assert read["comparisons"][2]["ci95_family"] is None
    endless = dataclasses.replace(scaling(), crossing=math.inf)
    read = _valid(compare_document([], scaling=[endless], best_of=[best_of()]))
    assert read["scaling"][0]["crossing"] is None and read["best_of"][0]["gap"]["ratio"] < 1


def test_unintended_differences_come_first_in_document_and_text():
    made = unfair()
    assert [one.intended for one in made.differences][:2] == [True, True]
    flags = [one["intended"] for one in compare_document([made])["differences"]]
    assert flags == [False, False, True, True]
    text = compare_text([made])
    order = ["2 unintended differences", "fact governor", "Intended: ", "parameter nontemporal", "faster copy"]
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
    several = compare_document(several_candidates().compared)["differences"]
    assert several[0]["what"] == "fact load" and several[0]["candidate_name"] == "record 64 KiB"


def test_by_default_a_comparison_is_its_answer_and_verdicts():
    """`--versus -q` printed 25 lines, and the answer last."""
    made = COMPARED["many"]()
    usual, brief = (compare_text([made], detail=detail) for detail in (Detail.USUAL, Detail.BRIEF))
    assert usual.startswith(brief) and brief.startswith("answer: ") and len(brief.splitlines()) <= 5
    assert "more verdicts (--verbose shows all)" in usual and "simultaneous" not in usual
    small = compare_text([fair()], detail=Detail.USUAL)
    assert "baseline" not in small and "intended:" not in small and len(small.splitlines()) <= 16
    text = compare_text([unfair()], detail=Detail.USUAL)
    for each in ("2 unintended differences", "fact governor", "not interleaved", "two machines: n1"):
        assert each in text, each
    assert "stopped:" not in text


def test_by_default_a_study_has_one_line_for_a_scaling_and_the_first_of_a_sweep():
    text = study_text(whole_study(), detail=Detail.USUAL)
    brief = study_text(whole_study(), detail=Detail.BRIEF)
    assert text.startswith(brief) and brief.startswith("answer: ")
    assert "(strong scaling): 12.0 s ↓ at 1 thread to " in text.replace("\N{NO-BREAK SPACE}", " ") and "█" in text
    assert "and 2 more contenders (--verbose shows all)" in text and "Amdahl" not in text
    assert "no result at 32 threads: run: signal 11" in text and "failed: memory.stream threads=4" in text


def test_outliers_are_listed_only_after_screening():
    assert "outliers" not in compare_document([fair()])
    assert compare_document([], ScreenResult())["outliers"] == []
    assert "No outlier" in compare_text([], ScreenResult()) and "No outlier" not in compare_text([fair()])
    text = compare_text([], ScreenResult(outliers()))
    assert "n17" in text and "\N{MINUS SIGN}7.0 %" in text and "5 % of cases" in text and "100 %" not in text


@pytest.mark.parametrize("made", [fair, unfair, *COMPARED.values()])
def test_text_and_page_use_the_same_sentences(made):
    text = " ".join(compare_text([made()]).replace("\N{NO-BREAK SPACE}", " ").split())
    for one in spoken([made()]):
        assert " ".join(one.sentence.replace("\N{NO-BREAK SPACE}", " ").split()) in text


def test_names_cannot_control_the_terminal():
    name = "\x1b[2Jgone\x9b\u202e"
    made = comparison(name, names=(name, name), parameters={name: name}, hosts=((name,), (name,)), note=name)
    differences = (Difference(name, name, name, False), Difference(name, None, name, True, name))
    text = compare_text([compared(made, differences=differences, names=(name, name), scope=name)])
    text += study_text(whole_study()) + compare_text([COMPARED["hostile"]()], ScreenResult(outliers()))
    bad = [c for c in text if not c.isprintable() and c != "\n"]
    assert bad == [] and HOSTILE in text


def test_colours_are_codes_and_nothing_else():
    plain, coloured = compare_text([unfair()]), compare_text([unfair()], style=COLOURED)
    assert "\x1b[" in coloured and "\x1b" not in plain


def test_a_study_prints_its_question_its_results_and_what_is_missing():
    text = " ".join(study_text(whole_study()).split())
    for each in ("Do non-temporal stores pay", "1 slower, 2 faster", "at least 80 % efficient up to 8 threads",
                 "run: signal 11", "is the best with 3.42 GB/s", "undecided",
                 "2 of 3 experiments succeeded, 1 failed"):  # fmt: skip
        assert each in text, each
    assert "copy" in study_text(STUDIES["only measured"]())


@pytest.mark.parametrize(
    ("alpha", "is_paired", "least"),
    # 2 / 2^6 = 0.031, 2 / 2^8 = 0.0078, 2 / C(12, 6) = 0.0022, 2 / C(14, 7) = 0.00058
    [(0.05, True, 6), (0.01, True, 8), (0.005, True, 9), (0.05, False, 6), (0.002, False, 7), (0.05 / 60, True, 12)],
)
def test_how_many_repeats_an_interval_needs(alpha, is_paired, least):
    assert least_repeats(alpha, is_paired) == least


def test_a_forecast_of_repeats_is_more_the_nearer_the_margin():
    def number(ratio: float) -> int:
        words = more_repeats(comparison(ratio=ratio, half=0.06))
        return int(words.split()[1])

    assert number(1.06) < number(1.05) < number(1.045)
    assert more_repeats(comparison(ratio=1.5)) == ""
    assert comparison(ratio=1.06, half=0.06).verdict is Verdict.AMBIGUOUS
