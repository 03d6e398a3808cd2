"""The command that starts the ranks of an MPI program, in the dialect of its library's launcher."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.launch.hydra import hydra_command, intel_command
from seatrial.launch.openmpi import openmpi_command
from seatrial.launch.rank_command import RankCommand
from seatrial.launch.srun import pals_command, srun_command
from seatrial.model.layout import Layout
from seatrial.model.mpi import Mpi, MpiFamily

_OF_A_JOB = ("SLURM_JOB_ID", "SLURM_JOBID")

_OF_A_RANK = ("OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PMI_", "PMIX_", "MPI_LOCAL", "HYDI_", "PALS_RANK", "PALS_LOCAL")
_SETTINGS = ("PMIX_MCA_",)


class NoLauncherError(ValueError):
    """There is nothing that could start ranks of this library here."""


def rank_command(
    mpi: Mpi, layout: Layout, exported: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> RankCommand:
    """How this library starts these ranks; `exported` are variables that ranks on other nodes need.

    A library without a launcher of its own is started by srun, inside an allocation (`variables`: of this process).
    Raises NoLauncherError where there is none, ValueError where nodes and ranks do not fit.
    """
    variables = os.environ if variables is None else variables
    launcher = mpi.launcher or _batch_launcher(mpi, variables)
    if launcher.name == "srun":
        this_host = variables.get("SLURMD_NODENAME") or platform.node().partition(".")[0]
        return srun_command(launcher, layout, mpi.family, this_host)
    match mpi.family:
        case MpiFamily.OPENMPI:
            return openmpi_command(launcher, layout, exported)
        case MpiFamily.INTEL:
            return intel_command(launcher, layout)
        case MpiFamily.CRAY:
            return pals_command(launcher, layout)
        case MpiFamily.MPICH | MpiFamily.MVAPICH:
            return hydra_command(launcher, layout, mpi.family)


def _batch_launcher(mpi: Mpi, variables: Mapping[str, str]) -> Path:
    srun = shutil.which("srun", path=variables.get("PATH"))
    if srun is None or not any(name in variables for name in _OF_A_JOB):
        raise NoLauncherError(
            f"{mpi.title} has no launcher of its own, and this is no Slurm allocation with srun: run inside one "
            "(salloc, sbatch), or name a launcher in the site file"
        )
    return Path(srun)


def rank_variables(variables: Mapping[str, str]) -> list[str]:
    """The names of those that tell a process which rank it is: where seatrial itself runs as a rank, its ranks would
    take them for theirs."""
    return [name for name in variables if name.startswith(_OF_A_RANK) and not name.startswith(_SETTINGS)]
