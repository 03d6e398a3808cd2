"""The role of a figure: how analysis and pages find figures independent of their benchmark."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from seatrial.model.benchmark.parameter import Params
from seatrial.model.frozen import Frozen


class Role(StrEnum):
    """What a figure measures, as declared with it; several figures may have the same role."""

    MEMORY_BANDWIDTH = "memory bandwidth, by the triad"
    MEMORY_STREAM = "memory bandwidth, by another kernel"
    LOAD_LATENCY = "latency of a load, by level of memory"
    FILE_RATE = "rate of reading or writing a file"
    FMA_RATE = "FMA rate of the cores"
    MATRIX_PRODUCT = "matrix product by the site's BLAS"
    LINE_BOUNCE = "transfer of a cache line between two cores"
    MESSAGE_TIME = "one-way time of a message, by size"
    MESSAGE_BANDWIDTH = "bandwidth of a stream of messages, by size"
    COLLECTIVE_TIME = "time of a collective operation on the slowest rank, by size"
    RANK_PAIRS = "messages between each pair of ranks"
    DEVICE_MEMORY_BANDWIDTH = "bandwidth of a device's memory"
    DEVICE_FMA_RATE = "FMA rate of a device's vector units"
    LINK_TRAFFIC = "bytes of a device kernel that cross the link to the host"
    PEER_COPY = "copies from each device to every other"
    PEER_COPY_BOTH_WAYS = "copies between each pair of devices in both directions at once"
    PEER_LATENCY = "small copies from each device to every other"
    PROGRAM_START = "time in which programs and libraries are read from their files"


class Direction(StrEnum):
    """The direction of copies between the host and a device."""

    HOST_TO_DEVICE = "h2d"
    DEVICE_TO_HOST = "d2h"
    BOTH = "both"


class HostCopies(Frozen):
    """The role of a figure of copies between the host and a device, or (`is_sum`) all devices of the experiment.

    `at_once`: whether other devices copy at the same time.
    """

    direction: Direction
    at_once: Callable[[Params], bool]
    is_sum: bool = False


class Intensity(Frozen):
    """The flop and memory bytes of a figure, which give its arithmetic intensity in a roofline.

    `name` is the label of such figures there, `counting` a sentence on how both were counted.
    """

    name: str
    flop: float
    bytes: float
    counting: str
