"""Results as rows of plain values and as one short line; arguments that are named as the options are."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy
from cli.in_process import seatrial_here

import seatrial
from seatrial.interface.arguments import once_named, seconds, size_B
from seatrial.model.results.sample import Outcome, Stage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = MadeUpFolder(tmp_path / "r")
    for cores, level in (("one", 5e10), ("all", 9e10)):
        made.add(noisy(level, 8), cores=cores)
    made.add([0.0], cores="half", outcome=Outcome.failed(Stage.RUN, "it ended with 3"))
    return tmp_path / "r"


def test_rows_are_plain_values_as_in_the_csv(folder: Path) -> None:
    found = seatrial.results(folder)
    rows = found.rows()
    assert json.loads(json.dumps(rows)) == rows and len({tuple(row) for row in rows}) == 1
    ok = [row for row in rows if row["outcome"] == "ok"]
    assert {row["parameter.cores"] for row in ok} == {"one", "all"} and {row["figure"] for row in ok} == {"fma"}
    (failed,) = (row for row in rows if row["outcome"] == "failed")
    assert (failed["figure"], failed["median"], failed["reason"]) == (None, None, "run: it ended with 3")
    text = seatrial_here("export", str(folder), "--columns", "parameters", cwd=folder.parent).stdout
    exported = {(row["figure"], row["parameter.cores"]): row["median"] for row in csv.DictReader(io.StringIO(text))}
    assert all(float(exported[row["figure"], row["parameter.cores"]]) == row["median"] for row in ok)


def test_an_experiment_has_its_parameters(folder: Path) -> None:
    (experiment,) = (one for one in seatrial.results(folder).experiments if one.parameters["cores"] == "all")
    assert experiment.benchmark == "cpu.peak" and experiment.parameters["precision"] == "fp64"
    assert len(experiment.rows()) == 1


def test_each_is_printed_in_one_short_line(folder: Path) -> None:
    found = seatrial.results(folder)
    compared = seatrial.compare(folder, along="cores")
    (side,) = (one for one in compared.compared if one.comparisons)
    (comparison,) = side.comparisons
    (experiment,) = (one for one in found.experiments if one.parameters["cores"] == "one")
    (figure,) = experiment.figures
    lines = list(map(repr, (found, *found.trials, experiment, figure, compared, side, comparison)))
    assert lines[0] == "<3 experiments (2 ok, 1 failed), 1 machine, 0 studies, 0 profiles>"
    assert lines[2] == "<cpu.peak precision=fp64 cores=one: ok, 1 figure>"
    assert lines[3].startswith("<fma 50") and lines[3].endswith("8 repeats>") and "interval" in lines[3]
    assert lines[6].startswith("<fma of ") and lines[6].endswith(f", {comparison.verdict.value}>")
    assert all(len(line) < 160 and "\n" not in line for line in lines), lines
    (row,) = compared.rows()
    assert row["ratio"] == comparison.ratio and row["verdict"] == comparison.verdict.value
    assert {row["baseline"], row["candidate"]} == {"cores one", "cores all"}


def test_times_and_sizes_may_be_text_and_the_names_of_before_go_on() -> None:
    assert (seconds("5min"), seconds(3.0), seconds(None), size_B("64KiB"), size_B(7)) == (300.0, 3.0, None, 65536, 7)

    @once_named(budget_s="budget")
    def function(*, budget: float = 0.0) -> float:
        return budget

    assert function(budget=1.0) == function(budget_s=1.0) == 1.0
    with pytest.raises(TypeError, match="budget and budget_s"):
        function(budget=1.0, budget_s=2.0)
    with pytest.raises(seatrial.UsageError, match="not a duration"):
        seatrial.run("cpu.peak", budget="20")
