"""A job: what is asked of the batch system, and what it says became of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import field

from seatrial.errors import UsageError
from seatrial.model.environment.site import JobOptions
from seatrial.model.frozen import Frozen


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
