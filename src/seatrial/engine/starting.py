"""How the program of a repeat is started: by itself, or by what starts its ranks."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from seatrial.engine.prepare import Ready
from seatrial.engine.ranks import rank_layout
from seatrial.environments.build import (
    NATIVE_HEADERS,
    Environment,
    build,
    cache_folder,
    kept_environments,
    libc_version,
)
from seatrial.environments.compiler import first_compiler
from seatrial.environments.target import Target
from seatrial.environments.variables import variables_with
from seatrial.errors import NoCompilerError
from seatrial.launch.mpi import rank_command, rank_variables
from seatrial.launch.place import Helpers, kept, placed
from seatrial.model.benchmark import External

_ANY_CPU = "any CPU"
_BASELINE = {"x86_64": "-march=x86-64", "aarch64": "-march=armv8-a"}


def rank_helpers() -> Helpers:
    """The programs that stand around ranks, built for any CPU of this kind of machine, from the cache or now.

    Raises BuildError where they cannot be built, NoCompilerError where there is no compiler and they are not kept.
    """
    return _helpers(cache_folder())


@cache
def _helpers(programs: Path) -> Helpers:
    """Once for each cache: asking it takes longer than starting ranks may cost."""
    folder = NATIVE_HEADERS / "launch"
    environment = _environment()
    keep, place = (build(environment, folder / f"{name}.cpp").path for name in ("keep", "place"))
    return Helpers(keep, place)


def _environment() -> Environment:
    flags = (_BASELINE.get(platform.machine(), "-mtune=generic"),)
    target = Target(flags, frozenset(), _ANY_CPU)
    try:
        return Environment(first_compiler(), target, libc_version())
    except NoCompilerError:
        for environment in kept_environments():
            if environment.target.resolution == _ANY_CPU and environment.libc == libc_version():
                return environment
        raise


@dataclass(frozen=True, slots=True)
class Start:
    """`before` are the words before the program's own; `variables` all that it runs with. `launcher` is what starts
    ranks; empty for a program that is one process."""

    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    launcher: str = ""


def start_of(ready: Ready, directory: Path) -> Start:
    """How a repeat is started.

    Raises BuildError where what stands around ranks is not there, and NoLauncherError.
    """
    if ready.mpi is None:
        return Start(variables=variables_with(ready.variables))
    wanted = rank_layout(ready.point)
    starter = rank_command(ready.mpi, wanted, [name for name, value in ready.variables if value is not None])
    changes = (*((name, None) for name in rank_variables(os.environ)), *starter.variables.items(), *ready.variables)
    helpers = rank_helpers()
    tells = not isinstance(ready.point.benchmark.program, External)
    before = (
        *kept(helpers, os.getpid()),
        *starter.argv,
        *placed(helpers, starter, wanted, None if tells else directory),
    )
    return Start(before, variables_with(changes), starter.argv[0])
