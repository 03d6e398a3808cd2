"""What every batch system offers, and the parts of job scripts that are the same for all."""

from __future__ import annotations

import math
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from msgspec import field

from seatrial.errors import UsageError
from seatrial.model.environment.site import JobOptions
from seatrial.model.frozen import Frozen
from seatrial.model.machine.host_list import expand_hosts


class JobState(StrEnum):
    """What a job is doing, or how it ended."""

    PENDING = "pending"
    HELD = "held"
    RUNNING = "running"
    ENDED = "ended"  # with exit status 0
    FAILED = "failed"  # with another exit status, or by a signal
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    PREEMPTED = "preempted"
    REQUEUED = "requeued"  # waits to run again
    NODE_FAILED = "node failed"
    NEVER_STARTS = "never starts"  # the batch system says that it cannot, as it was submitted
    UNKNOWN = "unknown"

    @property
    def is_over(self) -> bool:
        """Whether it will not run any more."""
        return self in _OVER


_OVER = frozenset(
    {
        *(JobState.ENDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT),
        *(JobState.PREEMPTED, JobState.NODE_FAILED),
    }
)


class JobStatus(Frozen):
    """One job. `reason` is what the batch system said, unchanged. Times are in seconds since 1970; `nodes` are host
    names. None and () are unknown."""

    id: str
    state: JobState
    reason: str = ""
    exit_status: int | None = None
    submitted_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    nodes: tuple[str, ...] = ()


class JobRequest(Frozen):
    """A job to submit: `argv` runs once, on its first node, in `folder`. `time_s` is the limit on its wall time.
    `tasks_per_node` None: as many as the nodes have CPUs, where the batch system can say so. `first` are lines of the
    script that run before it, in no certain folder. `node_list` are its nodes, if not any; `switches` is the number of
    leaf switches that they are below at most."""

    name: str
    argv: tuple[str, ...]
    folder: Path
    output: Path
    nodes: int
    time_s: float
    tasks_per_node: int | None = 1
    cpus_per_task: int = 1
    options: JobOptions = field(default_factory=JobOptions)
    first: tuple[str, ...] = ()
    node_list: tuple[str, ...] = ()
    switches: int | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for values that could change the meaning of a script's line."""
        its = self.options
        words = (
            self.name,
            its.queue,
            its.account,
            its.qos,
            its.constraint,
            its.reservation,
            *its.modules,
            *its.gres,
            *self.node_list,
        )
        for word in (text for text in words if text is not None):
            if not word or any(letter.isspace() or not letter.isprintable() or letter in "'\"`\\$" for letter in word):
                raise UsageError(f"{word!r} cannot be in a job script", "use a word without spaces and quotes")
        for path in (str(self.folder), str(self.output)):
            if any(not letter.isprintable() or letter.isspace() for letter in path):
                raise UsageError(
                    f"{path!r} cannot be in a job script", "choose a folder without white space in its path"
                )
        if any("\n" in line or "\r" in line or "\0" in line for line in its.extra):
            raise UsageError("an extra line of the job script contains a line break", "make it several lines")
        tasks = 1 if self.tasks_per_node is None else self.tasks_per_node
        if self.nodes < 1 or tasks < 1 or self.cpus_per_task < 1 or not self.time_s > 0:
            raise UsageError("a job needs at least one node, task and CPU, and a time limit")


class BatchSystem(ABC):
    """One batch system. All methods are pure: text in, values out."""

    name: ClassVar[str]
    is_verified: ClassVar[bool] = False
    """Whether it was run on the real one; if not, it is tested on recorded outputs only."""
    requests_whole_nodes: ClassVar[bool] = False
    """Whether an exclusive job without a number of tasks gets all CPUs of its nodes."""
    chooses_nodes: ClassVar[bool] = False
    """Whether `switches` and `node_list` of a request can be said to it."""
    goes_on: ClassVar[tuple[str, ...]] = ()
    """Lines of the script of a job that goes on without a node that fails."""
    variables: ClassVar[Mapping[str, str]] = {}
    """Environment variables for its commands."""
    submits: ClassVar[tuple[str, ...]]
    """The command that submits a job, given its script on standard input."""
    accepted: ClassVar[re.Pattern[str]]
    """In a line that it prints then; the group is the id of the job."""
    cancels: ClassVar[tuple[str, ...]]
    """The command that cancels the jobs whose ids follow."""
    full: ClassVar[re.Pattern[str] | None] = None
    """What it says where a user, or all, have as many jobs as the site allows: when one ends, it accepts another."""

    @abstractmethod
    def script(self, request: JobRequest) -> str:
        """The job script. Its own copy of the output is in `request.output`."""

    def submitted(self, output: str) -> str | None:
        """The id of the job, from what the command printed; None if there is none."""
        found = (self.accepted.search(line.strip()) for line in output.splitlines())
        return next((match[1] for match in found if match), None)

    @abstractmethod
    def queries(self, ids: Sequence[str]) -> list[list[str]]:
        """The commands that state what became of jobs. If one does not know a job, the next one may."""

    @abstractmethod
    def statuses(self, output: str) -> tuple[JobStatus, ...]:
        """The jobs that one of these commands printed. Raises ParseError for damaged text."""

    def step_script(self, folders: Mapping[str, Path]) -> str:
        """What a job on several nodes runs to start `job.sh` in a folder on each (node -> folder), all at once."""
        raise NotImplementedError

    def refused_for_now(self, said: str) -> bool:
        """Whether it refuses a job only until another one has ended."""
        return self.full is not None and self.full.search(said) is not None

    def on_node(self, node: str, script: str, options: JobOptions) -> list[str]:
        """The command that runs a script of sh on one node, and prints what it prints: ssh without a password, unless
        the batch system has its own."""
        return ["ssh", "-o", "BatchMode=yes", "--", node, script]


def job_script(mark: str, directives: Sequence[str], request: JobRequest) -> str:
    """A script for bash: directives with their mark ("#SBATCH "), modules, and the command in its folder."""
    lines = ["#!/bin/bash", *(f"{mark}{directive}" for directive in directives), *request.options.extra, "set -e"]
    lines += [f"module load {shlex.quote(module)}" for module in request.options.modules]
    lines += request.first
    lines += [f"cd -- {shlex.quote(str(request.folder))}", f"exec {shlex.join(request.argv)}"]
    return "\n".join(lines) + "\n"


def clock(time_s: float) -> str:
    """A time limit as HH:MM:SS, rounded up."""
    whole = math.ceil(time_s)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def exit_status(status: int) -> int:
    """A wait(2) status as a shell reports it: a signal is 128 and its number."""
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8


def whole_MiB(size_B: int) -> int:
    """A size in MiB, rounded up."""
    return -(-size_B // (1 << 20))


def counts_of(gres: Sequence[str], batch: str) -> dict[str, int]:
    """Name -> number, of resources that a batch system knows by their names alone. Raises UsageError for a type."""
    found: dict[str, int] = {}
    for text in gres:
        name, *more = text.split(":")
        if any(not part.isdecimal() for part in more):
            raise UsageError(f"gres {text}: {batch} has no types of resources", "write NAME:COUNT")
        found[name] = int(more[0]) if more else 1
    return found


def table_lines(output: str, divider: str = "|") -> list[tuple[int, str]]:
    """The lines of a table with their numbers. Before its first row, which has a `divider`, commands and the shells of
    sites print messages; a text without any row is returned as it is, to be refused."""
    lines = [(number, line) for number, line in enumerate(output.splitlines(), start=1) if line.strip()]
    first = next((at for at, (_, line) in enumerate(lines) if divider in line), 0)
    return lines[first:]


def nodes_in(text: str) -> tuple[str, ...]:
    """The nodes of a list of host names; () for anything else."""
    try:
        return expand_hosts(text)
    except ValueError:
        return ()
