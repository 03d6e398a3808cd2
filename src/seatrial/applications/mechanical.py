"""Output files of Ansys Mechanical APDL (solve.out): the elapsed times of a run and of its solution.

The elapsed time of the run is printed with decimals but counts whole seconds. A run without a licence ends with `RUN
COMPLETED` as well, so a solution that took no time is refused.

Format from documentation: the only real output at hand is that of a run without a licence.

`apps.mechanical`: Ansys Mechanical APDL on the user's input.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FROM_DOCUMENTATION, application
from seatrial.model.benchmark.given_input import INPUT
from seatrial.model.benchmark.parameter import Value

_TOTAL = Pattern(r"\|? ?Elapsed Time \(sec\) = ([0-9]{1,9}\.[0-9]{3})(?: .{0,60})?")
_TOTAL_LIKE = Pattern(r".{0,20}Elapsed Time \(sec\).{0,200}")
_PHASE = Pattern(r"Elapsed time spent (\S.{0,60}?) ?: ([0-9]{1,9}\.[0-9]) seconds")
_PHASE_LIKE = Pattern(r"Elapsed time spent .{0,200}")
_SOLUTION = "computing solution"
_PARTS = ("obtaining a license", "pre-processing model", "solution - ", _SOLUTION, "post-processing model")
"""The phases that follow each other. Others, if any, may be parts of these."""
_RELEASE = Pattern(r"Release: (.{1,30}?) (?:Build:|UP[0-9]{8}).{0,200}")
_RELEASE_IN_BOX = Pattern(
    r"\| (?:A(?:nsys|NSYS) )?(?:Release|MAPDL) (.{1,30}?) (?:Build .{1,20} )?UP[0-9]{8} .{0,80}\|"
)
_COUNTS = {
    "nodes": Pattern(r"Number of machines requested ?: (\S{1,20})"),
    "cores": Pattern(r"(?:Total number of cores requested|Number of cores(?: requested)?) ?: (\S{1,20})(?: .{0,60})?"),
    "ranks": Pattern(r"Number of processes requested ?: (\S{1,20})"),
    "threads": Pattern(r"Number of threads per process requested ?: (\S{1,20})"),
}
_EQUATION_SOLVER = Pattern(r"Equation solver used ?: (\S.{0,40})")
_BOX = Pattern(r"\+-{2,60} (E N D )?.{0,20} S T A T I S T I C S -{2,60}\+")


def _measured(log: Log, begin: Found, completed: Found) -> Measured:
    edges = [(one.line.number, bool(one.match[1])) for one in log.found(_BOX)]
    if edges and ([is_end for _, is_end in edges] != [False, True] or edges[1][0] > completed.line.number):
        raise completed.error("the box of statistics above it does not begin and end once: lines are missing")
    releases = sorted(
        (one for pattern in (_RELEASE, _RELEASE_IN_BOX) for one in log.found(pattern)), key=lambda one: one.line.number
    )
    if len({release.match[1] for release in releases}) > 1:
        raise releases[-1].error(f"the file names two releases; the first is on line {releases[0].line.number}")
    total = log.of_form(_TOTAL_LIKE, _TOTAL, "Elapsed Time (sec) = 12.000")
    if total.line.number < completed.line.number:
        raise total.error("above `RUN COMPLETED`: two runs, or a damaged file")
    total_s = total.printed(1, "the elapsed time")
    if total_s.value.is_integer():
        total_s = Printed(total_s.value, 0.5)
    phases = _phases(log)
    parts_s = sum(phase.value for name, phase in phases.items() if name.startswith(_PARTS))
    if parts_s > total_s.value + 1.0 + 0.1 * len(phases):
        raise total.error("less than the phases of the run took together")
    if _SOLUTION not in phases:
        why = f"no `Elapsed time spent {_SOLUTION}` above this line: whether it solved anything is unknown"
        raise completed.error(why)
    samples = [total_s.sample("wall"), phases[_SOLUTION].sample("solution_time")]
    return Measured(samples, _parameters(log), version=releases[0].match[1])


def _phases(log: Log) -> dict[str, Printed]:
    """Phase -> its elapsed seconds. Raises ParseError if one is damaged, or nothing was solved."""
    phases: dict[str, Printed] = {}
    why = "not of the form `Elapsed time spent ... : 1.2 seconds`: the line is damaged"
    for one in log.each_of_form(_PHASE_LIKE, _PHASE, why):
        name, seconds = one.match.groups()
        if name in phases:
            raise one.error("a second time of this phase: two runs in one file; split it")
        if name == _SOLUTION and float(seconds) == 0:
            raise one.error("the solution took no time: nothing was solved, or the run was too short")
        phases[name] = Printed.of(float(seconds), seconds)
    return phases


def _parameters(log: Log) -> dict[str, Value]:
    parameters: dict[str, Value] = {
        name: one.whole(1, f"the number of {name}") for name, pattern in _COUNTS.items() for one in log.found(pattern)
    }
    for one in log.found(_EQUATION_SOLVER):
        parameters["equation_solver"] = one.match[1]
    return parameters


IMPORTED = figures.imported(
    "mechanical",
    "Ansys Mechanical APDL",
    "How long did Ansys Mechanical take?",
    (
        *figures.counts(cores="cores, in all", ranks="processes", threads="threads per process", nodes="machines"),
        figures.text("equation_solver", "solver of the equations, as named in the file"),
    ),
    (
        figures.time("wall", "elapsed time of the whole run, in whole seconds"),
        figures.time("solution_time", "elapsed time of computing the solution"),
    ),
)

READER = log_reader(
    IMPORTED,
    "MAPDL",
    _measured,
    begin=(rf"^(?:{_RELEASE.text}|{_RELEASE_IN_BOX.text})$", "Release: 2021 R1 Build: 21.1"),
    is_begun_anywhere=True,
    is_spaced_once=True,
    signs=(
        (
            r"(?i)\*\*\* ?ERROR\b|LICENSE MANAGER ERROR|\blicense\b.{0,40}(?:not available|denied|could not)"
            r"|SIGSEGV|Segmentation fault|FLOATING POINT EXCEPTION",
            "the run failed",
        ),
        (r"(?i)CONVERGENCE VALUE ?= ?[+-]?(?:nan|inf)", "the solution diverged (not a number)"),
    ),
    end=(r"\|? ?.{0,30}RUN COMPLETED ?\|?", "no `RUN COMPLETED`"),
    is_from_documentation=True,
)


BENCHMARK = application(
    IMPORTED,
    "How long does Ansys Mechanical take?",
    tool="Mechanical APDL",
    programs=("mapdl", *(f"ansys{year}{release}" for year in (26, 25, 24, 23) for release in (2, 1))),
    install="Mechanical needs a licence (https://www.ansys.com): put mapdl, or ansys251 and the like, on PATH",
    arguments=lambda params: ["-b", "-np", str(params["processes"]), "-i", str(params[INPUT]), "-o", "solve.out"],
    output="solve.out",
    starts="itself",
    stated={"cores": "processes"},
    evidence=FROM_DOCUMENTATION,  # the only sample is a run without a licence, which is refused
)
