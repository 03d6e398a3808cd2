"""Figures that are a quotient of counted work and time, which most are: computed from a sample, or from columns of
samples at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from operator import truediv
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample, SampleColumns, cells


class WorkRate(Frozen):
    """The counted work of that name per second."""

    work: str

    def __call__(self, sample: Sample) -> float:
        """The rate in a sample."""
        return sample.work[self.work] / sample.elapsed_s

    def of_columns(self, columns: SampleColumns) -> list[float]:
        """The rate in each sample."""
        return list(map(truediv, *_work_and_time(columns, self.work)))


class TimePerWork(Frozen):
    """The time of one unit of the counted work of that name, in seconds."""

    work: str

    def __call__(self, sample: Sample) -> float:
        """The time in a sample."""
        return sample.elapsed_s / sample.work[self.work]

    def of_columns(self, columns: SampleColumns) -> list[float]:
        """The time in each sample."""
        counts, times_s = _work_and_time(columns, self.work)
        return list(map(truediv, times_s, counts))


def _work_and_time(columns: SampleColumns, work: str) -> tuple[Iterable[float], Iterable[float]]:
    """The counted work and the time of each sample; work that is equal in all may go on without end."""
    counts: Any = columns.work[work]
    return (counts if isinstance(counts, list) else repeat(counts.all)), cells(columns.elapsed_s, columns.n)
