"""The layout of an application on a node: ranks x threads, each thread on its own CPU."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.benchmarks.bounds import exactly
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.model.benchmark import Check, Skip
from seatrial.model.layout import RANKS as RANKS_NAME
from seatrial.model.layout import THREADS as THREADS_NAME
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole

RANKS = Parameter(
    RANKS_NAME,
    ParameterKind.INTEGER,
    "all",
    "MPI ranks, each bound to as many CPUs as it has threads; all: as many as fit on the cores",
    words=("all",),
    minimum=1,
)

THREADS = Parameter(THREADS_NAME, ParameterKind.INTEGER, 1, "OpenMP threads per rank", minimum=1)

_OVERRIDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_DYNAMIC", "OMP_THREAD_LIMIT")
"""Variables that would change the number or binding of the threads. OMP_PLACES binds the threads of every rank to the
same CPUs if the ranks themselves are not bound: two ranks of GROMACS on two cores then took 30 times as long."""


def resolved(machine: Machine, params: Params) -> Params:
    """The parameters with the number that `ranks` stands for. Raises Skip where there are not that many CPUs."""
    threads = whole(params[THREADS_NAME])
    cores = thread_count(machine, "all")
    ranks = max(1, cores // threads) if params[RANKS_NAME] == "all" else whole(params[RANKS_NAME])
    there = len(machine.allowed_cpus)
    if ranks * threads > there:
        raise Skip(f"{ranks} ranks of {threads} threads need {ranks * threads} CPUs; this process may use {there}")
    return {**params, RANKS_NAME: ranks}


def placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPU of each thread, rank by rank: a core each as long as there are cores."""
    return spread(machine, cpus_of(params))


def cpus_of(params: Params) -> int:
    """How many CPUs the ranks and their threads take."""
    return whole(params[RANKS_NAME]) * whole(params[THREADS_NAME])


def openmp_variables(params: Params) -> Mapping[str, str | None]:
    """The environment in which each rank starts its threads and leaves them on the CPUs that the rank is bound to."""
    return {"OMP_NUM_THREADS": str(whole(params[THREADS_NAME])), **dict.fromkeys(_OVERRIDING)}


def counted_by(application: str) -> tuple[Check, ...]:
    """The checks that the application runs on the requested number of ranks and threads."""
    return (
        Check(RANKS_NAME, f"ranks, as {application} reports", exactly(RANKS_NAME)),
        Check(THREADS_NAME, f"threads per rank, as {application} reports", exactly(THREADS_NAME)),
    )
