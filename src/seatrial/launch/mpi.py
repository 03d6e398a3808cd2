"""The command that starts the ranks of an MPI program with the launcher of its library."""

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
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment.mpi import Mpi, MpiFamily

_JOB_VARIABLES = ("SLURM_JOB_ID", "SLURM_JOBID")

_RANK_PREFIXES = (
    "OMPI_COMM_WORLD_",
    "OMPI_UNIVERSE_",
    "PMI_",
    "PMIX_",
    "MPI_LOCAL",
    "HYDI_",
    "PALS_RANK",
    "PALS_LOCAL",
)
_SETTING_PREFIXES = ("PMIX_MCA_",)


class NoLauncherError(ValueError):
    """No launcher for this library was found."""


def rank_command(
    mpi: Mpi, layout: Layout, exported: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> RankCommand:
    """The command that starts these ranks with this library; `exported` are variables that ranks on other nodes need.

    Without its own launcher, a library uses srun, inside an allocation (`variables`: those of this process). Raises
    NoLauncherError if there is neither, ValueError if the ranks do not fill the nodes evenly.
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
    if srun is None or not any(name in variables for name in _JOB_VARIABLES):
        raise NoLauncherError(
            f"{mpi.title} has no launcher, and this is not a Slurm allocation with srun: run inside one "
            "(salloc, sbatch), or set a launcher in the site file"
        )
    return Path(srun)


def rank_variables(variables: Mapping[str, str]) -> list[str]:
    """The names of variables that give a process its rank. If seatrial itself runs as a rank, the ranks that it starts
    must not inherit them."""
    return [name for name in variables if name.startswith(_RANK_PREFIXES) and not name.startswith(_SETTING_PREFIXES)]
