"""imported.hpcc: the tests of the HPC Challenge.

"Star" tests run on all processes at once and report the mean per process; "single" tests run on one process alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.imported.declarations import (
    GIVEN_BANDWIDTH,
    count_parameter,
    flops_limit,
    imported,
    memory_limit,
    rate_figure,
    time_figure,
)
from seatrial.model.benchmark import Figure
from seatrial.model.beyond_caches import beyond_caches_B
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import UNKNOWN, Params, whole
from seatrial.model.sample import Sample

_STREAM = {"copy": 16, "scale": 16, "add": 24, "triad": 24}


def _dram(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The DRAM bandwidth if the arrays are beyond the caches. Their size follows HPL's N, which may be small."""
    elements = params["stream_elements"]
    least_B = beyond_caches_B(machine, machine.pus)
    is_given = machine.named_limit(GIVEN_BANDWIDTH) is not None
    if not is_given and (elements == UNKNOWN or least_B is None or whole(elements) * 8 < least_B):
        return Limit.unknown("B/s", "the arrays are not known to be beyond the caches")
    return memory_limit(ranks="ranks")(machine, params, samples)


def _streams() -> tuple[Figure, ...]:
    return tuple(
        rate_figure(
            f"{who}_stream_{name}",
            "B/s",
            f"{counted} B per element, as STREAM counts; {whose}; best pass",
            _dram,
        )
        for who, whose in (("star", "mean per process while all run"), ("single", "one process alone"))
        for name, counted in _STREAM.items()
    )


BENCHMARK = imported(
    "hpcc",
    "the HPC Challenge (hpcc)",
    "What rates and times did the tests of the HPC Challenge report?",
    (
        count_parameter("ranks", "processes"),
        count_parameter("n", "order of HPL's matrix"),
        count_parameter("nb", "block size of HPL"),
        count_parameter("p", "rows of HPL's process grid"),
        count_parameter("q", "columns of HPL's process grid"),
        count_parameter("ptrans_n", "order of PTRANS' matrix"),
        count_parameter("dgemm_n", "order of DGEMM's matrices"),
        count_parameter("stream_elements", "elements of each STREAM array, per process"),
        count_parameter("stream_threads", "STREAM threads per process"),
        count_parameter("fft_n", "length of the FFT of each process"),
        count_parameter("random_access_n", "words in the RandomAccess table of each process"),
    ),
    (
        rate_figure("hpl", "flop/s", "2/3 n^3 + 3/2 n^2 flop, as HPL counts", flops_limit(ranks="ranks")),
        rate_figure("star_dgemm", "flop/s", "2 n^3 flop; mean per process while all run", flops_limit()),
        rate_figure("single_dgemm", "flop/s", "2 n^3 flop; one process alone", flops_limit()),
        rate_figure("ptrans", "B/s", "8 n^2 B, as PTRANS counts"),
        *(
            rate_figure(f"{who}_random_access{variant}", "op/s", f"table updates; {whose}{generator}")
            for variant, generator in (("", ""), ("_lcg", "; linear congruential generator"))
            for who, whose in (
                ("mpi", "all processes together"),
                ("star", "mean per process while all run"),
                ("single", "one process alone"),
            )
        ),
        *_streams(),
        rate_figure("mpi_fft", "flop/s", "5 n log2(n) flop; all processes together", flops_limit(ranks="ranks")),
        rate_figure("star_fft", "flop/s", "5 n log2(n) flop; mean per process while all run", flops_limit()),
        rate_figure("single_fft", "flop/s", "5 n log2(n) flop; one process alone", flops_limit()),
        *(
            rate_figure(f"ping_pong_bandwidth_{which}", "B/s", f"2,000,000 B back and forth; {word} over pairs")
            for which, word in (("min", "minimum"), ("avg", "mean"), ("max", "maximum"))
        ),
        rate_figure("natural_ring_bandwidth", "B/s", "2,000,000 B in both directions around a ring, ranks in order"),
        rate_figure(
            "random_ring_bandwidth", "B/s", "2,000,000 B in both directions around rings, ranks in random order"
        ),
        time_figure("hpl_time", "time of HPL"),
        *(
            time_figure(f"ping_pong_latency_{which}", f"8 B one way; {word} over pairs")
            for which, word in (("min", "minimum"), ("avg", "mean"), ("max", "maximum"))
        ),
        time_figure("natural_ring_latency", "8 B in both directions around a ring, ranks in order"),
        time_figure("random_ring_latency", "8 B in both directions around rings, ranks in random order"),
    ),
)
