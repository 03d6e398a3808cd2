"""LSF: bsub(1), bjobs(1), bkill(1). States and reasons: IBM Spectrum LSF Command Reference, bjobs."""

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
    counts_of,
    job_script,
    table_lines,
    whole_MiB,
)
from seatrial.model.environment.site import ALL_MEMORY

_STATES = {
    **dict.fromkeys(("PEND", "WAIT"), JobState.PENDING),
    "PSUSP": JobState.HELD,
    **dict.fromkeys(("RUN", "PROV", "USUSP", "SSUSP"), JobState.RUNNING),
    "DONE": JobState.ENDED,
    "EXIT": JobState.FAILED,
}
"""UNKWN and ZOMBI mean that LSF lost contact with the host: what became of the job is unknown."""

_ENDS = {
    **dict.fromkeys(("TERM_RUNLIMIT", "TERM_DEADLINE", "TERM_CPULIMIT"), JobState.TIMED_OUT),
    **dict.fromkeys(("TERM_OWNER", "TERM_ADMIN", "TERM_FORCE_OWNER", "TERM_FORCE_ADMIN"), JobState.CANCELLED),
    **dict.fromkeys(("TERM_BUCKET_KILL", "TERM_ORPHAN_SYSTEM", "TERM_REMOVE_HUNG_JOB"), JobState.CANCELLED),
    "TERM_PREEMPT": JobState.PREEMPTED,
    **dict.fromkeys(("TERM_REQUEUE_OWNER", "TERM_REQUEUE_ADMIN", "TERM_RC_RECLAIM"), JobState.REQUEUED),
    **dict.fromkeys(("TERM_ZOMBIE", "TERM_EXTERNAL_SIGNAL_HOST_DOWN"), JobState.NODE_FAILED),
}
_NEVER = re.compile("Dependency condition invalid or never satisfied", re.IGNORECASE)
_FIELDS = "jobid stat exit_code exit_reason exec_host pend_reason"
_SLOTS = re.compile(r"(?:\d{1,6}\*)?(\S+)\Z", re.ASCII)
_MESSAGE = re.compile(
    r"\AJob <[^<>]*> is not found|\ANo (?:\w+ )*job found|\A[^|]*(?:Please wait|still trying)[^|]*\Z", re.IGNORECASE
)
"""What bjobs prints beside its table: of jobs that it does not know, and while the daemons of LSF do not answer."""


class Lsf(BatchSystem):
    """IBM Spectrum LSF."""

    name = "lsf"
    variables: ClassVar[Mapping[str, str]] = {"BJOBS_FORMAT": "", "LSB_BJOBS_FORMAT": "", "LSB_NTRIES": "2"}
    """Without LSB_NTRIES, bsub tries for ever where a user has as many pending jobs as the site allows."""
    submits = ("bsub",)
    """Only of a script on standard input does bsub read the directives at every site."""
    accepted = re.compile(r"Job <(\d{1,12})> is submitted")
    cancels = ("bkill",)
    full = re.compile(r"Pending (?:jobs?|slots?) (?:slots? )?threshold reached|MAX_PEND_(?:JOBS|SLOTS)", re.IGNORECASE)
    """`MAX_PEND_JOBS` and `MAX_PEND_SLOTS` (lsb.users, lsb.params)."""

    def script(self, request: JobRequest) -> str:
        """A script for bsub."""
        its = request.options
        minutes, tasks = math.ceil(request.time_s / 60), request.tasks_per_node or 1
        directives = [
            f"-J {request.name}",
            f"-o {request.output}",
            f"-n {request.nodes * tasks}",
            f'-R "span[ptile={tasks}]"',
            f'-R "affinity[core({request.cpus_per_task})]"',
            f"-W {minutes // 60:02}:{minutes % 60:02}",
        ]
        chosen = {"-q": its.queue, "-P": its.account, "-sla": its.qos, "-U": its.reservation}
        directives += [f"{flag} {value}" for flag, value in chosen.items() if value is not None]
        directives += [f'-R "select[{its.constraint}]"'] if its.constraint is not None else []
        directives += [f'-gpu "num={its.gpus_per_node}/host"'] if its.gpus_per_node is not None else []
        if its.memory == ALL_MEMORY:
            raise UsageError("LSF cannot be asked for all memory of a host", "state how much: memory: 180GiB")
        used = {} if its.memory is None else {"mem": f"{whole_MiB(its.memory)}MB"}
        used |= {name: str(number) for name, number in counts_of(its.gres, "LSF").items()}
        directives += [f'-R "rusage[{name}={amount}/host]"' for name, amount in used.items()]
        return job_script("#BSUB ", directives + ["-x"] * its.exclusive, request)

    def queries(self, ids: Sequence[str]) -> list[list[str]]:
        """It knows jobs for an hour after their end, unless the site sets another time (CLEAN_PERIOD)."""
        return [["bjobs", "-a", "-o", f"{_FIELDS} delimiter='|'", *ids]]

    def statuses(self, output: str) -> tuple[JobStatus, ...]:
        """Of `bjobs -o` with bars; the first line names the columns."""
        heads: list[str] = []
        found: list[JobStatus] = []
        for number, line in table_lines(output):
            if _MESSAGE.search(line):
                continue
            cells = [cell.strip() for cell in line.split("|")]
            if not heads:
                heads = [cell.lower() for cell in cells]
                if not {"jobid", "stat"} <= set(heads):
                    raise ParseError(self.name, number, line, "no columns JOBID and STAT, between bars")
                continue
            if len(cells) != len(heads) or not cells[heads.index("jobid")].isdecimal():
                raise ParseError(self.name, number, line, f"not the columns {'|'.join(heads)}")
            found.append(_status({name: "" if cell == "-" else cell for name, cell in zip(heads, cells, strict=True)}))
        return tuple(found)


def _status(its: Mapping[str, str]) -> JobStatus:
    state = _STATES.get(its["stat"], JobState.UNKNOWN)
    reason = its.get("exit_reason") or its.get("pend_reason") or ""
    if state is JobState.FAILED:
        state = _ENDS.get(reason.partition(":")[0].strip(), state)
    elif state is JobState.PENDING and _NEVER.search(reason):
        state = JobState.NEVER_STARTS
    if state is JobState.UNKNOWN:
        reason = ", ".join(filter(None, (its["stat"], reason)))
    code = its.get("exit_code", "")
    status = int(code) if re.match(r"\d{1,3}\Z", code, re.ASCII) else 0 if state is JobState.ENDED else None
    hosts = (match for part in its.get("exec_host", "").split(":") if (match := _SLOTS.match(part.strip())))
    nodes = tuple(dict.fromkeys(match[1] for match in hosts))
    return JobStatus(its["jobid"], state, reason, status if state.is_over else None, nodes=nodes)
