"""Hydra, the launcher of MPICH, MVAPICH and Intel MPI. Its CPU lists use the kernel's numbers, rank by rank."""

from __future__ import annotations

from pathlib import Path

from seatrial.launch.rank_command import RankCommand, in_allocation
from seatrial.model.benchmark.program import Layout
from seatrial.model.environment.mpi import MpiFamily

_RANK_FROM = ("PMI_RANK", "PMIX_RANK")


def hydra_command(launcher: Path, layout: Layout, family: MpiFamily) -> RankCommand:
    """The mpiexec command of MPICH and MVAPICH.

    On this node it starts the ranks itself (`fork`) and does not take nodes from a batch system, whose first one may be
    another. The CPU list is by local rank, so it only works if all nodes are alike. Exit codes are printed because
    hydra would otherwise not name a rank that exits silently.
    """
    argv = [str(launcher), "-np", str(layout.ranks), "-print-all-exitcodes", *_nodes(layout)]
    on_host = layout.cpus_of_a_host
    if on_host:
        argv += ["-bind-to", "user:" + ",".join("+".join(map(str, rank)) for rank in on_host)]
    else:
        argv += ["-bind-to", "none"]
    variables: dict[str, str | None] = {**(in_allocation(layout) if layout.hosts else {})}
    if family is MpiFamily.MVAPICH:
        # Otherwise the library binds the ranks again (MVAPICH2 user guide, "Efficient Process Mapping").
        variables |= {"MV2_ENABLE_AFFINITY": "0", "MVP_ENABLE_AFFINITY": "0"}
    if layout.shares_cpus:
        variables["MPIR_CVAR_POLLS_BEFORE_YIELD"] = "1"
    return RankCommand(argv, _RANK_FROM, binds=bool(on_host), variables=variables)


def _nodes(layout: Layout) -> list[str]:
    if not layout.hosts:
        return ["-rmk", "user", "-launcher", "fork"]
    return ["-hosts", ",".join(layout.hosts), "-ppn", str(layout.ranks_per_host)]


def intel_command(launcher: Path, layout: Layout) -> RankCommand:
    """The mpiexec command of Intel MPI, whose library binds the ranks as set by variables (Intel MPI Library Developer
    Reference, "Process Pinning"): a CPU list if each rank has one CPU, masks if it has several."""
    argv = [str(launcher), "-np", str(layout.ranks)]
    if layout.hosts:
        argv += ["-hosts", ",".join(layout.hosts), "-ppn", str(layout.ranks_per_host)]
    else:
        argv += ["-bootstrap", "fork", "-hosts", "localhost"]
    on_host = layout.cpus_of_a_host
    variables: dict[str, str | None] = {"I_MPI_PIN": "1" if on_host else "0"}
    if layout.hosts:
        variables |= in_allocation(layout)
    if on_host and layout.threads == 1:
        variables["I_MPI_PIN_PROCESSOR_LIST"] = ",".join(str(cpu) for (cpu,) in on_host)
    elif on_host:
        variables["I_MPI_PIN_DOMAIN"] = "[" + ",".join(mask_of(rank) for rank in on_host) + "]"
    if layout.shares_cpus:
        variables["I_MPI_WAIT_MODE"] = "1"
    return RankCommand(argv, _RANK_FROM, binds=bool(on_host), variables=variables)


def mask_of(cpus: tuple[int, ...]) -> str:
    """CPU numbers of the kernel as a hexadecimal mask: `0x3` for 0 and 1."""
    return hex(sum(1 << cpu for cpu in set(cpus)))
