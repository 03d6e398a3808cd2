"""What a results folder knows of the network: one-way times and bandwidths by size of the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seatrial.errors import UsageError
from seatrial.model.figure_result import ExperimentResult

_TABLES = (("mpi.latency", "one_way"), ("mpi.bandwidth", "bandwidth"))
_OF_BOTH = ("nodes", "placement", "buffers")
"""Parameters that the two have to share: a pair of ranks that sits alike."""


@dataclass(frozen=True, slots=True)
class NetworkTables:
    """Medians by size in bytes: seconds one way, bytes a second of a stream. `experiments` are their ids; `pair` says
    how the two ranks sat."""

    one_way_s: Mapping[int, float]
    bandwidth_Bps: Mapping[int, float]
    experiments: tuple[str, str]
    pair: str


def network_tables(results: Sequence[ExperimentResult]) -> NetworkTables:
    """The tables of `mpi.latency` and `mpi.bandwidth` with the most sizes, of a pair that sat alike in both.

    Raises UsageError where the results hold no such two.
    """
    latencies, bandwidths = (_measured(results, *wanted) for wanted in _TABLES)
    fitting = [(a, b) for a in latencies for b in bandwidths if _pair(a[0]) == _pair(b[0])]
    if not fitting:
        raise UsageError(
            "these results hold no table of mpi.latency and of mpi.bandwidth between ranks that sit alike",
            "measure both: `seatrial run mpi.latency mpi.bandwidth --results DIR`",
        )
    (latency, one_way_s), (bandwidth, bandwidth_Bps) = max(fitting, key=lambda pair: len(pair[0][1]) + len(pair[1][1]))
    return NetworkTables(one_way_s, bandwidth_Bps, (latency.id, bandwidth.id), _pair(latency))


def _measured(
    results: Sequence[ExperimentResult], benchmark: str, figure: str
) -> list[tuple[ExperimentResult, dict[int, float]]]:
    found = []
    for result in results:
        if result.experiment.benchmark == benchmark and result.outcome.is_ok:
            named = [(one.point.get("size_B"), one.median) for one in result.figures if one.name == figure]
            table = {size: median for size, median in named if isinstance(size, int)}
            if len(table) > 1:
                found.append((result, table))
    return found


def _pair(result: ExperimentResult) -> str:
    return " ".join(f"{name}={result.experiment.parameters.get(name, '-')}" for name in _OF_BOTH)
