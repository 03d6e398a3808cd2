"""Launchers that export environment variables to ranks on other nodes only if an option says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

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
