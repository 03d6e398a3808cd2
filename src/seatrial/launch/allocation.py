"""The nodes of the allocation that this process runs in, by the variables that its batch system sets.

Slurm: sbatch(1), srun(1), "OUTPUT ENVIRONMENT VARIABLES". PBS: qsub(1), `PBS_NODEFILE`. LSF: `LSB_DJOB_HOSTFILE`.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.host_list import expand_hosts

_MOST_B = 16 << 20


class Allocated(Frozen):
    """The nodes as the batch system names them. `source` names the allocation, for messages. `starter` is what runs a
    command on each of them: srun or ssh. `this` is the name of the node of this process; None: it is on none of them.
    """

    source: str
    nodes: tuple[str, ...]
    starter: str
    this: str | None


def allocated(variables: Mapping[str, str], host: str | None = None) -> Allocated | None:
    """The allocation of this process; None without one, and if this process is one of several of a job step, which each
    measure their own node. `host` is this node's host name. Raises UsageError for an invalid list of nodes."""
    host = platform.node() if host is None else host
    if job := variables.get("SLURM_JOB_ID"):
        if _is_one_of_many(variables):
            return None
        listed = variables.get("SLURM_JOB_NODELIST") or variables.get("SLURM_NODELIST") or ""
        try:
            nodes = expand_hosts(listed)
        except ValueError as error:
            raise UsageError(
                f"SLURM_JOB_NODELIST: {error}", "run inside salloc or sbatch, or unset SLURM_JOB_ID"
            ) from None
        return _allocated(f"Slurm job {job}", nodes, "srun", variables.get("SLURMD_NODENAME") or host)
    for source, name, file in (("PBS job", "PBS_JOBID", "PBS_NODEFILE"), ("LSF job", "LSB_JOBID", "LSB_DJOB_HOSTFILE")):
        if name in variables and file in variables:
            return _allocated(f"{source} {variables[name]}", _lines(file, Path(variables[file])), "ssh", host)
    return None


def named_hosts(hosts: Sequence[str], source: str, host: str | None = None) -> Allocated | None:
    """Hosts of the site file that are reached by ssh; None if there are none."""
    return _allocated(source, tuple(hosts), "ssh", platform.node() if host is None else host)


def _is_one_of_many(variables: Mapping[str, str]) -> bool:
    tasks = variables.get("SLURM_STEP_NUM_TASKS", "1")
    return "SLURM_PROCID" in variables and tasks.isdigit() and int(tasks) > 1


def _lines(name: str, file: Path) -> tuple[str, ...]:
    """The hosts of a file that has a line for each slot."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            words = stream.read(_MOST_B).split()
    except OSError as error:
        raise UsageError(
            f"{name}: {file} cannot be read: {error.strerror}",
            "run on the first node of the job, or unset the variable",
        ) from None
    return tuple(words)


def _allocated(source: str, listed: Sequence[str], starter: str, host: str) -> Allocated | None:
    nodes = tuple(dict.fromkeys(listed))
    if not nodes:
        return None
    same = [node for node in nodes if node == host or node.partition(".")[0] == host.partition(".")[0]]
    return Allocated(source, nodes, starter, same[0] if same else None)
