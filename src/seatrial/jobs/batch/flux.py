"""Flux: flux-batch(1), flux-jobs(1), flux-cancel(1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from seatrial.errors import ParseError, UsageError
from seatrial.jobs.batch.system import (
    BatchSystem,
    JobRequest,
    JobState,
    JobStatus,
    exit_status,
    job_script,
    nodes_in,
    table_lines,
)

_STATES = {
    **dict.fromkeys(("D", "P", "S", "DEPEND", "PRIORITY", "SCHED"), JobState.PENDING),
    **dict.fromkeys(("R", "C", "RUN", "CLEANUP"), JobState.RUNNING),
    **dict.fromkeys(("CD", "COMPLETED"), JobState.ENDED),
    **dict.fromkeys(("F", "FAILED"), JobState.FAILED),
    **dict.fromkeys(("CA", "CANCELED"), JobState.CANCELLED),
    **dict.fromkeys(("TO", "TIMEOUT"), JobState.TIMED_OUT),
}
"""Status, in full and abbreviated (flux-jobs(1) "JOB STATUS") -> ours."""

_DEPENDS = ("D", "DEPEND")

_EXCEPTIONS = {
    "preempt": JobState.PREEMPTED,
    "node-failure": JobState.NODE_FAILED,
    "alloc": JobState.NEVER_STARTS,  # the scheduler rejects what no set of nodes can satisfy
    "feasibility-check": JobState.NEVER_STARTS,
}
_FORMAT = (
    "{id.f58}|{status_abbrev}|{waitstatus}|{exception.type}|{exception.note}|{t_submit}|{t_run}|{t_cleanup}|{nodelist}"
    "|{urgency}"
)
_FIELDS = _FORMAT.count("|") + 1
_HOLD = "0"
"""The urgency of a job that waits until somebody raises it: flux-urgency(1)."""
_ID = re.compile(r"\A((?:ƒ|f)[1-9A-HJ-NP-Za-km-z]{1,12})\Z")


class Flux(BatchSystem):
    """Flux Framework, flux-core 0.48 and later."""

    name = "flux"
    variables: ClassVar[Mapping[str, str]] = {"FLUX_F58_FORCE_ASCII": "1"}
    submits = ("flux", "batch")
    accepted = _ID
    cancels = ("flux", "cancel")

    def script(self, request: JobRequest) -> str:
        """A script for flux batch, with one slot a node: cores (-c) and GPUs (-g) are those of a slot. Flux has no
        reservations; its queues stand for partitions."""
        its = request.options
        if its.memory is not None or its.gres:
            raise UsageError("memory and gres are not resources of Flux", "leave them out of the partition")
        tasks = request.tasks_per_node or 1
        directives = [
            f"--job-name={request.name}",
            f"--output={request.output}",
            f"-N{request.nodes}",
            f"-n{request.nodes}",
            f"-c{tasks * request.cpus_per_task}",
            f"--time-limit={math.ceil(request.time_s)}s",
        ]
        chosen = {"queue": its.queue, "bank": its.account, "requires": its.constraint}
        directives += [f"--{name}={value}" for name, value in chosen.items() if value is not None]
        if its.gpus_per_node is not None:
            directives.append(f"-g{its.gpus_per_node}")
        return job_script("#flux: ", directives + ["--exclusive"] * its.exclusive, request)

    def queries(self, ids: Sequence[str]) -> list[list[str]]:
        """Jobs in all states."""
        return [["flux", "jobs", "-a", "--no-header", f"--format={_FORMAT}", *ids]]

    def statuses(self, output: str) -> tuple[JobStatus, ...]:
        """Of `flux jobs` with bars."""
        found: list[JobStatus] = []
        for number, line in table_lines(output):
            cells = line.split("|")
            if (extra := len(cells) - _FIELDS) > 0:  # bars in the note
                cells[4 : 5 + extra] = ["|".join(cells[4 : 5 + extra])]
            cells = [cell.strip() for cell in cells]
            if len(cells) != _FIELDS or not _ID.match(cells[0]):
                raise ParseError(self.name, number, line, f"not the fields {_FORMAT}")
            found.append(_status(cells))
        return tuple(found)


def _status(cells: Sequence[str]) -> JobStatus:
    job, word, wait_status, exception, note, submitted, started, ended, nodes, urgency = cells
    state = _STATES.get(word.upper(), JobState.UNKNOWN)
    if state is JobState.FAILED:
        state = _EXCEPTIONS.get(exception, state)
    reason = ": ".join(filter(None, (exception, note)))
    if state is JobState.PENDING and urgency == _HOLD and word.upper() not in _DEPENDS:
        state, reason = JobState.HELD, reason or f"urgency {_HOLD}"
    if state is JobState.UNKNOWN:
        reason = ", ".join(filter(None, (f"status {word}", reason)))
    over = state.is_over or state is JobState.NEVER_STARTS
    status = exit_status(int(wait_status)) if re.match(r"\d{1,6}\Z", wait_status, re.ASCII) else None
    return JobStatus(
        job,
        state,
        reason,
        status if state.is_over and started else None,
        _time(submitted),
        _time(started),
        _time(ended) if over else None,
        nodes_in(nodes),
    )


def _time(text: str) -> float | None:
    return float(text) or None if re.match(r"\d{1,12}(?:\.\d{1,9})?\Z", text, re.ASCII) else None
