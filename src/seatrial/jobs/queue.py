"""Asks a batch system: submits scripts, states what became of jobs, cancels them. One command for all jobs."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence

from seatrial.errors import ParseError, SeatrialError
from seatrial.jobs.batch.system import BatchSystem, JobState, JobStatus
from seatrial.model.frozen import Frozen
from seatrial.processes.start import OutOfTimeError, Output, output_of

_LIMIT_S = 120.0
_MOST_IDS = 200
"""Jobs in one command."""
_LONGEST_SAID = 600
_UNKNOWN = re.compile(
    r"invalid job id|unknown job|job [^\n]{0,80} not found|no (?:matching |such )?jobs?\b|job has finished|disabled",
    re.IGNORECASE,
)
"""What batch systems say of jobs that they do not know (any more), and of accounting that is not there."""


class QueueError(SeatrialError):
    """The batch system refused a request, or does not answer."""


class Queue(Frozen):
    """A batch system, asked with these environment variables."""

    system: BatchSystem
    variables: Mapping[str, str]

    def submit(self, script: str) -> str:
        """Submit a script; the id of the job. Raises QueueError with what the batch system said."""
        command = self.system.submits
        done = self._run(command, script)
        found = self.system.submitted(done.stdout.decode("utf-8", "replace"))
        if done.returncode != 0 or found is None:
            raise QueueError(f"{command[0]} did not accept the job: {said(done)}")
        return found

    def statuses(self, ids: Sequence[str]) -> dict[str, JobStatus]:
        """What the batch system says of these jobs; one that it does not know is `UNKNOWN`. Raises QueueError without
        an answer."""
        found: dict[str, JobStatus] = {}
        for first in range(0, len(ids), _MOST_IDS):
            found |= self._statuses(ids[first : first + _MOST_IDS])
        return found

    def _statuses(self, ids: Sequence[str]) -> dict[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        answered = False
        problem = ""
        for command in self.system.queries(ids):
            if all(job in found and found[job].state is not JobState.UNKNOWN for job in ids):
                break
            try:
                done = self._run(command)
                statuses = self.system.statuses(done.stdout.decode("utf-8", "replace"))
            except (QueueError, ParseError) as error:
                problem = problem or error.message
                continue
            if done.returncode == 0 or _UNKNOWN.search(said(done)):
                answered = True
            else:
                problem = problem or f"{command[0]}: {said(done)}"
            for status in statuses:
                if status.id in ids and (status.id not in found or found[status.id].state is JobState.UNKNOWN):
                    found[status.id] = status
        if not answered and not found:
            raise QueueError(f"the batch system does not answer: {problem}")
        return {job: found.get(job) or JobStatus(job, JobState.UNKNOWN) for job in ids}

    def cancel(self, ids: Sequence[str]) -> str:
        """Cancel jobs; what the batch system said, "" if it accepted. Raises QueueError if it cannot be asked."""
        if not ids:
            return ""
        done = self._run([*self.system.cancels, *ids])
        return "" if done.returncode == 0 else said(done)

    def ask(self, command: Sequence[str]) -> str:
        """What a command of the batch system prints. Raises QueueError if it fails."""
        done = self._run(command)
        if done.returncode != 0:
            raise QueueError(f"{command[0]} failed: {said(done)}")
        return done.stdout.decode("utf-8", "replace")

    def _run(self, command: Sequence[str], text: str = "") -> Output:
        path = shutil.which(command[0], path=self.variables.get("PATH", os.defpath))
        if path is None:
            raise QueueError(
                f"{command[0]} of {self.system.name} is not on PATH", "run this on a login node, or load its module"
            )
        try:
            return output_of([path, *command[1:]], {**self.variables, **self.system.variables}, _LIMIT_S, text.encode())
        except OutOfTimeError:
            raise QueueError(f"{command[0]} did not end within {_LIMIT_S:g} s") from None
        except OSError as error:
            raise QueueError(f"{command[0]} cannot be started: {error.strerror}") from error


def said(done: Output) -> str:
    """What a command printed about its failure, in one line."""
    text = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
    return " ".join(text.split())[:_LONGEST_SAID] or f"exit status {done.returncode}"
