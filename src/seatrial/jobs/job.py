"""What runs in a job: the request in its folder, measured on its node into the results folder that the folder is in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from seatrial.analysis.results import RunResult
from seatrial.engine.events import Listener, Progress
from seatrial.engine.fit import Fit
from seatrial.engine.lock_file import Holder
from seatrial.engine.ready import Ready, Refused
from seatrial.errors import StoreError, UsageError
from seatrial.jobs.folder import JobFolder
from seatrial.model.environment_choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.experiment import content_key
from seatrial.model.outcome import Outcome, Stage, State
from seatrial.model.study_document import KeptStudy, study_document
from seatrial.plan.points import Point
from seatrial.store.job_marks import JOBS

VERSION = 1


def run_job(path: Path, progress: Listener, run: Callable[..., RunResult]) -> RunResult:
    """Measure, by `seatrial.run`, what the job in this folder was submitted for, and leave its result there. Raises as
    `run` does."""
    job = job_at(path)
    request = job.read("request.json")
    if request is None or request.get("v") != VERSION:
        raise UsageError(f"{path} has no request that this version reads", "submit it again with this version")
    keeps = _KeepsPlan(job, progress)
    found = run(
        *request["targets"],
        set=settings_from(request["settings"]),
        results=job.results,
        budget_s=request["budget_s"],
        again=request["again"],
        keep=request["keep"],
        site=request["site"],
        system=request["system"],
        progress=keeps,
    )
    job.write("result.json", _result(found, keeps.study))
    return found


def job_at(path: Path) -> JobFolder:
    """The job of a folder. Raises UsageError."""
    job = JobFolder(path.absolute().parents[1], path.name)
    if path.absolute().parent.name != JOBS or job.read("request.json") is None:
        raise UsageError(f"{path} is not the folder of a job")
    return job


def settings_from(document: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON has them: a list of lists has argument lists, which are tuples."""
    return {
        name: [tuple(value) if isinstance(value, list) else value for value in values]
        for name, values in document.items()
    }


class _KeepsPlan(Listener):
    """Passes events on, and keeps what the job found to measure: if it does not end by itself, its experiments are
    known."""

    def __init__(self, job: JobFolder, to: Listener) -> None:
        self._job = job
        self._to = to
        self.study: KeptStudy | None = None

    def prepared(self, experiments: Sequence[Ready | Refused], study: KeptStudy | None) -> None:
        """Write the experiments."""
        self.study = study
        entries = [
            {
                "experiment": item.experiment.document(),
                "choice": to_builtins(item.point.environment),
                "outcome": outcome_document(item.outcome) if isinstance(item, Refused) else None,
            }
            for item in experiments
        ]
        self._job.write(
            "planned.json", {"v": VERSION, "experiments": entries, "study": study_key(study), "problem": None}
        )
        self._to.prepared(experiments, study)

    def fitted(self, found: Fit) -> None:
        """Pass it on."""
        self._to.fitted(found)

    def waits_for(self, holders: Sequence[Holder]) -> None:
        """Pass it on."""
        self._to.waits_for(holders)

    def waits_for_claims(self, hosts: Sequence[str]) -> None:
        """Pass it on."""
        self._to.waits_for_claims(hosts)

    def building(self, point: Point) -> None:
        """Pass it on."""
        self._to.building(point)

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """Pass it on."""
        self._to.repeat_starts(point, repeat, progress)

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        """Pass it on."""
        self._to.repeat_done(point, outcome)


def study_key(study: KeptStudy | None) -> str | None:
    """The key of a study in the results folder."""
    return None if study is None else content_key(study_document(study))


def _result(found: RunResult, study: KeptStudy | None) -> dict[str, Any]:
    entries = [
        {
            "experiment": result.experiment.document(),
            "choice": to_builtins(found.choices.get(result.id, AS_IT_IS)),
            "outcome": outcome_document(result.outcome),
        }
        for result in found.experiments
    ]
    problem = None if found.problem is None else str(found.problem)
    return {"v": VERSION, "experiments": entries, "study": study_key(study), "problem": problem}


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON."""
    document: dict[str, Any] = to_builtins(outcome)
    return document


def outcome_from(document: Mapping[str, Any]) -> Outcome:
    """The inverse. Raises StoreError."""
    try:
        stage = document["stage"]
        return Outcome(
            State(document["state"]),
            str(document["reason"]),
            str(document["evidence"]),
            None if stage is None else Stage(stage),
            str(document["check"]),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise StoreError(f"an outcome of a job cannot be read: {error}") from error


def choice_from(document: Mapping[str, Any]) -> EnvironmentChoice:
    """The environment of an experiment of a job. Raises StoreError."""
    try:
        return EnvironmentChoice(
            document["compiler"],
            tuple(map(str, document["flags"])),
            tuple((str(name), None if value is None else str(value)) for name, value in document["variables"]),
            document["mpi"],
            tuple((str(name), str(value)) for name, value in document["mpi_settings"]),
            *(
                None if (value := document.get(name)) is None else str(value)
                for name in (
                    *("container", "container_runtime", "container_mpi", "container_build"),
                    *("container_mounts", "container_devices", "vm"),
                )
            ),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise StoreError(f"an environment of a job cannot be read: {error}") from error
