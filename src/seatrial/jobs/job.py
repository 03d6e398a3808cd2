"""What runs in a job: the request in its folder, measured on its node into the results folder that the folder is in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins

from seatrial.analysis.results import RunResult
from seatrial.engine.ready import Listener, Ready, Refused
from seatrial.errors import UsageError
from seatrial.jobs.folder import JobFolder
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.results.outcome import Outcome
from seatrial.model.results.record import Experiment, content_key
from seatrial.model.study.study import KeptStudy, study_document
from seatrial.store.folder import JOBS

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
    entries = [(one.experiment, found.choices.get(one.id, AS_IT_IS), one.outcome) for one in found.experiments]
    problem = None if found.problem is None else str(found.problem)
    job.write("result.json", job_document(entries, keeps.study, problem))
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


class _KeepsPlan:
    """A listener that passes events on, and keeps what the job found to measure: if it does not end by itself, its
    experiments are known."""

    def __init__(self, job: JobFolder, to: Listener) -> None:
        self._job = job
        self._to = to
        self.study: KeptStudy | None = None

    def __getattr__(self, event: str) -> Any:
        return getattr(self._to, event)

    def prepared(self, experiments: Sequence[Ready | Refused], study: KeptStudy | None) -> None:
        """Write the experiments."""
        self.study = study
        entries = [
            (item.experiment, item.point.environment, item.outcome if isinstance(item, Refused) else None)
            for item in experiments
        ]
        self._job.write("planned.json", job_document(entries, study))
        self._to.prepared(experiments, study)


Entry = tuple[Experiment, EnvironmentChoice, Outcome | None]
"""An experiment of a job, the environment that it chose, and its outcome as far as it is known."""


def job_document(entries: Iterable[Entry], study: KeptStudy | None, problem: str | None = None) -> dict[str, Any]:
    """What a job measured, or is going to, as JSON."""
    experiments = [
        {"experiment": experiment.document(), "choice": choice, "outcome": outcome}
        for experiment, choice, outcome in entries
    ]
    key = None if study is None else content_key(study_document(study))
    found: dict[str, Any] = to_builtins({"v": VERSION, "experiments": experiments, "study": key, "problem": problem})
    return found


def entry_from(document: Mapping[str, Any]) -> Entry:
    """The inverse for one experiment. Raises StoreError, KeyError, TypeError, ValueError."""
    parts = [document["choice"], document["outcome"]]
    return Experiment.from_document(document["experiment"]), *convert(parts, tuple[EnvironmentChoice, Outcome | None])
