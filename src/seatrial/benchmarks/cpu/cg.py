"""cpu.cg: conjugate gradients on a 27-point stencil with a multigrid preconditioner, as in HPCG.

A sample is a set of iterations that reduces the residual as 50 of the reference do; its operations are those of the 50,
by HPCG's formula, so what an ordering costs in iterations costs rate. Before, each solver is compared with the
definition of the preconditioner, row after row, and passes HPCG's tests of symmetry and convergence.

HPCG's rules that hold: double precision; a general sparse matrix, of which each value and each column is stored and
read from memory (SELL, with 32-bit columns); elements of vectors are only found through these columns. The order of
rows is `levels`, which has exactly the results of row after row, or `colours`. What is saved: a backward sweep keeps
the sums that the forward sweep has of nonzeros that have not changed since, and the residual is computed only where the
coarse grid takes it (native/multigrid/level.hpp). docs/adr/0095 compares them with HPCG's rules.

The limit is the rate of memory, the faster of a triad and a sum on all ranks and threads at once in as much memory,
measured in the same run, over the bytes that an iteration must move.
"""

from __future__ import annotations

from seatrial.benchmarks import multigrid
from seatrial.benchmarks.figures import exactly, native_program
from seatrial.benchmarks.mpi.mpi_benchmark import ALL_RANKS, rank_cpus, resolved_ranks
from seatrial.benchmarks.placement import cpus_of, memory_size, placement, resolved
from seatrial.model.benchmark.benchmark import Benchmark, Check, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, beyond_caches_B, whole
from seatrial.model.machine.machine import Machine

_SLICE_S = 0.25
_SETS = 6
"""The reference, the one that counts the iterations, and at least three; the checks take about one more."""
_SLOW_CPU_FLOPS = 1.5e9
_SMALLEST = 64
_PHASES = {
    "spmv": "products of the matrix with a vector",
    "symgs": "symmetric Gauss-Seidel",
    "transfer": "between the grids: residuals for the next coarse one, and corrections from it",
    "vectors": "updates of vectors, with the norm of the residual",
    "reduce": "sums over threads and ranks",
    "halo": "exchange of points with other ranks",
}


def _prepare(machine: Machine, params: Params) -> Params:
    threads = whole(params["threads"])
    if threads > 1 and params["oversubscribe"]:
        raise Skip("oversubscribe=true: several threads of a rank need a CPU each (threads=1)")
    params = resolved(machine, params) if threads > 1 else resolved_ranks(machine, params)
    ordering = "levels" if params["ordering"] == "auto" else params["ordering"]
    params = multigrid.settled({**params, "ordering": ordering}, _auto_edge(machine, params))
    there_B = memory_size(machine)
    needed_B = _memory_B(params) / whole(params["nodes"])
    if there_B is not None and needed_B > there_B:
        raise Skip(
            f"{params['ranks']} ranks of {params['nx']} x {params['ny']} x {params['nz']} points need"
            f" {needed_B / 1e9:.3g} GB on each node; it has {there_B / 1e9:.3g} GB"
        )
    return params


def _auto_edge(machine: Machine, params: Params) -> int:
    """The least edge, from 64, with which the matrices of all ranks are beyond the caches."""
    least_B = (beyond_caches_B(machine, _placement(machine, params)) or 0) * whole(params["nodes"])
    edge = _SMALLEST
    while edge**3 * 27 * 12 * whole(params["ranks"]) < least_B:
        edge += multigrid.STEP
    return edge


def _rows(params: Params) -> int:
    return multigrid.rows_of(params) * whole(params["ranks"])


def _memory_B(params: Params) -> float:
    return _rows(params) * multigrid.BYTES_PER_ROW * multigrid.WITH_COARSE_GRIDS


def _estimate_s(params: Params) -> float:
    per_cpu = _rows(params) / min(cpus_of(params), whole(params["ranks"]) * whole(params["threads"]))
    set_s = multigrid.ITERATIONS * multigrid.FLOP_PER_ROW * per_cpu / _SLOW_CPU_FLOPS
    return 1.0 + max(_SLICE_S, _SETS * set_s)


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return rank_cpus(machine, params) if params["threads"] == 1 else placement(machine, params)


_PARAMETERS = (
    *multigrid.grid("rank"),
    multigrid.ORDERING,
    *ALL_RANKS,
    Parameter.integer(
        "threads", 1, "threads per rank, which share the rows of each stage", minimum=1, option="--threads"
    ),
)

BENCHMARK = Benchmark(
    name="cpu.cg",
    question="How fast do conjugate gradients with multigrid, as in HPCG, solve a sparse linear system?",
    program=native_program(__file__, _PARAMETERS, multigrid.words, ("--slice", str(_SLICE_S)), takes_turns=True),
    parameters=_PARAMETERS,
    figures=multigrid.figures(_PHASES),
    checks=(Check("threads", "threads per rank", exactly("threads")), *multigrid.CHECKS),
    placement=_placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)
