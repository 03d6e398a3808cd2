"""What the files of a job say of it, and the claims of its processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.analysis.results import RunResult
from seatrial.cli.job import _measured
from seatrial.errors import UsageError
from seatrial.jobs import folder as jobs_folder
from seatrial.jobs.batch.portable import node_script
from seatrial.jobs.folder import JobFolder, Phase
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.store.claim import abandoned, claim, claimed_elsewhere
from seatrial.store.files import read_file
from seatrial.store.folder import IN_JOB, ResultsFolder


def a_job(path: Path) -> JobFolder:
    return JobFolder.create(ResultsFolder.create(path / "results"), {"v": 1, "key": "k"}, lambda job: "exit 0\n")


def started(job: JobFolder, token: str = "n1-7-100") -> None:
    (job.path / "started").write_text(f"job=12\nhost=n1\ntime=100\nstart={token}\n")


def ended(job: JobFolder, status: int) -> None:
    (job.path / "ended").write_text(f"status={status}\ntime=200\n")


def test_each_step_of_a_job(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert (job.phase(), job.batch_id) == (Phase.SUBMITTING, None)
    job.write("submitted.json", {"id": "12", "time_s": 1.0})
    assert (job.phase(), job.batch_id) == (Phase.WAITING, "12")
    started(job)
    start = job.start()
    assert job.phase() is Phase.RUNNING and start is not None and (start.host, start.time_s) == ("n1", 100.0)
    ended(job, 143)
    assert job.phase() is Phase.STOPPED
    ended(job, 3)
    assert job.phase() is Phase.ENDED
    job.write("over.json", {"state": "cancelled", "reason": "by me"})
    over = job.over()
    assert job.phase() is Phase.OVER and over is not None and (over.state, over.reason) == ("cancelled", "by me")


def test_the_request_of_each_of_2000_jobs_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen asks for the jobs of each node, before and after it has waited for them."""
    folder = ResultsFolder.create(tmp_path / "results")
    (folder.path / "jobs").mkdir()
    keys = [f"key{number}" for number in range(2000)]

    def submit(number: int) -> None:
        own = folder.path / "jobs" / f"20260101T{number:06d}-00000a"
        own.mkdir()
        request = {"v": 1, "key": keys[number], "where": "tera:compute", "node": f"n{number}", "time_s": number}
        (own / "request.json").write_text(json.dumps(request))

    read = dict.fromkeys(keys, 0)
    monkeypatch.setattr(jobs_folder, "read_file", lambda *words, most: _counted(read, read_file(*words, most=most)))
    for number in range(1990):
        submit(number)
    for number in range(1990, 2000):
        submit(number)
        assert len(JobFolder.all(folder)) == number + 1, "new ones are seen"
    found = [JobFolder.with_key(folder, key) for key in keys]
    assert [[job.request["node"] for job in own] for own in found] == [[f"n{number}"] for number in range(2000)]
    assert JobFolder.at(folder, "tera:compute", "n7") == found[7] and not JobFolder.at(folder, "tera:compute", None)
    assert set(read.values()) == {1}, "each is read once"
    shutil.rmtree(found[0][0].path)
    assert not JobFolder.with_key(folder, keys[0]) and len(JobFolder.all(folder)) == 1999, "removed ones are gone"


def _counted(read: dict[str, int], data: bytes) -> bytes:
    read[json.loads(data)["key"]] += 1
    return data


def test_a_submitter_that_died_learns_the_id_from_the_job(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    started(job)
    assert (job.phase(), job.batch_id) == (Phase.RUNNING, "12")


@pytest.mark.parametrize("word", ["--all", "1 2", "1;id", "", "$(id)"])
def test_an_id_that_could_be_another_word_is_not_one(tmp_path: Path, word: str) -> None:
    job = a_job(tmp_path)
    job.write("submitted.json", {"id": word})
    assert job.batch_id is None


def test_jobs_are_found_in_order_and_only_whole_ones(tmp_path: Path) -> None:
    first = a_job(tmp_path)
    folder = ResultsFolder.existing(tmp_path / "results")
    (first.path.parent / "20990101T000000-abcdef").mkdir()
    (first.path.parent / "other").mkdir()
    (first.path.parent / "20990101T000000-fedcba").symlink_to(first.path)
    assert JobFolder.all(folder) == [first]


@pytest.mark.parametrize("name", ["request.json", "submitted.json", "over.json", "started", "ended"])
@pytest.mark.parametrize("content", ["", "{", "[]", "\0", "status=9999\nid=1", '{"id": 3}'])
def test_damaged_files_are_missing_ones(tmp_path: Path, name: str, content: str) -> None:
    job = a_job(tmp_path)
    (job.path / name).write_text(content)
    job.phase(), job.batch_id, job.over(), job.start(), JobFolder.all(ResultsFolder.existing(tmp_path / "results"))


def test_the_last_line_of_the_output(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert job.last_line() == ""
    (job.path / "output").write_text("one\n[1/2 done] two\n\n")
    assert job.last_line() == "[1/2 done] two"
    (job.path / "output").unlink()
    (job.path / "output").symlink_to("/etc/passwd")
    assert job.last_line() == ""


def run_script(job: JobFolder, command: list[str], batch_id: str = "12") -> subprocess.CompletedProcess[str]:
    script = node_script(job.path, job.id, IN_JOB, command, job.path, {"MINE": "a 'b' $c"})
    variables = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": batch_id}
    return subprocess.run(["/bin/sh", "-c", script], env=variables, capture_output=True, text=True, check=False)


def test_the_script_marks_its_start_and_its_end(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    done = run_script(job, ["sh", "-c", 'echo "$MINE/$SEATRIAL_JOB"; exit 3'])
    start = job.start()
    assert start is not None and start.batch_id == "12"
    assert done.stdout == f"a 'b' $c/{job.id}/{start.token}\n"
    assert (done.returncode, job.exit_status(), job.phase()) == (3, 3, Phase.ENDED)
    assert not list(job.path.glob(".*.*"))


def test_a_job_that_is_requeued_starts_again(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    run_script(job, ["sh", "-c", "kill -TERM $$"])
    assert (job.exit_status(), job.phase()) == (143, Phase.STOPPED)
    done = run_script(job, ["sh", "-c", "test ! -e ended && exit 0; exit 9"])
    assert (done.returncode, job.phase()) == (0, Phase.ENDED)


def test_a_job_that_was_given_up_measures_nothing(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert job.give_up() and job.give_up()
    done = run_script(job, ["touch", "ran"])
    assert done.returncode == 0 and "given up" in done.stdout
    assert not (job.path / "ran").exists() and job.start() is None


def test_a_job_that_has_started_is_not_given_up(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    run_script(job, ["true"])
    assert not job.give_up()
    done = run_script(job, ["touch", "ran"], batch_id="13")  # another job cannot take its folder
    assert done.returncode == 0 and not (job.path / "ran").exists()


def test_the_script_passes_a_signal_on(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    command = ["sh", "-c", 'trap "exit 7" TERM; kill -TERM $PPID; sleep 5 & wait; exit 1']
    assert (run_script(job, command).returncode, job.exit_status()) == (7, 7)


def over(job: JobFolder) -> None:
    job.write("over.json", {"state": "node failed", "reason": ""})


@pytest.mark.parametrize(
    ("happens", "is_dead"),
    [
        (lambda job: None, False),
        (over, True),
        (lambda job: ended(job, 0), True),
        (lambda job: started(job, "n2-8-200"), True),
    ],
)
def test_claims_of_a_dead_job_are_free_on_every_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happens: Callable[[JobFolder], None], is_dead: bool
) -> None:
    job = a_job(tmp_path)
    started(job)
    folder = ResultsFolder.existing(tmp_path / "results")
    monkeypatch.setenv(IN_JOB, f"{job.id}/n1-7-100")
    claimed = claim(folder, "n1", "e", 0, {"order": 0, "t0": 1.0})
    assert claimed is not None
    owner = json.loads((claimed.path / "claim.json").read_text())
    (claimed.path / "claim.json").write_text(json.dumps({**owner, "boot": "another", "machine": "another"}))
    monkeypatch.delenv(IN_JOB)
    happens(job)
    assert bool(claimed_elsewhere(folder, "n2", "e", set())) != is_dead
    assert bool(abandoned(folder, "n2", "e")) == is_dead


@pytest.mark.parametrize(("raised", "status"), [(None, 0), (UsageError("no such benchmark"), 2)])
def test_a_job_that_recorded_its_result_has_succeeded(
    raised: Exception | None, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also if an experiment is invalid: a batch system sends mail about jobs that fail."""
    invalid = Outcome.invalid("residual", "3e-2")
    result = ExperimentResult("1", Experiment("cpu.peak", {}, "", "", ""), "", invalid)

    def run(path: Path, progress: object, measure: object) -> RunResult:
        if raised is not None:
            raise raised
        return RunResult((result,))

    monkeypatch.setattr("seatrial.jobs.folder.run_job", run)
    assert _measured(tmp_path) == status
