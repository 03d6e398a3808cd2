"""Figures that are a quotient of counted work and time, which most are: computed from a sample, or from columns of
samples at once."""

from __future__ import annotations

from dataclasses import dataclass
from operator import truediv

from seatrial.model.sample import Sample
from seatrial.model.sample_columns import SampleColumns, cells


@dataclass(frozen=True, slots=True)
class WorkRate:
    """The counted work of that name per second."""

    work: str

    def __call__(self, sample: Sample) -> float:
        """The rate in a sample."""
        return sample.work[self.work] / sample.elapsed_s

    def of_columns(self, columns: SampleColumns) -> list[float]:
        """The rate in each sample."""
        counts, times_s = columns.work[self.work], cells(columns.elapsed_s, columns.n)
        if isinstance(counts, list):
            return list(map(truediv, counts, times_s))
        count = counts.all
        return [count / time_s for time_s in times_s]


@dataclass(frozen=True, slots=True)
class TimePerWork:
    """The time of one unit of the counted work of that name, in seconds."""

    work: str

    def __call__(self, sample: Sample) -> float:
        """The time in a sample."""
        return sample.elapsed_s / sample.work[self.work]

    def of_columns(self, columns: SampleColumns) -> list[float]:
        """The time in each sample."""
        counts, times_s = columns.work[self.work], cells(columns.elapsed_s, columns.n)
        if isinstance(counts, list):
            return list(map(truediv, times_s, counts))
        count = counts.all
        return [time_s / count for time_s in times_s]
