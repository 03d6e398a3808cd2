"""A sensor of power or energy: what it measures, how, and what it reads now."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Text


class Scope(StrEnum):
    """What a sensor measures, from the largest to the smallest. A part is less than a node, and none of the others: a
    power supply, a fan, the cores of a package."""

    ENCLOSURE = "enclosure"
    NODE = "node"
    PACKAGE = "package"
    MEMORY = "memory"
    DEVICE = "device"
    PART = "part"


class SourceKind(StrEnum):
    """Whether a sensor shows the power, or counts the energy."""

    GAUGE = "gauge"
    COUNTER = "counter"


class Supply(StrEnum):
    """Whether a sensor measures before the power supplies (alternating current) or behind them."""

    AC = "ac"
    DC = "dc"
    UNKNOWN = "unknown"


class PartOut(Frozen):
    """A fan or power supply that is out, or redundancy that is lost, as a BMC reports it."""

    kind: Annotated[Text, "fan, power supply or redundancy"]
    name: Text
    why: Annotated[str, "its state, in the words of the source"]
    source: Annotated[str, "the object that states it"]
    node: Annotated[str, 'which it is of; "": this one'] = ""

    @property
    def words(self) -> str:
        """Such as: "fan Fan 3 (state Disabled)"."""
        name = self.name if self.name.lower().startswith(self.kind) else f"{self.kind} {self.name}"
        return f"{name}{f' of {self.node}' if self.node else ''} ({self.why})"


class PowerSource(Frozen):
    """A sensor of power or energy, and what it reads now."""

    name: Text
    scope: Scope
    kind: SourceKind
    supply: Supply
    of: Annotated[str, "what it measures, in the words of the source"]
    watts: float | None
    joules: float | None
    window_s: Annotated[float | None, "the time that a value is an average of, which ends with it; null: unknown"]
    age_s: Annotated[float | None, "age of the value, by the sensor's own time; null: unknown"]
    refresh_s: Annotated[float | None, "time between two values; null: unknown"]
    accuracy: Annotated[float | None, "share of the value, as the maker states it; null: not stated"]
    usable: bool
    why: Annotated[str, "why it is used, or why not"]
