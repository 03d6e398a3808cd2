"""Network measurements of a results folder: one-way times and bandwidths by message size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.analysis.roles import figures_with
from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.role import Role
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult

_TABLES = (Role.MESSAGE_TIME, Role.MESSAGE_BANDWIDTH)
_OF_BOTH = ("nodes", "placement", "buffers")
"""Parameters that must be equal in both: the placement of the two ranks."""


class NetworkTables(Frozen):
    """Medians by message size in bytes: seconds one way, bytes per second of a stream. `experiments` are their ids;
    `pair` describes the placement of the two ranks."""

    one_way_s: Mapping[int, float]
    bandwidth_Bps: Mapping[int, float]
    experiments: tuple[str, str]
    pair: str


def network_tables(results: Sequence[ExperimentResult]) -> NetworkTables:
    """The tables of times and bandwidths with the most sizes, with the same placement of the two ranks.

    Raises UsageError if there are no such tables.
    """
    latencies, bandwidths = (times_by_size(results, role) for role in _TABLES)
    fitting = [(a, b) for a in latencies for b in bandwidths if _pair(a[0]) == _pair(b[0])]
    if not fitting:
        times, bandwidths_of = map(benchmark_of, _TABLES)
        raise UsageError(
            f"these results contain no sweeps of {times} and {bandwidths_of} with the same placement of ranks",
            f"measure both: `seatrial run {times} {bandwidths_of} --results DIR`",
        )
    (latency, one_way_s), (bandwidth, bandwidth_Bps) = max(fitting, key=lambda pair: len(pair[0][1]) + len(pair[1][1]))
    return NetworkTables(one_way_s, bandwidth_Bps, (latency.id, bandwidth.id), _pair(latency))


def times_by_size(results: Sequence[ExperimentResult], role: Role) -> list[tuple[ExperimentResult, dict[int, float]]]:
    """The results with figures of this role at several sizes, each with its medians by size in bytes."""
    found = []
    for result in results:
        if result.outcome.is_ok:
            sized = [(figure.point.get("size_B"), figure.median) for _, figure in figures_with([result], role)]
            table = {size: median for size, median in sized if isinstance(size, int)}
            if len(table) > 1:
                found.append((result, table))
    return found


def _pair(result: ExperimentResult) -> str:
    return " ".join(f"{name}={result.experiment.parameters.get(name, '-')}" for name in _OF_BOTH)
