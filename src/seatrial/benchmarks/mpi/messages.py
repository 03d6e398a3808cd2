"""The check and the figure shared by message-passing benchmarks: wrong bytes, and bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.benchmarks.bounds import zero
from seatrial.model.benchmark import Better, Check, Figure
from seatrial.model.limit import Limit
from seatrial.model.machine import Machine
from seatrial.model.parameter import Params
from seatrial.model.sample import Sample

WRONG_BYTES = Check("wrong_bytes", "bytes that arrived wrong", bound=zero)


def bytes_per_second(sample: Sample) -> float:
    """The rate of a sample, measured here or imported (`elapsed_s` is then one second)."""
    return sample.work["bytes"] / sample.elapsed_s


def bandwidth(work: str, limit: Callable[[Machine, Params, Sequence[Sample]], Limit] | None = None) -> Figure:
    """The figure `bandwidth`, of samples of that series; `work` says which bytes are counted."""
    return Figure(
        name="bandwidth",
        series="bandwidth",
        unit="B/s",
        better=Better.HIGHER,
        value=bytes_per_second,
        work=work,
        limit=limit,
    )
