"""The meaning of a figure's coordinates: a pair of CPUs, a working set, a file and its records. Charts depend on it."""

from __future__ import annotations

from seatrial.analysis.pairs import pair_of
from seatrial.model.figure_result import FigureResult
from seatrial.model.parameter import Value


def cpu_pair(figure: FigureResult) -> tuple[int, int] | None:
    """The two CPUs (numbered by the operating system) between which it was measured, or None."""
    return _two(figure, "cpu_a", "cpu_b")


def rank_pair(figure: FigureResult) -> tuple[int, int] | None:
    """The two ranks between which it was measured, or None."""
    return pair_of(figure.point)


def device_pair(figure: FigureResult) -> tuple[int, int] | None:
    """The source and target device (numbered by their backend) of the measurement, or None."""
    return _two(figure, "source", "target")


def file_and_record(figure: FigureResult) -> tuple[int, int] | None:
    """(size of the file, size of each record) in bytes, or None."""
    return _two(figure, "file_B", "record_B")


def working_set(figure: FigureResult) -> int | None:
    """The size in bytes of the data that the program accessed repeatedly, if the figure is a latency; else None."""
    size = _whole(figure.point.get("working_set_B"))
    return size if figure.unit == "s" and size is not None and size > 0 else None


def has_its_own_panel(figure: FigureResult) -> bool:
    """Whether another panel of the page shows figures of this shape, so that they need no line chart."""
    return any(shape(figure) is not None for shape in (cpu_pair, rank_pair, device_pair, working_set))


def _two(figure: FigureResult, one: str, other: str) -> tuple[int, int] | None:
    a, b = _whole(figure.point.get(one)), _whole(figure.point.get(other))
    return None if a is None or b is None else (a, b)


def _whole(value: Value | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
