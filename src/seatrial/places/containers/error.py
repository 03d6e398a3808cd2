"""The error of a container that cannot be used."""

from __future__ import annotations

from seatrial.errors import BuildError


class ContainerError(BuildError):
    """An image or a runtime cannot be used here, or ranks cannot work in it; `todo` is the remedy, `output` what the
    runtime printed, `fault` the name of a known fault."""

    need = "container"

    def __init__(self, message: str, todo: str = "", output: str = "", fault: str = "") -> None:
        super().__init__(message, todo, output=output)
        self.fault = fault
