"""The command that starts the ranks of an MPI program, each on its CPUs, in the dialect of its library's launcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.model.layout import Layout
from seatrial.model.mpi import Mpi, MpiFamily


@dataclass(frozen=True, slots=True)
class RankCommand:
    """`argv` comes before the program and its arguments; `variables` are set where it runs."""

    argv: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)


def rank_command(mpi: Mpi, layout: Layout, folder: Path) -> RankCommand:
    """How this library starts these ranks; files that its launcher reads are written into `folder`.

    Raises ValueError where the library has no launcher.
    """
    if mpi.launcher is None:
        raise ValueError(f"{mpi.title} has no launcher")
    if mpi.family is MpiFamily.OPENMPI:
        return _openmpi(mpi.launcher, layout)
    return _hydra(mpi.launcher, layout)


def _openmpi(launcher: Path, layout: Layout) -> RankCommand:
    variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    argv = [str(launcher), "-np", str(layout.ranks)]
    if layout.is_bound:
        cpus = ",".join(str(cpu) for rank in layout.cpus for cpu in rank)
        return RankCommand([*argv, "--cpu-list", cpus, "--bind-to", "cpu-list:ordered"], variables)
    variables["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return RankCommand([*argv, "--oversubscribe", "--bind-to", "none"], variables)


def _hydra(launcher: Path, layout: Layout) -> RankCommand:
    argv = [str(launcher), "-np", str(layout.ranks)]
    if layout.is_bound:
        binding = ",".join("+".join(map(str, rank)) for rank in layout.cpus)
        return RankCommand([*argv, "-bind-to", f"user:{binding}"])
    return RankCommand([*argv, "-bind-to", "none"])
