"""PBS: OpenPBS and PBS Professional (JSON), and Torque (text): qsub(1), qstat(1), qdel(1).

Negative exit statuses: OpenPBS, PBS Professional Administrator's Guide, "Job Exit Status Codes".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from seatrial.errors import ParseError, UsageError
from seatrial.jobs.batch.system import (
    BatchSystem,
    JobRequest,
    JobState,
    JobStatus,
    clock,
    counts_of,
    job_script,
    table_lines,
    whole_MiB,
)
from seatrial.model.environment.site import ALL_MEMORY

_STATES = {
    **dict.fromkeys("QWTM", JobState.PENDING),
    "H": JobState.HELD,
    **dict.fromkeys("REBSU", JobState.RUNNING),
    **dict.fromkeys("FXC", JobState.ENDED),  # until its exit status is known
}
_OVER_TIME = (-28, -29)
_ABORTED_ON_NODE = -4
_RETRIED = (-3, -5, -6)
_TERMINATED_SUBSTATE = "91"
_DELETED = 271  # 256 and SIGTERM: qdel, or a limit
_JOB = re.compile(r"Job Id:\s*(\S+)\s*\Z")
_TEXT = re.compile(r"^Job Id:", re.MULTILINE)
_ATTRIBUTE = re.compile(r"\s+([A-Za-z_][\w.]*) = (.*)\Z")
_FREE_TEXT = ("comment", "sched_hint", "Variable_List", "Submit_arguments", "submit_args")
"""Attributes whose value may have line breaks: messages of the server, and the environment of the job."""
_EXEC_HOST = re.compile(r"[\w.\-]{1,255}(?:/[\d,*\-]{1,255})?\Z", re.ASCII)


class Pbs(BatchSystem):
    """OpenPBS and Torque."""

    name = "pbs"
    submits = ("qsub",)
    accepted = re.compile(r"\A(\d{1,12}(?:\[\d*\])?(?:\.[\w.\-]{1,255})?)\Z", re.ASCII)  # 123.server
    cancels = ("qdel",)
    full = re.compile(
        r"Maximum number of jobs\b.{0,200}\balready in (?:complex|queue)"
        r"|would exceed (?:complex|queue \S{1,255})'s (?:per-\w{1,9} )?limit"
        r"|would exceed .{0,255}?limit on resource \S{1,255} in (?:complex|queue )",
        re.IGNORECASE,
    )
    """`max_queued` and `queued_jobs_threshold` of OpenPBS, `max_queuable` and `max_user_queuable` of Torque."""

    def script(self, request: JobRequest) -> str:
        """A script for qsub of OpenPBS."""
        its = request.options
        tasks = request.tasks_per_node or 1
        select = f"{request.nodes}:ncpus={tasks * request.cpus_per_task}:mpiprocs={tasks}"
        select += f":ngpus={its.gpus_per_node}" if its.gpus_per_node is not None else ""
        if its.memory == ALL_MEMORY:
            raise UsageError("PBS cannot be asked for all memory of a node", "state how much: memory: 180GiB")
        select += f":mem={whole_MiB(its.memory)}mb" if its.memory is not None else ""
        select += "".join(f":{name}={number}" for name, number in counts_of(its.gres, "PBS").items())
        select += f":{its.constraint}" if its.constraint is not None else ""
        place = "scatter:excl" if its.exclusive else "scatter"
        directives = [f"-N {request.name}", "-j oe", f"-o {request.output}", f"-l select={select}", f"-l place={place}"]
        directives.append(f"-l walltime={clock(request.time_s)}")
        chosen = {"-q": its.reservation or its.queue, "-A": its.account, "-l qos=": its.qos}
        directives += [f"{flag}{'' if flag[-1] == '=' else ' '}{value}" for flag, value in chosen.items() if value]
        return job_script("#PBS ", directives, request)

    def queries(self, ids: Sequence[str]) -> list[list[str]]:
        """OpenPBS knows finished jobs (-x) if the server keeps a history; Torque has neither -x nor JSON."""
        return [["qstat", "-x", "-f", "-F", "json", *ids], ["qstat", "-f", *ids]]

    def statuses(self, output: str) -> tuple[JobStatus, ...]:
        """Of `qstat -f`, as JSON or text."""
        if (begin := re.search(r"^\s*\{", output, re.MULTILINE)) and not _TEXT.search(output):
            try:
                document, _ = json.JSONDecoder().raw_decode(output[begin.start() :].lstrip())
                jobs = document.get("Jobs", {})
                return tuple(_status(job, _flat(attributes)) for job, attributes in jobs.items())
            except (ValueError, AttributeError, RecursionError) as error:
                raise ParseError(self.name, None, "", f"not the JSON of qstat: {error}") from None
        return tuple(_status(job, attributes) for job, attributes in self._records(output))

    def _records(self, output: str) -> Iterator[tuple[str, dict[str, str]]]:
        """(id, attributes) of each job; a line that begins with a tab continues the value above it. A value with line
        breaks may have lines that look like an attribute, so the first one of a name counts."""
        job: str | None = None
        attributes: dict[str, str] = {}
        last = ""
        for number, line in table_lines(output, "Job Id:"):
            if match := _JOB.match(line):
                if job is not None:
                    yield job, attributes
                job, attributes, last = match[1], {}, ""
            elif line.startswith("\t") and last:
                attributes[last] += line[1:]
            elif job is not None and (match := _ATTRIBUTE.match(line)) and match[1] not in attributes:
                last = match[1]
                attributes[last] = match[2]
            elif line.strip() and last in _FREE_TEXT:
                attributes[last] += f" {line.strip()}"
            elif line.strip():
                raise ParseError(self.name, number, line, "not a job of `qstat -f`, nor one of its attributes")
        if job is not None:
            yield job, attributes


def _flat(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in attributes.items() if not isinstance(value, dict | list)}


def _status(job: str, its: Mapping[str, str]) -> JobStatus:
    state = _STATES.get(its.get("job_state", ""), JobState.UNKNOWN)
    text = its.get("Exit_status", its.get("exit_status", ""))
    status = int(text) if re.match(r"-?\d{1,9}\Z", text, re.ASCII) else None
    reason = its.get("comment", "")
    if state is JobState.ENDED:
        state = _end(status, its)
    elif state is JobState.HELD and _waits_for_a_job(its):
        state = JobState.PENDING
    elif reason.startswith("Can Never Run"):
        state = JobState.NEVER_STARTS
    elif state is JobState.PENDING and its.get("run_count", "0") not in ("0", "1"):
        state = JobState.REQUEUED
    if state is JobState.UNKNOWN:
        reason = ", ".join(filter(None, (f"job_state {its.get('job_state')}", reason)))
    return JobStatus(
        job,
        state,
        reason,
        # PBS adds 256 to the number of a signal, where a shell adds 128.
        (status - 128 if status is not None and status > 256 else status) if state.is_over else None,
        _time(its.get("qtime") or its.get("ctime")),
        _time(its.get("stime") or its.get("start_time")),
        _time(its.get("obittime") or its.get("comp_time")) if state.is_over else None,
        _nodes(its.get("exec_host", "")),
    )


def _waits_for_a_job(its: Mapping[str, str]) -> bool:
    """Whether PBS holds a job until others have ended, and then releases it: qsub(1B), "-W depend". Its holds
    otherwise are those of users and operators."""
    return "after" in its.get("depend", "") and set(its.get("Hold_Types", "s")) <= {"s"}


def _nodes(text: str) -> tuple[str, ...]:
    """Of "n1/0*4+n2/0-3"; empty for anything else: a part that is not understood would be a node less."""
    parts = text.split("+")
    if not all(_EXEC_HOST.match(part) for part in parts):
        return ()
    return tuple(dict.fromkeys(part.partition("/")[0] for part in parts))


def _end(status: int | None, its: Mapping[str, str]) -> JobState:
    if its.get("substate") == _TERMINATED_SUBSTATE:
        return JobState.CANCELLED
    if status is None:
        return JobState.UNKNOWN
    if status in _OVER_TIME:
        return JobState.TIMED_OUT
    if status == _ABORTED_ON_NODE:
        return JobState.NODE_FAILED
    if status in _RETRIED:
        return JobState.REQUEUED
    if status == 0:
        return JobState.ENDED
    return JobState.CANCELLED if status == _DELETED and "delete" in its.get("comment", "").lower() else JobState.FAILED


def _time(text: str | None) -> float | None:
    """Of "Tue Oct 11 08:13:45 2022", in local time."""
    try:
        return datetime.strptime(text or "", "%a %b %d %H:%M:%S %Y").timestamp()
    except (ValueError, OverflowError):
        return None
