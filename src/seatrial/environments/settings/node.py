"""Whose node this is: whether its settings may be changed, and the folder of its files.

The command line sets the folder once at the start; `although_shared` holds while something is measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from seatrial.model.spelling import few_names

OTHERS_TOO = "their programs would run with the settings as well: ask them"
_FIRST_USER = 1000
"""Ids below are the system's (login.defs(5), UID_MIN)."""
_NOBODY = 65534
_MOST_NAMES = 3


class _InForce(Struct):
    root: Path = Path("/")
    shared: bool = False


_in_force = _InForce()


def use_root(root: Path) -> None:
    """Change settings below this folder in place of /."""
    _in_force.root = root


def root_in_force() -> Path:
    """The folder in place of /."""
    return _in_force.root


@contextmanager
def although_shared(shared: bool) -> Iterator[None]:
    """Within the block settings are changed also where others run programs, if `shared`."""
    before, _in_force.shared = _in_force.shared, shared
    try:
        yield
    finally:
        _in_force.shared = before


def why_not_ours() -> str:
    """Why settings of this node are not changed; "" if they may be."""
    return "" if _in_force.shared else why_shared(os.environ)


def why_shared(variables: Mapping[str, str]) -> str:
    """Who else uses this node: other users, or other jobs of Slurm; "" if nobody does. A job that has all CPUs of its
    node shares it with none (sbatch(1), SLURM_CPUS_ON_NODE)."""
    if others := users_here():
        return f"others run programs on this node (users {few_names(others, _MOST_NAMES)})"
    own, all_cpus = variables.get("SLURM_CPUS_ON_NODE", ""), os.cpu_count() or 1
    if "SLURM_JOB_ID" in variables and own.isdecimal() and int(own) < all_cpus:
        return f"this job has {own} of the {all_cpus} CPUs of the node, and other jobs may run on the others"
    return ""


def users_here() -> list[int]:
    """The ids of users other than this one and the system's who run programs here."""
    found: set[int] = set()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                found.add(process.stat().st_uid)
            except OSError:
                continue
    return sorted(one for one in found if one >= _FIRST_USER and one not in (os.geteuid(), _NOBODY))
