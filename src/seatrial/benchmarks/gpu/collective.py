"""gpu.collective: collective operations between devices, one per rank, by NCCL or by an MPI.

Operations, sizes and bandwidths are those of nccl-tests (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): size_B is
the larger buffer of a rank, `algbw` is size_B over the time, and `busbw` is algbw times 2 (n - 1) / n for an
all-reduce, (n - 1) / n for an all-gather, reduce-scatter and all-to-all, and 1 otherwise. For a reduce-scatter that is
the buffer of all parts; NCCL Inspector counts one part.

What differs from nccl-tests: the time counts from the arrival of the last rank, not of the rank that measures. How far
the arrivals are apart is a separate figure, so that a rank that comes late does not look like a slow link.

`busbw` has no limit here: an algorithm with trees, or a switch that adds, moves fewer bytes over a link than the
formula says, and which one ran is not known.
"""

from __future__ import annotations

from seatrial.benchmarks.figures import between, duration, native_program, rate, zero
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.mpi.mpi_benchmark import OVERSUBSCRIBE, SLICE_S, rank_cpus, resolved_ranks
from seatrial.benchmarks.nodes import NODE_PLACEMENT, NODES, node_count
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.sample import Sample

_ELEMENT_B = {"float": 4, "double": 8, "int8": 1, "int32": 4, "int64": 8}
_IN_PARTS = ("all_gather", "reduce_scatter", "alltoall")
_LARGEST_B = 1 << 30
_LARGEST_ON_CPU_B = 4 << 20
_MOST_CLOCK_ERROR = 0.5
_PASSES = 60
"""How often a repeat goes over its buffers: it fills, copies and compares them, in two places and five rounds."""
_SLOW_BPS = 2e9

_PARAMETERS = (
    Parameter.choice(
        "op",
        "all_reduce",
        "the operation; sendrecv: each rank sends to the next one",
        ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"),
        option="--collective",
    ),
    Parameter.choice(
        "library",
        "nccl",
        "nccl: NVIDIA's library; mpi: the collective of the MPI library",
        ("nccl", "mpi"),
        option="--library",
    ),
    Parameter.choice(
        "buffers",
        "device",
        "memory of the buffers; managed: memory that moves to where it is used; staged (library=mpi): in the device,"
        " copied through the host around each operation",
        ("device", "managed", "staged"),
        option="--buffers",
    ),
    Parameter.integer(
        "ranks", "auto", "ranks; auto: one per GPU of each node; without GPUs one per node, at least 2", minimum=1
    ),
    NODES,
    NODE_PLACEMENT,
    OVERSUBSCRIBE,
    Parameter.size(
        "size_B",
        "sweep",
        "bytes of the larger buffer of a rank; sweep: every power of two to largest_B",
        ("sweep",),
        minimum=1,
    ),
    Parameter.size(
        "largest_B",
        "auto",
        "largest size of a sweep; auto: 1 GiB, or 4 MiB if the devices are CPUs",
        minimum=1,
    ),
    Parameter.choice("datatype", "float", "element type, as NCCL names it", tuple(_ELEMENT_B), option="--datatype"),
    Parameter.choice("redop", "sum", "operation of reductions", ("sum", "max", "min"), option="--reduction"),
    *device.COMMON,
)


def _unit_B(params: Params) -> int:
    """The size must be a multiple of it."""
    each = _ELEMENT_B[str(params["datatype"])]
    return each * whole(params["ranks"]) if params["op"] in _IN_PARTS else each


def _sizes(params: Params) -> tuple[int, ...]:
    """The sizes of a resolved point, in bytes; the program rounds them down to whole parts."""
    unit = _unit_B(params)
    if params["size_B"] != "sweep":
        return (whole(params["size_B"]),)
    largest = device.largest_B(params, _LARGEST_B)
    return tuple(1 << power for power in range(largest.bit_length()) if 1 << power >= unit)


def _sizes_argument(params: Params) -> list[str]:
    return ["--sizes", ",".join(map(str, _sizes(params)))]


def _gpus(machine: Machine) -> int:
    return len(machine.of_kind(DeviceKind.GPU))


def _prepare(machine: Machine, params: Params) -> Params:
    if params["buffers"] == "staged" and params["library"] == "nccl":
        raise Skip("buffers=staged is for library=mpi: NCCL takes its data from devices")
    ranks: Value = params["ranks"]
    if ranks == "auto":
        nodes, gpus = node_count(machine, params["nodes"]), _gpus(machine)
        ranks = nodes * gpus if gpus else max(2, nodes)
    params = resolved_ranks(machine, {**params, "ranks": ranks})
    unit = _unit_B(params)
    if params["size_B"] != "sweep" and whole(params["size_B"]) % unit:
        raise Skip(f"{params['size_B']} B is not a whole number of elements for each rank: use a multiple of {unit} B")
    if not _sizes(params):
        raise Skip(f"a sweep to {params['largest_B']} B is too small for one element of each rank ({unit} B)")
    return params


def _spread_of_arrivals(sample: Sample) -> float:
    return float(sample.extra["apart_s"])


def _is_of_several(params: Params) -> bool:
    return params["ranks"] != 1


BENCHMARK = Benchmark(
    name="gpu.collective",
    question="How fast are collective operations between devices, by NCCL or by an MPI?",
    program=native_program(__file__, _PARAMETERS, device.devices_argument, _sizes_argument, library="gpu"),
    parameters=_PARAMETERS,
    figures=(
        duration(
            "time", "one operation, from the arrival of the last rank to the end of the slowest", "ops", series="time"
        ),
        rate(
            "algbw",
            "B/s",
            "bytes of the operation (size_B) over its time",
            series="moved",
            is_there=_is_of_several,
        ),
        rate(
            "busbw",
            "B/s",
            "minimum bytes that each link must move, as nccl-tests counts, over the time",
            "bus_bytes",
            series="moved",
            is_there=_is_of_several,
            role=Role.DEVICE_COLLECTIVE,
        ),
        Figure(
            "arrival_spread",
            "s",
            Better.LOWER,
            _spread_of_arrivals,
            "from the arrival of the first rank to that of the last, which the time leaves out",
            series="moved",
            is_there=_is_of_several,
            is_secondary=True,
        ),
    ),
    checks=(
        Check("wrong_data", "bytes, or elements of a reduction, that are wrong", zero),
        Check(
            "clock_error",
            "error of the ranks' common clock, relative to the shortest sample",
            between(0.0, _MOST_CLOCK_ERROR),
        ),
    ),
    placement=rank_cpus,
    prepare=_prepare,
    on_devices=device.for_devices({"largest_B": (_LARGEST_B, _LARGEST_ON_CPU_B)}),
    ranks="mpi",
    estimate_s=lambda params: 5.0 + SLICE_S + _PASSES * sum(_sizes(params)) * whole(params["ranks"]) / _SLOW_BPS,
    trial=tuple({"op": op} for op in ("all_reduce", "all_gather", "alltoall", "sendrecv")),
    is_in_trial=lambda machine: _gpus(machine) > 1,
    verified=device.is_verified("gpu.collective"),
    evidence=device.evidence("gpu.collective"),
)
