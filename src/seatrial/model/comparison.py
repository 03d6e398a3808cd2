"""A comparison: one figure on two sides, the interval of their ratio, and a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import field

from seatrial.model.benchmark import Better
from seatrial.model.figure_result import RepeatValue, numbers
from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


class Verdict(StrEnum):
    """The result of a comparison. Without an interval it is always ambiguous."""

    FASTER = "faster"
    SAME = "same"
    EQUIVALENT = "equivalent"  # in place of `same` where equivalence is asked for
    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"


class Stopped(StrEnum):
    """Why no further repeats were made."""

    DECIDED = "decided"  # by the interval at a planned look
    BUDGET = "budget"  # the time budget was used up
    MAXIMUM = "maximum"  # the largest number of repeats was made
    UNFINISHED = "unfinished"  # the run was interrupted; the same command resumes it
    NOT_PLANNED = "not planned"  # the repeats were not made for this comparison


class Statistic(StrEnum):
    """What the blocks of a comparison are tested with; see `seatrial.stats.block_test`."""

    SIGNED_RANKS = "signed ranks"
    POOLED_RANKS = "pooled ranks"


class Side(Frozen):
    """One side of a comparison. `name` is shown to the user ("nontemporal true", a folder, a reference).

    `values` are the repeats that the comparison uses, in order of time; `experiments` the ids behind them. A published
    reference has only `median`.
    """

    name: str
    median: float
    values: Sequence[RepeatValue] = ()
    experiments: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_reference: bool = False

    @property
    def numbers(self) -> Sequence[float]:
        """The values of the repeats alone."""
        return numbers(self.values)


class Design(Frozen):
    """How the repeats behind a comparison were made.

    `blocks` counts pairs measured in direct succession, in random order (0: the sides were measured separately).
    `looks` are the numbers of blocks at which it was, or would have been, tested. `alpha` is the error level of the
    interval, before adjustment for the family. `statistic` is what the blocks were tested with; None without blocks.
    `sessions` is the number of alternating sessions of each side if they were measured apart, else None.
    """

    blocks: int
    looks: tuple[int, ...]
    stopped: Stopped
    alpha: float
    statistic: Statistic | None = None
    sessions: int | None = None

    @property
    def is_interleaved(self) -> bool:
        """Whether a drift of the machine affects both sides equally."""
        return self.blocks > 0


class Comparison(Frozen):
    """One figure at one point, candidate over baseline.

    `parameters` are those that both sides share. `ratio` is candidate over baseline of the raw figure, for either
    direction: with blocks the Hodges-Lehmann estimate over pairs, else over all pairs of the two sides. `ci95` is for
    this comparison alone; `ci95_family` holds for all comparisons of the family at once and for all looks, and
    determines the verdict. Both are None if there are too few repeats, or none (a reference). `p_family` is the
    p-value of "the ratio lies within the margin", adjusted for the family. `note` states what limits the verdict.
    `asks_equivalence`: the margin is one of equivalence. Then `ci90` and `ci90_family` are the same intervals with
    twice the error, those of two one-sided tests: `equivalent` if the latter is inside the margin.
    `resolution` is the share by which rounding (the timer's step, printed digits) alone may have changed the ratio: it
    widens both ends of the intervals. `is_secondary`: the figure only accompanies another one.
    """

    benchmark: str
    figure: str
    parameters: Mapping[str, Value]
    unit: Unit
    better: Better
    baseline: Side
    candidate: Side
    ratio: float
    ci95: tuple[float, float] | None
    ci95_family: tuple[float, float] | None
    verdict: Verdict
    margin: float
    n_repeats: int
    family: int
    design: Design
    p_family: float | None = None
    pairs: Sequence[tuple[float, float]] = field(default=())
    note: str = ""
    resolution: float = 0.0
    is_secondary: bool = False
    asks_equivalence: bool = False
    ci90: tuple[float, float] | None = None
    ci90_family: tuple[float, float] | None = None

    @property
    def plain(self) -> tuple[float, float] | None:
        """The interval of this comparison alone, at the error of the tests that gave the verdict."""
        return self.ci90 if self.verdict is Verdict.EQUIVALENT else self.ci95

    @property
    def simultaneous(self) -> tuple[float, float] | None:
        """The interval behind the verdict."""
        return self.ci90_family if self.verdict is Verdict.EQUIVALENT else self.ci95_family


def decisive(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Those of figures that are not secondary; all if there are no others."""
    everything = list(comparisons)
    return [one for one in everything if not one.is_secondary] or everything
