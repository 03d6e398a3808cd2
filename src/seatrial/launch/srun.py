"""srun of Slurm, inside an allocation, and mpiexec of Cray's PALS."""

from __future__ import annotations

from pathlib import Path

from seatrial.launch.hydra import mask_of
from seatrial.launch.rank_command import RankCommand
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment.mpi import MpiFamily

_PMI = {
    MpiFamily.OPENMPI: "pmix",
    MpiFamily.MPICH: "pmi2",
    MpiFamily.MVAPICH: "pmi2",
    MpiFamily.INTEL: "pmi2",
    MpiFamily.CRAY: "cray_shasta",
}


def srun_command(launcher: Path, layout: Layout, family: MpiFamily, this_host: str) -> RankCommand:
    """The srun command. Sites without TaskPlugin=task/affinity ignore masks, so the ranks bind themselves as well.

    `--overlap`: the step may use the CPUs of the job step that seatrial runs in. `--overcommit` is set only if ranks
    share CPUs.
    """
    hosts = layout.hosts or (this_host,)
    argv = [str(launcher), f"--ntasks={layout.ranks}", f"--nodes={len(hosts)}", f"--nodelist={','.join(hosts)}"]
    argv += [f"--ntasks-per-node={layout.ranks_per_host}", "--distribution=block", f"--mpi={_PMI[family]}"]
    argv += [f"--cpus-per-task={layout.threads}", "--overlap", "--kill-on-bad-exit=1", "--input=none"]
    on_host = layout.cpus_of_a_host
    argv.append("--cpu-bind=mask_cpu:" + ",".join(map(mask_of, on_host)) if on_host else "--cpu-bind=none")
    if layout.shares_cpus:
        argv.append("--overcommit")
    variables = _yield_while_waiting(family) if layout.shares_cpus else {}
    if family is MpiFamily.INTEL:
        variables["I_MPI_PIN"] = "0"
    return RankCommand(argv, ("SLURM_PROCID",), binds=False, variables=variables)


def _yield_while_waiting(family: MpiFamily) -> dict[str, str]:
    """The variables that make waiting ranks yield their CPU."""
    if family is MpiFamily.OPENMPI:
        return {"OMPI_MCA_mpi_yield_when_idle": "1"}
    if family is MpiFamily.INTEL:
        return {"I_MPI_WAIT_MODE": "1"}
    return {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}


def pals_command(launcher: Path, layout: Layout) -> RankCommand:
    """The mpiexec command of Cray (HPE PALS, mpiexec(1)): a list of the kernel's CPU numbers for each local rank."""
    argv = [str(launcher), "-n", str(layout.ranks), "--ppn", str(layout.ranks_per_host)]
    if layout.hosts:
        argv += ["--hosts", ",".join(layout.hosts)]
    on_host = layout.cpus_of_a_host
    argv.append("--cpu-bind")
    argv.append("list:" + ":".join(",".join(map(str, rank)) for rank in on_host) if on_host else "none")
    variables = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"} if layout.shares_cpus else {}
    return RankCommand(argv, ("PALS_RANKID", "PMI_RANK"), binds=bool(on_host), variables=variables)
