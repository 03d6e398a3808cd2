"""mpi.bidirectional: how fast messages stream between two ranks, both ways at once.

Each rank has a window of receives and a window of sends in flight, without replies, as in osu_bibw of the OSU
micro-benchmarks. Links and memory seldom reach twice their one-way bandwidth in both directions together.
"""

from __future__ import annotations

from seatrial.benchmarks.mpi import bandwidth, messages
from seatrial.benchmarks.mpi.between_nodes import exchanged_in_pairs
from seatrial.benchmarks.mpi.mpi_benchmark import mpi_benchmark
from seatrial.benchmarks.mpi.placement import pair_cpus
from seatrial.benchmarks.mpi.sizes import sizes_argument

BENCHMARK = mpi_benchmark(
    bandwidth.__file__,
    name="mpi.bidirectional",
    question="How fast do messages stream between two ranks in both directions at once?",
    ranks=bandwidth.TWO_RANKS,
    parameters=bandwidth.STREAMED,
    words=(sizes_argument, ("--pairs", "1", "--both", "1")),
    figures=(messages.bandwidth("bytes of messages of size_B, both directions together"),),
    placement=pair_cpus,
    prepare=bandwidth.prepared_pair,
    estimate_s=lambda params: 2 * bandwidth.estimate_s(params),
    between_nodes=exchanged_in_pairs,
)
