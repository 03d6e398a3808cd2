"""mpi.latency: how long a message takes from one rank to another.

Half the round trip of a ping-pong, as the OSU micro-benchmarks (osu_latency) and Intel MPI Benchmarks (PingPong) both
define it. If both ranks are on one host, a cache line bounces between the same two CPUs in the same run: no message
between them can be faster. The time of a bounce depends on the two cores that a virtual machine or batch system gives,
so the multiple of it is comparable where the time itself is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.benchmarks.figures import zero
from seatrial.benchmarks.mpi.mpi_benchmark import (
    DATATYPE,
    HUGE_PAGES,
    MESSAGE_MEMORY,
    WRONG_BYTES,
    exchanged_in_turns,
    has_device_buffers,
    message_devices_argument,
    mpi_benchmark,
    pair,
    resolved_ranks,
)
from seatrial.benchmarks.mpi.pair_placement import PLACEMENT, pair_cpus, resolved_placement
from seatrial.benchmarks.mpi.sizes import LARGEST, SIZE, resolved_sizes, sizes_argument, sizes_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Better, Check, Figure, Role
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_LINE_B = 64
"""A message up to so many bytes fits into a line of every current processor of servers (some have 128)."""
_BUFFERS = 4
"""Two ranks, each with one to send from and one to receive in."""
_LEAST_MESSAGES = 16
"""Of one size: a trial and three samples, each with a trip before it, there and back."""
_SLOW_BPS = 2e9
"""What copies and comparisons of great messages are sure to reach, for the estimate."""


def _prepare(machine: Machine, params: Params) -> Params:
    if params["ranks"] != 2:
        raise UsageError(f"ranks={params['ranks']}: a ping-pong has two", "for more ranks, see `seatrial list mpi`")
    params = resolved_sizes(machine, resolved_ranks(machine, params), _BUFFERS)
    return resolved_placement(machine, params)


def _has_bounces(params: Params) -> bool:
    """Whether both ranks are on one host, each with its own CPU: two that share a CPU cannot take turns. Messages in
    devices do not pass between the caches of CPUs."""
    return params["nodes"] == 1 and params["oversubscribe"] is False and not has_device_buffers(params)


def _one_bounce(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The least that a message within a line can take: the line has to go from one core to the other once."""
    size = samples[0].point.get("size_B")
    bounces = [float(sample.extra["bounce_s"]) for sample in samples if "bounce_s" in sample.extra]
    nodes = params.get("nodes")
    if isinstance(nodes, int) and nodes > 1:
        return Limit.unknown("s", "messages between nodes pass a network, whose latency is stated nowhere")
    if has_device_buffers(params):
        return Limit.unknown("s", "no limit is known of a message in the memory of a device")
    if not bounces:
        return Limit.unknown("s", "this run measured no cache line bounce between the two ranks")
    if size is None or whole(size) > _LINE_B:
        return Limit.unknown("s", f"a cache line bounce is a limit for messages up to {_LINE_B} B only")
    return Limit(median(bounces), "s", "one cache line bounce between the same CPUs in the same run", Basis.MEASURED)


BENCHMARK = mpi_benchmark(
    __file__,
    name="mpi.latency",
    question="How long does a message take from one rank to another?",
    ranks=pair("ranks of the ping-pong"),
    words=(
        sizes_argument,
        message_devices_argument,
        lambda params: ("--bounce", str(int(_has_bounces(params)))),
    ),
    parameters=(
        PLACEMENT,
        replace(SIZE, help=f"{SIZE.help}; 0: empty messages"),
        LARGEST,
        *MESSAGE_MEMORY,
        HUGE_PAGES,
        DATATYPE,
    ),
    figures=(
        Figure(
            "one_way",
            "s",
            Better.LOWER,
            lambda sample: sample.elapsed_s / sample.work.get("ops", 1.0),
            "half the round trip of a ping-pong of size_B",
            limit=_one_bounce,
            role=Role.MESSAGE_TIME,
        ),
        Figure(
            "bounces",
            "1",
            Better.LOWER,
            lambda sample: sample.elapsed_s / sample.work["ops"] / float(sample.extra["bounce_s"]),
            "one_way of size_B, over the time of a cache line bounce between the same CPUs right after it",
            is_there=_has_bounces,
        ),
    ),
    checks=(WRONG_BYTES, Check("lost_bounces", "lost trips of the cache line", zero)),
    placement=pair_cpus,
    prepare=_prepare,
    trial=({},),
    estimate_s=lambda params: 1.0 + _LEAST_MESSAGES * sum(sizes_of(params)) / _SLOW_BPS,
    between_nodes=exchanged_in_turns(("one_way",)),
)
