"""`--fail-on reference`: pass and fail against the references that a site has stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy
from cli.in_process import seatrial_here
from published_schemas import check

from seatrial.model.units import labelled_quantity

REFERENCE = """\
study = "ours"
source = "the acceptance"
[[reference]]
id = "fma"
benchmark = "cpu.peak"
figure = "fma"
parameters = {{ cores = "one" }}
{}
"""


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name, level in (("a", 5e10), ("b", 4e10)):
        made = MadeUpFolder(tmp_path / name)
        made.add(noisy(level, 12), cores="one")
        made.add(noisy(2 * level, 12), cores="all")
    MadeUpFolder(tmp_path / "few").add(noisy(4e10, 2), cores="one")
    return tmp_path


def compared(folder: Path, stated: str, *sides: str, more: tuple[str, ...] = ()) -> tuple[int, str, str]:
    (folder / "r.toml").write_text(REFERENCE.format(stated))
    done = seatrial_here(
        *("compare", *sides, "--fail-on", "reference", *more), cwd=folder, SEATRIAL_REFERENCES=str(folder / "r.toml")
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("stated", "status", "verdict"),
    [
        ('value = "50GFLOP/s"', 1, "fail"),
        ('value = "40GFLOP/s"', 0, "pass"),  # within the margin of 2 %
        ('value = "39GFLOP/s"\nqualifier = "more than"', 0, "pass"),
        ('value = "41GFLOP/s"\nqualifier = "more than"', 1, "fail"),
        ('value = "39GFLOP/s"\nqualifier = "up to"', 1, "fail"),
        ('range = ["39GFLOP/s", "41GFLOP/s"]', 0, "pass"),
        ('range = ["30GFLOP/s", "35GFLOP/s"]', 1, "fail"),
        ('value = "40GFLOP/s"\nqualifier = "more than"', 0, "undecided"),  # the interval is on both sides
    ],
)
def test_the_candidate_must_be_within_the_range(folders: Path, stated: str, status: int, verdict: str) -> None:
    found, text, _ = compared(folders, stated, "a", "b")
    assert found == status
    (line,) = (line.split() for line in text.splitlines() if "ours.fma:" in line)
    assert line[:3] == [verdict, "cpu.peak", "fma"] and "cores" not in line  # one experiment matches
    _, text, _ = compared(folders, stated, "a", "b", more=("--format", "json"))
    document = json.loads(text)
    check(document, "compare-1")
    (one,) = document["references"]
    assert (one["reference"], one["verdict"], one["parameters"]["cores"]) == ("ours.fma", verdict, "one")


def test_without_an_interval_the_repeats_count(folders: Path) -> None:
    status, text, _ = compared(folders, 'value = "50GFLOP/s"', "a", "few")
    assert status == 1 and "repeats from" in text


def test_what_cannot_be_checked_is_no_success(folders: Path) -> None:
    status, _, said = compared(folders, 'value = "50GB/s"', "a", "b")
    assert status == 3 and "no stored reference matches a figure" in said
    named = ("reference:ours.fma", "b")
    assert compared(folders, 'value = "50GFLOP/s"', *named)[0] == 1
    for words in (("compare", "a", "b"), ("run", "cpu.peak"), ("plan", "cpu.peak")):
        done = seatrial_here(*words, "--fail-on", "reference", cwd=folders, XDG_CONFIG_HOME=str(folders / "none"))
        assert done.returncode == 2 and "there are no stored references" in done.stderr, done.stderr


def test_a_reference_may_have_a_unit_of_the_user() -> None:
    assert (labelled_quantity("651 MLUP/s").value, labelled_quantity("651MLUP/s").unit) == (6.51e8, "LUP/s")
    assert labelled_quantity("47.9GB/s").unit == "B/s"
