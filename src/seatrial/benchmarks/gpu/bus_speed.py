"""gpu.bus-speed: copies between the host's memory and a device's, as SHOC's BusSpeedDownload and BusSpeedReadback, by
size.

Copies of one size are queued back to back. A sample is the time of 2k copies minus that of k copies, which excludes the
start and the end of a batch. The device times pinned copies of 64 KiB and more; the host times all others.
"""

from __future__ import annotations

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import PACKETS, link_limit
from seatrial.model.benchmark.benchmark import Direction, HostCopies
from seatrial.model.benchmark.parameter import Parameter, Params

_ONE_LINK = ("size_B", "largest_B", "host", "optimised")
"""A link stays the same, whatever goes over it."""


def _is_of_several(params: Params) -> bool:
    return params.get("devices") != 1


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.bus-speed",
    question="How fast are copies between host and device memory?",
    parameters=(
        device.mode_among("S", "EP"),
        device.largest_size(
            "largest size, after the powers of 4 from 1 KiB; auto: 64 MiB, or 16 MiB if the device is a CPU",
            minimum=1 << 10,
        ),
        Parameter.choice(
            "host",
            "pinned",
            "host memory: pinned, which the device accesses directly, or pageable, as programs allocate by default",
            ("pinned", "pageable"),
            option="--host",
        ),
    ),
    figures=[
        figure
        for name, direction, way in (
            ("download", Direction.HOST_TO_DEVICE, "from the host to the device"),
            ("readback", Direction.DEVICE_TO_HOST, "from the device to the host"),
        )
        for figure in device.rates(
            name,
            "B/s",
            f"bytes {way}",
            series=name,
            limit=link_limit(),
            one_limit_over=_ONE_LINK,
            attainable=lambda params: PACKETS,
            role=HostCopies(direction, _is_of_several),
            role_of_all=HostCopies(direction, _is_of_several, is_sum=True),
        )
    ],
    error="bytes that came back wrong",
    estimate_s=lambda params: 3.0 + device.largest_B(params, 64 << 20) * 2e-8,
)
