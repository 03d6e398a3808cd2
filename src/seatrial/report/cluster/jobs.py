"""The jobs that measured a cluster: where, when, how long they waited, and the node-hours that they used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from seatrial.jobs.screen import JobRow
from seatrial.model.durations import duration
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.units import NO_VALUE, count

_MOST_ROWS = 200


def job_table(jobs: Sequence[JobRow]) -> Table:
    """A row for each job, in order of submission; of many jobs, those that did not end first, and not all."""
    shown = jobs
    if len(jobs) > _MOST_ROWS:
        shown = sorted(jobs, key=lambda job: job.ran_s is not None)[:_MOST_ROWS]
    rows = []
    for job in shown:
        hours = None if job.ran_s is None else job.ran_s * job.nodes / 3600
        rows.append(
            [
                Cell(job.batch_id or NO_VALUE),
                Cell(job.where),
                Cell(job.host or NO_VALUE),
                Cell(str(job.nodes), job.nodes),
                Cell(_moment(job.submitted_s)),
                _time(job.wait_s),
                _time(job.ran_s),
                Cell(NO_VALUE) if hours is None else Cell(f"{hours:.3g}", hours),
                Cell(job.state),
                Cell(job.measured),
            ]
        )
    columns = [Column("Job"), Column("Where"), Column("First node"), Column("Nodes", numeric=True)]
    columns += [Column("Submitted (UTC)"), Column("Waited", numeric=True), Column("Ran", numeric=True)]
    columns += [Column("Node-hours", numeric=True), Column("State"), Column("Measured")]
    return Table("Jobs", columns, rows)


def job_lines(jobs: Sequence[JobRow]) -> list[str]:
    """The sum of node-hours, and of how many jobs it is not known."""
    known = [job for job in jobs if job.ran_s is not None]
    hours = sum((job.ran_s or 0.0) * job.nodes / 3600 for job in known)
    unknown = len(jobs) - len(known)
    but = f"; {count(unknown, 'job')} of which start or end is not known: not included" if unknown else ""
    waits = sorted(job.wait_s for job in jobs if job.wait_s is not None)
    waited = ""
    if waits:
        longest = f", the longest {duration(waits[-1])}" if len(waits) > 1 else ""
        waited = f" They waited {duration(waits[len(waits) // 2])} (median){longest}."
    left_out = len(jobs) - _MOST_ROWS
    more = f" {count(left_out, 'more job', 'more jobs')}: not listed here." if left_out > 0 else ""
    return [f"{hours:.3g} node-hours in {count(len(known), 'job')}{but}.{waited}{more}"]


def _moment(time_s: float | None) -> str:
    if not time_s:
        return NO_VALUE
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _time(time_s: float | None) -> Cell:
    return Cell(NO_VALUE) if time_s is None else Cell(duration(time_s), time_s)
