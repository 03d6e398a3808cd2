"""mpi.incast: how fast one rank receives when all others send to it at once, and how evenly.

Each sender keeps a window of messages in flight until the time set by the receiver is over. `fairness` is the
bytes of the slowest sender over the mean of all senders: 1 if all are equal. If ranks share CPUs, it measures the
operating system's scheduler more than the network.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.mpi.mpi_benchmark import SLICE_S, bandwidth, links_of_node, mpi_benchmark, resolved_ranks
from seatrial.model.benchmark.benchmark import Better, Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_SAMPLE_S = 0.02
_SHARED_SAMPLE_S = 0.2
"""Where ranks share CPUs each gets its turn by the scheduler's tick: a sample must hold many."""


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved_ranks(machine, params)
    if whole(params["ranks"]) < 3:
        raise Skip(f"several senders and a receiver need at least 3 ranks, not {params['ranks']}")
    if whole(params["receiver"]) >= whole(params["ranks"]):
        raise Skip(f"receiver={params['receiver']}: ranks are numbered from 0 to {whole(params['ranks']) - 1}")
    return params


def _sample_s(params: Params) -> float:
    return _SHARED_SAMPLE_S if params["oversubscribe"] else _SAMPLE_S


def _estimate_s(params: Params) -> float:
    under_way = (whole(params["ranks"]) - 1) * whole(params["window"]) * whole(params["size_B"])
    return 1.0 + SLICE_S + 5 * (_sample_s(params) + under_way * 2e-9)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The receiver's links, where no sender is on its node; with several ranks on a node some are."""
    nodes, ranks = whole(params["nodes"]), whole(params["ranks"])
    if 1 < nodes < ranks:
        return Limit.unknown("B/s", "senders on the receiver's node use no link")
    return links_of_node(machine, params)


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.incast",
    question="How fast can one rank receive from all others at once, and how evenly?",
    words=(lambda params: ("--sample", str(_sample_s(params))),),
    parameters=(
        Parameter.size("size_B", 256 << 10, "size of a message", minimum=1, option="--bytes"),
        Parameter.integer("window", 2, "messages in flight per sender", minimum=1, option="--window"),
        Parameter.integer("receiver", 0, "rank that receives from all others", option="--receiver"),
    ),
    figures=(
        bandwidth("bytes received", _limit),
        Figure(
            "fairness",
            "1",
            Better.HIGHER,
            lambda sample: sample.work["least_bytes"] * sample.work["senders"] / sample.work["bytes"],
            "bytes from the slowest sender, over the mean of all senders",
        ),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
