"""The jobs that a command would submit."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.frozen import Frozen


class PlannedJob(Frozen):
    """One job: where it goes (`NAME:PARTITION`), what it measures, on how many nodes, and its script. `expected_s` is
    its time with few repeats, `limit_s` its time limit, both in seconds."""

    system: str
    benchmarks: tuple[str, ...]
    nodes: int
    expected_s: float
    limit_s: float
    script: str

    @property
    def node_hours(self) -> float:
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
