"""gpu.bus-contention: how much copies between host and devices and messages between ranks slow each other down, as
SHOC's BusCont and MTBusCont.

Rank r drives device r mod the number of devices, and all ranks copy at once; ranks i and i + ranks / 2 exchange
messages. Each of the four rates is measured alone and, as `_loaded`, during the other activity, which must last longer:
samples in which it did not are left out. `_kept` is the loaded rate over the rate alone right before it; SHOC's loss is
1 minus this share (the loss is not the figure, because it may be zero or negative and then has no ratio).

With `threads=1` a rank enqueues copies and exchanges messages while they run (BusCont); with `threads=2` a second
thread of each rank only copies (MTBusCont), on its own CPU if there are enough. If ranks share CPUs, or a device is a
CPU, the loss is caused by those CPUs more than by any bus.
"""

from __future__ import annotations

import math

from seatrial.benchmarks.figures import between, duration, native_program, rate, zero
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import PACKETS, link_limit
from seatrial.benchmarks.mpi.mpi_benchmark import OVERSUBSCRIBE, WRONG_BYTES, resolved_ranks
from seatrial.benchmarks.nodes import NODES, cpus_of_nodes, on_each_node
from seatrial.benchmarks.placement import spread
from seatrial.model.benchmark.benchmark import ALL_OF_IT, Benchmark, Better, Check, Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import show_percent

_SLICE_S = 0.25
_ONE_LINK = ("copy_B", "message_B", "stream_B", "window", "threads", "ranks", "oversubscribe", "optimised")
_RATES = {
    "download": "bytes that all ranks copy from the host to their devices",
    "readback": "bytes that all ranks copy from their devices to the host",
    "bandwidth": "bytes of messages of stream_B that all ranks send in both directions at once",
}
_BESIDE = {"download": "messages stream", "readback": "messages stream", "latency": "devices copy both ways"}


def _wanted_cpus(params: Params) -> int:
    return whole(params["ranks"]) * whole(params["threads"])


def _prepare(machine: Machine, params: Params) -> Params:
    resolved = resolved_ranks(machine, params)
    if whole(resolved["ranks"]) % 2:
        raise Skip(f"pairs of ranks exchange messages: the number of ranks must be even, not {resolved['ranks']}")
    if whole(resolved["threads"]) > 2:
        raise Skip("a rank has 1 thread, or 2 with one only for copies")
    wanted, there = _wanted_cpus(resolved), cpus_of_nodes(machine, whole(resolved["nodes"]))
    if wanted > there and not params["oversubscribe"]:
        raise Skip(
            f"{resolved['ranks']} ranks of {resolved['threads']} threads need {wanted} CPUs; this process may use "
            f"{there} (oversubscribe=true lets them share)"
        )
    return {**resolved, "oversubscribe": wanted > there}


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPUs of each rank's threads, rank by rank; empty if they share CPUs."""
    return () if params["oversubscribe"] else on_each_node(machine, params["nodes"], _wanted_cpus(params), spread)


def _kept(sample: Sample) -> float:
    """The share of the rate alone, of a sample of the loaded one."""
    return float(sample.extra["alone_s"]) / sample.elapsed_s


def _beside(name: str) -> str:
    return _BESIDE.get(name, "devices copy both ways")


def _three(name: str) -> tuple[Figure, ...]:
    """A rate alone and under load, and the share kept."""
    is_copy = name in ("download", "readback")

    def figure(suffix: str, condition: str) -> Figure:
        if name == "latency":
            return duration(name + suffix, f"half the round trip of a ping-pong of message_B{condition}", "ops")
        return rate(
            name + suffix,
            "B/s",
            _RATES[name] + condition,
            limit=link_limit() if is_copy else None,
            attainable=lambda params: PACKETS if is_copy else ALL_OF_IT,
            one_limit_over=_ONE_LINK,
        )

    return (
        figure("", ", alone"),
        figure("_loaded", f", while {_beside(name)}"),
        Figure(
            f"{name}_kept",
            "1",
            Better.HIGHER,
            _kept,
            f"the time alone over the time while {_beside(name)}",
            customary=lambda params, kept: f"{show_percent(1.0 - kept)} lost" if kept < 1.0 else "no loss",
        ),
    )


_PARAMETERS = (
    Parameter.integer("ranks", 2, "ranks, an even number; each drives a device", minimum=2),
    Parameter.integer(
        "threads",
        1,
        "threads per rank; 1: it copies and sends messages (BusCont); 2: one of them only copies (MTBusCont)",
        minimum=1,
        option="--threads",
    ),
    NODES,
    OVERSUBSCRIBE,
    Parameter.size(
        "copy_B",
        "auto",
        "size of a copy; auto: 16 MiB, or 4 MiB if the device is a CPU",
        minimum=64 << 10,
        option="--copy",
        spelled={"auto": "0"},
    ),
    Parameter.size("message_B", 8, "size of a ping-pong message", minimum=1, option="--small"),
    Parameter.size("stream_B", 1 << 20, "size of a streamed message", minimum=1, option="--large"),
    Parameter.integer("window", 4, "messages in flight, in each direction", minimum=1, option="--window"),
    *device.COMMON,
)

BENCHMARK = Benchmark(
    name="gpu.bus-contention",
    question="How much do device copies and MPI messages slow each other down?",
    program=native_program(__file__, _PARAMETERS, device.devices_argument, ("--slice", str(_SLICE_S)), library="gpu"),
    parameters=_PARAMETERS,
    figures=tuple(figure for name in ("download", "readback", "latency", "bandwidth") for figure in _three(name)),
    checks=(
        WRONG_BYTES,
        Check("error", "wrong bytes in copies to devices and to the host", zero),
        Check(
            "loaded_samples",
            "samples of each rate during all of which the other side was active",
            between(1.0, math.inf),
        ),
    ),
    placement=_placement,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=lambda params: 6.0,
    verified=device.is_verified("gpu.bus-contention"),
    evidence=device.evidence("gpu.bus-contention"),
)
