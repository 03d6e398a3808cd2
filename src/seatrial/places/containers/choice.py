"""What a point chooses to run in: an image, or a container of the site file, with what the study adds to it."""

from __future__ import annotations

from pathlib import Path

from seatrial.errors import UsageError
from seatrial.model.container_device import Device, devices_of
from seatrial.model.container_mount import SEPARATOR, ContainerMount, mounts_of
from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.model.site import SiteContainer
from seatrial.places.containers.error import ContainerError
from seatrial.plan.site_in_force import site_in_force


class ContainerChoice(Frozen):
    """An image by its path or name, how it is started, and what it gets besides. `name` is that of a container of the
    site file; "" for an image alone."""

    name: str
    image: str
    runtime: str | None
    mpi: str | None
    mounts: tuple[ContainerMount, ...] = ()
    devices: tuple[Device, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


def container_choice(choice: EnvironmentChoice) -> ContainerChoice:
    """The container of an environment. What the study states takes precedence over the site file: of two mounts at the
    same path its own is kept, a variable that it sets or unsets is not set by the site file, and its devices replace
    those of the site file. Raises ContainerError for a mount whose source does not exist."""
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
    return ContainerChoice(
        site.name,
        site.image,
        choice.container_runtime or site.runtime,
        choice.container_mpi or site.mpi,
        mounts,
        devices,
        tuple((name, value) for name, value in site.variables if name not in chosen),
    )


def _parts(text: str | None) -> list[str]:
    return text.split(SEPARATOR) if text else []


def _others(mounts: tuple[ContainerMount, ...], own: list[str]) -> list[str]:
    """The site's mounts at other paths than the study's."""
    taken = {mount.inside for mount in mounts_of(own)}
    return [str(mount) for mount in mounts if mount.inside not in taken]
