"""What is printed of jobs: all that they recorded, and the outcome of the job for the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from analysis.made_up_folders import PARAMETERS, MadeUpFolder, noisy
from published_schemas import check

from seatrial.benchmarks import benchmark_named
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.jobs.folder import VERSION, JobFolder, entry_from, job_document
from seatrial.jobs.queue import Where
from seatrial.jobs.results import found_by, is_complete, results_of_jobs
from seatrial.jobs.submitted import machine_of_place
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.environment.site import Partition, Place, System
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.plan.points import Point
from seatrial.report.documents.plan import jobs_document

RATES = noisy(5e9, 12)


def entry(experiment: Experiment, outcome: Outcome | None = None) -> dict[str, Any]:
    (one,) = job_document([(experiment, AS_IT_IS, outcome)], None)["experiments"]
    return dict(one)


def experiments(made: MadeUpFolder) -> tuple[Experiment, Experiment]:
    """One that was measured, and one that was not."""
    made.add(RATES)
    one = Experiment("cpu.peak", {**PARAMETERS}, "env", "program", "machine-n1")
    return one, Experiment("cpu.peak", {**PARAMETERS, "precision": "fp32"}, "env", "program", "machine-n1")


def a_job(made: MadeUpFolder, time_s: float = 0.0) -> JobFolder:
    request = {"v": VERSION, "where": "tera:compute", "limit_s": 240.0, "time_s": time_s}
    job = JobFolder.create(made.folder, request, lambda job: "")
    job.write("submitted.json", {"id": "12"})
    return job


def write(job: JobFolder, name: str, *entries: dict[str, Any]) -> None:
    job.write(name, {"v": VERSION, "experiments": entries, "study": None, "problem": None})


def test_a_job_that_ended(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    measured, refused = experiments(made)
    job = a_job(made)
    write(job, "result.json", entry(measured, Outcome.ok()), entry(refused, Outcome.unsupported("gpu", "none")))
    (job.path / "ended").write_text("status=0\n")
    found = results_of_jobs(made.folder, [(job, [])], {}, is_trial=False)
    first, second = found.experiments
    assert first.outcome.is_ok and not first.reused and first.figures[0].n_repeats == len(RATES)
    assert second.outcome == Outcome.unsupported("gpu", "none")
    job.write("collected", {})
    found = results_of_jobs(made.folder, [(job, [])], {}, is_trial=False)
    assert is_complete(job) and found.experiments[0].reused


def test_a_job_that_hit_its_limit_keeps_what_it_measured(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    measured, missing = experiments(made)
    job = a_job(made)
    write(job, "planned.json", entry(measured), entry(missing))
    (job.path / "ended").write_text("status=143\n")
    job.write("over.json", {"state": "timed out", "reason": "TimeLimit"})
    first, second = results_of_jobs(made.folder, [(job, [])], {}, is_trial=False).experiments
    assert not is_complete(job)
    assert first.outcome.is_ok and first.figures[0].n_repeats == len(RATES)
    assert second.outcome.state is State.TIMED_OUT
    assert second.outcome.reason == "job 12 reached its time limit of 4 min: TimeLimit"


def test_a_job_that_never_ran_has_the_points_that_were_planned(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    job = a_job(made)
    point = Point(benchmark_named("cpu.peak"), PARAMETERS, (0,), named=True)
    (one,) = results_of_jobs(
        made.folder, [(job, [point])], {job.id: "is held: JobHeldUser"}, is_trial=False
    ).experiments
    assert one.outcome.reason == "launch: job 12 is held: JobHeldUser" and one.experiment.parameters == PARAMETERS
    (job.path / "output").write_text("No module named seatrial\n")
    (job.path / "ended").write_text("status=1\n")
    (one,) = results_of_jobs(made.folder, [(job, [point])], {}, is_trial=False).experiments
    assert one.outcome.reason.endswith("exit status 1 before it measured: No module named seatrial")


def test_an_experiment_of_two_jobs_is_printed_once(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    measured, _ = experiments(made)
    jobs = [a_job(made), a_job(made, time_s=9e9)]
    for job in jobs:
        write(job, "result.json", entry(measured, Outcome.ok()))
        (job.path / "ended").write_text("status=0\n")
    found = results_of_jobs(made.folder, [(job, []) for job in jobs], {}, is_trial=True)
    assert len(found.experiments) == 1 and found.trial is not None


def test_the_nodes_are_known_from_an_earlier_job(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    measured, _ = experiments(made)
    partition = Partition("compute")
    where = Where(Place(System("tera", (partition,), "slurm"), partition), SYSTEMS["slurm"], "tera:compute")
    assert machine_of_place(made.folder, where) is None
    job = a_job(made)
    assert machine_of_place(made.folder, where) is None
    write(job, "planned.json", entry(measured))
    assert machine_of_place(made.folder, where) is not None
    other = Where(where.place, where.batch, "tera:fat")
    assert machine_of_place(made.folder, other) is None


@pytest.mark.parametrize("content", ["[]", '{"experiments": 3}', '{"experiments": [1, {}]}', '{"study": 7}', "\0"])
def test_damaged_results_of_a_job_are_ignored(tmp_path: Path, content: str) -> None:
    made = MadeUpFolder(tmp_path / "r")
    experiments(made)
    job = a_job(made)
    (job.path / "result.json").write_text(content)
    (job.path / "ended").write_text("status=0\n")
    assert isinstance(found_by(job)["experiments"], list)
    assert not results_of_jobs(made.folder, [(job, [])], {}, is_trial=False).experiments


def test_jobs_as_json(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "r")
    waiting, over = a_job(made), a_job(made)
    over.write("over.json", {"state": "node failed", "reason": "NODE_FAIL"})
    (over.path / "started").write_text("job=12\nhost=n7\ntime=100\nstart=x\n")
    document = jobs_document("tera:compute", [waiting, over])
    check(document, "jobs-1")
    first, second = document["jobs"]
    assert (first["batch_id"], first["phase"], first["host"], first["ending"]) == ("12", "waiting", None, None)
    assert (second["phase"], second["host"], second["ending"]) == ("over", "n7", "node failed")


def test_outcomes_and_choices_are_read_as_written() -> None:
    outcome = Outcome.failed(Stage.RUN, "why", "evidence")
    experiment = Experiment("cpu.peak", {**PARAMETERS}, "env", "program", "machine-n1")
    choice = EnvironmentChoice("g++", ("-O2",), (("A", "1"), ("B", None)), "mpich", (("eager_limit", "1"),))
    for one in (choice, replace(choice, container="/images/a", container_runtime="podman", container_mpi="inside")):
        (written,) = job_document([(experiment, one, outcome)], None)["experiments"]
        assert entry_from(json.loads(json.dumps(written))) == (experiment, one, outcome)
    usual = entry(experiment, outcome)
    for damaged in ({}, {"state": "fine"}, {**usual["outcome"], "stage": "nowhere"}):
        with pytest.raises(ValueError, match=r"state|stage|enum"):
            entry_from({**usual, "outcome": damaged})
    with pytest.raises(ValueError, match="flags"):
        entry_from({**usual, "choice": {"flags": 3}})
