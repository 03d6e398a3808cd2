"""A command that submits, with a batch system that refuses, does not answer, or accepts and does not say so."""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.analysis.results import RunResult
from seatrial.engine.planned import planned_experiments
from seatrial.environments.cached_files import copies
from seatrial.errors import StoreError
from seatrial.jobs import following as job_following
from seatrial.jobs import submitted
from seatrial.jobs.batch.system import JobState, JobStatus
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.jobs.folder import job_document
from seatrial.jobs.queue import QueueError, Where, places_for
from seatrial.jobs.request import Submission
from seatrial.jobs.submitted import Sent, run_in_jobs, submit_together
from seatrial.machine.live import discover_live
from seatrial.model.environment.choice import AS_IT_IS
from seatrial.model.environment.site import Partition, Place, System
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.identity import machine_identity
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Sample, State
from seatrial.plan.points import plan_points
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter

SITE = "systems:\n  tera:\n    batch: slurm\n    poll: 1s\n    partitions: {compute: }\n"
SAMPLE = Sample("fma", 0, 1.0, {"flops": 5e9})
Submits = Callable[[Path], str]


class FakeQueue:
    """A batch system that does this with the folder of each job."""

    def __init__(self, submits: Submits) -> None:
        self._submits = submits
        self.folders: list[Path] = []

    @property
    def targets(self) -> list[list[str]]:
        return [json.loads((folder / "request.json").read_text())["targets"] for folder in self.folders]

    def submit(self, script: str) -> str:
        self.folders.append(Path(script.splitlines()[-1].split()[-1]).parent)
        return self._submits(self.folders[-1])

    def statuses(self, ids: Any) -> Any:
        raise QueueError("the batch system does not answer")


@pytest.fixture
def send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Sent, FakeQueue]]:
    (tmp_path / "site.yaml").write_text(SITE)
    monkeypatch.setattr(submitted._Part, "build", lambda part: None)
    monkeypatch.setattr(job_following.time, "sleep", lambda seconds: None)

    def run(submits: Submits, *, has_python: bool = True, **options: Any) -> tuple[Sent, FakeQueue]:
        queue = FakeQueue(submits)
        monkeypatch.setattr(submitted, "Queue", lambda system, environment: queue)
        options = {"site": tmp_path / "site.yaml", **options}
        targets = tuple(options.pop("targets", ["cpu.peak"]))
        partition = Partition("compute", has_python=has_python, longest_s=options.pop("longest_s", None))
        where = Where(Place(System("tera", (partition,), "slurm", 1.0), partition), SYSTEMS["slurm"], "tera:compute")
        return run_in_jobs([where], Submission(targets, {"cores": "one"}, tmp_path / "results", **options)), queue

    return run


def refuse(folder: Path) -> str:
    raise QueueError("sbatch did not accept the job: Invalid account")


def start(folder: Path) -> str:
    (folder / "taken").symlink_to("77")
    (folder / "started").write_text("job=77\nhost=n1\ntime=1\nstart=x\n")
    return "77"


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


TWO_SYSTEMS = (
    "systems:\n  tera: {batch: slurm, partitions: {a: }}\n  peta: {batch: pbs, partitions: {b: {cpus_per_node: 1}}}\n"
)
ALONG_SYSTEM = """study: processors
question: q
benchmarks: {cpu.peak: {cores: one, precision: fp64}}
axes: {system: [tera, peta]}
compare: {along: system, baseline: tera}
"""


class Cancels(FakeQueue):
    """A batch system with jobs that wait until they are cancelled, or that does not answer (any more)."""

    def __init__(self, name: str, answers: list[bool]) -> None:
        super().__init__(lambda folder: f"{name}-1")
        self._answers = answers
        self.said: list[str] = []

    def cancel(self, ids: list[str]) -> str:
        self._ask(f"cancel {' '.join(ids)}")
        return ""

    def statuses(self, ids: Any) -> Any:
        self._ask("statuses")
        return {one: JobStatus(one, JobState.CANCELLED) for one in ids}

    def _ask(self, what: str) -> None:
        if not self._answers.pop(0):
            raise QueueError("it does not answer")
        self.said.append(what)


@pytest.mark.parametrize(
    ("answers", "left"),
    [([True, True], []), ([False], ["tera"]), ([True, False], ["tera"])],
    ids=["both answer", "one cannot be asked", "one does not answer later"],
)
def test_the_jobs_of_all_systems_are_cancelled(
    answers: list[bool], left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site.yaml").write_text(TWO_SYSTEMS)
    (tmp_path / "s.yaml").write_text(ALONG_SYSTEM)
    monkeypatch.setattr(submitted._Part, "build", lambda part: None)
    monkeypatch.setattr(job_following.time, "sleep", lambda seconds: None)
    queues = {"slurm": Cancels("tera", answers), "pbs": Cancels("peta", [True, True])}
    monkeypatch.setattr(submitted, "Queue", lambda system, environment: queues[system.name])
    site = tmp_path / "site.yaml"

    def command(**options: bool) -> Sent:
        asked = Submission((str(tmp_path / "s.yaml"),), {}, tmp_path / "results", site=site, **options)
        return run_in_jobs(places_for(site, None, asked.targets), asked)

    jobs = {job.batch_id: job for job in command(detach=True).jobs}
    assert set(jobs) == {"tera-1", "peta-1"}
    if left:
        with pytest.raises(QueueError, match="it does not answer; 1 other job cancelled"):
            command(cancel=True)
    else:
        assert command(cancel=True).note.startswith("2 jobs cancelled")
        assert command(cancel=True).note == "no job of this command is left to cancel"
    assert queues["pbs"].said == ["cancel peta-1", "statuses"]
    assert [name for name in ("tera", "peta") if not job_following.is_over(jobs[f"{name}-1"])] == left


def test_a_job_that_ends_before_it_is_cancelled_is_not_called_cancelled(
    send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, queue = send(start, detach=True)

    def cancel(asked: FakeQueue, ids: list[str]) -> str:
        (queue.folders[0] / "ended").write_text("status=0\n")
        return ""

    monkeypatch.setattr(FakeQueue, "cancel", cancel, raising=False)
    assert send(wait_in_the_queue, cancel=True)[0].note.startswith("0 jobs cancelled, 1 ended first; ")


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
    variables = {"PATH": f"{tools}:/usr/bin:/bin", "SLURM_JOB_ID": "77", "OMP_DISPLAY_ENV": "x", "HOME_KEY": "secret"}
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
    assert all(record.seen["variables"]["OMP_DISPLAY_ENV"] == "x" for record in records)
    assert "HOME_KEY" not in (folder / "variables").read_text()


@pytest.mark.real
def test_a_node_of_another_kind_is_planned_for_and_measured_by_a_second_job(send: Any) -> None:
    sent, queue = send(other_machine_first, has_python=False, budget_s=1.0)
    assert len(queue.folders) == 2 and sent.result.experiments[0].outcome.is_ok, sent.unfinished
    assert "another machine" in (queue.folders[0] / "over.json").read_text()


def n_repeats_in(results: Path) -> list[int]:
    """Of each experiment. Figures are missing where a busy CPU made one repeat invalid."""
    return [len(own) for own in read_contents(ResultsFolder.existing(results)).records.values()]


def cancel_after(lines: int) -> Submits:
    """The job is cancelled when it has made so many repeats."""

    def submits(folder: Path) -> str:
        run_here(folder)
        log = folder / "repeats" / "repeats"
        kept = log.read_text().splitlines(keepends=True)[:lines]
        assert len(kept) == lines
        log.write_text("".join(kept))
        (folder / "ended").unlink()
        over = {"state": "cancelled", "reason": "CANCELLED", "time_s": 1.0}
        (folder / "over.json").write_text(json.dumps(over))
        return "77"

    return submits


@pytest.mark.real
def test_a_cancelled_job_without_python_that_made_enough_is_done(send: Any, tmp_path: Path) -> None:
    sent, _ = send(cancel_after(6), has_python=False, budget_s=1.0)
    assert not sent.unfinished and n_repeats_in(tmp_path / "results") == [6]
    again, queue = send(run_here, has_python=False, budget_s=1.0)
    assert not queue.folders and not again.unfinished


@pytest.mark.real
def test_the_next_job_without_python_makes_what_a_cancelled_one_did_not(send: Any, tmp_path: Path) -> None:
    sent, _ = send(cancel_after(2), has_python=False, budget_s=0.01)
    assert "cancelled" in sent.unfinished[0].reason
    again, queue = send(run_here, has_python=False, budget_s=0.01)
    assert len((queue.folders[0] / "repeats" / "repeats").read_text().splitlines()) == 4
    assert not again.unfinished and n_repeats_in(tmp_path / "results") == [6]


@pytest.mark.real
def test_a_job_without_python_needs_nothing_of_its_submitter(send: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its programs are copies, and another process records it."""
    _, queue = send(wait_in_the_queue, has_python=False, budget_s=1.0, detach=True)
    kept = {Path(path): Path(path).with_suffix(".away") for path in copies() if Path(path).exists()}
    for path, away in kept.items():  # other tests of this process still start them
        path.rename(away)
    try:
        run_here(queue.folders[0])
    finally:
        for path, away in kept.items():
            away.rename(path)
    monkeypatch.setattr("seatrial.environments.cached_files._folders", {})  # as another process has other copies
    done, queue = send(refuse, has_python=False, budget_s=1.0)
    assert not queue.folders and not done.unfinished and done.result.experiments[0].outcome.is_ok
    assert not list(done.jobs[0].path.glob("programs/*"))


class EndedError(Exception):
    """The submitter ends here."""


def one_then_end() -> Submits:
    accepted: list[Path] = []

    def submits(folder: Path) -> str:
        if accepted:
            raise EndedError
        accepted.append(folder)
        return "77"

    return submits


def test_the_rest_is_submitted_after_a_submitter_ended_between_two_jobs(send: Any, tmp_path: Path) -> None:
    several: dict[str, Any] = {"targets": ["cpu.peak", "cpu.gemm"], "detach": True, "longest_s": 1.0}
    with pytest.raises(EndedError):
        send(one_then_end(), **several)
    again, queue = send(wait_in_the_queue, **several)
    assert len(again.jobs) == 2
    last, queue = send(wait_in_the_queue, **several)
    assert len(last.jobs) == 2 and not queue.folders, "nothing is missing"


def measure(folder: Path) -> str:
    """What a job does, as far as its files show: a record of each experiment, and the result."""
    request = json.loads((folder / "request.json").read_text())
    results, machine = ResultsFolder.existing(folder.parents[1]), discover_live()
    identity = machine_identity(machine)[:16]
    results.put("machines", identity, {"identity": identity, **machine_document(machine)})
    points = plan_points(request["targets"], request["settings"], machine)
    writer, entries = RecordWriter(results, "n1"), []
    for _, experiment, _ in planned_experiments(points, machine):
        results.put("experiments", experiment.id, experiment.document())
        results.put("environments", experiment.environment, {"name": "gcc 12 -O3", "flags": ["-O3"]})
        seen = {"host": "n1", "affinity": [[0]], "budget_s": 60.0}
        writer.append(RepeatRecord(experiment.id, 0, 0, 1.7e9, 0.3, Outcome.ok(), (SAMPLE,), {}, seen))
        entry = {"experiment": experiment.document(), "choice": asdict(AS_IT_IS), "outcome": asdict(Outcome.ok())}
        entries.append(entry)
    writer.close()
    end(folder)
    document = {"v": 1, "experiments": entries, "study": None, "problem": None}
    (folder / "result.json").write_text(json.dumps(document))
    return "77"


def test_no_job_is_submitted_for_what_earlier_jobs_measured(send: Any, tmp_path: Path) -> None:
    _, queue = send(measure, targets=["cpu.peak", "cpu.linebounce"])
    assert queue.targets == [["cpu.peak", "cpu.linebounce"]]
    sent, queue = send(refuse)
    assert not queue.folders and not sent.jobs and not sent.unfinished
    assert {(one.experiment.benchmark, one.reused) for one in sent.result.experiments} == {("cpu.peak", True)}
    _, queue = send(measure, targets=["cpu.peak", "memory.latency"])
    assert queue.targets == [["memory.latency"]], "only what is missing"
    sent, queue = send(refuse, targets=["memory.latency", "cpu.peak"])
    assert not queue.folders
    assert {one.experiment.benchmark for one in sent.result.experiments} == {"cpu.peak", "memory.latency"}
    _, queue = send(wait_in_the_queue, again=True, detach=True)
    assert queue.targets == [["cpu.peak"]], "asked for again"
    for file in (tmp_path / "results" / "records").iterdir():
        file.unlink()
    _, queue = send(wait_in_the_queue, detach=True)
    assert queue.targets == [["cpu.peak"]], "its records were dropped"


def test_who_submits_into_the_same_folder_at_the_same_time_waits_and_says_so(send: Any, tmp_path: Path) -> None:
    first, _ = send(wait_in_the_queue, detach=True)
    told: list[str] = []
    with (tmp_path / "results" / "jobs" / ".lock").open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def tell(text: str) -> None:
            told.append(text)
            fcntl.flock(held, fcntl.LOCK_UN)

        second, queue = send(wait_in_the_queue, detach=True, tell=tell)
    assert told == [
        f"another process submits jobs into {tmp_path / 'results'}; waiting until it has",
        "already submitted by the same command: job 77",
    ]
    assert not queue.folders and second.jobs == first.jobs


def test_what_a_finished_job_did_not_start_is_said() -> None:
    """No record has it: a screen would only find the node missing."""

    def result(outcome: Outcome, *hosts: str) -> ExperimentResult:
        return ExperimentResult("0", Experiment("cpu.peak", {}, "", "", ""), "?", outcome, hosts=hosts)

    refused = Outcome.skipped("another run measures it")
    made = RunResult((result(Outcome.ok(), "n1"), result(refused), result(refused, "n2")), problem=StoreError("full"))
    assert Sent((), made).unmeasured == ["cpu.peak skipped: another run measures it", "full"], "a record says it of n2"
    assert Sent((), made, unfinished=(Outcome.skipped("job 7 was cancelled"),)).unmeasured == ["job 7 was cancelled"]
    assert Sent(()).unmeasured == []


class QueueOfNodes(FakeQueue):
    """It accepts this many jobs at once, and says that all of them end in the same way."""

    def __init__(self, submits: Submits, most: int = 1) -> None:
        super().__init__(submits)
        self.scripts: list[str] = []
        self._most = most

    def submit(self, script: str) -> str:
        if len(self.scripts) >= self._most:
            raise QueueError("sbatch did not accept the job: sbatch: error: AssocMaxSubmitJobLimit")
        self.scripts.append(script)
        return super().submit(script)

    def statuses(self, ids: Any) -> Any:
        return {job: JobStatus(job, JobState.TIMED_OUT, "TimeLimit") for job in ids}


def of_nodes(*names: str) -> list[Where]:
    partition = Partition("compute")
    place = Place(System("tera", (partition,), "slurm", 0.0), partition)
    return [Where(place, SYSTEMS["slurm"], "tera:compute", name) for name in names]


def test_nodes_share_a_job_and_each_has_its_own_result(
    send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = QueueOfNodes(wait_in_the_queue)
    monkeypatch.setattr(submitted, "Queue", lambda system, environment: queue)
    told: list[str] = []
    asked = Submission(
        ("cpu.peak",), {"cores": "one"}, tmp_path / "results", site=tmp_path / "site.yaml", tell=told.append
    )
    assert submit_together(of_nodes("n1", "n2", "n3"), asked) and len(queue.scripts) == 1
    assert "#SBATCH --nodes=3\n" in queue.scripts[0] and "#SBATCH --no-kill\n" in queue.scripts[0]
    assert "#SBATCH --nodelist=n1,n2,n3\n" in queue.scripts[0] and "n[1-3]" in told[-1]
    folders = sorted((tmp_path / "results" / "jobs").glob("2*"))
    assert {json.loads((folder / "submitted.json").read_text())["id"] for folder in folders} == {"77"}
    (steps,) = (folder / "together.sh" for folder in folders if (folder / "together.sh").exists())
    assert all(str(folder / "job.sh") in steps.read_text() for folder in folders)
    assert submit_together(of_nodes("n1", "n2", "n3"), asked) and len(queue.scripts) == 1, "nothing is missing"
    of_node = {json.loads((folder / "request.json").read_text())["node"]: folder for folder in folders}
    end(of_node["n2"])
    sent = {at.node: run_in_jobs([at], asked) for at in of_nodes("n1", "n2", "n3")}
    assert [len(own.unfinished) for own in sent.values()] == [1, 0, 1] and len(queue.scripts) == 1
    assert "TimeLimit" in sent["n1"].unfinished[0].reason


def test_a_screen_of_many_nodes_reads_each_file_of_records_once(
    send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All records were read again for each node."""
    names = ["n1", "n2", "n3"]
    folder = ResultsFolder.create(tmp_path / "results")
    refused = Experiment("cpu.gemm", {}, "env", "", "machine")

    def measure(job: Path) -> str:
        number = len(queue.folders) - 1
        experiment = Experiment("cpu.peak", {"cores": "one"}, "env", "program", "machine")
        writer = RecordWriter(folder, names[number])
        writer.append(
            RepeatRecord(experiment.id, number, 0, 1.7e9, 0.3, Outcome.ok(), (SAMPLE,), {}, {"host": names[number]})
        )
        writer.close()
        end(job)
        entries = [(experiment, AS_IT_IS, Outcome.ok()), (refused, AS_IT_IS, Outcome.unsupported("gpu", "none"))]
        (job / "result.json").write_text(json.dumps(job_document(entries, None)))
        return "77"

    queue = QueueOfNodes(measure, most=len(names))
    monkeypatch.setattr(submitted, "Queue", lambda system, environment: queue)
    asked = Submission(("cpu.peak",), {"cores": "one"}, tmp_path / "results", site=tmp_path / "site.yaml")
    for at in of_nodes(*names):
        run_in_jobs([at], replace(asked, detach=True))
    read: list[str] = []
    lines = ResultsFolder.record_lines
    monkeypatch.setattr(ResultsFolder, "record_lines", lambda *own: read.append(own[1]) or lines(*own))
    sent = [run_in_jobs([at], asked, in_brief=True) for at in of_nodes(*names)]
    assert len(queue.scripts) == len(names)
    assert {tuple(one.not_started) for one in sent} == {(("cpu.gemm", "cpu.gemm unsupported: gpu: none"),)}
    assert len(read) == len(names)


class FullQueue(FakeQueue):
    """It has as many jobs as the site allows after one; each is over when it is asked for."""

    def __init__(self) -> None:
        super().__init__(wait_in_the_queue)
        self.waiting: list[Path] = []
        self.refused = 0

    def submit(self, script: str) -> str:
        if self.waiting:
            self.refused += 1
            raise QueueError("qsub did not accept the job: qsub: would exceed queue generic's per-user limit")
        super().submit(script)
        self.waiting.append(self.folders[-1])
        return f"{len(self.folders)}.pbs"

    def statuses(self, ids: Any) -> Any:
        for folder in self.waiting:
            end(folder)
        self.waiting.clear()
        return {job: JobStatus(job, JobState.ENDED, "") for job in ids}


def test_jobs_beyond_the_limit_of_a_site_are_submitted_when_others_have_ended(
    send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were refused, and only the same command given again submitted them."""
    queue = FullQueue()
    monkeypatch.setattr(submitted, "Queue", lambda system, environment: queue)
    partition = Partition("compute", cpus_per_node=2, longest_s=100.0)
    where = Where(Place(System("tera", (partition,), "pbs", 0.0), partition), SYSTEMS["pbs"], "tera:compute")
    told: list[str] = []
    asked = Submission(
        ("cpu.peak", "cpu.gemm", "memory.stream"),
        {},
        tmp_path / "results",
        site=tmp_path / "site.yaml",
        tell=told.append,
    )
    sent = run_in_jobs([where], asked)
    assert not sent.unfinished and not queue.waiting and len(queue.folders) == 3
    assert queue.refused == 3 and sum("more than the site accepts at once" in text for text in told) == 2


def test_what_cannot_share_a_job_now_or_ever(send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = QueueOfNodes(wait_in_the_queue, most=0)
    monkeypatch.setattr(submitted, "Queue", lambda system, environment: queue)
    asked = Submission(("cpu.peak",), {"cores": "one"}, tmp_path / "results", site=tmp_path / "site.yaml")
    assert submit_together(of_nodes("n1", "n2"), asked) is None
    queue._most = 9
    assert submit_together(of_nodes("n1", "n2"), asked) and len(queue.scripts) == 1
    ranks = Submission(("mpi.latency",), {}, tmp_path / "others", site=tmp_path / "site.yaml")
    assert submit_together(of_nodes("n1", "n2"), ranks) is False and len(queue.scripts) == 1


def test_cancelling_one_node_of_a_job_ends_all_of_it(
    send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = QueueOfNodes(wait_in_the_queue)
    monkeypatch.setattr(submitted, "Queue", lambda system, environment: queue)
    asked = Submission(("cpu.peak",), {"cores": "one"}, tmp_path / "results", site=tmp_path / "site.yaml")
    assert submit_together(of_nodes("n1", "n2"), asked)
    jobs = submitted.JobFolder.all(ResultsFolder.existing(tmp_path / "results"))
    ended: list[str] = []
    monkeypatch.setattr(queue, "cancel", lambda ids: ended.extend(ids) or "", raising=False)
    by_id = job_following.cancel_jobs(jobs, queue, print)  # type: ignore[arg-type]
    assert ended == ["77"] and [len(own) for own in by_id.values()] == [2]
    job_following.wait_for_cancelled(by_id, queue, print)  # type: ignore[arg-type]
    assert all(job_following.is_over(job) for job in jobs)
