"""A study: one question, and the experiments that answer it. Read from a file by `plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import field
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.benchmark.parameter import JsonValue, Params, Value
from seatrial.model.environment.mpi import CLUSTER_LINK
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain, record_of
from seatrial.model.json_shape import (
    Count,
    Finite,
    Json,
    Keywords,
    Later,
    NonNegative,
    OneOrMore,
    Positive,
    Sparse,
    Text,
    published,
)
from seatrial.model.secrets import masked_document

LABEL = "label"
"""The axis that changes nothing: all its values are the same program, to compare A with A."""

SYSTEM = "system"
"""The axis of systems of the site file, `NAME[:PARTITION]`: the points of each are measured there."""

OF_SIDES = (LABEL, SYSTEM)
"""Axes that are not a setting of a program: their values are in the parameters of experiments, which makes each side
its own experiment, also where all else is the same."""

ENVIRONMENT_PREFIX = "environment."
"""The prefix of the names of axes that vary the environment of programs."""


def is_of_environment(name: str) -> bool:
    """Whether an axis varies the environment of programs: its name has the prefix, or is that of the cluster's link."""
    return name.startswith(ENVIRONMENT_PREFIX) or name == CLUSTER_LINK


DEFAULT_MARGIN = 0.02
"""Differences up to this share count as none, unless a study sets another margin."""


class Axis(Frozen):
    """A parameter, or a part of the environment, that the study varies.

    Values are in the order of the file. An unset environment variable is None.
    """

    name: str
    values: Annotated[tuple[JsonValue | None, ...], Keywords(minItems=1)]


class StudyBenchmark(Frozen):
    """A benchmark with the parameters that the study sets; the rest are at their defaults."""

    name: Text
    parameters: Params


class Compare(Frozen):
    """Compare the values of an axis with one of them, the baseline. `figures` empty: every figure. `asks_equivalence`:
    the margin is one of equivalence."""

    along: Text
    baseline: Value | None
    margin: Annotated[float, Keywords(exclusiveMinimum=0, maximum=1)] = DEFAULT_MARGIN
    figures: tuple[str, ...] = ()
    asks_equivalence: Sparse[bool] = False


@published("Scaled")
class Scaling(Frozen):
    """How figures change with a numeric axis.

    Strong: the work is fixed. Weak: it grows with the axis.
    """

    kind: Literal["strong", "weak"]
    along: str


MPI, IO, POWER = "mpi", "io", "power"
PROBES = frozenset({MPI, IO, POWER})
"""Probes that can run alongside a repeat."""


@published("Sweep")
class BestOf(Frozen):
    """A sweep for the best setting.

    It goes over `over` for the best value of `figure`, for each combination of the other axes. Contenders with a figure
    above its value in `at_most` are out.
    """

    over: tuple[str, ...]
    figure: str
    at_most: Later[Annotated[Mapping[str, Finite], "figure -> the largest value that a contender may have, in SI"]] = (
        field(default_factory=dict)
    )


MOST_REPEATS = 100_000
"""The largest maximum of repeats that a study may have."""


class RepeatPolicy(Frozen):
    """When to stop: `precision` is the half width of an interval relative to its median; `budget_s` is for the whole
    study; `maximum` is the most repeats of an experiment."""

    precision: Positive = 0.01
    budget_s: NonNegative = 300.0
    maximum: OneOrMore = 100


class Study(Frozen):
    """A study as in its file, with all values checked.

    Axes in one entry of `zips` advance together; the others form their product. `exclude` contains partial parameter
    sets to leave out, `include` those to add (other parameters are at their defaults). `references` are the ids of
    published values that its page shows beside its results.
    """

    name: Text
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
    references: Later[tuple[str, ...]] = ()

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


@published("Needed")
class NeededBudget(Frozen):
    """An estimate of what would decide the comparisons that the budget left ambiguous.

    It is made of the widths of the intervals and the time of the repeats so far.

    `undecided` is the number of comparisons that the budget or the maximum number of repeats left ambiguous. With
    `budget_s`, they would probably be decided; None if at least one of them is so close to an edge of its margin that
    no budget is known to decide it. `repeats` is for the others.
    """

    undecided: OneOrMore
    budget_s: Annotated[NonNegative | None, "of the whole study; null: a ratio is too close to the edge of its margin"]
    repeats: Annotated[Count, "the most that one of the comparisons needs"]
    is_least: Annotated[bool, "some comparisons have no interval yet: this is what they need for one"] = False


_Settings = Mapping[str, Value]
_Distinct = tuple[bool, Value | None]


def varying(everything: Sequence[_Settings]) -> list[str]:
    """The settings that vary."""
    names = dict.fromkeys(name for settings in everything for name in settings)
    return [name for name in names if any(settings.get(name) != everything[0].get(name) for settings in everything)]


def distinguishing(everything: Sequence[_Settings]) -> list[str]:
    """The settings that vary; of those that change together, value by value (a size, and the largest size of the run),
    only the first one."""
    names = varying(everything)
    values = {name: [distinct(settings.get(name)) for settings in everything] for name in names}
    kept = list(names)
    for name in reversed(names):
        if any(other != name and _are_one_to_one(values[other], values[name]) for other in kept):
            kept.remove(name)
    return kept


def distinct(value: Value | None) -> _Distinct:
    """The value, with true distinguished from 1."""
    return isinstance(value, bool), value


def is_number(value: Value | None) -> bool:
    """Whether a value is a number, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_one_to_one(first: Sequence[_Distinct], second: Sequence[_Distinct]) -> bool:
    """Whether each value of one setting has only one value of the other."""
    there: dict[_Distinct, _Distinct] = {}
    back: dict[_Distinct, _Distinct] = {}
    return all(there.setdefault(a, b) == b and back.setdefault(b, a) == a for a, b in zip(first, second, strict=True))


class StudyPoint(Frozen):
    """One point: the id of its experiment, and the values of the axes as written in the study."""

    experiment: str
    benchmark: str
    given: Mapping[str, Value | None]


class KeptStudy(Frozen):
    """A study that was run on one machine (its identity, as in experiments), with its points in planned order."""

    study: Study
    machine: str
    points: tuple[StudyPoint, ...]


def study_document(kept: KeptStudy) -> Json:
    """As stored in `studies/<key>.json`. A key that was added later is absent where it changes nothing, so that a study
    keeps its key."""
    return plain(kept)


def study_from_document(document: Mapping[str, Any]) -> KeptStudy:
    """The study that `study_document` described. Raises ValueError if it is invalid."""
    return record_of(KeptStudy, document)


def study_without_secrets(study: Study) -> Study:
    """The study with secrets among its arguments masked, as it may be shown and stored."""
    return record_of(Study, masked_document(plain(study)))
