"""gpu.transfer: copies between the host's memory and each device's, one device at a time and all at once.

Copies of one size are queued back to back (as nvbandwidth does with large copies). A sample is the time of 2k copies
minus that of k copies, which excludes the start and the end of a batch. The device times pinned and mapped copies of
64 KiB and more in one direction; the host times all others. `both` are concurrent copies in both directions on two
queues, both counted; for pageable memory a single thread submits both, so they may be serialised.

The difference between the figures shows what devices share on the path to the host: `h2d` is one device alone,
`h2d_together` its rate while all copy, `h2d_all` the sum of these rates. Each device keeps copying until all have their
sample, so that none is measured after others have finished.

`numa_node` binds the threads that submit the copies, and the host memory. With `auto` each device is driven from a CPU
that sysfs reports as local to it, if there is one, and the memory is on the NUMA node of that CPU.
"""

from __future__ import annotations

import math

from seatrial.benchmarks.figures import rate
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import PACKETS, link_limit
from seatrial.benchmarks.placement import pages_check, require_memory, spread
from seatrial.model.benchmark.benchmark import Direction, Figure, HostCopies, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Machine

_WORD_B = 8
_ONE_LINK = ("size_B", "largest_B", "host", "numa_node", "optimised")
_WAYS = {
    Direction.HOST_TO_DEVICE: "bytes from the host to the device",
    Direction.DEVICE_TO_HOST: "bytes from the device to the host",
    Direction.BOTH: "bytes in both directions at once",
}


def _prepare(machine: Machine, params: Params) -> Params:
    if params["numa_node"] != "auto":
        require_memory(machine, params["numa_node"])
    if params["largest_B"] == "auto":
        return params
    largest = math.ceil(whole(params["largest_B"]) / _WORD_B) * _WORD_B
    if largest > 1 << 30:
        raise Skip(f"largest_B={largest} is above 1 GiB")
    return {**params, "largest_B": largest}


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """Every CPU that may drive a device: which it is, is known when it is known where the devices are."""
    return spread(machine, len(machine.allowed_cpus), params["numa_node"])


def _estimate_s(params: Params) -> float:
    count = 1 if params["devices"] == "auto" else whole(params["devices"])
    return 3.0 + (count + 1) * (1.0 + device.largest_B(params, 64 << 20) * 2e-8)


def _figures(way: Direction, work: str) -> tuple[Figure, ...]:
    limit = link_limit(lambda params: 2.0, how="both directions") if way is Direction.BOTH else link_limit()

    def figure(suffix: str, work: str, *, is_sum: bool = False) -> Figure:
        return rate(
            way + suffix,
            "B/s",
            work,
            series=way + suffix,
            limit=limit,
            one_limit_over=_ONE_LINK,
            attainable=lambda params: PACKETS,
            is_there=lambda params: not suffix or params["devices"] != 1,
            role=HostCopies(way, at_once=lambda params: bool(suffix), is_sum=is_sum),
        )

    return (
        figure("", f"{work}, while no other device copies"),
        figure("_together", f"{work}, while all devices copy"),
        figure("_all", f"{work}, sum over all devices, which copy at once", is_sum=True),
    )


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.transfer",
    question="How fast are copies between the host and each device, alone and with all devices at once?",
    parameters=(
        Parameter.choice(
            "host",
            "pinned",
            "host memory: pinned, which the device accesses directly; pageable, as programs allocate by default; "
            "mapped, which a kernel reads and writes",
            ("pinned", "pageable", "mapped"),
            option="--host",
        ),
        device.largest_size(
            "largest size, after the powers of 4 from 1 KiB, at most 1 GiB; auto: 64 MiB, or 16 MiB if the device is "
            "a CPU",
            minimum=1 << 10,
        ),
        Parameter.integer(
            "numa_node",
            "auto",
            "NUMA node of the host memory and of the CPUs that drive the copies; auto: that of each device",
            option="--memory-node",
            spelled={"auto": None},
        ),
    ),
    figures=[figure for way, work in _WAYS.items() for figure in _figures(way, work)],
    error="bytes that arrived wrong",
    checks=(pages_check(_placement),),
    prepare=_prepare,
    placement=_placement,
    estimate_s=_estimate_s,
    trial=({},),
)
