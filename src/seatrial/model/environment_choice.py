"""What a study chooses of the environment: the rest is what the machine gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EnvironmentChoice:
    """`compiler` is a command on PATH, or None for the first that is found. `flags` follow ours on the compiler's
    command line. `variables` are set (None: unset) where programs run, and change nothing about how they are built.

    `mpi` is a library by its name, or None for the first that is found; `mpi_settings` are settings that all libraries
    know under names of their own, such as the algorithm of a collective.
    """

    compiler: str | None = None
    flags: tuple[str, ...] = ()
    variables: tuple[tuple[str, str | None], ...] = ()
    mpi: str | None = None
    mpi_settings: tuple[tuple[str, str], ...] = ()


AS_IT_IS = EnvironmentChoice()
