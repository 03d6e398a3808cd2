"""The cost of messages in the model of SMPI, fitted to measured one-way times and bandwidths by message size, those of
a results folder.

SMPI (P. Bedaride, A. Degomme, S. Genaud, A. Legrand, G. Markomanolis, M. Quinson, M. Stillwell, F. Suter, B. Videau,
"Toward Better Simulation of MPI Applications on Ethernet/TCP Networks", PMBS 2013) takes for a message of s bytes

    o_send(s) + l f(s + 16) + (s + 16) / (b g(s + 16)) + o_receive(s)        if s is below the eager threshold,
                l f(s + 16) + (s + 16) / (b g(s + 16))                       above, once both sides are ready,

with latency l and bandwidth b of the route and, from threshold to threshold, constant factors f and g and affine
overheads. The envelope is 16 bytes. Two measurements determine it. A ping-pong (`mpi.latency`) gives the sum: in the
model, it equals the measured time at each measured size, and is linear in between. A stream
(`mpi.bandwidth`) gives the time between two messages, which divides the sum:

- below the threshold it is o_send, since a rank cannot send messages faster (at most 4/5 of the one-way time);
  o_receive is at most that, and at most half of the rest; the remainder is the wire time, which never decreases with
  size;
- above, messages share the link, so that time is the transfer time, and the rest of the one-way time is latency.

One-way times that decrease with size are replaced by the larger one before. If a factor or overhead cannot follow a
line, it is a step function that equals the line in the middle of each step and at each measured size.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from seatrial.analysis.roles import figures_with
from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult

ENVELOPE_B = 16
EAGER_B = 65536
"""SMPI's default threshold from which a send waits for its receiver: at least that of MPI libraries, so programs that
rely on buffered sends do not deadlock."""
_MOST_OF_SENDER = 0.8
_STEPS = 8
"""Steps in the interval between two sizes."""
_LEAST_S_PER_B = 1e-15


class Affine(NamedTuple):
    """Seconds: `at_zero_s + size * s_per_B`, for sizes above a threshold."""

    above_B: int
    at_zero_s: float
    s_per_B: float

    def at(self, size_B: float) -> float:
        """Seconds for `size_B` bytes."""
        return self.at_zero_s + size_B * self.s_per_B


class NetworkFit(Frozen):
    """`wire` by payload (message and envelope), `sender` and `receiver` (overheads) by message size; thresholds are
    ascending, the first is 0. A message of at least `eager_B` bytes has no overhead and waits for its receiver."""

    latency_s: float
    bandwidth_Bps: float
    wire: tuple[Affine, ...]
    sender: tuple[Affine, ...]
    receiver: tuple[Affine, ...]
    eager_B: int

    def one_way_s(self, size_B: int) -> float:
        """One-way time of a ping-pong of this size in the model."""
        overhead = _of(self.sender, size_B) + _of(self.receiver, size_B) if size_B < self.eager_B else 0.0
        return overhead + _of(self.wire, size_B + ENVELOPE_B)


def fit_network(
    one_way_s: Mapping[int, float], bandwidth_Bps: Mapping[int, float], eager_B: int = EAGER_B
) -> NetworkFit:
    """Fit SMPI's model to one-way times and stream bandwidths, each by message size in bytes.

    Raises UsageError if a table has fewer than two sizes, or a value that is not positive.
    """
    _check(Role.MESSAGE_TIME, one_way_s)
    _check(Role.MESSAGE_BANDWIDTH, bandwidth_Bps)
    times = _rising(one_way_s)
    each = {size: size / rate for size, rate in bandwidth_Bps.items() if size > 0}
    split = _split(times, each, sorted({*(size for size in times if size < eager_B), eager_B - 1}))
    wire = _eager_wire({size: part.wire_s for size, part in split.items()})
    large = sorted({*(size for size in times if size >= eager_B), eager_B, 2 * eager_B})
    wire += _stepped_wire(times, each, large, eager_B)
    return NetworkFit(
        next((part.at_zero_s for part in wire if part.at_zero_s > 0), min(times.values())),
        max(bandwidth_Bps.values()),
        tuple(wire),
        _overheads({size: part.sender_s for size, part in split.items()}, eager_B),
        _overheads({size: part.receiver_s for size, part in split.items()}, eager_B),
        eager_B,
    )


class _Split(NamedTuple):
    """The parts of the one-way time of an eager message."""

    sender_s: float
    receiver_s: float
    wire_s: float


def _split(times: Mapping[int, float], each: Mapping[int, float], sizes: list[int]) -> dict[int, _Split]:
    found: dict[int, _Split] = {}
    least_wire_s = 0.0
    for size in sizes:
        total_s = _between(times, size)
        between_s = _between(each, size)
        sender_s = min(between_s, _MOST_OF_SENDER * total_s, total_s - least_wire_s)
        receiver_s = max(0.0, min(between_s, (total_s - sender_s) / 2, total_s - sender_s - least_wire_s))
        least_wire_s = total_s - sender_s - receiver_s
        found[size] = _Split(sender_s, receiver_s, least_wire_s)
    return found


def _check(role: Role, table: Mapping[int, float]) -> None:
    if len(table) < 2 or any(not value > 0 for value in table.values()) or min(table) < 0:
        benchmark = benchmark_of(role)
        raise UsageError(
            f"a platform needs at least two message sizes of {benchmark} with positive values; found {len(table)}",
            f"measure it with a sweep: `seatrial run {benchmark}`",
        )


def _rising(table: Mapping[int, float]) -> dict[int, float]:
    """By size, non-decreasing."""
    sizes = sorted(table)
    return dict(zip(sizes, accumulate((table[size] for size in sizes), max), strict=True))


def _between(table: Mapping[int, float], size: int) -> float:
    """Linear interpolation; below the first size its value, beyond the last proportional to the size."""
    known = sorted(table)
    if size <= known[0]:
        return table[known[0]]
    if size >= known[-1]:
        return table[known[-1]] * size / known[-1]
    place = bisect_left(known, size)
    before, after = known[place - 1], known[place]
    share = (size - before) / (after - before)
    return table[before] + share * (table[after] - table[before])


def _line(before: int, after: int, table: Mapping[int, float]) -> Affine:
    slope = (table[after] - table[before]) / (after - before)
    return Affine(before, table[before] - before * slope, slope)


def _overheads(table: Mapping[int, float], eager_B: int) -> tuple[Affine, ...]:
    """The lines between the sizes of a table; zero from the threshold on."""
    sizes = sorted(table)
    first = Affine(0, table[sizes[0]], 0.0)
    return (first, *(_line(a, b, table) for a, b in pairwise(sizes)), Affine(eager_B - 1, 0.0, 0.0))


def _eager_wire(wire: Mapping[int, float]) -> list[Affine]:
    """By payload. Each part has a latency of at least 0 and takes longer for more bytes."""
    payload = {size + ENVELOPE_B: seconds for size, seconds in wire.items()}
    sizes = sorted(payload)
    parts = [Affine(0, payload[sizes[0]], _LEAST_S_PER_B)]
    for before, after in pairwise(sizes):
        line = _line(before, after, payload)
        if line.at_zero_s >= 0:
            parts.append(Affine(before, line.at_zero_s, max(line.s_per_B, _LEAST_S_PER_B)))
        else:
            parts += _steps(line, before, after)
    return parts


def _steps(line: Affine, before: int, after: int) -> list[Affine]:
    """Lines through the origin and the middle of each step; the last through its end."""
    edges = sorted({before + round((after - before) * i / _STEPS) for i in range(_STEPS + 1)})
    found = []
    for low, high in pairwise(edges):
        met = (low + high) / 2 if high < after else high
        found.append(Affine(low, 0.0, line.at(met) / met))
    return found


def _stepped_wire(
    times: Mapping[int, float], each: Mapping[int, float], sizes: list[int], eager_B: int
) -> list[Affine]:
    """For messages above the threshold, by payload: each step is around a size, at which it equals the measured one-way
    time and stream bandwidth."""
    met = sorted(
        {round(low * (high / low) ** (i / _STEPS)) for low, high in pairwise(sizes) for i in range(_STEPS + 1)}
    )
    parts = []
    above_B = eager_B - 1
    for size, after in zip(met, [*met[1:], met[-1]], strict=True):
        payload_B = size + ENVELOPE_B
        total_s, between_s = _between(times, size), _between(each, size)
        latency_s = max(0.0, total_s - between_s)
        parts.append(Affine(above_B + ENVELOPE_B, latency_s, (total_s - latency_s) / payload_B))
        above_B = round((size * after) ** 0.5)
    return parts


def _of(parts: tuple[Affine, ...], size_B: int) -> float:
    current = parts[0]
    for part in parts:
        if size_B > part.above_B:
            current = part
    return current.at(size_B)


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
