"""The launcher command that starts ranks, in the form common to all launchers."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from seatrial.model.benchmark.program import Layout
from seatrial.model.frozen import Frozen


class RankCommand(Frozen):
    """`argv` comes before the program and its arguments; `variables` are set (None: unset) where it runs.

    A rank reads its number from the first of `rank_from` (environment variables) that is set. `binds`: the launcher
    binds each rank exactly as in the layout; otherwise the ranks bind themselves (launch/place.py).
    """

    argv: Sequence[str]
    rank_from: Sequence[str]
    binds: bool
    variables: Mapping[str, str | None] = {}


_LAUNCHERS = frozenset({"mpirun", "mpiexec", "orterun", "prterun", "oshrun"})
_SUFFIXES = (".openmpi",)


def is_launcher(word: str) -> bool:
    """Whether a command's first word is the name of an Open MPI launcher (other libraries use the same names)."""
    name = PurePath(word).name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name in _LAUNCHERS


def forwarded(command: Sequence[str], names: Iterable[str]) -> list[str]:
    """The command of an Open MPI launcher with options that export these variables to all ranks (mpirun(1), `-x`).
    Hydra, srun and PALS export all variables without an option."""
    return [command[0], *(word for name in names for word in ("-x", name)), *command[1:]]


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
