"""`seatrial.power/1`: the sensors of power and energy, and the energy of a command, as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.model.json_object import filled
from seatrial.model.json_shape import Json, shape
from seatrial.model.machine.power import PartOut, PowerSource
from seatrial.model.results.energy import CommandEnergy, PhaseEnergy


@shape(None)
class PowerJson(TypedDict):
    """What can measure power and energy."""

    schema: Literal["seatrial.power/1"]
    sources: list[PowerSource]
    parts_out: NotRequired[Annotated[list[PartOut], "fans and supplies that are out, and redundancy that is lost"]]
    measured: NotRequired[Annotated[CommandEnergy, "the energy of the command that was given"]]
    phases: NotRequired[Annotated[list[PhaseEnergy], "the energy of what has run, by an external meter"]]


def phases_document(phases: Sequence[PhaseEnergy]) -> Json:
    """The document of an external meter."""
    return filled(PowerJson, None, sources=[], phases=phases)


def power_document(
    sources: Sequence[PowerSource], found: CommandEnergy | None = None, parts_out: Sequence[PartOut] = ()
) -> Json:
    """The document."""
    if found is None:
        return filled(PowerJson, None, sources=sources, parts_out=parts_out)
    return filled(PowerJson, None, sources=sources, measured=found)
