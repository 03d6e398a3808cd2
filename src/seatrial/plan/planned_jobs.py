"""The jobs that a command would submit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import NonNegative, OneOrMore, Positive, key, published


@published("Job")
class PlannedJob(Frozen):
    """One job of a batch system."""

    system: Annotated[str, "where it is submitted to: NAME:PARTITION"]
    benchmarks: tuple[str, ...]
    nodes: OneOrMore
    expected_s: Annotated[NonNegative, "its time with few repeats"]
    limit_s: Annotated[Positive, "its time limit"]
    script: Annotated[str, "what is submitted, with JOB in place of the job's id"]

    @property
    @key
    def node_hours(self) -> NonNegative:
        """What it takes at most."""
        return self.nodes * self.limit_s / 3600.0


class PlannedJobs(Frozen):
    """All jobs of a command, and where they would go (`NAME:PARTITION`, several joined by commas).
    `machine_is_of_nodes`: the plan is for machines that earlier jobs found there; else for the one that the plan was
    made on."""

    system: str
    jobs: tuple[PlannedJob, ...]
    machine_is_of_nodes: bool

    @property
    def node_hours(self) -> float:
        """What all take at most."""
        return sum_of_hours(self.jobs)


def sum_of_hours(jobs: Sequence[PlannedJob]) -> float:
    """The node-hours of these jobs, at most."""
    return sum(job.node_hours for job in jobs)
