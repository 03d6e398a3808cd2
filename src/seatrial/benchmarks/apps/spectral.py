"""apps.spectral: forced isotropic turbulence by a pseudo-spectral method, as PSDNS codes compute it.

The incompressible Navier-Stokes equations in a periodic box of n^3 points: rotational form, Heun's method (RK2) with
viscosity integrated exactly, a force at the largest scales that adds energy at a constant rate. A step takes 12 inverse
and 6 forward transforms of the box; they are distributed over the ranks, and all-to-all exchanges turn the data between
them (native/spectral/). Each exchange moves all fields at once, and no wave numbers that dealiasing sets to zero.

The limit of a step is what its data take: the bytes that it writes to and reads from its buffers and its state, at the
rate of a triad in the same memory on all ranks at once, and its exchanges without anything else. Both are measured in
the same run, after the steps. Arithmetic is left out, so a step that takes twice as long is a good one.

Three checks judge the physics: the vortex of Taylor and Green, carried by a uniform wind, whose solution is known; the
divergence of the velocity; and the balance of energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, log2

from seatrial.benchmarks.figures import between, duration, exactly, native_program
from seatrial.benchmarks.mpi.mpi_benchmark import ALL_RANKS, rank_cpus, resolved_ranks
from seatrial.benchmarks.placement import cpus_of, placement, resolved
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_SLICE_S = 1.0
_LEAST_ROUNDS = 5
_UNTIMED_STEPS = 12
"""Of the checks and the warm-up."""
_TRANSFORMS = 18
_SLOW_RANK_FLOPS = 1e9
_WORST_VORTEX = {"fp64": 1e-8, "fp32": 1e-5}
"""Of the size of the vortex. Heun's method is off by 4e-11, rounding by 1e-7 in fp32; a program without the product is
off by 1e-3."""
_WORST_VORTEX_WITH_SHIFTS = 5e-5
"""Phase shifts leave a part of the aliases, 1e-5 here; without the shift between the stages it is 3e-4."""
_WORST_DIVERGENCE = {"fp64": 1e-13, "fp32": 1e-5}
_WORST_IMBALANCE = 0.02
"""Of the energy that a step adds or dissipates, whichever is more: the trapezoidal rule over a step is off by 0.4 % for
n = 32, by less for larger n."""
_LEAST_N = 32


def _only_small_factors(n: int) -> bool:
    for factor in (2, 3, 5):
        while n % factor == 0:
            n //= factor
    return n == 1


def _kept(params: Params) -> tuple[int, int]:
    """(kx, ky) that dealiasing keeps, as in native/spectral/modes.hpp."""
    n = whole(params["n"])
    largest = isqrt(2 * n * n // 9) if params["dealiasing"] == "phase-shift" else (n - 1) // 3
    return largest + 1, 2 * largest + 1


def _rows(params: Params) -> int:
    """The rows of the grid of ranks: for pencils the divisor of their number nearest to a square grid from below; for a
    prime number all of them."""
    ranks = whole(params["ranks"])
    if params["decomposition"] == "slab":
        return 1
    divisors = [rows for rows in range(2, isqrt(ranks) + 1) if ranks % rows == 0]
    return divisors[-1] if divisors else ranks


def _prepare(machine: Machine, params: Params) -> Params:
    n = whole(params["n"])
    if not _only_small_factors(n):
        raise Skip(f"n={n} has factors other than 2, 3 and 5")
    threads = whole(params["threads"])
    if threads > 1 and params["oversubscribe"]:
        raise Skip("oversubscribe=true: several threads of a rank need a CPU each (threads=1)")
    params = resolved(machine, params) if threads > 1 else resolved_ranks(machine, params)
    ranks = whole(params["ranks"])
    rows = _rows(params) if params["rows"] == "auto" else whole(params["rows"])
    if params["decomposition"] == "slab" and rows != 1:
        raise Skip(f"rows={rows}: slabs are one row (decomposition=pencil)")
    if ranks % rows:
        raise Skip(f"rows={rows} does not divide {ranks} ranks")
    kept_x, kept_y = _kept(params)
    if rows > kept_x or ranks // rows > kept_y:
        raise Skip(
            f"n={n} has {kept_x} x {kept_y} lines of wave numbers, too few for {rows} x {ranks // rows} ranks; use "
            + ("a larger n" if params["decomposition"] == "pencil" else "decomposition=pencil or a larger n")
        )
    return {**params, "rows": rows}


def _estimate_s(params: Params) -> float:
    n = whole(params["n"])
    step_s = _TRANSFORMS * 2.5 * n**3 * 3 * log2(n) / (_SLOW_RANK_FLOPS * cpus_of(params))
    return 1.0 + _UNTIMED_STEPS * step_s + max(_SLICE_S, _LEAST_ROUNDS * whole(params["steps"]) * step_s)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    extra = samples[0].extra
    moved_B, memory_Bps, alone_s = extra["moved_B"], extra["memory_Bps"], extra["exchange_alone_s"]
    derivation = f"{moved_B / 1e6:.4g} MB per rank at {memory_Bps / 1e9:.4g} GB/s, by a triad on all ranks at once"
    if alone_s > 0:
        derivation += f", and {alone_s * 1e3:.4g} ms for the exchanges alone"
    return Limit(moved_B / memory_Bps + alone_s, "s", f"{derivation}; without arithmetic", Basis.MEASURED)


def _limit_of_exchanges(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    return Limit(samples[0].extra["alone_s"], "s", "the same exchanges without anything else", Basis.MEASURED)


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return rank_cpus(machine, params) if params["threads"] == 1 else placement(machine, params)


def _has_exchanges(params: Params) -> bool:
    return params["ranks"] != 1


def _worst_vortex(machine: Machine, params: Params) -> tuple[float, float]:
    leaves_aliases = params["dealiasing"] == "phase-shift"
    return 0.0, _WORST_VORTEX_WITH_SHIFTS if leaves_aliases else _WORST_VORTEX[str(params["precision"])]


_PARAMETERS = (
    Parameter.integer("n", 128, "points along each edge of the box", minimum=_LEAST_N, option="--n"),
    Parameter.choice("precision", "fp64", "width of the numbers", ("fp64", "fp32"), option="--precision"),
    Parameter.choice(
        "decomposition",
        "slab",
        "slab: one all-to-all there and one back, for at most 2/3 n ranks; pencil: two, among fewer ranks each",
        ("slab", "pencil"),
    ),
    Parameter.integer(
        "rows",
        "auto",
        "rows of the grid of ranks; auto: 1 for slabs, near a square for pencils",
        minimum=1,
        option="--rows",
    ),
    Parameter.choice(
        "dealiasing",
        "two-thirds",
        "two-thirds: no wave numbers from n/3 on; phase-shift: a sphere up to sqrt(2)/3 n on shifted grids",
        ("two-thirds", "phase-shift"),
        option="--dealiasing",
    ),
    Parameter.text(
        "fft",
        "auto",
        "the transform: fftw, own (seatrial's), or the path of a library with FFTW's interface; auto: FFTW if it is"
        " found, else own",
        ("auto",),
    ),
    Parameter.integer("steps", 1, "steps of a sample", minimum=1, option="--steps"),
    *ALL_RANKS,
    Parameter.integer(
        "threads", 1, "threads per rank, which share its transforms and copies", minimum=1, option="--threads"
    ),
)

BENCHMARK = Benchmark(
    name="apps.spectral",
    question="How long does a step of turbulence take by a pseudo-spectral method, and how much of it is all-to-all?",
    program=native_program(__file__, _PARAMETERS, ("--slice", str(_SLICE_S)), library="fft", takes_turns=True),
    parameters=_PARAMETERS,
    figures=(
        duration("step", "a time step of two stages, on the slowest rank", "steps", limit=_limit),
        duration(
            "transforms", "the one-dimensional transforms of a step, mean over the ranks", "steps", is_secondary=True
        ),
        duration(
            "alltoall",
            "the all-to-all exchanges of a step, waiting included, mean over the ranks",
            "steps",
            limit=_limit_of_exchanges,
            is_there=_has_exchanges,
            is_secondary=True,
        ),
        Figure(
            "alltoall_share",
            "1",
            Better.LOWER,
            lambda sample: sample.elapsed_s / float(sample.extra["step_s"]),
            "the part of a step's time that ranks spend in all-to-all exchanges",
            series="alltoall",
            is_there=_has_exchanges,
            is_secondary=True,
        ),
    ),
    checks=(
        Check("threads", "threads per rank", exactly("threads")),
        Check(
            "vortex_error",
            "largest deviation from four decaying Taylor-Green vortices in a wind, over their size",
            _worst_vortex,
        ),
        Check(
            "divergence",
            "divergence of the velocity, over the size of its gradient",
            lambda machine, params: (0.0, _WORST_DIVERGENCE[str(params["precision"])]),
        ),
        Check(
            "energy_imbalance",
            "change of energy in a step that force and viscosity do not explain, over the larger of the two",
            between(0.0, _WORST_IMBALANCE),
        ),
    ),
    placement=_placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)
