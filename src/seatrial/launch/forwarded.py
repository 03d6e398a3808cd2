"""Launchers that pass variables on to ranks of other nodes only when they are told to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

_LAUNCHERS = frozenset({"mpirun", "mpiexec", "orterun", "prterun", "oshrun"})
_SUFFIXES = (".openmpi",)


def is_launcher(word: str) -> bool:
    """Whether a command's first word is the name of a launcher that Open MPI has (others have such names, too)."""
    name = PurePath(word).name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name in _LAUNCHERS


def forwarded(command: Sequence[str], names: Iterable[str]) -> list[str]:
    """The command of Open MPI's launcher with the variables named for all ranks (mpirun(1), `-x`). Those of hydra,
    Slurm and PALS pass on everything and need no word."""
    return [command[0], *(word for name in names for word in ("-x", name)), *command[1:]]
