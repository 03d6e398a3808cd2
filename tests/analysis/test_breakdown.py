"""Where a difference sits: parts add up, noise is told from more, and what is incomplete is left out."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from seatrial.analysis.breakdown import MOST_PARTS, breakdown
from seatrial.analysis.match import SideExperiment
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.model.study.comparison import COMPUTING, OTHER_CALLS, Breakdown
from seatrial.model.study.result import Compared
from seatrial.report.documents.compare import compare_document
from seatrial.report.studies.change_words import breakdown_sentence
from seatrial.report.text.compare import compare_text
from seatrial.store.contents import Contents


def profile(
    allreduce_s: float, computing_s: float, *, ranks: int = 2, complete: bool = True, more: int = 0
) -> dict[str, Any]:
    calls = [["MPI_Allreduce", 8, 1000 * ranks, 8000 * ranks, allreduce_s * ranks], ["MPI_Send", 0, ranks, 0, 0.01]]
    calls += [["MPI_Bcast", size, 1, size, 1e-6 * size] for size in range(1, more + 1)]
    mpi_s = sum(call[4] for call in calls)
    return {
        "ranks": ranks,
        "tables": ranks,
        "complete": complete,
        "wall_s": computing_s * ranks + mpi_s,
        "mpi_s": mpi_s,
        "overhead_s": 1e-6,
        "calls": calls,
    }


def side(name: str, seen: list[dict[str, Any]]) -> SideExperiment:
    experiment = Experiment("apps.lammps", {"ranks": 2, "side": name}, "", "", "")
    records = tuple(
        RepeatRecord(
            experiment.id, number, number, float(number), 1.0, Outcome.ok(), seen={"block": f"b{number}", **one}
        )
        for number, one in enumerate(seen)
    )
    contents = Contents({experiment.id: experiment}, {experiment.id: records})
    return SideExperiment(name, ExperimentResult(experiment.id, experiment, "", Outcome.ok()), contents)


def of(baseline: list[dict[str, Any]], candidate: list[dict[str, Any]]) -> Breakdown | None:
    return breakdown(side("a", baseline), side("b", candidate))


NOISE = (0.0, 0.004, -0.003, 0.001, 0.002, -0.001)


def test_the_difference_sits_in_one_call() -> None:
    found = of(
        [{"mpi": profile(0.5 + x, 1.0 - 2 * x)} for x in NOISE],
        [{"mpi": profile(0.8 + x, 1.0 + x)} for x in NOISE],
    )
    assert found is not None and found.whole is not None
    assert found.whole.difference_s == pytest.approx(sum(part.difference_s for part in found.parts))
    first = found.parts[0]
    assert (first.what, first.size_B, first.is_beyond_noise) == ("MPI_Allreduce", 8, True)
    assert first.difference_s == pytest.approx(0.3) and first.baseline_count == 1000
    computing = next(part for part in found.parts if part.what == COMPUTING)
    assert not computing.is_beyond_noise and found.parameters == {"ranks": 2}
    assert breakdown_sentence(found).startswith("Of 30") and "in MPI_Allreduce of 8 B" in breakdown_sentence(found)


def test_the_error_is_that_of_all_parts_and_not_of_the_largest() -> None:
    """60 parts without a difference, on two levels per repeat: how often any is called beyond noise."""
    source = random.Random(1)
    alarms = 0
    for _ in range(100):
        sides = [[_random_profile(source) for _ in range(8)] for _ in range(2)]
        found = of(*sides)
        alarms += found is not None and any(part.is_beyond_noise for part in found.parts)
    assert alarms <= 10


def _random_profile(source: random.Random) -> dict[str, Any]:
    level = 1.0 + 0.2 * (source.random() < 0.3)
    calls = [["MPI_Send", size, 1, size, 1e-3 * level * source.gauss(1.0, 0.1)] for size in range(1, 60)]
    mpi_s = sum(call[4] for call in calls)
    made = {"ranks": 1, "tables": 1, "complete": True, "wall_s": mpi_s + level, "mpi_s": mpi_s, "overhead_s": 1e-6}
    return {"mpi": {**made, "calls": calls}}


def test_rows_beyond_the_most_stand_together_and_everything_adds_up() -> None:
    found = of([{"mpi": profile(0.5, 1.0, more=40)}] * 3, [{"mpi": profile(0.6, 1.0)}] * 3)
    assert found is not None and found.whole is not None
    assert len(found.parts) == MOST_PARTS + 1 and found.parts[-1].what == OTHER_CALLS
    assert sum(part.baseline_s for part in found.parts) == pytest.approx(found.whole.baseline_s)


def test_incomplete_profiles_are_left_out_and_few_repeats_tell_nothing() -> None:
    whole = {"mpi": profile(0.5, 1.0)}
    torn = {"mpi": profile(9.0, 1.0, complete=False)}
    missing = {"mpi": {**profile(9.0, 1.0), "tables": 1}}
    found = of([whole, torn, missing], [whole])
    assert found is not None and found.incomplete == 2 and found.repeats == (1, 1)
    assert "No conclusion with 1 block" in breakdown_sentence(found)
    apart = {**whole, "block": ""}
    found = of([apart] * 20, [apart] * 20)
    assert found is not None and "measured apart" in breakdown_sentence(found)
    assert of([whole], [{}]) is None and of([{"mpi": None}], [whole]) is None


def test_input_and_output_alone() -> None:
    counters = {"asked_read_B": 10, "asked_written_B": 20, "device_read_B": 0, "device_written_B": 5}
    found = of([{"io": counters}], [{"io": {**counters, "asked_written_B": 40}}, {"io": None}])
    assert found is not None and found.whole is None and found.parts == ()
    assert [(one.baseline_B, one.candidate_B) for one in found.moved] == [(10, 10), (20, 40), (0, 0), (5, 5)]


def test_terminal_and_document_tell_it() -> None:
    found = of([{"mpi": profile(0.5 + x, 1.0)} for x in NOISE], [{"mpi": profile(0.8 + x, 1.0)} for x in NOISE])
    assert found is not None
    compared = Compared("a", "b", (), (), breakdowns=(replace(found, baseline="a\x1b[31m"),))
    text = compare_text([compared])
    assert "apps.lammps ranks 2: b against a: Of " in text and "\x1b" not in text
    (where,) = compare_document([compared])["where"]
    assert where["parts"][0]["what"] == "MPI_Allreduce" and where["n_repeats"] == [6, 6]


def test_the_c_variant_of_a_function_is_the_same_call() -> None:
    """mpi4py calls MPI_Allreduce_c where the library has it, and a program in C calls MPI_Allreduce."""
    baseline = [profile(1.0 + e, 5.0 - e) for e in NOISE]
    candidate = [profile(2.0 + e, 5.0 - e) for e in NOISE]
    for one in candidate:
        large = [[f"{call}_c", *rest] for call, *rest in one["calls"]]
        one["calls"] = [*large, ["MPI_Allreduce", 8, 10, 80, 0.5]]
    found = of([{"mpi": one} for one in baseline], [{"mpi": one} for one in candidate])
    assert found is not None
    (part,) = (one for one in found.parts if one.what.startswith("MPI_Allreduce"))
    assert part.what == "MPI_Allreduce" and part.baseline_count == 1000
    assert part.candidate_count == 1005 and part.difference_s == pytest.approx(1.25)
