"""CP2K: its logs, and runs on the inputs of its own repository.

The row `CP2K` of the table of timings is the whole run: its last two columns are the mean and the most of all ranks,
and the slowest rank counts. It is checked against the moments at which the program began and ended, against the other
rows, and against the mean: all ranks begin and end together.

Run with CP2K 2023.1 on one molecule of water, with one and two ranks; the published input takes longer than was tried.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import application
from seatrial.model.benchmark.given_input import INPUT, InputCase

_MOMENT = r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3})"
_TOTAL = Pattern(r"CP2K +1 +1\.0" + 4 * r" +([0-9]{1,9}\.[0-9]{2,3})")
_ROW = Pattern(
    r"[a-zA-Z]\w{2,39} +[1-9][0-9]{0,11} +[0-9]{1,3}\.[0-9](?: +[0-9]{1,9}\.[0-9]{2,3}){3} +([0-9]{1,9}\.[0-9]{2,3})"
)
_UNCONVERGED = Pattern(r"\*\*\* WARNING .{1,80} SCF run NOT converged.{0,40}")
_MOST_APART = 0.1
_REPOSITORY = "https://github.com/cp2k/cp2k, folder benchmarks"

IMPORTED = figures.imported(
    "cp2k",
    "CP2K",
    "How long did CP2K take?",
    figures.RUN_PARAMETERS,
    (figures.time("wall", "elapsed time of the whole run on its slowest rank"),),
)


def _measured(log: Log, started: Found, ended: Found) -> Measured:
    row = log.only(_TOTAL, "row `CP2K` of the table of timings")
    mean, most = row.printed(3, "the mean total time"), row.printed(4, "the most total time")
    span_s = (ended.moment(1) - started.moment(1)).total_seconds()
    if mean.value > most.value + mean.error + most.error:
        raise row.error("the mean of all ranks is above the most")
    if mean.value < (1 - _MOST_APART) * most.value:
        raise row.error("the mean of all ranks is far below the most: the row is damaged")
    if most.value > span_s + 1.0:
        raise row.error(f"{most.value:g} s, but the program took {span_s:g} s from its begin to its end")
    for part in log.found(_ROW):
        if part.number_or_zero(1, "the most total time") > 1.001 * most.value + 0.01:
            raise part.error(f"a part took longer than the whole run, {most.value:g} s")
    unconverged = len(log.found(_UNCONVERGED))
    remark = f"{unconverged} SCF runs did not converge: compare only runs that did the same"
    return Measured([most.sample("wall")], remarks=[remark] if unconverged else [])


READER = log_reader(
    IMPORTED,
    "CP2K",
    _measured,
    begin=(rf"[* ]+PROGRAM STARTED AT +{_MOMENT}", "PROGRAM STARTED AT"),
    version=(
        r"CP2K\| version string: +CP2K version (\S{1,40}).{0,40}",
        "no line `CP2K| version string`: from another program, or damaged",
    ),
    refused=(
        (
            r"(?:\*.{0,20}\[ABORT\].{0,200}|CP2K\| .{0,40}SIGTERM.{0,80}|=+ ?ABORT.{0,80})",
            "CP2K stopped here: the run has no figure",
        ),
    ),
    temperature=r"(?:TEMPERATURE \[K\] +=|MD\| Temperature \[K\]) +(\S{1,30})(?: +\S{1,30})?",
    end=(rf"[* ]+PROGRAM ENDED AT +{_MOMENT}", "there is no `PROGRAM ENDED AT`"),
    states={
        "ranks": r"GLOBAL\| Total number of message passing processes +([0-9]{1,9})",
        "threads": r"GLOBAL\| Number of threads for this process +([0-9]{1,9})",
        "atoms": r"- Atoms: +([0-9]{1,12})",
    },
)

BENCHMARK = application(
    IMPORTED,
    "How long does CP2K take?",
    tool="CP2K",
    programs=("cp2k.psmp", "cp2k.popt", "cp2k"),
    install="install CP2K (Debian: package cp2k; Spack: spack install cp2k)",
    arguments=lambda params: ["-i", str(params[INPUT])],
    cases=(
        InputCase(
            "h2o-64",
            "64 water molecules",
            "https://github.com/cp2k/cp2k, folder benchmarks/QS",
            "H2O-64.inp",
            atoms=192,
        ),
    ),
)
