"""The history of a figure on one host, and published values of other machines."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, TypedDict

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import JsonParams, Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import As, Keywords, Later, OneOrMore, Positive, key, view
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.study.comparison import Difference
from seatrial.model.units import Unit


class Session(Frozen):
    """The repeats that one process recorded."""

    at: Annotated[float, "start of the first repeat, in seconds since the epoch"]
    median: Annotated[float, "median of its repeats, in the unit of the figure"]
    n_repeats: OneOrMore
    no_cpu: Later[Annotated[NoCpu | None, "set if its programs were ready to run without a CPU"]] = None


@view(Difference, without=("intended", "follows_from"))
class ChangedJson(TypedDict):
    """What was recorded to differ between the two sides of a change; whether it is the reason is unknown."""

    what: str


class Change(Frozen):
    """A change of level between two sessions.

    `differences` is what else was recorded to differ between the two sides.
    """

    index: Annotated[int, "position in `sessions` of the first one after it, from 0", Keywords(minimum=1)]
    last_before: Annotated[float, "start of the last session before it, in seconds since the epoch"]
    first_after: Annotated[float, "start of the first session after it, in seconds since the epoch"]
    before: Annotated[float, "median of the sessions before it, back to the previous change"]
    after: Annotated[float, "median of the sessions after it, up to the next change"]
    sureness: Annotated[float, "1 - p of a permutation test", Keywords(minimum=0, maximum=1)]
    differences: Annotated[tuple[Difference, ...], As(list[ChangedJson])]

    @property
    @key
    def ratio(self) -> Annotated[float, "after over before"]:
        """After over before."""
        return self.after / self.before if self.before else float("inf")


class FigureHistory(Frozen):
    """A figure on one host."""

    benchmark: str
    figure: str
    parameters: JsonParams
    host: str
    unit: Unit
    better: Better
    sessions: tuple[Session, ...]
    changes: tuple[Change, ...]
    why_not: Annotated[str, "why no change could be found; empty: one could"] = ""


class Qualifier(StrEnum):
    """How the source states a value. A published range is two values, `lowest` and `highest`."""

    EXACT = ""
    ABOUT = "about"
    NEARLY = "nearly"
    UP_TO = "up to"
    MORE_THAN = "more than"
    LESS_THAN = "less than"
    WITHIN = "within"
    LOWEST = "lowest"
    HIGHEST = "highest"
    IMPLIED = "implied"  # not stated by the source, but follows from other values in it


class Reference(Frozen):
    """One published figure. `id` names it on the command line ("s2.p2p-v100").

    `benchmark` and `figure` are ours if the measure is the same, otherwise the names in the source. `configuration` is
    the machine and the settings as published. `contradicts` are the ids of values of the same source that cannot be
    true together with this one; `remark` explains it.
    """

    id: str
    benchmark: str
    figure: str
    value: Positive
    unit: Unit
    better: Better
    parameters: Annotated[Mapping[str, Value], As(dict[str, str | float | bool])] = {}
    configuration: Mapping[str, str] = {}
    source: str = ""
    year: int | None = None
    remark: str = ""
    contradicts: Annotated[tuple[str, ...], Keywords(uniqueItems=True)] = ()
    qualifier: Qualifier = Qualifier.EXACT
