"""mpi.bidirectional: how fast messages stream between two ranks, both ways at once.

Each rank has a window of receives and a window of sends in flight, without replies, as in osu_bibw of the OSU
micro-benchmarks. Links and memory seldom reach twice their one-way bandwidth in both directions together.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.mpi.bandwidth import (
    PROGRAM,
    STREAMED,
    TWO_RANKS,
    arguments,
    estimate_s,
    prepared_pair,
)
from seatrial.benchmarks.mpi.between_nodes import exchanged_in_pairs
from seatrial.benchmarks.mpi.messages import WRONG_BYTES, bandwidth
from seatrial.benchmarks.mpi.placement import pair_cpus
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES
from seatrial.model.benchmark import Benchmark, Native
from seatrial.model.parameter import Params


def _arguments(params: Params) -> Sequence[str]:
    return arguments(params, both=True)


BENCHMARK = Benchmark(
    name="mpi.bidirectional",
    question="How fast do messages stream between two ranks in both directions at once?",
    program=Native(PROGRAM, _arguments, takes_turns=True),
    parameters=(TWO_RANKS, NODES, NODE_PLACEMENT, OVERSUBSCRIBE, *STREAMED),
    figures=(bandwidth("bytes of messages of size_B, both directions together"),),
    checks=(WRONG_BYTES,),
    placement=pair_cpus,
    prepare=prepared_pair,
    ranks="mpi",
    estimate_s=lambda params: 2 * estimate_s(params),
    between_nodes=exchanged_in_pairs,
)
