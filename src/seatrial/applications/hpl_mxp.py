"""HPL-MxP of NVIDIA: LU factorisation in low precision, then iterative refinement to double precision.

The rate to report is of both together. The report also prints the rate of the factorisation alone, which is several
times higher: another figure. The operations are those of HPL, and both rates are checked against the printed times.

`apps.hpl-mxp`: HPL-MxP of the NVIDIA HPC Benchmarks, a rank for each GPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from seatrial.applications.hpl_input import grids_of
from seatrial.applications.hpl_nvidia import INSTALL, ONE_PER_GPU
from seatrial.applications.hpl_output import operations
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Printed
from seatrial.applications.reading.text import LogLine, Pattern, number
from seatrial.applications.running.given_input import FORMAT_SEEN, Made, application
from seatrial.model.benchmark.given_input import InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "HPL-MxP"
_BANNER = Pattern(r"HPL-MxP-NVIDIA ([0-9][0-9.]{0,15})\s{1,9}--.{0,100}")
_TESTS = Pattern(r"\*{6} test ([0-9]{1,9}) of ([0-9]{1,9}) starts\s{0,3} \*{6}")
_LOOPS = Pattern(r"--test-loop += ([0-9]{1,9})")
_SECONDS = r" seconds: AVG = +(\S{1,20}), MAX = +(\S{1,20}) .{1,200}, MIN = +(\S{1,20}) .{1,200}"
_LU_S = Pattern("LU" + _SECONDS)
_SOLVER_S = Pattern("Iterative Solver" + _SECONDS)
_THRESHOLD = Pattern(r"Threshold [ .]{1,60}= +(\S{1,40})")
_RESIDUAL = Pattern(r"\|\|Ax-b\|\|_oo / \(EPS.{1,100}\) += +(\S{1,40}) \.{2,9} (PASSED|FAILED)")
_SYSTEM = Pattern(r"N = (\S{1,20}), NB = (\S{1,20}), NPROW = (\S{1,20}), NPCOL = (\S{1,20}), SLOPPY-TYPE = (\w{1,10})")
_RATE = Pattern(r"GFLOPS = +(\S{1,20}), per GPU = +(\S{1,20})(?: .{0,100})?")
_LU_RATE = Pattern(r"LU GFLOPS = +(\S{1,20}), per GPU = +(\S{1,20})(?: .{0,100})?")
_RESULT = Pattern(r"\*{6} HPL MxP Result {1,9}\*{6}")
_OVERALL = Pattern(r"overall performance: +\S{1,20} +GFlops")
_LOOKS_LIKE = "HPL-MxP-NVIDIA 25.4.0  -- NVIDIA accelerated HPL-MxP benchmark"
_LOW_PRECISION = {"1": "fp8", "2": "fp16", "FP8": "fp8", "FP16": "fp16"}


class _Solution(Frozen):
    """One solved system, as its block of the report states it. Rates in Gflop/s; the time (s) is work over
    rate, which is more exact than the printed ones."""

    parameters: dict[str, Value]
    rate: Printed
    lu_rate: Printed
    time: Printed
    residual: str
    failed: str


def read(data: bytes) -> ImportedFile:
    """One run: one experiment per setting, with repeated solutions as its samples.

    Raises ParseError if the run did not end, the file holds two runs, or its numbers contradict each other.
    """
    log = Log(_TOOL, data)
    if not log.found(_BANNER):
        log.refuse(
            _OVERALL, "a rate without the size of the system and its residual: give the output of HPL-MxP itself"
        )
    is_block = not log.found(_BANNER) and len(log.found(_RESULT)) == 2 and not log.found(_TESTS)
    version = "" if is_block else log.banner(_BANNER, _LOOKS_LIKE).text(1)
    solutions = _solutions(log)
    groups: dict[tuple[Value, ...], list[_Solution]] = {}
    for solution in solutions:
        groups.setdefault(tuple(solution.parameters.values()), []).append(solution)
    return ImportedFile(_TOOL, version, tuple(map(_experiment, groups.values())))


def _solutions(log: Log) -> list[_Solution]:
    systems = log.found(_SYSTEM)
    marks = log.found(_RESULT)
    planned = _planned(log)
    if len(systems) < planned or len(marks) < 2 * planned:
        raise log.not_ended(f"{len(marks) // 2} of {planned} results")
    if len(systems) > planned or len(marks) > 2 * planned:
        raise marks[-1].error(f"a result more than the {planned} that this run had to give: two runs in one file?")
    ends = [0, *(mark.line.number for mark in marks[1::2])]
    blocks = [log.lines[start:end] for start, end in itertools.pairwise(ends)]
    return [_solution(log, system, block) for system, block in zip(systems, blocks, strict=True)]


def _planned(log: Log) -> int:
    """How many systems the run had to solve: tests x loops."""
    tests, loops = log.found(_TESTS), log.maybe(_LOOPS, "number of loops")
    counts = {test.whole(2, "the number of tests") for test in tests}
    if len(counts) > 1 or len({test.match[1] for test in tests}) < len(tests):
        raise tests[-1].error("this test does not follow the one before: two runs in one file?")
    return max(counts, default=1) * (1 if loops is None else loops.whole(1, "the number of loops"))


def _solution(log: Log, system: Found, block: list[LogLine]) -> _Solution:
    def one(pattern: Pattern, what: str) -> Found:
        found = log.found(pattern, block)
        if len(found) != 1:
            raise system.error(f"its result has {len(found) or 'no'} lines with {what}, expected one")
        return found[0]

    one(_SYSTEM, "the size of the system")
    n, nb, p, q = (system.whole(place, what) for place, what in enumerate(("N", "NB", "NPROW", "NPCOL"), start=1))
    low = _LOW_PRECISION.get(system.match[5])
    named: dict[str, Value] = {} if low is None else {"precision": low}
    # The block of the result alone, as it is often quoted, has no times to check the rates against.
    has_times = bool(log.found(_BANNER))
    lu = [one(_LU_S, "`LU seconds`")] if has_times else []
    solver = [one(_SOLVER_S, "`Iterative Solver seconds`")] if has_times else []
    rate = _rate(one(_RATE, "`GFLOPS`"), n, p * q, (*lu, *solver))
    lu_rate = _rate(one(_LU_RATE, "`LU GFLOPS`"), n, p * q, lu)
    residual = one(_RESIDUAL, "the residual")
    threshold = one(_THRESHOLD, "`Threshold`").number(1, "the threshold")
    scaled = number(residual.match[1])
    if residual.match[2] == "PASSED" and (scaled is None or not 0 <= scaled < threshold):
        raise residual.error(f"it is called PASSED, but is not below the threshold {threshold:g}")
    is_right = residual.match[2] == "PASSED"
    failed = "" if is_right else f"residual FAILED: the solution is wrong (line {residual.line.number})"
    return _Solution(
        {"n": n, "nb": nb, "p": p, "q": q, "ranks": p * q, **named},
        rate,
        lu_rate,
        rate.inverse(operations(n) / 1e9),
        residual.match[1],
        failed,
    )


def _rate(line: Found, n: int, ranks: int, clocks: Sequence[Found]) -> Printed:
    """The rate of a line, checked against that of one GPU, and against the work and the times of all processes, if
    there are any."""
    rate, each = line.printed(1, "the rate"), line.printed(2, "the rate of one GPU")
    if not rate.agrees(each.scaled(ranks)):
        raise line.error(f"{line.match[1]} Gflop/s are not {ranks} x {line.match[2]}")
    if not clocks:
        return rate
    longest, shortest = 0.0, 0.0
    for clock in clocks:
        most, least = clock.printed(2, "the longest time"), clock.printed(3, "the shortest time")
        longest, shortest = longest + most.value + most.error, shortest + max(0.0, least.value - least.error)
    work = operations(n) / 1e9
    if not (rate.value + rate.error) * longest >= work * (1 - 1e-5):
        raise line.error(f"{line.match[1]} Gflop/s is too low for the work of N = {n} in at most {longest:.2f} s")
    if not (rate.value - rate.error) * shortest <= work * (1 + 1e-5):
        raise line.error(f"{line.match[1]} Gflop/s is too high for the work of N = {n} in at least {shortest:.2f} s")
    return rate


def _experiment(solutions: list[_Solution]) -> ImportedExperiment:
    samples: list[Sample] = []
    for i, one in enumerate(solutions):
        samples += [
            one.rate.rate_sample("rate", 1e9, i=i),
            one.lu_rate.rate_sample("lu_rate", 1e9, i=i),
            one.time.sample("time", i=i),
        ]
    failed = next((one.failed for one in solutions if one.failed), "")
    notes = {"residuals": [number(one.residual) for one in solutions]}
    return ImportedExperiment("imported.hpl-mxp", tuple(samples), solutions[0].parameters, notes, failed=failed)


_WORK = "2/3 n^3 + 3/2 n^2 flop, as HPL counts"

IMPORTED = figures.imported(
    "hpl-mxp",
    "HPL-MxP",
    "How fast did HPL-MxP solve a dense system of linear equations in mixed precision?",
    (
        *figures.counts(n="order of the matrix", nb="block size"),
        *figures.counts(p="rows of the process grid", q="columns of the process grid"),
        figures.count("ranks", "processes, p x q: one per GPU"),
        figures.choice("precision", "low precision of the factorisation", "fp8", "fp16"),
    ),
    (
        figures.rate(
            "rate", "flop/s", f"{_WORK}, over factorisation and iterative refinement", figures.given_limit("flop/s")
        ),
        figures.rate("lu_rate", "flop/s", f"{_WORK}, over the factorisation alone", is_secondary=True),
        figures.time("time", "time to factor and refine"),
    ),
)

READER = figures.Reader("hpl-mxp", read, (_BANNER.text,))


def _arguments(params: Params) -> Sequence[str]:
    ranks = whole(params["ranks"])
    p, q = grids_of(ranks)[0]
    devices = ":".join(map(str, range(-(-ranks // whole(params["nodes"])))))
    size = ["--n", str(params["n"]), "--nb", str(params["nb"])]
    return [*size, "--nprow", str(p), "--npcol", str(q), "--nporder", "row", "--gpu-affinity", devices]


BENCHMARK = application(
    IMPORTED,
    "How fast does HPL-MxP solve a dense system of linear equations in mixed precision?",
    tool="HPL-MxP",
    programs=("hpl-mxp.sh",),
    install=f"{INSTALL}hpl-mxp.sh on PATH",
    arguments=_arguments,
    cases=(InputCase("square", "one matrix of order n on the grid nearest to a square", ""),),
    made=Made(
        parameters=(
            Parameter.integer("n", 92160, "order of the matrix", minimum=1),
            Parameter.integer("nb", 1024, "block size", minimum=1),
        )
    ),
    has_start=False,
    stated={"ranks": "ranks", "n": "n", "nb": "nb"},
    ranks=ONE_PER_GPU,
    evidence=FORMAT_SEEN,
)
