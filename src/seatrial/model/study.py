"""A study: one question, and the experiments that answer it. Read from a file by `plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.mpi_settings import CLUSTER_LINK
from seatrial.model.parameter import Params, Value

LABEL = "label"
"""The axis that changes nothing: all its values are the same program, to compare A with A."""

SYSTEM = "system"
"""The axis of systems of the site file, `NAME[:PARTITION]`: the points of each are measured there."""

OF_SIDES = (LABEL, SYSTEM)
"""Axes that are no setting of a program: their values are in the parameters of experiments, which makes each side an
experiment of its own, also where all else is the same."""

ENVIRONMENT_PREFIX = "environment."
"""The prefix of the names of axes that vary the environment of programs."""


def is_of_environment(name: str) -> bool:
    """Whether an axis varies the environment of programs: its name has the prefix, or is that of the cluster's link."""
    return name.startswith(ENVIRONMENT_PREFIX) or name == CLUSTER_LINK


DEFAULT_MARGIN = 0.02
"""Differences up to this share count as none, unless a study sets another margin."""


class Axis(Frozen):
    """What is varied, and its values in the order of the file. An unset environment variable is None."""

    name: str
    values: tuple[Value | None, ...]


class StudyBenchmark(Frozen):
    """A benchmark with the parameters that the study sets; the rest are at their defaults."""

    name: str
    parameters: Params


class Compare(Frozen):
    """Compare the values of an axis with one of them, the baseline. `figures` empty: every figure. `asks_equivalence`:
    the margin is one of equivalence."""

    along: str
    baseline: Value | None
    margin: float = DEFAULT_MARGIN
    figures: tuple[str, ...] = ()
    asks_equivalence: bool = False


class Scaling(Frozen):
    """How figures change with a numeric axis. Strong: the work is fixed. Weak: it grows with the axis."""

    kind: Literal["strong", "weak"]
    along: str


class BestOf(Frozen):
    """A sweep over `over` for the best value of `figure`, for each combination of the other axes."""

    over: tuple[str, ...]
    figure: str


MOST_REPEATS = 100_000
"""The largest maximum of repeats that a study may have."""


class RepeatPolicy(Frozen):
    """When to stop: `precision` is the half width of an interval relative to its median; `budget_s` is for the whole
    study; `maximum` is the most repeats of an experiment."""

    precision: float = 0.01
    budget_s: float = 300.0
    maximum: int = 100


class Study(Frozen):
    """A study as in its file, with all values checked.

    Axes in one entry of `zips` advance together; the others form their product. `exclude` contains partial parameter
    sets to leave out, `include` those to add (other parameters are at their defaults). `references` are the ids of
    published values that its page shows beside its results.
    """

    name: str
    question: str
    benchmarks: tuple[StudyBenchmark, ...]
    axes: tuple[Axis, ...] = ()
    zips: tuple[tuple[str, ...], ...] = ()
    exclude: tuple[Mapping[str, Value | None], ...] = ()
    include: tuple[Mapping[str, Value | None], ...] = ()
    compare: Compare | None = None
    scaling: Scaling | None = None
    best_of: BestOf | None = None
    repeat: RepeatPolicy = RepeatPolicy()
    probes: tuple[str, ...] = ()
    references: tuple[str, ...] = ()

    def axis(self, name: str) -> Axis | None:
        """The axis of that name, or None."""
        return next((axis for axis in self.axes if axis.name == name), None)

    @property
    def systems(self) -> tuple[str, ...]:
        """The values of the axis `system`; () without it."""
        axis = self.axis(SYSTEM)
        return () if axis is None else tuple(map(str, axis.values))

    def part_at(self, system: str) -> Study:
        """What is measured on one of its systems: its values of the axes that advance with `system`, and an equal share
        of the budget. It is compared with the other parts when they are joined."""
        axis = self.axis(SYSTEM)
        if axis is None:
            return self
        place, moving = axis.values.index(system), self.moves_with(SYSTEM)
        budget_s = self.repeat.budget_s / len(axis.values)
        return replace(
            self,
            axes=tuple(replace(one, values=(one.values[place],)) if one.name in moving else one for one in self.axes),
            include=tuple(entry for entry in self.include if entry.get(SYSTEM) == system),
            repeat=replace(self.repeat, budget_s=budget_s),
        )

    def moves_with(self, name: str) -> frozenset[str]:
        """The axes that advance together with this one, including itself."""
        return next((frozenset(names) for names in self.zips if name in names), frozenset({name}))

    def place(self, given: Mapping[str, Value | None], along: str) -> tuple[tuple[str, str], ...]:
        """What points that differ along one axis have in common: the values of all other axes that do not advance with
        it."""
        moving = self.moves_with(along)
        return tuple(sorted((name, repr(value)) for name, value in given.items() if name not in moving))


def refuse_margin(margin: float) -> None:
    """Raise UsageError for a margin that is not a share."""
    if not 0 < margin < 1:
        raise UsageError(f"margin={margin!r} is not between 0 and 1", "give a fraction: 0.02 is 2 %")
