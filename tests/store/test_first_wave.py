"""Results, studies and site files of the first releases are read with the same answers by every later one.

`data/first_wave` was written by the first version that has studies, sites and imports, and `answers` is what it said.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here

import seatrial
from seatrial.report.documents.results import results_document

FIRST_WAVE = Path(__file__).resolve().parents[1] / "data" / "first_wave"
CHANGED = ("reused", "figures", "notes", "question")
"""Keys of an experiment that are compared below, or say how it is read now."""
KEPT = ("name", "unit", "better", "median", "min", "max", "ci95", "n_repeats", "n_samples", "parameters", "limit")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy, which may be written to; its artefacts folder was empty."""
    shutil.copytree(FIRST_WAVE, tmp_path / "first_wave")
    return tmp_path / "first_wave"


def answer(name: str) -> dict[str, Any]:
    document = json.loads((FIRST_WAVE / "answers" / f"{name}.json").read_text())
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("name", ["linebounce", "sleepers", "stores", "stream"])
def test_figures_are_those_that_were_reported_then(folder: Path, name: str) -> None:
    document = results_document(seatrial.results(folder / "results").experiments, {})
    now = {one["id"]: one for one in document["experiments"]}
    for then in answer(name)["experiments"]:
        own = now[then["id"]]
        assert {key: own[key] for key in then if key not in CHANGED} == {
            key: value for key, value in then.items() if key not in CHANGED
        }
        names = {one["name"] for one in then["figures"]}  # later versions may derive more from the same samples
        assert [{key: one[key] for key in KEPT} for one in own["figures"] if one["name"] in names] == [
            {key: one[key] for key in KEPT} for one in then["figures"]
        ]
        assert then["figures"]


def test_comparisons_are_those_that_were_reported_then(folder: Path) -> None:
    done = seatrial_here("compare", "results", "--along", "nontemporal", "--format", "json", cwd=folder)
    assert done.returncode == 0, done.stderr
    now, then = json.loads(done.stdout), answer("along")
    assert [one["figure"] for one in now["comparisons"]] == [one["figure"] for one in then["comparisons"]]
    for own, was in zip(now["comparisons"], then["comparisons"], strict=True):
        shares = ("alpha", "p_family")  # the share of the error that the first end uses has grown since
        design = {key: own["design"][key] for key in was["design"] if key not in shares}
        assert design == {key: value for key, value in was["design"].items() if key not in shares}
        kept = [key for key in was if key not in (*shares, "design")]
        assert {key: own[key] for key in kept} == {key: was[key] for key in kept}


def test_studies_and_site_files_are_valid(folder: Path) -> None:
    for study in ("study.yaml", "scaling.yaml"):
        done = seatrial_here("plan", study, "--site", "site.yaml", "--format", "json", cwd=folder)
        assert done.returncode == 0, done.stderr


@pytest.mark.real
def test_the_page_shows_them(folder: Path) -> None:
    done = seatrial_here("report", "results", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert done.returncode == 0 and "stores" in page and "sleepers" in page and "triad" in page, done.stderr
