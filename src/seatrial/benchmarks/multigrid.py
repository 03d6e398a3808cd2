"""What the benchmarks of HPCG's problem share (`cpu.cg`, `gpu.cg`): its grid, its checks, its figures.

The problem, the preconditioner, the count of operations and the tests are those of HPCG (J. Dongarra, M. A. Heroux,
P. Luszczek, "HPCG Benchmark: a New Metric for Ranking High Performance Computing Systems", 2015; "HPCG Technical
Specification", SAND2013-8752). docs/adr/0095 says which of its rules hold here.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.figures import between, rate
from seatrial.model.benchmark.benchmark import Better, Check, Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

LEAST = 16
STEP = 8
"""The grid is halved three times for the coarse grids (SAND2013-8752, section 2)."""
_SLIMMEST = 8
_MOST_POINTS = 1 << 31
ITERATIONS = 50
"""Of the reference, in a set."""
FLOP_PER_ROW = 370
"""Of an iteration, as HPCG counts."""
BYTES_PER_ROW = 27 * 12 + 12 * 8
"""Of the matrix and the vectors of one grid; the coarse grids add a seventh."""
WITH_COARSE_GRIDS = 8 / 7

ORDERING = Parameter.choice(
    "ordering",
    "auto",
    "how rows are ordered for Gauss-Seidel; levels: with the results of row after row, as the reference; colours: few"
    " stages of many rows, but more iterations",
    ("auto", "levels", "colours"),
    option="--ordering",
)


def grid(part: str) -> tuple[Parameter, ...]:
    """The lengths of the grid of one `part` (a rank, a device)."""
    return (
        Parameter.integer(
            "nx",
            "auto",
            f"points of each {part} along x, a multiple of {STEP}; auto: as many as exceed the caches",
            minimum=LEAST,
        ),
        *(
            Parameter.integer(axis, "auto", f"the same along {axis[1]}; auto: as many as along x", minimum=LEAST)
            for axis in ("ny", "nz")
        ),
    )


def settled(params: Params, edge: int) -> Params:
    """The parameters with the lengths that `auto` stands for; `edge` is that of nx. Raises Skip as HPCG refuses."""
    nx = edge if params["nx"] == "auto" else whole(params["nx"])
    others: dict[str, Value] = {axis: nx if params[axis] == "auto" else params[axis] for axis in ("ny", "nz")}
    found = {**params, "nx": nx, **others}
    lengths = lengths_of(found)
    text = " x ".join(str(length) for length in lengths)
    for axis, length in zip(("nx", "ny", "nz"), lengths, strict=True):
        if length % STEP or length < LEAST:
            raise Skip(f"{axis}={length} is not a multiple of {STEP}: the grid is halved three times")
    if max(lengths) > _SLIMMEST * min(lengths):
        raise Skip(f"a grid of {text} is too slim: the shortest length must be at least 1/{_SLIMMEST} of the longest")
    if rows_of(found) >= _MOST_POINTS:
        raise Skip(f"a grid of {text} has 2^31 points or more; use a smaller one on more parts")
    return found


def lengths_of(params: Params) -> tuple[int, int, int]:
    """(nx, ny, nz) of one part."""
    return whole(params["nx"]), whole(params["ny"]), whole(params["nz"])


def rows_of(params: Params) -> int:
    """The rows of one part."""
    nx, ny, nz = lengths_of(params)
    return nx * ny * nz


def words(params: Params) -> tuple[str, ...]:
    """The argument of the programs."""
    return "--grid", ",".join(str(length) for length in lengths_of(params))


def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The rate of memory, measured in the same run, times the flop for each byte that must move."""
    sample = samples[0]
    memory_Bps, per_byte = float(sample.extra["memory_Bps"]), sample.work["flops"] / sample.work["bytes"]
    derivation = f"{memory_Bps / 1e9:.4g} GB/s, measured in the same run, x {per_byte:.3g} flop per byte that moves"
    return Limit(memory_Bps * per_byte, "flop/s", derivation, Basis.MEASURED)


def memory_limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The rate of memory, measured in the same run."""
    return Limit(float(samples[0].extra["memory_Bps"]), "B/s", "measured in the same run", Basis.MEASURED)


def _rating(sample: Sample) -> float:
    return sample.work["flops"] / (sample.elapsed_s + float(sample.extra["setup_s"]) / 10)


def figures(phases: dict[str, str]) -> tuple[Figure, ...]:
    """The figures of the series `set`. `phases`: what each named part of its time is."""
    return (
        rate(
            "rate",
            "flop/s",
            f"operations of {ITERATIONS} iterations of the reference, as HPCG counts them, over the time that it takes"
            " here to reduce the residual as far",
            series="set",
            limit=limit,
        ),
        Figure(
            "rating",
            "flop/s",
            Better.HIGHER,
            _rating,
            "the same with a tenth of the set-up, as in HPCG's rating",
            series="set",
            is_secondary=True,
        ),
        Figure(
            "raw_rate",
            "flop/s",
            Better.HIGHER,
            WorkRate("raw_flops"),
            "operations of all iterations that were made, as HPCG counts them",
            series="set",
            is_secondary=True,
        ),
        rate(
            "bandwidth",
            "B/s",
            "values and columns of the matrix as often as they are read, and the vectors of each step",
            series="set",
            limit=memory_limit,
            is_secondary=True,
        ),
        Figure(
            "iterations",
            "1",
            Better.LOWER,
            lambda sample: sample.work["iterations"],
            f"iterations that reduce the residual as {ITERATIONS} of the reference do",
            series="set",
            is_secondary=True,
        ),
        *(_share(phase, meaning) for phase, meaning in phases.items()),
    )


def _share(phase: str, meaning: str) -> Figure:
    return Figure(
        f"{phase}_share",
        "1",
        Better.LOWER,
        lambda sample: float(sample.extra["phases_s"][phase]) / sample.elapsed_s,
        f"part of the time: {meaning}",
        series="set",
        is_secondary=True,
    )


CHECKS = (
    Check("product_error", "worst element of A x, compared with the definition, over the largest", between(0, 1e-14)),
    Check(
        "preconditioner_error",
        "worst element after a V-cycle, compared with Gauss-Seidel row after row, over the largest",
        between(0, 1e-12),
    ),
    Check(
        "reference_error",
        "residual after two iterations, relative to that of conjugate gradients written from the definition",
        between(0, 1e-9),
    ),
    Check("product_asymmetry", "|x'Ay - y'Ax| over 2 |x| |A| |y| epsilon", between(0, 1)),
    Check("preconditioner_asymmetry", "|x'My - y'Mx| over 2 |x| |A| |y| epsilon", between(0, 1)),
    Check(
        "plain_iterations",
        "iterations without the preconditioner on a matrix with ten distinct eigenvalues",
        between(1, 12),
    ),
    Check("preconditioned_iterations", "the same with the preconditioner", between(1, 2)),
    Check("residual", "residual after a set, over that of the reference", between(0, 1 + 1e-6)),
    Check("residual_spread", "difference of the residuals of all sets, over the largest", between(0, 1e-6)),
    Check(
        "solution_error",
        "residual of the solution, by the definition of the matrix, less that of the iteration, over the first one",
        between(0, 1e-12),
    ),
)
