"""The jobs of a plan as text."""

from __future__ import annotations

from seatrial.model.durations import duration
from seatrial.model.spelling import count
from seatrial.plan.planned_jobs import PlannedJobs
from seatrial.report.text.terminal import PLAIN, Style, clean

_MOST_NAMES = 4


def jobs_text(planned: PlannedJobs, style: Style = PLAIN, *, verbose: bool = False) -> str:
    """The jobs with their times and node-hours, and the script of the first; `verbose`: of each."""
    is_of_several = len({job.system for job in planned.jobs}) > 1
    rows = [
        [
            "job",
            *(["system"] if is_of_several else []),
            "benchmarks",
            "nodes",
            "expected",
            "time limit",
            "node-hours at most",
        ]
    ]
    for number, job in enumerate(planned.jobs, start=1):
        names = ", ".join(job.benchmarks[:_MOST_NAMES])
        more = len(job.benchmarks) - _MOST_NAMES
        shown = f"{names} and {more} more" if more > 0 else names
        times = (duration(job.expected_s), duration(job.limit_s), f"{job.node_hours:.3g}")
        rows.append([str(number), *([clean(job.system)] if is_of_several else []), shown, str(job.nodes), *times])
    title = f"{count(len(planned.jobs), 'job')} on {clean(planned.system)}, {planned.node_hours:.3g} node-hours at most"
    known = planned.machine_is_of_nodes
    machine = "the nodes, as an earlier job found them." if known else "this machine: the nodes are not known yet."
    lines = [style.paint(title, "heading"), style.table(rows, has_head=True)]
    lines += style.wrapped(f"planned for {machine}", "  ")
    for number, job in enumerate(planned.jobs if verbose else planned.jobs[:1], start=1):
        title = f"Script of job {number}" + ("" if verbose or len(planned.jobs) == 1 else " (-v: of each)")
        script = [f"  {clean(line)}" for line in job.script.splitlines()]
        lines += ["", style.paint(title, "heading"), *script]
    return "\n".join(lines)
