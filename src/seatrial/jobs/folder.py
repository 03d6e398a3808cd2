"""The folders of submitted jobs: `jobs/<id>/` in the results folder. What became of a job is what its files say.

request.json   what it is to measure, for the program that runs in it
script         what the batch system got
together.sh    of a job on several nodes that starts a step on each, whose files are in folders of their own
job.sh         what runs on the first node; it makes the marks `taken`, `started` and `ended`
submitted.json the batch system's id of it
taken          a link that the job makes when it starts, to its id; to `void` if it was given up before that
started        host, process and time of its latest start
ended          the exit status of what it ran, and when
planned.json   the experiments that it found to measure
result.json    what it measured, when it has ended by itself
over.json      how the batch system says that it ended, if it did not end by itself
collected      its results were printed
output         what it printed

Every file but `output` is complete or missing. The folder may come from somebody else: links are not followed, and
only jobs in folders of this user are cancelled.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, to_builtins

from seatrial.analysis.results import RunResult
from seatrial.engine.listener import Listener
from seatrial.engine.ready import Ready, Refused
from seatrial.errors import StoreError, UsageError
from seatrial.model.environment.choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_json
from seatrial.model.json_object import json_of
from seatrial.model.results.record import Experiment, content_key
from seatrial.model.results.sample import Outcome
from seatrial.model.study.study import KeptStudy, study_document
from seatrial.store.files import make_folder, opened_file, opened_folder, read_file, write_once
from seatrial.store.folder import JOB_ID, JOBS, JobMarks, ResultsFolder

PROGRAMS = "programs"
TOGETHER = "together.sh"
VOID = "void"

_SECOND = len("20260101T000000")
_BATCH_ID = re.compile(r"[A-Za-z0-9ƒ][A-Za-z0-9ƒ._\[\]+-]{0,299}")
_MOST_B = 64 << 20
_MOST_OUTPUT_B = 1 << 16
_OWN_ENDS = frozenset(range(126))
"""Exit statuses that what runs in a job chooses itself; above, a shell or a signal ended it."""


class Phase(StrEnum):
    """What the files of a job say."""

    SUBMITTING = "submitting"
    """It may have been submitted, or not: its submitter ended before it knew."""
    WAITING = "waiting"
    RUNNING = "running"
    STOPPED = "stopped"
    """What ran in it was ended by a signal; the batch system says why, and whether it will run again."""
    ENDED = "ended"
    """It ended by itself, and its result is there."""
    OVER = "over"
    """It ended in another way, or never started: `over.json` says how."""


class Over(Frozen):
    """How a job ended that did not end by itself. `state` is the word of `batch.job.JobState`, or `refused` if it was
    not accepted; `reason` is what the batch system said."""

    state: str
    reason: str


class JobFolder(JobMarks):
    """The folder of one job, in a results folder."""

    @classmethod
    def create(cls, folder: ResultsFolder, request: Mapping[str, Any], job_script: Callable[[str], str]) -> JobFolder:
        """A new job with this request; its id -> the script that it is to run. Raises StoreError."""
        made = cls(folder.path, f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}")
        try:
            make_folder(folder.path, JOBS, made.id)
            write_once(folder.path, JOBS, made.id, "job.sh", data=job_script(made.id).encode())
        except OSError as error:
            raise StoreError(f"{made.path} cannot be written: {error.strerror or error}") from error
        made.write("request.json", request)
        return made

    @classmethod
    def all(cls, folder: ResultsFolder) -> list[JobFolder]:
        """The jobs of this user in a results folder, in the order of time. One without its request was being made when
        its maker ended, and was not submitted. Raises StoreError."""
        return list(_known(folder).jobs)

    @classmethod
    def with_key(cls, folder: ResultsFolder, key: str) -> list[JobFolder]:
        """Those of a command. Raises StoreError."""
        return list(_known(folder).by_key.get(key, ()))

    @classmethod
    def at(cls, folder: ResultsFolder, where: str, node: str | None) -> list[JobFolder]:
        """Those that were submitted to a partition, for that node. Raises StoreError."""
        return list(_known(folder).by_place.get((where, node), ()))

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a document of the job. Raises StoreError."""
        self.write_text(name, json_of(document, indent=1) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Write a file of the job. Raises StoreError."""
        try:
            write_once(self.results, JOBS, self.id, name, data=text.encode())
        except OSError as error:
            raise StoreError(f"{self.path / name} cannot be written: {error.strerror or error}") from error

    def write_program(self, name: str, data: bytes) -> None:
        """Write a program that the job runs, below its folder `programs`. Raises StoreError."""
        *above, last = name.split("/")
        try:
            make_folder(self.results, JOBS, self.id, PROGRAMS, *above)
            with opened_folder(self.results, JOBS, self.id, PROGRAMS, *above) as folder:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(last, flags, 0o755, dir_fd=folder), "wb") as file:
                    file.write(data)
        except OSError as error:
            raise StoreError(f"{self.path / PROGRAMS / name} cannot be written: {error.strerror or error}") from error

    def read(self, name: str) -> dict[str, Any] | None:
        """A document of the job; None if it is missing or damaged."""
        try:
            found = parse_json(read_file(self.results, JOBS, self.id, name, most=_MOST_B))
        except (StoreError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    @property
    def request(self) -> dict[str, Any]:
        """What it was submitted for; {} if that is missing or damaged. It is written once, and so read once."""
        known = _KNOWN.get(str(self.results.absolute()))
        found = None if known is None else known.requests.get(self.id)
        return found if found is not None else self.read("request.json") or {}

    @property
    def batch_id(self) -> str | None:
        """The batch system's id of it, from whoever submitted it or from the job itself; None if unknown."""
        found = (self.read("submitted.json") or {}).get("id")
        if not isinstance(found, str):
            start = self.start()
            found = None if start is None else start.batch_id
        return found if found is not None and _BATCH_ID.fullmatch(found) else None

    @property
    def submitted_s(self) -> float:
        """When its folder was made, in seconds since 1970, on the clock of its submitter; 0 if unknown."""
        found = self.request.get("time_s")
        return float(found) if isinstance(found, int | float) else 0.0

    def write_over(self, state: str, reason: str) -> None:
        """Record how it ended, if not by itself. Raises StoreError."""
        self.write("over.json", {"state": state, "reason": reason, "time_s": time.time()})

    def over(self) -> Over | None:
        """How it ended, if not by itself."""
        found = self.read("over.json")
        return None if found is None else Over(str(found.get("state", "unknown")), str(found.get("reason", "")))

    def phase(self) -> Phase:
        """What its files say."""
        if self.has("over.json"):
            return Phase.OVER
        status = self.exit_status()
        if status is not None:
            return Phase.ENDED if status in _OWN_ENDS else Phase.STOPPED
        if self.has("started"):
            return Phase.RUNNING
        return Phase.WAITING if self.has("submitted.json") else Phase.SUBMITTING

    def give_up(self) -> bool:
        """Prevent a job that has not started from measuring when it does; False if it has started."""
        try:
            (self.path / "taken").symlink_to(VOID)
        except FileExistsError:
            with suppress(OSError):
                return str((self.path / "taken").readlink()) == VOID
            return False
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror or error}") from error
        return True

    def last_line(self) -> str:
        """The last line that it printed, "" if none."""
        with suppress(OSError), opened_file(self.results, JOBS, self.id, "output") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_OUTPUT_B))
            lines = file.read(_MOST_OUTPUT_B).decode("utf-8", "replace").strip().splitlines()
            return lines[-1][:400] if lines else ""
        return ""


class _Known(Struct):
    """The jobs of a results folder whose requests were read."""

    requests: dict[str, dict[str, Any]] = {}
    jobs: list[JobFolder] = []
    by_key: dict[str, list[JobFolder]] = {}
    by_place: dict[tuple[str, str | None], list[JobFolder]] = {}


_KNOWN: dict[str, _Known] = {}
"""By the path of the results folder: a screen asks for the jobs of each of thousands of nodes, again and again."""


def _known(folder: ResultsFolder) -> _Known:
    """All jobs that are there now; only new ones are read. Raises StoreError."""
    path = str(folder.path.absolute())
    known = _KNOWN.setdefault(path, _Known())
    try:
        with opened_folder(folder.path, JOBS) as above, os.scandir(above) as entries:
            names = {entry.name for entry in entries}
            if not known.requests.keys() <= names:  # removed, or another folder with this path
                known = _KNOWN[path] = _Known()
            new = [name for name in names - known.requests.keys() if JOB_ID.fullmatch(name) and _is_ours(name, above)]
    except FileNotFoundError:
        _KNOWN.pop(path)
        return _Known()
    except OSError as error:
        raise StoreError(f"{folder.path / JOBS} cannot be read: {error.strerror or error}") from error
    found = [job for job in (JobFolder(folder.path, name) for name in new) if _is_read(job, known)]
    if not found:
        return known
    known.jobs = sorted(known.jobs + found, key=lambda job: (job.id[:_SECOND], job.submitted_s, job.id))
    known.by_key, known.by_place = {}, {}
    for job in known.jobs:
        request = job.request
        known.by_key.setdefault(str(request.get("key")), []).append(job)
        known.by_place.setdefault((str(request.get("where")), request.get("node")), []).append(job)
    return known


def _is_ours(name: str, above: int) -> bool:
    """Whether this is a folder of this user, not a link."""
    try:
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_read(job: JobFolder, known: _Known) -> bool:
    """Read the request of a job; whether it has one."""
    request = job.read("request.json")
    if request is not None:
        known.requests[job.id] = request
    return request is not None


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
        shared=request.get("shared", False),
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
