"""A command that submits, with a batch system that refuses, does not answer, or accepts and does not say so."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.batch.systems import SYSTEMS
from seatrial.interface import job_following, submitted
from seatrial.interface.submitted import Sent, run_in_jobs
from seatrial.interface.system import Where
from seatrial.launch.queue import QueueError
from seatrial.model.outcome import State
from seatrial.model.site import Partition, Place, System
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

SITE = "systems:\n  tera:\n    batch: slurm\n    poll: 1s\n    partitions: {compute: }\n"
Submits = Callable[[Path], str]


class FakeQueue:
    """A batch system that does this with the folder of each job."""

    def __init__(self, submits: Submits) -> None:
        self._submits = submits
        self.folders: list[Path] = []

    def submit(self, script: str) -> str:
        self.folders.append(Path(script.splitlines()[-1].split()[-1]).parent)
        return self._submits(self.folders[-1])

    def statuses(self, ids: Any) -> Any:
        raise QueueError("the batch system does not answer")


@pytest.fixture
def send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Sent, FakeQueue]]:
    (tmp_path / "site.yaml").write_text(SITE)
    monkeypatch.setattr(submitted, "_build", lambda portions, machine, tell: None)
    monkeypatch.setattr(job_following.time, "sleep", lambda seconds: None)

    def run(submits: Submits, *, has_python: bool = True, **options: Any) -> tuple[Sent, FakeQueue]:
        partition = Partition("compute", has_python=has_python)
        where = Where(Place(System("tera", (partition,), "slurm", 1.0), partition), SYSTEMS["slurm"], "tera:compute")
        queue = FakeQueue(submits)
        monkeypatch.setattr(submitted, "Queue", lambda system, environment: queue)
        options = {"site": tmp_path / "site.yaml", **options}
        return run_in_jobs(where, ["cpu.peak"], {"cores": "one"}, tmp_path / "results", **options), queue

    return run


def refuse(folder: Path) -> str:
    raise QueueError("sbatch did not accept the job: Invalid account")


def start(folder: Path) -> None:
    (folder / "taken").symlink_to("77")
    (folder / "started").write_text("job=77\nhost=n1\ntime=1\nstart=x\n")


def end(folder: Path) -> None:
    start(folder)
    (folder / "result.json").write_text('{"v": 1, "experiments": [], "study": null, "problem": null}')
    (folder / "ended").write_text("status=0\n")


def accept_but_do_not_say_so(folder: Path) -> str:
    end(folder)
    raise QueueError("sbatch did not end within 120 s")


def accept(folder: Path) -> str:
    end(folder)
    return "77"


def wait_in_the_queue(folder: Path) -> str:
    return "77"


def test_a_refusal_is_the_outcome_and_the_next_command_tries_again(send: Any) -> None:
    sent, queue = send(refuse)
    (one,) = sent.result.experiments
    assert one.outcome.state is State.FAILED and "Invalid account" in one.outcome.reason and sent.unfinished
    assert (queue.folders[0] / "taken").readlink() == Path("void"), "it measures nothing, if it was accepted"
    sent, queue = send(accept)
    assert len(queue.folders) == 1 and not sent.unfinished


def test_a_job_that_started_although_its_submission_failed_is_the_job(send: Any) -> None:
    sent, queue = send(accept_but_do_not_say_so)
    assert len(sent.jobs) == 1 and not sent.unfinished and sent.jobs[0].batch_id == "77"
    _, queue = send(refuse)
    assert not queue.folders, "nothing is missing"


def test_the_same_command_finds_its_job_in_the_queue(send: Any) -> None:
    first, queue = send(wait_in_the_queue, detach=True)
    again, other = send(wait_in_the_queue, detach=True)
    assert len(queue.folders) == 1 and not other.folders and again.jobs == first.jobs
    end(queue.folders[0])
    done, other = send(wait_in_the_queue)
    assert not other.folders and not done.unfinished and done.jobs == first.jobs


def test_again_submits_when_the_last_results_were_printed(send: Any) -> None:
    _, first = send(accept, again=True)
    _, second = send(accept, again=True)
    assert len(first.folders) == len(second.folders) == 1
    _, third = send(wait_in_the_queue, again=True, detach=True)
    _, fourth = send(wait_in_the_queue, again=True, detach=True)
    assert len(third.folders) == 1 and not fourth.folders


def run_here(folder: Path) -> str:
    """The job runs at once, on this machine, where what is called Python cannot be used."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("python", "python3"):
        (tools / name).write_text(f"#!/bin/sh\necho used >>{folder}/python-was-used\nexit 1\n")
        (tools / name).chmod(0o755)
    variables = {"PATH": f"{tools}:/usr/bin:/bin", "SLURM_JOB_ID": "77"}
    subprocess.run(["/bin/sh", str(folder / "job.sh")], env=variables, check=False, capture_output=True, timeout=60)
    return "77"


def other_machine_first(folder: Path) -> str:
    script = folder / "job.sh"
    if not (folder.parent / "once").exists():
        (folder.parent / "once").touch()
        script.write_text(script.read_text().replace(" CPUs'", "0 CPUs'"))
    return run_here(folder)


@pytest.mark.real
def test_a_node_without_python(send: Any, tmp_path: Path) -> None:
    """Planned and recorded here; the same command makes no second job, and records nothing twice."""
    sent, queue = send(run_here, has_python=False, budget_s=1.0)
    (one,) = sent.result.experiments
    assert one.outcome.is_ok and not sent.unfinished, (one.outcome, sent.unfinished)
    assert one.figures[0].n_repeats >= 6
    (folder,) = queue.folders
    assert not (folder / "python-was-used").exists()
    for name in ("planned.json", "result.json"):  # its recorder was killed before it noted that it had recorded
        (folder / name).unlink()
    again, queue = send(run_here, has_python=False, budget_s=1.0)
    assert not queue.folders and again.result.experiments[0].figures[0].n_repeats == one.figures[0].n_repeats
    contents = read_contents(ResultsFolder.existing(tmp_path / "results"))
    records = [record for own in contents.records.values() for record in own]
    assert len({record.seen["job_repeat"] for record in records}) == len(records) == one.figures[0].n_repeats
    assert all("no Python" in record.seen["not_observed"] for record in records)


@pytest.mark.real
def test_a_node_of_another_kind_is_planned_for_and_measured_by_a_second_job(send: Any) -> None:
    sent, queue = send(other_machine_first, has_python=False, budget_s=1.0)
    assert len(queue.folders) == 2 and sent.result.experiments[0].outcome.is_ok, sent.unfinished
    assert "another machine" in (queue.folders[0] / "over.json").read_text()
