"""A published value, of another machine and without an interval, with its source."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from seatrial.model.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


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
    value: float
    unit: Unit
    better: Better
    parameters: Mapping[str, Value] = {}
    configuration: Mapping[str, str] = {}
    source: str = ""
    year: int | None = None
    remark: str = ""
    contradicts: tuple[str, ...] = ()
    qualifier: Qualifier = Qualifier.EXACT
