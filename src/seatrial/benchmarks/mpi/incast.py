"""mpi.incast: how fast one rank receives when all others send to it at once, and how evenly.

Each sender keeps a window of messages in flight until the time set by the receiver is over. `fairness` is the
bytes of the slowest sender over the mean of all senders: 1 if all are equal. If ranks share CPUs, it measures the
operating system's scheduler more than the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.benchmarks.mpi.links import links_of_node
from seatrial.benchmarks.mpi.messages import WRONG_BYTES, bandwidth
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE, RANKS, rank_cpus, resolved_ranks
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.model.benchmark import Benchmark, Better, Figure, Native, Skip
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.sample import Sample

_SLICE_S = 0.25
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


def _arguments(params: Params) -> list[str]:
    return [
        *("--slice", str(_SLICE_S), "--sample", str(_sample_s(params))),
        *("--bytes", str(params["size_B"]), "--window", str(params["window"])),
        *("--receiver", str(params["receiver"])),
    ]


def _sample_s(params: Params) -> float:
    return _SHARED_SAMPLE_S if params["oversubscribe"] else _SAMPLE_S


def _estimate_s(params: Params) -> float:
    under_way = (whole(params["ranks"]) - 1) * whole(params["window"]) * whole(params["size_B"])
    return 1.0 + _SLICE_S + 5 * (_sample_s(params) + under_way * 2e-9)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The receiver's links, where no sender is on its node; with several ranks on a node some are."""
    nodes, ranks = whole(params["nodes"]), whole(params["ranks"])
    if 1 < nodes < ranks:
        return Limit.unknown("B/s", "senders on the receiver's node use no link")
    return links_of_node(machine, params)


def _fairness(sample: Sample) -> float:
    return sample.work["least_bytes"] * sample.work["senders"] / sample.work["bytes"]


BENCHMARK = Benchmark(
    name="mpi.incast",
    question="How fast can one rank receive from all others at once, and how evenly?",
    program=Native(Path(__file__).with_suffix(".cpp"), _arguments, takes_turns=True),
    parameters=(
        RANKS,
        NODES,
        RANKS_PER_NODE,
        NODE_PLACEMENT,
        OVERSUBSCRIBE,
        Parameter("size_B", ParameterKind.BYTES, 256 << 10, "size of a message", minimum=1),
        Parameter("window", ParameterKind.INTEGER, 2, "messages in flight per sender", minimum=1),
        Parameter("receiver", ParameterKind.INTEGER, 0, "rank that receives from all others", minimum=0),
    ),
    figures=(
        bandwidth("bytes received", _limit),
        Figure(
            name="fairness",
            series="fairness",
            unit="1",
            better=Better.HIGHER,
            value=_fairness,
            work="bytes from the slowest sender, over the mean of all senders",
        ),
    ),
    checks=(WRONG_BYTES,),
    placement=rank_cpus,
    prepare=_prepare,
    ranks="mpi",
    estimate_s=_estimate_s,
)
