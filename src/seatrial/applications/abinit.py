"""ABINIT: its logs (stdout, or the file that ends in .abo), and runs on an input of the user's.

The overall time is the sum of all ranks, not the time that the run took: with two ranks it is twice as much. The
elapsed time is that of rank 0 (`Proc. 0 individual time`). Since all ranks begin and end together, the sum is checked
against it. Only stdout states the number of threads.

Run with ABINIT 9.6.2 on two atoms of silicon, with one and two ranks, and with two datasets.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import application
from seatrial.model.benchmark.given_input import INPUT

_OWN = Pattern(r"(?:- )?Proc\. +0 individual time \(sec\): cpu= +\S{1,20} +wall= +(\S{1,20})")
_RANKS = r"(?:- +mpi_nproc|mpi_procs): +([0-9]{1,9})(?:, omp_nthreads: .{0,60})?"
_APART_S, _APART = 2.0, 0.1
"""Ranks start one after the other."""

IMPORTED = figures.imported(
    "abinit",
    "ABINIT",
    "How long did ABINIT take?",
    figures.RUN_PARAMETERS,
    (figures.time("wall", "elapsed time of the whole run on rank 0"),),
)


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    wall, total = log.only(_OWN, "line `Proc. 0 individual time`").printed(1, "the time"), end.printed(1, "the total")
    ranks = log.stated({"ranks": Pattern(_RANKS)}).get("ranks", 0)
    if not ranks:
        raise end.error("no number of ranks (`mpi_nproc` or `mpi_procs`)")
    if abs(total.value / ranks - wall.value) > _APART_S + _APART * wall.value + total.error + wall.error:
        raise end.error(f"{total.value:g} s are not the sum of {ranks} ranks of about {wall.value:g} s each")
    return Measured([wall.sample("wall")])


READER = log_reader(
    IMPORTED,
    "ABINIT",
    _measured,
    begin=(r"\.Version +([0-9]\S{0,20}) +of ABINIT", ".Version 9.6.2 of ABINIT"),
    refused=((r"--- !(?:ERROR|BUG)", "ABINIT stopped here: the run has no figure"),),
    end=(
        r"(?:\+Overall time at end \(sec\) : cpu= +\S{1,20} +wall=|overall_wall_time:) +(\S{1,20})",
        "there is no `overall_wall_time` or `+Overall time at end`",
    ),
    states={"ranks": _RANKS, "threads": r"omp_threads: +([0-9]{1,9})", "atoms": r"natom = +([0-9]{1,12}) .{0,80}"},
    remarked=(
        r"nstep *[= ] *[0-9]{1,9} was not enough SCF cycles to converge.{0,20}",
        "`{text}`: compare only runs that took the same steps",
    ),
)

BENCHMARK = application(
    IMPORTED,
    "How long does ABINIT take?",
    tool="ABINIT",
    programs=("abinit",),
    install="install ABINIT (Debian: package abinit; Spack: spack install abinit)",
    arguments=lambda params: [str(params[INPUT])],
)
