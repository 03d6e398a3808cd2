"""The variables of a batch system as launchers of ranks need them."""

from __future__ import annotations

import os
import platform

from seatrial.model.layout import Layout

_OF_JOBS = ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_ENVIRONMENT", "PBS_JOBID", "LSB_JOBID")
"""Where one of these is set, Open MPI takes its nodes and slots from the batch system."""


def outside_jobs() -> dict[str, str | None]:
    """For ranks on this node only: as if there were no job."""
    return dict.fromkeys(_OF_JOBS)


def in_allocation(layout: Layout) -> dict[str, str | None]:
    """For ranks on the nodes of a Slurm job: as many slots on each as ranks, whatever number of tasks the job or the
    step asked for. The launcher's daemons share the nodes with the step that seatrial runs in, and may use all CPUs of
    the job. Other batch systems and ssh ignore these variables.

    This node is listed even if no rank runs on it: Open MPI 4 takes the first node of a list without it for this one,
    and starts that node's ranks here.
    """
    here = os.environ.get("SLURMD_NODENAME") or platform.node().partition(".")[0]
    names = layout.hosts if here in layout.hosts else (here, *layout.hosts)
    return {
        "SLURM_NODELIST": ",".join(names),
        "SLURM_TASKS_PER_NODE": f"{layout.ranks_per_host}(x{len(names)})",
        "SLURM_OVERLAP": "1",
        "SLURM_CPU_BIND": "none",
    }
