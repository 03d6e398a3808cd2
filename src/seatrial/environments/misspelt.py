"""Names of MPI libraries and compilers in a study that are probably misspelt.

A library or compiler that is not on this machine is no error: the study may be for several machines. But a name that is
unknown everywhere and nearly one that is known is one.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Collection, Iterable

from seatrial.environments.mpi import discover_mpis
from seatrial.errors import UsageError, did_you_mean
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.mpi import MpiFamily
from seatrial.plan.site_in_force import site_in_force

_COMPILERS = ("g++", "clang++", "icpx", "icpc", "nvc++", "amdclang++", "armclang++", "FCC", "CC", "c++", "crayCC")
_VERSION = re.compile(r"[-.]?\d[\d.]*$")
_ALIKE = 0.75
"""Letters in common: one wrong, missing or exchanged in a name of five."""


def refuse_misspelt(choices: Iterable[EnvironmentChoice]) -> None:
    """Raise UsageError for the first name that is not known, but nearly one that is."""
    wanted = list(dict.fromkeys(choices))
    libraries = dict.fromkeys(choice.mpi for choice in wanted if choice.mpi is not None and "/" not in choice.mpi)
    if libraries:
        known = _libraries()
        for name in libraries:
            _refuse("environment.mpi", name, known)
    for compiler in dict.fromkeys(choice.compiler for choice in wanted if choice.compiler is not None):
        if "/" not in compiler and shutil.which(compiler) is None:
            _refuse("environment.compiler", compiler, _COMPILERS)


def _libraries() -> list[str]:
    found = discover_mpis()
    names = [name for mpi in (*found.mpis, *found.runtimes) for name in (mpi.name, *mpi.aliases)]
    own = (environment.name for environment in site_in_force().environments)
    return [*names, *(name for name, _ in found.passed_over), *own, *MpiFamily]


def _refuse(axis: str, name: str, known: Collection[str]) -> None:
    base = _VERSION.sub("", name)
    if name in known or base in known:
        return
    if near := difflib.get_close_matches(base, known, 1, _ALIKE):
        raise UsageError(f"{axis}: nothing is called {name!r}", did_you_mean(near))
