"""What the files of a job say of its latest start: whoever claims records asks this of jobs that may be gone."""

from __future__ import annotations

import os
import re
from pathlib import Path

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.store.files import read_file

JOBS = "jobs"
IN_JOB = "SEATRIAL_JOB"
"""The variable that tells a process in a job its folder and start: `<id>/<start>`."""
JOB_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")
_MOST_MARK_B = 1 << 16


class Start(Frozen):
    """The latest start of a job: the batch system's id of it, the host, the time in seconds since 1970."""

    batch_id: str
    host: str
    time_s: float
    token: str


class JobMarks(Frozen):
    """The marks of one job, in a results folder."""

    results: Path
    id: str

    @property
    def path(self) -> Path:
        """The absolute path."""
        return self.results.absolute() / JOBS / self.id

    def has(self, name: str) -> bool:
        """Whether a file of the job exists."""
        return os.path.lexists(self.path / name)

    def start(self) -> Start | None:
        """Its latest start."""
        mark = self._mark("started")
        try:
            return Start(mark["job"], mark["host"], float(mark["time"]), mark["start"])
        except (KeyError, ValueError):
            return None

    def exit_status(self) -> int | None:
        """The exit status of what ran in it; None if it has not ended since its latest start."""
        status = self._mark("ended").get("status", "")
        return int(status) if re.fullmatch(r"\d{1,3}", status, re.ASCII) else None

    def ended_s(self) -> float | None:
        """When what ran in it ended, in seconds since 1970, by the clock of its host; None if it has not."""
        try:
            return float(self._mark("ended")["time"])
        except (KeyError, ValueError):
            return None

    def _mark(self, name: str) -> dict[str, str]:
        """The values of a mark: lines `name=value`. {} if it is missing."""
        try:
            data = read_file(self.results, JOBS, self.id, name, most=_MOST_MARK_B)
        except StoreError:
            return {}
        pairs = (line.partition("=") for line in data.decode("utf-8", "replace").splitlines())
        return {key: value for key, equals, value in pairs if equals}


def is_dead_in_job(results: Path, job: object) -> bool:
    """Whether a process that ran in a job, as `IN_JOB` names it, is gone, whichever host it ran on: its job is over or
    has ended, or has started again since."""
    if not isinstance(job, str):
        return False
    name, _, token = job.partition("/")
    if not JOB_ID.fullmatch(name):
        return False
    folder = JobMarks(results, name)
    if folder.has("over.json") or folder.exit_status() is not None:
        return True
    start = folder.start()
    return start is not None and start.token != token
