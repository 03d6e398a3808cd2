"""What is published about an experiment: its outcome and its figures, stated ones, exports, outliers."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, overload

from seatrial.model.benchmark.benchmark import ALL_OF_IT, Attainable, Better
from seatrial.model.benchmark.parameter import JsonParams, Params, Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain
from seatrial.model.json_shape import (
    Count,
    Interval,
    Json,
    Keywords,
    Number,
    OneOrMore,
    ShareOrNaN,
    Text,
    key,
    published,
)
from seatrial.model.machine.limit import Limit
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.model.units import Unit, is_power_or_energy

FEWEST_PARTNERS = 3
"""A rank or node with fewer measured partners cannot be distinguished from a slow link to one of them."""


class PairSampling(Frozen):
    """`pairs` of the `of_pairs` pairs of ranks were measured; a rank met from `least_partners` to `most_partners`
    others. `seed` and `rounds` of `of_rounds` of the tournament determine which (None: not known)."""

    pairs: Count
    of_pairs: OneOrMore
    least_partners: Count
    most_partners: Count
    seed: int | None = None
    rounds: int | None = None
    of_rounds: int | None = None

    @property
    @key
    def share(self) -> Annotated[float, Keywords(minimum=0, maximum=1)]:
        """The share of pairs that were measured, which is the chance that one given slow link was."""
        return self.pairs / self.of_pairs

    @property
    @key
    def tells_ranks(self) -> bool:
        """Whether every rank met enough others to distinguish a slow rank from a slow pair."""
        return self.least_partners >= FEWEST_PARTNERS


class Outlier(Frozen):
    """An outlier among values that should be equal.

    `what` is the node, repeat, rank or pair of ranks; `ratio` its value over the median of its kind.

    `sureness` is one minus the p-value of such a value, adjusted for the number of screened values; `false_alarm_rate`
    is the probability that a screening of this size reports any outlier if all values are equal.
    """

    what: Text
    benchmark: str
    figure: str
    parameters: JsonParams
    value: Number
    ratio: Number
    sureness: ShareOrNaN
    false_alarm_rate: ShareOrNaN
    n: OneOrMore


@published("Fleet")
class FleetSpread(Frozen):
    """Nodes that truly differ in a figure, beyond the noise of their repeats.

    `spread` is the range of the middle 90 % of their medians, over the median of all; `of_noise` the probability that
    equal nodes look so different. If there are two kinds, `minority` names the nodes of the smaller one, and `kinds`
    are the ratios of both (minority, others).
    """

    benchmark: str
    figure: str
    parameters: JsonParams
    n: OneOrMore
    spread: Annotated[tuple[Number, Number], "the middle 90 % of the nodes, over the median of all"]
    of_noise: Annotated[ShareOrNaN, "the probability that equal nodes look so different"]
    minority: Annotated[tuple[Text, ...], "the nodes of the smaller of two kinds; empty: one kind"] = ()
    kinds: Annotated[Interval, "the ratios of both kinds, the smaller one first; null: one kind"] = None


@published("Again")
class MeasureAgain(Frozen):
    """The nodes to measure again to be sure which truly differ.

    New repeats of these show which of the suspects truly differ.
    """

    suspects: Annotated[tuple[Text, ...], "the nodes that are farthest from the others"]
    controls: Annotated[tuple[Text, ...], "nodes drawn at random, to measure beside them"]
    repeats: Annotated[Count, "on each"]


class ScreenResult(Frozen):
    """The outliers of a results folder, and the figures in which its nodes truly differ.

    `again` is what a second stage would measure, if the screen was of nodes. After that second stage, `outliers` are
    those that it confirmed, and `unconfirmed` the suspects that do not differ from the controls.
    `not_screened` says which figures of nodes could not be, and why.
    """

    outliers: tuple[Outlier, ...] = ()
    fleets: tuple[FleetSpread, ...] = ()
    again: MeasureAgain | None = None
    unconfirmed: tuple[str, ...] = ()
    not_screened: tuple[str, ...] = ()


class Screening(Frozen):
    """The result of screening the values of one experiment: `n` were tested, of which `outliers` deviate at the
    family-wise `false_alarm_rate`. `why_not` says which values could not be tested, and why; `is_inconclusive`: none
    could. `sampling` says which of all pairs were measured, if that is known."""

    outliers: tuple[Outlier, ...]
    n: int
    of: str
    false_alarm_rate: float
    why_not: str = ""
    is_inconclusive: bool = False
    sampling: PairSampling | None = None


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

    @classmethod
    def of(cls, values: Sequence[RepeatValue]) -> RepeatValues:
        """The same values by column."""
        return cls(
            array("q", [one.repeat for one in values]),
            array("q", [one.order for one in values]),
            array("d", [one.t0 for one in values]),
            array("d", [one.value for one in values]),
            [one.turns for one in values] if any(one.turns for one in values) else (),
            array("d", [one.resolution for one in values]) if any(one.resolution for one in values) else (),
        )

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


def share_of(value: float, limit: Limit | None, better: Better) -> float | None:
    """The share of the limit that a value reaches (limit over value if lower is better), or None."""
    if limit is None or not limit.value or not value:
        return None
    return value / limit.value if better is Better.HIGHER else limit.value / value


class FigureResult(Frozen):
    """One figure of one experiment at one point.

    `median` and `ci95` (distribution-free interval of the median, None below 6 repeats) are over repeats, which are in
    order of time; `minimum` and `maximum` are over all samples. `limit` is the physical limit, else a measured ceiling,
    else one of basis unknown. If each repeat has its own limit (from its clock), `limit` is that of the repeat with the
    median, or the mean of those of the two middle ones: `fraction_of_limit` is `median` over it (or its inverse).

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

    def __repr__(self) -> str:
        from seatrial.model.results.rows import figure_line

        return figure_line(self)

    @property
    def n_repeats(self) -> int:
        """The number of repeats, also of those behind a stated value."""
        return self.repeats.n_behind if isinstance(self.repeats, StatedRepeats) else len(self.repeats)

    @property
    def error(self) -> float | None:
        """Of a figure of power, the half-width of what its sensors cannot show; None if it is not known, or another
        figure."""
        return abs(self.median) * self.resolution / 2.0 if is_power_or_energy(self.unit) and self.resolution else None

    @property
    def values(self) -> Sequence[float]:
        """The values of the repeats, in order of time."""
        return numbers(self.repeats)

    @property
    def share_of_attainable(self) -> float | None:
        """The share of the attainable part of the limit, which is compared with thresholds."""
        return None if self.fraction_of_limit is None else self.fraction_of_limit / self.attainable.share


class MissingFigure(Frozen):
    """A figure that was asked for and could not be measured, and why. It has the attributes of a `FigureResult`."""

    name: str
    point: Mapping[str, Value]
    unit: Unit
    better: Better
    reason: str
    median: None = None
    ci95: None = None
    minimum: None = None
    maximum: None = None
    n_repeats: int = 0
    n_samples: int = 0
    limit: None = None
    fraction_of_limit: None = None
    dependence: float = 0.0
    resolution: float = 0.0
    error: None = None


class Emulated(Frozen):
    """Why the figures of an experiment are compared with nothing (model/machine/identity.py), and these figures."""

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
    missing: tuple[MissingFigure, ...] = ()
    """What its probes could not measure."""
    container: str = ""
    """The image and runtime that it ran in; "": in none."""
    emulated: Emulated | None = None
    """Set if it was measured on emulated processors: it then has no `figures`, so nothing can compare them."""
    no_cpu: NoCpu | None = None
    """Set if its programs were ready to run without a CPU: its figures are then not judged."""
    beside: str = ""
    """What else used CPUs meanwhile, if it was much: "other processes used 0.8 of its 2 CPUs"."""
    why: str = ""
    """What the program does itself that takes most of its time, and what to do, in sentences; "": nothing is known."""

    def __repr__(self) -> str:
        from seatrial.model.results.rows import experiment_line

        return experiment_line(self)

    @property
    def benchmark(self) -> str:
        """Its name."""
        return self.experiment.benchmark

    @property
    def parameters(self) -> Params:
        """All parameters that it was measured with, defaults included."""
        return self.experiment.parameters

    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each figure (model/results/rows.py)."""
        from seatrial.model.results.rows import figure_rows

        return figure_rows([self])

    @property
    def shown(self) -> tuple[FigureResult, ...]:
        """The figures to be shown, those of emulated processors too."""
        return self.figures if self.emulated is None else self.emulated.figures


STATED = "stated_figures"
"""The key of `StatedFigure` documents in what a record `seen`."""


class StatedFigure(Frozen):
    """One figure of a table: median and 95 % interval in `unit`, over `n_repeats` that are not known one by one."""

    name: str
    parameters: Mapping[str, Any]
    unit: str
    better: str
    median: Number
    ci95: Interval
    n_repeats: int

    def document(self) -> Json:
        """As kept in a record."""
        return plain(self)
