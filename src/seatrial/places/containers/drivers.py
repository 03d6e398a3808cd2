"""Whether a container has the drivers of the devices that it is given: asked of the loader, inside and outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from seatrial.environments.asking import ask
from seatrial.errors import BuildError, ProtocolError
from seatrial.model.container_device import NVIDIA, ROCM
from seatrial.model.protocol import parse_record
from seatrial.places.contained import Contained
from seatrial.places.containers.error import ContainerError
from seatrial.places.rank_helpers import inside_probe

_LIBRARIES = {NVIDIA: "libcuda.so.1", ROCM: "libhsa-runtime64.so.1"}
"""The library by which programs reach the driver."""


def check_drivers(container: Contained, run: Callable[[Contained, Sequence[str]], str]) -> None:
    """Raise ContainerError for a device whose driver's library the loader does not find inside; `run` answers what a
    program prints there."""
    wanted = dict.fromkeys(library for device in container.devices if (library := _LIBRARIES.get(device.kind or "")))
    for library in wanted:
        words = [str(inside_probe()), "--load", library]
        path, why = _loaded(run(container, words), library)
        if path:
            continue
        try:
            outside, _ = _loaded(ask(words).stdout, library)
        except BuildError:
            outside = ""
        if not outside:
            raise ContainerError(
                f"{container.image.given} has no driver for {_names(container)} (no driver): neither the container nor "
                f"this machine has {library}: {why}",
                "install the driver, or leave out the devices of the container",
            )
        folder = Path(outside).parent
        raise ContainerError(
            f"{container.image.given} has no driver for {_names(container)} (missing driver): this machine has "
            f"{outside}, but {container.runtime.title} does not bring it into the container: {why}",
            f"mount its folder (environment.container_mounts={folder}) and set environment.LD_LIBRARY_PATH={folder}",
        )


def _names(container: Contained) -> str:
    return ", ".join(device.name for device in container.devices)


def _loaded(output: str, library: str) -> tuple[str, str]:
    """The path of a library, and the loader's words if there is none."""
    try:
        note = parse_record(output.encode()).notes.get(f"loaded {library}", {})
        return str(note.get("path", "")), str(note.get("error", ""))
    except (ProtocolError, AttributeError):
        return "", "the program that asks for it printed something else"
