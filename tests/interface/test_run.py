"""Settings as Python values, the number of repeats, the site of one call, and one point measured once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up import made_up_machine
from one_point import measure_point, prepare_point

import seatrial
from seatrial.engine.ready import Ready
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample
from seatrial.plan.points import values_of
from seatrial.plan.site_in_force import at_site, place_in_force, site_in_force
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

TRUE = {"argv": ("true",)}
STUDY = "study: one\nquestion: What?\nbenchmarks:\n  cpu.peak: {cores: one}\n"
SITE = "systems:\n  here:\n    partitions:\n      small: {}\n"


def test_a_list_is_several_values_and_a_tuple_is_one() -> None:
    assert values_of(
        {"threads": [1, "all"], "argv": ("a", "b"), "folder": Path("/x"), "environment.variable.A": None}
    ) == {
        "threads": [1, "all"],
        "argv": [("a", "b")],
        "folder": ["/x"],
        "environment.variable.A": ["null"],
    }


def test_an_experiment_has_one_value_of_each_parameter() -> None:
    with pytest.raises(seatrial.UsageError, match="give 2 experiments"):
        prepare_point("cpu.peak", made_up_machine(), {"precision": ["fp64", "fp32"]})


def test_a_study_defines_its_number_of_repeats(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    with pytest.raises(seatrial.UsageError, match="defines its own number of repeats"):
        seatrial.run(study, repeats=2, results=tmp_path / "r")
    with pytest.raises(seatrial.UsageError, match="repeats=0"):
        seatrial.run("cpu.peak", repeats=0)
    assert list(tmp_path.iterdir()) == [study]


def test_the_site_of_a_call_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(SITE)
    before = site_in_force(), place_in_force()
    with at_site(file, "here:small"):
        assert [system.name for system in site_in_force().systems] == ["here"] and place_in_force() is not None
    assert (site_in_force(), place_in_force()) == before


@pytest.mark.real
@pytest.mark.lab
def test_exactly_the_given_number_of_repeats_is_made(tmp_path: Path) -> None:
    def repeats(**more: bool) -> tuple[bool, int]:
        (one,) = seatrial.run("command", set=TRUE, repeats=2, results=tmp_path / "r", **more).experiments
        assert one.outcome.is_ok, one.outcome
        return one.reused, one.figures[0].n_repeats

    assert repeats() == (False, 2)
    assert repeats() == (True, 2)
    assert repeats(again=True) == (False, 4)
    (stored,) = seatrial.results(tmp_path / "r").experiments
    assert stored.figures[0].n_repeats == 4 and stored.figures[0].ci95 is None


def in_series(sample: Sample) -> tuple[str, int]:
    return sample.series, sample.i


@pytest.mark.real
def test_each_repeat_of_an_experiment_has_its_own_number(tmp_path: Path, live_machine: Machine) -> None:
    ready = prepare_point("command", live_machine, TRUE)
    assert isinstance(ready, Ready), ready.outcome
    folder = ResultsFolder.create(tmp_path / "r")
    made = [measure_point(ready, live_machine, folder) for _ in range(2)]
    assert [record.repeat for record in made] == [0, 1] and all(record.outcome.is_ok for record in made)
    kept = read_contents(folder).records[ready.experiment.id]
    for one, other in zip(kept, made, strict=True):  # samples are stored by columns: those of one series in order
        assert replace(one, samples=()) == replace(other, samples=())
        assert sorted(one.samples, key=in_series) == sorted(other.samples, key=in_series)
    assert measure_point(ready, live_machine).samples  # kept nowhere
