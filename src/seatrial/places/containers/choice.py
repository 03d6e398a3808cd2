"""What a point chooses to run in, and whether it has the drivers of its devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.environments.asking import ask
from seatrial.errors import BuildError, ProtocolError, UsageError
from seatrial.model.benchmark.program import parse_record
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.container import NVIDIA, ROCM, SEPARATOR, ContainerMount, devices_of, mounts_of
from seatrial.model.environment.site import SiteContainer
from seatrial.places.contained import Contained
from seatrial.places.containers.image import ContainerError
from seatrial.places.rank_helpers import inside_probe
from seatrial.plan.site_in_force import site_in_force


def container_choice(choice: EnvironmentChoice) -> SiteContainer:
    """The container of an environment; its name is "" for an image alone. What the study states takes precedence over
    the site file: of two mounts at the same path its own is kept, a variable that it sets or unsets is not set by the
    site file, and its devices replace those of the site file. Raises ContainerError for a mount whose source does not
    exist."""
    text = str(choice.container)
    site = site_in_force().container(text) or SiteContainer("", text)
    own = _parts(choice.container_mounts)
    try:
        mounts = mounts_of((*own, *_others(site.mounts, own)))
        devices = devices_of(_parts(choice.container_devices)) or site.devices
    except UsageError as error:
        raise ContainerError(error.message, error.todo) from error
    for mount in mounts:
        if not Path(mount.source).exists():
            raise ContainerError(
                f"{mount.source} cannot be mounted at {mount.inside} in {text}: it does not exist on this machine",
                "create it, or correct the mounts of the container",
            )
    chosen = {name for name, _ in choice.variables}
    return replace(
        site,
        runtime=choice.container_runtime or site.runtime,
        mpi=choice.container_mpi or site.mpi,
        mounts=mounts,
        devices=devices,
        variables=tuple((name, value) for name, value in site.variables if name not in chosen),
    )


def _parts(text: str | None) -> list[str]:
    return text.split(SEPARATOR) if text else []


def _others(mounts: tuple[ContainerMount, ...], own: list[str]) -> list[str]:
    """The site's mounts at other paths than the study's."""
    taken = {mount.inside for mount in mounts_of(own)}
    return [str(mount) for mount in mounts if mount.inside not in taken]


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
