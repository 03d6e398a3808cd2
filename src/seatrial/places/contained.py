"""The container of an experiment: what a point chooses to run in, what starts in it, which facts of it are recorded,
and whether it has the drivers of its devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.environments.asking import ask
from seatrial.errors import BuildError, ProtocolError, UsageError
from seatrial.model.benchmark.program import parse_record
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.container import (
    BIND,
    BROUGHT,
    INSIDE,
    NVIDIA,
    OUTSIDE,
    ROCM,
    SEPARATOR,
    ContainerMount,
    Device,
    devices_of,
    is_unmistakable,
    mounts_of,
)
from seatrial.model.environment.site import SiteContainer
from seatrial.model.frozen import Frozen
from seatrial.places.brought import Brought
from seatrial.places.containers.image import ContainerError, Image
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime
from seatrial.places.rank_helpers import inside_probe
from seatrial.plan.site_in_force import site_in_force

_BUILT = {INSIDE: "built inside", BROUGHT: "with the host's C library"}


class Contained(Frozen):
    """An image with its runtime. `placement` is where the launcher of ranks is ("" without ranks), `is_joined` whether
    ranks share one container, `launcher` the launcher of the image for ranks inside. `build` is where the program was
    built, `brought` what goes inside with it. `mounts`, `devices` and `variables` are what the user gives it besides
    the image. `facts` are recorded with every repeat."""

    image: Image
    runtime: Runtime
    version: str
    placement: str = ""
    is_joined: bool = False
    launcher: Path | None = None
    build: str = OUTSIDE
    brought: Brought | None = None
    mounts: tuple[ContainerMount, ...] = ()
    devices: tuple[Device, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """What identifies it in an environment: an image by its content, not by its place."""
        return {
            "image": self.image.name,
            "digest": self.image.digest,
            "kind": self.image.kind.value,
            "runtime": self.runtime.title,
            "version": self.version,
            **({"mpi": self.placement} if self.placement else {}),
            **({"mounts": sorted(map(str, self.mounts))} if self.mounts else {}),
            **({"devices": [device.name for device in self.devices]} if self.devices else {}),
            **({"variables_set": dict(self.variables)} if self.variables else {}),
            **({"joined": self.is_joined} if self.placement == BIND else {}),
            **({"build": self.build} if self.build != OUTSIDE else {}),
            **({"brought": self.brought.document()} if self.brought is not None else {}),
        }

    @property
    def title(self) -> str:
        """For the name of an environment."""
        words = [self.runtime.title, *([self.placement] if self.placement else [])]
        words += [_BUILT[self.build]] if self.build in _BUILT else []
        return f"in {self.image.name} ({', '.join(words)})"

    def inside(self, folders: Sequence[Path], variables: Mapping[str, str], *, of_ranks: bool = False) -> Inside:
        """One start with these folders of the host, of one program or of each rank. Raises ContainerError."""
        brought = [] if self.brought is None else [self.brought.folder.parent]
        needed = dict.fromkeys(folder for folder in (*folders, *brought) if not folder.is_relative_to(SHARED))
        # What lies in another one is mounted with it.
        tops = [folder for folder in needed if not any(above in needed for above in folder.parents)]
        for folder in tops:
            if not is_unmistakable(str(folder)):
                raise ContainerError(
                    f"the path {str(folder)!r} has a character that runtimes take for the end of a path",
                    "use another folder for results and SEATRIAL_CACHE: without : , ; \\ and quotes",
                )
        own = {**self.runtime.variables(), "TMPDIR": str(SHARED)}
        given = {**dict(self.variables), **variables}
        added = tuple(Mount(Path(mount.source), Path(mount.inside), mount.is_read_only) for mount in self.mounts)
        return Inside(
            self.image,
            self.runtime.mounts(self.image, tops, added),
            {**own, **(given if self.brought is None else self.brought.set_for(given))},
            of_ranks and self.is_joined,
            added=added,
            devices=self.devices,
        )

    @property
    def bare(self) -> Contained:
        """The same for programs of the image: without ranks, and with nothing brought."""
        return replace(self, placement="", is_joined=False, launcher=None, brought=None)

    @property
    def is_launcher_inside(self) -> bool:
        """Whether the launcher of ranks runs in the container."""
        return self.placement == INSIDE


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
