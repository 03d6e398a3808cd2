"""What every batch system offers, and the parts of job scripts that are the same for all."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Protocol

from seatrial.jobs.batch.job import JobRequest, JobStatus
from seatrial.model.environment.site import JobOptions


class BatchSystem(Protocol):
    """One batch system. All methods are pure: text in, values out."""

    name: str
    is_verified: bool
    """Whether it was run on the real one; if not, it is tested on recorded outputs only."""
    requests_whole_nodes: bool
    """Whether an exclusive job without a number of tasks gets all CPUs of its nodes."""
    chooses_nodes: bool
    """Whether `switches` and `node_list` of a request can be said to it."""
    variables: Mapping[str, str]
    """Environment variables for its commands."""

    def script(self, request: JobRequest) -> str:
        """The job script. Its own copy of the output is in `request.output`."""

    def submit(self) -> list[str]:
        """The command that submits a job, given its script on standard input."""

    def submitted(self, output: str) -> str | None:
        """The id of the job, from what the command printed; None if there is none."""

    def queries(self, ids: Sequence[str]) -> list[list[str]]:
        """The commands that state what became of jobs. If one does not know a job, the next one may."""

    def statuses(self, output: str) -> tuple[JobStatus, ...]:
        """The jobs that one of these commands printed. Raises ParseError for damaged text."""

    def cancel(self, ids: Sequence[str]) -> list[str]:
        """The command that cancels jobs."""

    def on_node(self, node: str, script: str, options: JobOptions) -> list[str]:
        """The command that runs a script of sh on one node, and prints what it prints."""


def job_script(mark: str, directives: Sequence[str], request: JobRequest) -> str:
    """A script for bash: directives with their mark ("#SBATCH "), modules, and the command in its folder."""
    lines = ["#!/bin/bash", *(f"{mark}{directive}" for directive in directives), *request.options.extra, "set -e"]
    lines += [f"module load {shlex.quote(module)}" for module in request.options.modules]
    lines += request.first
    lines += [f"cd -- {shlex.quote(str(request.folder))}", f"exec {shlex.join(request.argv)}"]
    return "\n".join(lines) + "\n"


def by_ssh(node: str, script: str) -> list[str]:
    """A script of sh on one node, by ssh without a password."""
    return ["ssh", "-o", "BatchMode=yes", "--", node, script]


def clock(time_s: float) -> str:
    """A time limit as HH:MM:SS, rounded up."""
    whole = math.ceil(time_s)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def exit_status(status: int) -> int:
    """A wait(2) status as a shell reports it: a signal is 128 and its number."""
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
