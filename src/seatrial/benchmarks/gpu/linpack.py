"""gpu.linpack: a dense system of linear equations, solved by one or several devices, of one or more ranks.

As the High-Performance Linpack benchmark (HPL; A. Petitet et al.): LU factorisation with partial pivoting of a random
matrix of order `n`, whose blocks of `nb` x `nb` are dealt to a grid of p x q devices, and the solution of the system.
`precision=mixed` follows HPL-MxP (J. Dongarra, P. Luszczek, Y. Tsai): a matrix that needs no pivoting is factored in
single precision, and the solution refined until it is as good as in double precision. Both count the flop of HPL.

A panel (block column) is factored on the host of its diagonal block; with `depth=1` the devices update the rest of the
matrix meanwhile. Devices exchange data through their hosts, ranks by MPI. Each device has one host thread that submits
its work, the same for all devices of a rank.

The phases are shares of the run that sum to 1: what the host thread that drives the devices does, or waits for, as the
mean over ranks. `panel`: a panel is factored; `broadcast`: ranks send each other panels and rows; `swap`: devices
exchange rows and solve those beside the diagonal block; `update`: the rest of the matrix, as far as it does not pass
during one of the others; `copies`: between host and devices; `solve`: back substitution, or refinement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from seatrial.benchmarks.figures import between, duration, exactly, native_program, rate
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import device_peak, node_peak
from seatrial.benchmarks.nodes import NODE_PLACEMENT, NODES, RANKS_PER_NODE, node_count, with_ranks_per_node
from seatrial.benchmarks.placement import placement, refuse_too_many, thread_count
from seatrial.model.benchmark.benchmark import Benchmark, Better, Ceiling, Check, Figure, Role
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_SLICE_S = 0.25
_WORST_RESIDUAL = 16.0
"""HPL's own threshold (HPL_pdtest.c)."""
_SIZES: Mapping[str, tuple[Value, Value]] = {"n": (20480, 2048), "nb": (512, 128)}
_GPU_FLOPS, _CPU_FLOPS = 5e11, 5e9
"""Rates that a GPU, and a CPU as a device, surely reach."""
_PHASES = {
    "panel": "the factorisation of panels on the host",
    "broadcast": "messages between ranks",
    "swap": "exchanges of rows, and the rows beside the diagonal block",
    "update": "waiting for the update of the rest of the matrix",
    "copies": "waiting for copies between host and devices",
    "solve": "back substitution, or iterative refinement",
}
_PRECISION = {"fp64": "fp64", "mixed": "fp32"}
"""Of the factorisation."""
_SETTINGS = ("n", "nb", "p", "q", "depth", "ranks", "threads", "library", "optimised")
_COUNTED = "2/3 n^3 + 3/2 n^2 flop, as HPL counts"


def _prepare(machine: Machine, params: Params) -> Params:
    params = with_ranks_per_node(machine, params)
    ranks = whole(params["ranks"])
    nodes = node_count(machine, params["nodes"], ranks)
    threads = params["threads"]
    if threads == device.AUTO:
        threads = max(1, nodes * thread_count(machine, "all") // ranks)
    refuse_too_many(machine, nodes, ranks, whole(threads))
    return {**params, "nodes": nodes, "threads": whole(threads)}


def _on_devices(params: Params, are_processors: bool) -> Params:
    """`n` and `nb`, and the grid: as square as possible, with at least as many columns as rows."""
    params = device.for_devices(_SIZES)(params, are_processors)
    if params["devices"] == device.AUTO:
        return params
    ranks = whole(params["ranks"])
    workers = ranks * max(1, whole(params["devices"]) * whole(params["nodes"]) // ranks)
    p, q = params["p"], params["q"]
    if p == device.AUTO and q == device.AUTO:
        p = max(rows for rows in range(1, workers + 1) if workers % rows == 0 and rows * rows <= workers)
    p = workers // whole(q) if p == device.AUTO else p
    q = workers // max(1, whole(p)) if q == device.AUTO else q
    return {**params, "p": p, "q": q}


def _of_factors(params: Params) -> Params:
    """With the precision that the factorisation computes in."""
    return {**params, "precision": _PRECISION[str(params["precision"])]}


def _measured_peak(params: Params) -> Ceiling:
    asked = params["devices"], params["nodes"]
    count = 1 if device.AUTO in asked else whole(asked[0]) * whole(asked[1])
    precision = _PRECISION[str(params["precision"])]
    return Ceiling(
        roles=(Role.DEVICE_FMA_RATE,),
        parameters={"precision": precision, "backend": params["backend"], "mode": "S"},
        factor=count,
        derivation=f"best {precision} rate of one device measured here ({{benchmark}}) x {count} devices",
        ignored=("device", "devices", "optimised"),
    )


def _share(phase: str) -> Callable[[Sample], float]:
    return lambda sample: float(sample.extra[f"{phase}_s"]) / sample.elapsed_s


def _estimate_s(params: Params) -> float:
    n = _SIZES["n"][0] if params["n"] == device.AUTO else params["n"]
    flops = _CPU_FLOPS if whole(n) <= whole(_SIZES["n"][1]) else _GPU_FLOPS
    return 5.0 + 2 * 2 / 3 * float(whole(n)) ** 3 / flops


_PARAMETERS = (
    Parameter.integer(
        "n",
        device.AUTO,
        "order of the matrix; auto: 20480, or 2048 if the device is a CPU",
        minimum=1,
        option="--n",
        spelled={device.AUTO: "20480"},
    ),
    Parameter.integer(
        "nb",
        device.AUTO,
        "order of a block; auto: 512, or 128 if the device is a CPU",
        minimum=1,
        option="--nb",
        spelled={device.AUTO: "512"},
    ),
    Parameter.integer(
        "p",
        device.AUTO,
        "rows of the grid of devices; auto: as square as possible, p <= q",
        minimum=1,
        option="--p",
        spelled={device.AUTO: "0"},
    ),
    Parameter.integer(
        "q", device.AUTO, "columns of the grid of devices", minimum=1, option="--q", spelled={device.AUTO: "0"}
    ),
    Parameter.choice(
        "precision",
        "fp64",
        "fp64: LU with partial pivoting, as HPL; mixed: single precision and iterative refinement, as HPL-MxP",
        tuple(_PRECISION),
        option="--precision",
    ),
    Parameter.choice(
        "depth",
        "1",
        "look-ahead; 1: the next panel is factored while devices update the rest; 0: after it",
        ("0", "1"),
        option="--depth",
    ),
    Parameter.choice(
        "library",
        "portable",
        "matrix products by portable: seatrial's own kernel; vendor: cuBLAS with CUDA, CLBlast with OpenCL",
        ("portable", "vendor"),
        option="--library",
    ),
    Parameter.integer("ranks", 1, "MPI ranks; those of a node share its devices evenly", minimum=1),
    NODES,
    RANKS_PER_NODE,
    NODE_PLACEMENT,
    Parameter.integer(
        "threads",
        device.AUTO,
        "host threads per rank, which factor panels; auto: the cores of the rank",
        minimum=1,
        option="--threads",
    ),
    device.BACKEND,
    device.DEVICE,
    replace(device.DEVICES, help="number of devices of each node, starting at `device`; auto: all"),
    device.OPTIMISED,
)

BENCHMARK = Benchmark(
    name="gpu.linpack",
    question="How fast do the devices of a node solve a dense system of linear equations together?",
    program=native_program(__file__, _PARAMETERS, device.devices_argument, ("--slice", str(_SLICE_S)), library="gpu"),
    parameters=_PARAMETERS,
    figures=(
        rate(
            "rate",
            "flop/s",
            _COUNTED,
            series="solution",
            limit=lambda machine, params, samples: device_peak(machine, _of_factors(params), samples),
            ceiling=_measured_peak,
            one_limit_over=_SETTINGS,
        ),
        rate(
            "rate_of_node",
            "flop/s",
            "the same rate, compared with the whole node: unused devices and the CPUs included",
            series="solution",
            limit=lambda machine, params, samples: node_peak(machine, _of_factors(params), samples),
            one_limit_over=(*_SETTINGS, "devices"),
            is_secondary=True,
        ),
        duration("time", "factorisation and solution", series="solution", is_secondary=True),
        *(
            Figure(
                f"{phase}_share",
                "1",
                Better.LOWER,
                _share(phase),
                f"share of the run: {what}",
                series="solution",
                is_secondary=True,
            )
            for phase, what in _PHASES.items()
        ),
        Figure(
            "copied",
            "B",
            Better.LOWER,
            lambda sample: sample.work["copied_B"],
            "bytes copied between host and devices, in both directions",
            series="solution",
            is_secondary=True,
        ),
        Figure(
            "iterations",
            "1",
            Better.LOWER,
            lambda sample: sample.work["ops"],
            "solutions with the factors until the residual was that of double precision",
            is_there=lambda params: params["precision"] == "mixed",
            is_secondary=True,
        ),
    ),
    checks=(
        Check(
            "residual",
            "largest scaled residual ||Ax-b|| / (eps (||A|| ||x|| + ||b||) n), with A and b made anew",
            between(0.0, _WORST_RESIDUAL),
        ),
        Check("converged", "1 if the refinement converged within 50 iterations", exactly(1)),
    ),
    placement=placement,
    prepare=_prepare,
    on_devices=_on_devices,
    ranks="mpi",
    estimate_s=_estimate_s,
    verified=device.is_verified("gpu.linpack"),
    evidence=device.evidence("gpu.linpack"),
)
