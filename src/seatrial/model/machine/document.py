"""The JSON object `seatrial.machine/1` of a `Machine` (CONTRACT.md, "discover"), and the way back.

The conversion is lossless: `machine_from_document(machine_document(m)) == m`. What can be derived from the rest
(`disagreements`) is written for scripts and not read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from seatrial.errors import UsageError
from seatrial.model.json_object import plain, record_of
from seatrial.model.json_shape import Json, view
from seatrial.model.machine.machine import Machine


@view(Machine)
class KeptMachineJson(TypedDict):
    """A machine as stored in a results folder."""

    identity: Annotated[str, "The key that experiments refer to."]


def machine_document(machine: Machine) -> Json:
    """The machine as plain JSON values. Raises ValueError for a number that is not finite (a defect)."""
    return plain(machine)


def machine_from_document(document: Mapping[str, Any]) -> Machine:
    """The machine that such an object describes. Raises UsageError if it is invalid."""
    if document.get("schema") != Machine.schema:
        raise UsageError(f"not a {Machine.schema} object: its schema is {document.get('schema')!r}")
    try:
        return record_of(Machine, document)
    except ValueError as error:
        raise UsageError(f"invalid {Machine.schema} object: {error}") from error
