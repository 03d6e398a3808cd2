"""Slurm: sbatch(1), squeue(1), sacct(1), scontrol(1), scancel(1)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from seatrial.errors import ParseError
from seatrial.jobs.batch.system import (
    BatchSystem,
    JobRequest,
    JobState,
    JobStatus,
    clock,
    job_script,
    nodes_in,
    table_lines,
    whole_MiB,
)
from seatrial.model.environment.site import JobOptions
from seatrial.model.machine.host_list import expand_hosts

_STATES = {
    **dict.fromkeys(("PENDING", "PD", "CONFIGURING", "CF", "POWER_UP_NODE", "EXPEDITING"), JobState.PENDING),
    **dict.fromkeys(("RUNNING", "R", "COMPLETING", "CG", "SUSPENDED", "S", "STAGE_OUT", "SO"), JobState.RUNNING),
    **dict.fromkeys(("SIGNALING", "SI", "STOPPED", "ST", "RESIZING", "RS", "UPDATE_DB"), JobState.RUNNING),
    **dict.fromkeys(("COMPLETED", "CD"), JobState.ENDED),
    **dict.fromkeys(("FAILED", "F", "OUT_OF_MEMORY", "OOM"), JobState.FAILED),
    **dict.fromkeys(("CANCELLED", "CA", "REVOKED", "RV"), JobState.CANCELLED),
    **dict.fromkeys(("TIMEOUT", "TO", "DEADLINE", "DL"), JobState.TIMED_OUT),
    **dict.fromkeys(("PREEMPTED", "PR"), JobState.PREEMPTED),
    **dict.fromkeys(("NODE_FAIL", "NF", "BOOT_FAIL", "BF", "LAUNCH_FAILED", "RECONFIG_FAIL"), JobState.NODE_FAILED),
    **dict.fromkeys(("REQUEUED", "RQ", "REQUEUE_FED", "RF"), JobState.REQUEUED),
    **dict.fromkeys(("REQUEUE_HOLD", "RH", "SPECIAL_EXIT", "SE", "RESV_DEL_HOLD", "RD"), JobState.HELD),
}
"""State or flag of one, in full and as squeue's code (slurm.schedmd.com/job_state_codes.html) -> ours."""
_STRONGER = (JobState.HELD, JobState.REQUEUED, JobState.RUNNING)
"""Flags that say more than the state that they are added to: a job that is COMPLETED,COMPLETING has not ended."""

_HELD = re.compile(
    r"JobHeld(?:User|Admin)\Z|JobHoldMaxRequeue|user env retrieval failed|launch failed requeued held"
    r"|Reservation ?Deleted",
    re.IGNORECASE,
)
"""Reasons that somebody must remove (slurm.schedmd.com/job_reason_codes.html)."""
_NEVER = re.compile(
    r"DependencyNeverSatisfied|BadConstraints|Partition(?:Config|TimeLimit)|Invalid(?:Account|QOS)|AccountNotAllowed"
    r"|QOSNotAllowed|(?:Assoc|QOS)Max\w+Per(?:Job|Node)\w*|MaxMemPerLimit|\w*MinNotSatisfied|QOSMinGRES",
    re.IGNORECASE,
)
"""Reasons that are in the job itself: waiting does not help. PartitionNodeLimit is not one: so Slurm also says that
nodes are down."""

_SWITCH_WAIT = "7-0"
"""Days that a job waits for nodes below so few switches, at most; a site may allow less (max_switch_wait)."""
_NODES = {"SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1"}
_NODE_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
_FIELDS = "JobID,State,ExitCode,Reason,Submit,Start,End,NodeList"
_SQUEUE = "%i|%T||%r|%V|%S|%e|%N"
_PAIR = re.compile(r"(?:(?<=\s)|\A)([A-Za-z]\w*(?:/\w+)?)=(\S*)", re.ASCII)
_ID = re.compile(r"\d{1,12}(?:_\d{1,9}|_\[[\d,\-%]{1,200}\]|\+\d{1,9})?\Z", re.ASCII)


class Slurm(BatchSystem):
    """Slurm 20.11 and later."""

    name = "slurm"
    requests_whole_nodes = True
    is_verified = True
    chooses_nodes = True
    goes_on = ("#SBATCH --no-kill",)
    variables: ClassVar[Mapping[str, str]] = {"SLURM_TIME_FORMAT": "%s"}
    submits = ("sbatch", "--parsable")  # which prints the id alone
    accepted = re.compile(r"\A(?:Submitted batch job )?(\d{1,12})(?:;\S*)?\s*\Z", re.ASCII)
    cancels = ("scancel",)
    full = re.compile(r"(?:Assoc|QOS)(?:Grp|Max)SubmitJob|MaxSubmitJobs|temporarily unable to accept", re.IGNORECASE)

    def script(self, request: JobRequest) -> str:
        """A script for sbatch."""
        its = request.options
        directives = [
            f"--job-name={request.name}",
            f"--output={request.output}",
            f"--nodes={request.nodes}",
            f"--time={clock(request.time_s)}",
        ]
        if request.tasks_per_node is not None:  # else Slurm makes it the number of CPUs that the job has on a node
            tasks = f"--ntasks-per-node={request.tasks_per_node}"
            directives[3:3] = [tasks, f"--cpus-per-task={request.cpus_per_task}"]
        directives += _chosen(its)
        if request.node_list:
            directives.append(f"--nodelist={','.join(request.node_list)}")
        if request.switches is not None:
            # Without a time, Slurm waits 5 minutes for such nodes, then takes any.
            directives.append(f"--switches={request.switches}@{_SWITCH_WAIT}")
        if its.gpus_per_node is not None:
            directives.append(f"--gpus-per-node={its.gpus_per_node}")
        if its.memory is not None:
            directives.append(f"--mem={whole_MiB(its.memory)}M")  # 0: all memory of a node
        directives += [f"--gres={','.join(its.gres)}"] if its.gres else []
        return job_script("#SBATCH ", directives + ["--exclusive"] * its.exclusive, request)

    def queries(self, ids: Sequence[str]) -> list[list[str]]:
        """Recent jobs: squeue, and scontrol (which has the exit status). All jobs: sacct, where there is accounting."""
        listed = ",".join(ids)
        return [
            ["squeue", "--noheader", "--states=all", f"--jobs={listed}", f"--format={_SQUEUE}"],
            *(["scontrol", "--oneliner", "show", "job", job] for job in ids[:1] if len(ids) == 1),
            ["sacct", "--allocations", "--parsable2", "--noheader", f"--jobs={listed}", f"--format={_FIELDS}"],
        ]

    def statuses(self, output: str) -> tuple[JobStatus, ...]:
        """Of squeue and sacct (fields between bars) and scontrol (Key=value)."""
        if re.search(r"^\s*JobId=", output, re.MULTILINE):
            return tuple(self._of_scontrol(table_lines(output, "JobId=")))
        return tuple(self._of_fields(number, line) for number, line in table_lines(output))

    def step_script(self, folders: Mapping[str, Path]) -> str:
        """A step on each node, which sees no other node; it may use all CPUs of its own (srun(1), --exact)."""
        lines = []
        for node, folder in folders.items():
            alone = [f"{name}={value}" for name, value in (*_NODES.items(), *((one, node) for one in _NODE_LISTS))]
            where = ["--nodes=1", "--ntasks=1", f"--nodelist={node}"]
            step = ["srun", *where, "--cpu-bind=none", "--mpi=none", "env", *alone]
            output = shlex.quote(str(folder / "output"))
            lines.append(f"{shlex.join([*step, '/bin/sh', str(folder / 'job.sh')])} </dev/null >>{output} 2>&1 &")
        return "\n".join(["#!/bin/sh", *lines, "wait", "exit 0"]) + "\n"

    def on_node(self, node: str, script: str, options: JobOptions) -> list[str]:
        """As its own job, by srun: its output comes over Slurm's connections. It gives up if the node is not
        free within a minute."""
        where = ["--nodes=1", "--ntasks=1", f"--nodelist={node}", "--immediate=60", "--time=00:05:00", "--mpi=none"]
        return ["srun", "--quiet", *where, *_chosen(options), "/bin/sh", "-c", script]

    def _of_fields(self, number: int, line: str) -> JobStatus:
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != _FIELDS.count(",") + 1 or not _ID.match(cells[0]):
            raise ParseError(self.name, number, line, f"not the fields {_FIELDS}, between bars")
        return _status(cells)

    def _of_scontrol(self, lines: Iterable[tuple[int, str]]) -> Iterable[JobStatus]:
        """Records of one line (--oneliner) or several."""
        records: list[tuple[int, str]] = []
        for number, line in lines:
            if line.lstrip().startswith("JobId=") or not records:
                records.append((number, line))
            else:
                records[-1] = (records[-1][0], f"{records[-1][1]} {line.strip()}")
        for number, line in records:
            # What follows is text of the user, in which anything may stand.
            found = dict(_PAIR.findall(line.partition(" Command=")[0]))
            keys = ("JobId", "JobState", "ExitCode", "Reason", "SubmitTime", "StartTime", "EndTime", "NodeList")
            if not {"JobId", "JobState"} <= set(found):
                raise ParseError(self.name, number, line, "a job without JobId= and JobState=")
            yield _status([found.get(key, "") for key in keys])


def _chosen(options: JobOptions) -> list[str]:
    """Options that sbatch and srun share."""
    values = {
        "partition": options.queue,
        "account": options.account,
        "qos": options.qos,
        "constraint": options.constraint,
        "reservation": options.reservation,
    }
    return [f"--{name}={value}" for name, value in values.items() if value is not None]


def _status(cells: Sequence[str]) -> JobStatus:
    job, state_text, exit_text, reason, submitted, started, ended, nodes = cells
    word, *flags = (part.rstrip("+").upper() for part in (state_text.split() or [""])[0].split(","))
    state = _STATES.get(word, JobState.UNKNOWN)
    state = next((_STATES[flag] for flag in flags if _STATES.get(flag) in _STRONGER), state)
    reason = "" if reason in ("None", "(null)") else reason.strip("()")
    if state is JobState.PENDING and _HELD.match(reason.replace("_", " ")):
        state = JobState.HELD
    elif state is JobState.PENDING and _NEVER.match(reason):
        state = JobState.NEVER_STARTS
    if state in (JobState.UNKNOWN, JobState.CANCELLED) or word in ("OUT_OF_MEMORY", "OOM", "SUSPENDED", "DEADLINE"):
        reason = ", ".join(filter(None, (state_text, reason)))
    return JobStatus(
        job,
        state,
        reason,
        _exit_status(exit_text) if state.is_over else None,
        _time(submitted),
        _time(started) if state not in (JobState.PENDING, JobState.HELD, JobState.NEVER_STARTS) else None,
        _time(ended) if state.is_over else None,
        () if nodes.startswith(("(", "None assigned")) else nodes_in(nodes),
    )


def _exit_status(text: str) -> int | None:
    """Of "status:signal", as a shell reports it: a signal is 128 and its number."""
    match = re.match(r"(\d{1,3}):(\d{1,3})\Z", text, re.ASCII)
    if match is None:
        return None
    return 128 + int(match[2]) if int(match[2]) else int(match[1])


def _time(text: str) -> float | None:
    if text.isdecimal() and len(text) <= 12:
        return float(text) or None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None  # Unknown, N/A, None


_USABLE = frozenset(
    {"idle", "mix", "mixed", "alloc", "allocated", "comp", "completing", "resv", "reserved", "plnd", "planned"}
)
_MARKS = "*~#!%$@^-+"
"""Marks behind a state: not responding, powered down, and more (sinfo(1), "NODE STATE CODES")."""
_TOPOLOGY_PAIR = re.compile(r"(?<!\w)(\w++)=(\S*)", re.ASCII)


def nodes_command(queue: str) -> list[str]:
    """The command that lists the nodes of a partition with their states."""
    return ["sinfo", "--noheader", "--Node", "--format=%N|%t", f"--partition={queue}"]


def read_nodes(output: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The nodes that jobs can run on, in order, and the state of each other one. Raises ParseError."""
    usable: dict[str, None] = {}
    others: dict[str, str] = {}
    for number, line in table_lines(output):
        name, bar, state = line.strip().partition("|")
        if not bar or not name or not state:
            raise ParseError("sinfo", number, line, "not NODE|STATE")
        word = state.rstrip(_MARKS)
        if word in _USABLE and not state.endswith("*"):
            usable[name] = None
        else:
            others[name] = state
    return tuple(usable), others


def read_idle(output: str) -> frozenset[str]:
    """The nodes of the same output that are free."""
    cells = (line.strip().partition("|") for line in output.splitlines())
    return frozenset(name for name, _, state in cells if state == "idle")


_MOST_JOBS = re.compile(r"^MaxJobCount\s*=\s*(\d{1,9})\s*$", re.MULTILINE | re.ASCII)
_NUMBER = re.compile(r"\d{1,9}\Z", re.ASCII)


def limit_commands(user: str, qos: str | None) -> list[list[str]]:
    """The commands that state how many jobs the system and a user may have at once, the last one those that the user
    has now."""
    said = ["sacctmgr", "--noheader", "--parsable2", "show"]
    return [
        ["scontrol", "show", "config"],
        [*said, "associations", f"user={user}", "format=MaxSubmitJobs,GrpSubmitJobs"],
        *([[*said, "qos", qos, "format=MaxSubmitJobsPerUser,GrpSubmitJobs"]] if qos else []),
        ["squeue", "--noheader", "--array", f"--user={user}", "--format=%i"],
    ]


def read_limits(outputs: Sequence[str], without: Collection[str] = ()) -> int | None:
    """How many jobs a user may have besides others of theirs, from what the commands printed ("": it failed); None:
    nothing is stated. Jobs `without` are not others. A user may have several associations, of which the least
    counts."""
    config, *accounting, jobs = outputs
    limits = [int(match[1]) for match in _MOST_JOBS.finditer(config)]
    cells = (cell for output in accounting for line in output.splitlines() for cell in line.strip().split("|"))
    limits += [int(cell) for cell in cells if _NUMBER.match(cell)]
    others = sum(_ID.match(job) is not None and job not in without for job in map(str.strip, jobs.splitlines()))
    return max(0, min(limits) - others) if limits else None


def topology_command() -> list[str]:
    """The command that shows the switches."""
    return ["scontrol", "show", "topology"]


def read_topology(output: str) -> dict[str, str]:
    """Node -> its leaf switch, or its block (topology.conf(5), topology/block); empty if Slurm does not know the
    switches. Raises ParseError."""
    found: dict[str, str] = {}
    for number, line in enumerate(output.splitlines(), start=1):
        pairs = dict(_TOPOLOGY_PAIR.findall(line))
        name = pairs.get("SwitchName") if pairs.get("Level") == "0" else pairs.get("BlockName")
        if name is None:
            continue
        try:
            nodes = expand_hosts(pairs.get("Nodes", ""))
        except ValueError as error:
            raise ParseError("scontrol show topology", number, line, str(error)) from None
        for node in nodes:
            found[node] = name
    return found
