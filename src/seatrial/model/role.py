"""What a figure is the measure of: how analysis and pages find figures, whichever benchmark they belong to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from seatrial.model.parameter import Params


class Role(StrEnum):
    """What a figure is the measure of, as it declares itself; several may be the measure of one thing."""

    MEMORY_BANDWIDTH = "bandwidth of memory: the triad, which is customary"
    MEMORY_STREAM = "bandwidth of memory by another kernel than the triad"
    FMA_RATE = "arithmetic of the cores"
    MATRIX_PRODUCT = "a product of matrices by the site's BLAS"
    LINE_BOUNCE = "a cache line from one core to another"
    MESSAGE_TIME = "one way of a message, by size"
    MESSAGE_BANDWIDTH = "a stream of messages, by size"
    RANK_PAIRS = "messages of every two ranks"
    DEVICE_MEMORY_BANDWIDTH = "bandwidth of a device's memory"
    DEVICE_FMA_RATE = "arithmetic of a device's vector units"
    LINK_TRAFFIC = "bytes of a device's kernel that cross the link to the host, not its memory"
    PEER_COPY = "copies from each device to each other one"
    PEER_COPY_BOTH_WAYS = "copies between each two devices in both directions at once"
    PEER_LATENCY = "a small copy from each device to each other one"


class Direction(StrEnum):
    """Which way copies between the host and a device go."""

    HOST_TO_DEVICE = "h2d"
    DEVICE_TO_HOST = "d2h"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class HostCopies:
    """The role of a figure of copies between the host and a device, or (`is_sum`) all devices of the experiment.

    `at_once` says whether other devices copy meanwhile.
    """

    direction: Direction
    at_once: Callable[[Params], bool]
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class Intensity:
    """Flop and bytes of memory that belong together in a figure: its place on the axis of a roofline.

    `name` is what figures of this kind are called there, `counting` a sentence that says how both were counted.
    """

    name: str
    flop: float
    bytes: float
    counting: str
