"""gpu.p2p: copies between each pair of devices (one direction, both directions, a few bytes) and within each device.

The matrices and conventions are those of CUDA's p2pBandwidthLatencyTest: the queue of the source copies into the memory
of the target; within a device (the diagonal) each byte is read and written, and counted twice. `bandwidth` is that of
copies queued back to back, timed by the source (2k copies minus k copies); `both` that of concurrent copies in both
directions, both counted, timed by the host. `latency` is the time per copy of a few bytes in a batch, of which only the
last is waited for, timed by the host.

With `p2p=on` a pair copies directly if its devices support peer access, which is enabled only while the pair is
measured. Otherwise the driver chooses the path (CUDA), or the data goes through host memory in pieces of 4 MiB, of
which one is downloaded while the previous one is uploaded (OpenCL). Each sample states its `path`: peer, driver, host
or own.
"""

from __future__ import annotations

from seatrial.benchmarks.figures import duration, rate
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import PACKETS, peer_limit
from seatrial.benchmarks.placement import spread
from seatrial.model.benchmark.benchmark import Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine

_AUTO_B = 64 << 20
"""Where the program decides; on a processor it takes less."""
_ONE_LINK = ("size_B", "latency_B", "p2p", "optimised")


def _prepare(machine: Machine, params: Params) -> Params:
    if params["devices"] == 1:
        raise Skip("copies between devices need two or more devices")
    return params


def _estimate_s(params: Params) -> float:
    count = 2 if params["devices"] == "auto" else whole(params["devices"])
    size = _AUTO_B if params["size_B"] == "auto" else whole(params["size_B"])
    return 3.0 + count**2 * (0.2 + size * 5e-9)


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.p2p",
    question="How fast are copies between each pair of devices?",
    parameters=(
        Parameter.choice(
            "p2p",
            "on",
            "on: copies go directly from device to device if possible; off: no peer access",
            ("on", "off"),
            option="--p2p",
            spelled={"on": "1", "off": "0"},
        ),
        Parameter.size(
            "size_B",
            "auto",
            "size of a copy; auto: 64 MiB, or 16 MiB if the devices are CPUs",
            minimum=8,
            option="--size",
            spelled={"auto": "0"},
        ),
        Parameter.size("latency_B", 4, "size of the copy for the latency", minimum=1, option="--message"),
    ),
    figures=(
        rate(
            "bandwidth",
            "B/s",
            "bytes from source to target; within one device, bytes read and written",
            series="bandwidth",
            limit=peer_limit(),
            one_limit_over=_ONE_LINK,
            attainable=lambda params: PACKETS,
            role=Role.PEER_COPY,
        ),
        rate(
            "both",
            "B/s",
            "bytes in both directions at once",
            series="both",
            limit=peer_limit(directions=2),
            one_limit_over=_ONE_LINK,
            attainable=lambda params: PACKETS,
            role=Role.PEER_COPY_BOTH_WAYS,
        ),
        duration("latency", "one copy of latency_B bytes in a series of copies", "ops", role=Role.PEER_LATENCY),
    ),
    error="bytes that arrived wrong",
    prepare=_prepare,
    placement=lambda machine, params: spread(machine, len(machine.allowed_cpus)),
    estimate_s=_estimate_s,
    trial=({},),
)
