"""gpu.triad: a = b + s c with all arrays in host memory, as in SHOC's Triad: blocks are uploaded, processed and
downloaded on two queues, so that copies and computation overlap.

Counted as in SHOC: 3 elements copied and 2 operations per element of a.
"""

from __future__ import annotations

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import PACKETS, link_limit
from seatrial.model.benchmark.benchmark import Attainable, Role

_ONE_LINK = ("block_B", "largest_B", "optimised")
_DOWN, _UP, _FLOPS = 2, 1, 2
"""Elements that travel down and up for each element of a, and operations."""
_IN_TURN = Attainable(
    PACKETS.share * _DOWN / (_DOWN + _UP), f"copies to and from the device may take turns, and {PACKETS.why}"
)


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.triad",
    question="How fast does a device process data streamed from and to the host?",
    parameters=(
        device.mode_among("S", "EP"),
        device.PRECISION,
        device.largest_size(
            "largest block of an array, after 64 KiB, 256 KiB, ...; auto: 16 MiB, or 4 MiB if the device is a CPU",
            minimum=64 << 10,
        ),
    ),
    figures=(
        *device.rates(
            "bandwidth",
            "B/s",
            "b and c copied to the device and a from it",
            series="triad",
            limit=link_limit(lambda params: (_DOWN + _UP) / _DOWN, how="3 elements are copied for 2 to the device"),
            one_limit_over=_ONE_LINK,
            attainable=lambda params: _IN_TURN,
            role=Role.LINK_TRAFFIC,
            role_of_all=Role.LINK_TRAFFIC,
        ),
        *device.rates(
            "rate",
            "flop/s",
            "an addition and a multiplication per element",
            series="triad",
            limit=link_limit(
                lambda params: _FLOPS / (_DOWN * device.element_bytes(params)),
                "flop/s",
                "flop per byte copied to the device",
            ),
            one_limit_over=_ONE_LINK,
            attainable=lambda params: _IN_TURN,
        ),
    ),
    error="elements of a that differ from b + s c, compared exactly",
    estimate_s=lambda params: 3.0 + device.largest_B(params, 16 << 20) * 1e-7,
)
