"""What is published about an experiment: its outcome and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from seatrial.model.benchmark import ALL_OF_IT, Attainable, Better
from seatrial.model.experiment import Experiment
from seatrial.model.frozen import Frozen
from seatrial.model.limit import Limit
from seatrial.model.outcome import Outcome
from seatrial.model.outlier import Screening
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


class RepeatValue(Frozen):
    """The value of one repeat, with what is needed to find its record and to see drift.

    `turns` are the values of its samples if it took turns with others: the n-th samples of all were taken one right
    after another. `resolution` is the step that it was rounded to, as a share of it; 0: not rounded, or unknown.
    """

    repeat: int
    order: int
    t0: float
    value: float
    turns: tuple[float, ...] = ()
    resolution: float = 0.0


class RepeatValues(Sequence[RepeatValue]):
    """The values of one figure by column: an object for each of 100,000 repeats and each figure takes too much memory.

    Figures of one experiment share the columns `repeats`, `orders` and `starts` if all of them have all repeats.
    `turns` is empty if no repeat took turns, `resolutions` if no value was rounded.
    """

    __slots__ = ("orders", "repeats", "resolutions", "starts", "turns", "values")

    def __init__(
        self,
        repeats: Sequence[int],
        orders: Sequence[int],
        starts: Sequence[float],
        values: Sequence[float],
        turns: Sequence[tuple[float, ...]] = (),
        resolutions: Sequence[float] = (),
    ) -> None:
        self.repeats = repeats
        self.orders = orders
        self.starts = starts
        self.values = values
        self.turns = turns
        self.resolutions = resolutions

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> RepeatValue: ...

    @overload
    def __getitem__(self, index: slice) -> RepeatValues: ...

    def __getitem__(self, index: int | slice) -> RepeatValue | RepeatValues:
        if isinstance(index, slice):
            return RepeatValues(
                self.repeats[index],
                self.orders[index],
                self.starts[index],
                self.values[index],
                self.turns[index],
                self.resolutions[index],
            )
        return RepeatValue(
            self.repeats[index],
            self.orders[index],
            self.starts[index],
            self.values[index],
            self.turns[index] if self.turns else (),
            self.resolutions[index] if self.resolutions else 0.0,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


class StatedRepeats(RepeatValues):
    """One value that stands for `n_behind` repeats, which are not known one by one."""

    __slots__ = ("n_behind",)

    def __init__(self, repeat: int, order: int, t0: float, value: float, n_behind: int) -> None:
        super().__init__((repeat,), (order,), (t0,), (value,))
        self.n_behind = n_behind


def numbers(repeats: Sequence[RepeatValue]) -> Sequence[float]:
    """The values of repeats alone."""
    return repeats.values if isinstance(repeats, RepeatValues) else [repeat.value for repeat in repeats]


def resolution_of(repeats: Sequence[RepeatValue]) -> float:
    """The coarsest resolution of repeats, as a share of the value; 0 if no value was rounded."""
    if isinstance(repeats, RepeatValues):
        return max(repeats.resolutions, default=0.0)
    return max((repeat.resolution for repeat in repeats), default=0.0)


def share_of(value: float, limit: Limit | None, better: Better) -> float | None:
    """The share of the limit that a value reaches (limit over value if lower is better), or None."""
    if limit is None or not limit.value or not value:
        return None
    return value / limit.value if better is Better.HIGHER else limit.value / value


class FigureResult(Frozen):
    """One figure of one experiment at one point.

    `median` and `ci95` (distribution-free interval of the median, None below 6 repeats) are over repeats, which are in
    order of time; `minimum` and `maximum` are over all samples. `limit` is the physical limit, else a measured ceiling,
    else one of basis unknown. If each repeat has its own limit (from its clock), `fraction_of_limit` is the median of
    the repeats' shares, and `limit` that of the repeat with the nearest share, so `fraction_of_limit` may differ from
    `median` over `limit` in the last digits.

    `attainable`, `one_limit_over` and `is_secondary` are those that the figure declares; see `Figure`. `customary` is
    the median in the unit that users of an application expect, "" if there is no such unit. `dependence` is the
    correlation of successive repeats, 0 if it is not significant: `ci95` is wider by it, or None. `resolution` is the
    step that values were rounded to, as a share of the value, in the coarsest repeat: both ends of `ci95` are wider by
    half of it.
    """

    name: str
    point: Mapping[str, Value]
    unit: Unit
    better: Better
    work: str
    median: float
    ci95: tuple[float, float] | None
    minimum: float
    maximum: float
    n_samples: int
    limit: Limit | None
    repeats: Sequence[RepeatValue]
    fraction_of_limit: float | None = None
    attainable: Attainable = ALL_OF_IT
    one_limit_over: tuple[str, ...] = ()
    customary: str = ""
    dependence: float = 0.0
    resolution: float = 0.0
    is_secondary: bool = False

    @property
    def n_repeats(self) -> int:
        """The number of repeats, also of those behind a stated value."""
        return self.repeats.n_behind if isinstance(self.repeats, StatedRepeats) else len(self.repeats)

    @property
    def values(self) -> Sequence[float]:
        """The values of the repeats, in order of time."""
        return numbers(self.repeats)

    @property
    def share_of_attainable(self) -> float | None:
        """The share of the attainable part of the limit, which is compared with thresholds."""
        return None if self.fraction_of_limit is None else self.fraction_of_limit / self.attainable.share


class Emulated(Frozen):
    """Why the figures of an experiment are compared with nothing (model/emulation.py), and these figures."""

    why: str
    figures: tuple[FigureResult, ...] = ()


class ExperimentResult(Frozen):
    """One experiment as shown: its outcome, and figures if that is ok. `reused`: nothing had to be run for it.
    `screening` is set if its figures are of pairs of ranks, which should be equal."""

    id: str
    experiment: Experiment
    question: str
    outcome: Outcome
    figures: tuple[FigureResult, ...] = ()
    reused: bool = False
    notes: tuple[str, ...] = ()
    screening: Screening | None = None
    hosts: tuple[str, ...] = ()
    """The nodes that its repeats ran on."""
    container: str = ""
    """The image and runtime that it ran in; "": in none."""
    emulated: Emulated | None = None
    """Set if it was measured on emulated processors: it then has no `figures`, so nothing can compare them."""

    @property
    def shown(self) -> tuple[FigureResult, ...]:
        """The figures to be shown, those of emulated processors too."""
        return self.figures if self.emulated is None else self.emulated.figures
