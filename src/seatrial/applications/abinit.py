"""ABINIT: its logs, and runs on an input of the user's.

`Overall time` is the sum of all ranks, not the time that the run took: with two ranks it is twice as much. The elapsed
time is that of rank 0 (`Proc. 0 individual time`). Since all ranks begin and end together, the sum is checked against
it.

Run with ABINIT 9.6.2 on two atoms of silicon, with one and two ranks.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import application
from seatrial.model.benchmark.given_input import INPUT

_OWN = Pattern(r"- Proc\. +0 individual time \(sec\): cpu= +\S{1,20} +wall= +(\S{1,20})")
_RANKS = r"- +mpi_nproc: ([0-9]{1,9}), omp_nthreads: .{0,60}"
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
    ranks = log.only(Pattern(_RANKS), "line `mpi_nproc`").whole(1, "the number of ranks")
    if abs(total.value / ranks - wall.value) > _APART_S + _APART * wall.value + total.error + wall.error:
        raise end.error(f"{total.value:g} s are not the sum of {ranks} ranks of about {wall.value:g} s each")
    return Measured([wall.sample("wall")])


READER = log_reader(
    IMPORTED,
    "ABINIT",
    _measured,
    begin=(r"\.Version +([0-9]\S{0,20}) of ABINIT", ".Version 9.6.2 of ABINIT"),
    refused=((r"--- !(?:ERROR|BUG)", "ABINIT stopped here: the run has no figure"),),
    end=(
        r"\+Overall time at end \(sec\) : cpu= +\S{1,20} +wall= +(\S{1,20})",
        "there is no `+Overall time at end`",
    ),
    states={"ranks": _RANKS, "atoms": r"natom = +([0-9]{1,12}) .{0,80}"},
    remarked=(r"(?:scprqt|scfcv): +WARNING -?.{0,120}", "{text}"),
)

BENCHMARK = application(
    IMPORTED,
    "How long does ABINIT take?",
    tool="ABINIT",
    programs=("abinit",),
    install="install ABINIT (Debian: package abinit; Spack: spack install abinit)",
    arguments=lambda params: [str(params[INPUT])],
    output="*.abo",
)
