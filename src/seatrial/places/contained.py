"""The container of an experiment: what a point chooses to run in, which facts of it are recorded, and whether it has
the drivers of its devices; and how a program is started: directly, or by a launcher of ranks, and in a container or
not.
"""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import field
from msgspec.structs import replace

from seatrial.environments.asking import ask
from seatrial.environments.cached_files import private_top
from seatrial.environments.compiler import variables_with
from seatrial.errors import BuildError, ProtocolError, UsageError
from seatrial.launch.mpi import kept, placed, rank_command, rank_variables, shared
from seatrial.model.benchmark.program import Layout, parse_record
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.environment.container import (
    BIND,
    BROUGHT,
    INSIDE,
    NVIDIA,
    OUTSIDE,
    ROCM,
    SEPARATOR,
    ContainerDevice,
    ContainerMount,
    devices_of,
    is_unmistakable,
    mounts_of,
)
from seatrial.model.environment.mpi import Mpi
from seatrial.model.environment.site import SiteContainer
from seatrial.model.frozen import Frozen
from seatrial.places.brought import Brought
from seatrial.places.containers.image import ContainerError, Image
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime
from seatrial.places.rank_helpers import holder, inside_probe, rank_helpers
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
    devices: tuple[ContainerDevice, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """What identifies it in an environment: an image by its content, not by its path."""
        given = {
            "mpi": self.placement,
            "mounts": sorted(map(str, self.mounts)),
            "devices": [device.name for device in self.devices],
            "variables_set": dict(self.variables),
            "build": self.build if self.build != OUTSIDE else "",
        }
        return {
            "image": self.image.name,
            "digest": self.image.digest,
            "kind": self.image.kind.value,
            "runtime": self.runtime.title,
            "version": self.version,
            **{name: value for name, value in given.items() if value},
            **({"joined": self.is_joined} if self.placement == BIND else {}),
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
        # What is inside another one is mounted with it.
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


_LOADER = ("LD_PRELOAD", "LD_LIBRARY_PATH")
"""Variables with paths of the host, which the runtime's own program must not see."""

_SESSIONS = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
"""Where Open MPI's launcher and ranks meet, if a site or user has chosen that; it is seldom a folder of the image."""

_LAUNCHER_INSIDE = {"OMPI_MCA_plm": "isolated", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
"""Open MPI's launcher wants an ssh even if all ranks are on its own node, and small images have none; this way of
launching needs none. It refuses to work for root, and a user may be root inside. Other libraries ignore the variables,
Open MPI 5 the first one."""


class StartInside(Frozen):
    """`before` precedes the program's own command; `variables` is its whole environment. `launcher` starts the ranks;
    empty for a single process. `inside`: the container that the program is started in, `loader` the words that start it
    there with a loader that was brought."""

    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    launcher: str = ""
    inside: Inside | None = None
    loader: tuple[str, ...] = ()

    def words(self, words: Sequence[str]) -> list[str]:
        """The program and its arguments, with paths as they are where it runs."""
        return list(words) if self.inside is None else [*self.loader, *(self.inside.mapped(word) for word in words)]


def started(
    mpi: Mpi | None,
    layout: Layout | None,
    container: Contained | None,
    chosen: Sequence[tuple[str, str | None]],
    added: Mapping[str, str],
    folders: Sequence[Path],
    record: Path | None = None,
    works_in: Path | None = None,
) -> StartInside:
    """How a program is started. `chosen` variables are those of the environment, `added` are set for the program alone;
    a container has `folders`, and starts the program in `works_in`; `record`: see `placed`."""
    if container is not None:
        return _contained(mpi, layout, container, chosen, added, folders, record, works_in)
    if mpi is None or layout is None:
        return StartInside(variables=variables_with((*chosen, *added.items())))
    starter = rank_command(mpi, layout, [*(name for name, value in chosen if value is not None), *added])
    changes = (
        *((name, None) for name in rank_variables(os.environ)),
        *starter.variables.items(),
        *chosen,
        *added.items(),
    )
    helpers = rank_helpers()
    before = (*kept(helpers, os.getpid()), *starter.argv, *placed(helpers, starter, layout, record))
    return StartInside(before, variables_with(changes), starter.argv[0])


def _contained(
    mpi: Mpi | None,
    layout: Layout | None,
    container: Contained,
    chosen: Sequence[tuple[str, str | None]],
    added: Mapping[str, str],
    folders: Sequence[Path],
    record: Path | None,
    works_in: Path | None,
) -> StartInside:
    """In a container: placed outside of it, or, with the launcher inside, in it."""
    set_inside = {**{name: value for name, value in chosen if value is not None}, **added}
    outside = [*((name, None) for name in _LOADER), *container.runtime.variables().items(), ("TMPDIR", str(SHARED))]
    prefix = container.runtime.prefix
    if mpi is None or layout is None:
        inside = _mapped(container.inside(folders, set_inside), works_in)
        loader = _loader(container, inside)
        return StartInside(tuple(prefix(inside)), variables_with((*chosen, *outside)), inside=inside, loader=loader)
    helpers = rank_helpers()
    without = [(name, None) for name in rank_variables(os.environ)]
    keeps = kept(helpers, os.getpid())
    if not container.is_launcher_inside:
        sessions = {name: str(SHARED) for name in _SESSIONS if name in os.environ}
        of_runtime = {**container.runtime.variables(), "TMPDIR": str(SHARED), **sessions}
        # The others are set only inside: the runtime does that on every node.
        runtime = container.runtime
        launching = replace(mpi, launcher=Path(runtime.launcher)) if runtime.launcher else mpi
        starter = rank_command(launching, layout, [*(name for name, value in chosen if value is not None), *of_runtime])
        joins = container.is_joined and runtime.join_option
        needed = [holder()] if joins else [helpers.place] if runtime.launcher else []
        inside = _mapped(container.inside([*folders, *map(private_top, needed)], set_inside, of_ranks=True), works_in)
        placing = placed(helpers, starter, layout, record)
        if joins:
            name = f"seatrial-{os.getpid()}-{secrets.token_hex(8)}"  # unique, also in the same folder
            enters = shared(helpers, name, joins, inside.mapped(str(holder())), prefix(inside))
            before = [*keeps, *starter.argv, *placing, *enters]
        else:
            before = [*keeps, *runtime.of_ranks(starter.argv, placing, inside)]
        changes = (*without, *starter.variables.items(), *chosen, *of_runtime.items())
        return StartInside(tuple(before), variables_with(changes), starter.argv[0], inside, _loader(container, inside))
    starter = rank_command(replace(mpi, launcher=container.launcher), layout, list(set_inside))
    of_starter = {name: value for name, value in starter.variables.items() if value is not None}
    of_starter |= _LAUNCHER_INSIDE | _session(folders[0])
    of_all = container.inside([*folders, private_top(helpers.place)], {**of_starter, **set_inside})
    inside = _mapped(of_all, works_in)
    ranks = [inside.mapped(word) for word in placed(helpers, starter, layout, record)]
    before = [*keeps, *prefix(inside), *starter.argv, *ranks]
    return StartInside(tuple(before), variables_with((*without, *chosen, *outside)), starter.argv[0], inside)


def _session(folder: Path) -> dict[str, str]:
    """Where Open MPI's launcher inside makes its folder. Its name has the node and the user, who may be root inside:
    then that of the real root, which others cannot use, replaces it."""
    try:
        owner = (SHARED / f"ompi.{platform.node().partition('.')[0]}.0").stat().st_uid
    except OSError:
        return {}
    return {"OMPI_MCA_orte_tmpdir_base": str(folder)} if owner != os.geteuid() else {}


def _mapped(inside: Inside, works_in: Path | None) -> Inside:
    """With paths of the host in its variables, single or in lists, as they are inside."""
    return replace(
        inside,
        variables={name: _list(value, inside) for name, value in inside.variables.items()},
        works_in=None if works_in is None else Path(inside.mapped(str(works_in))),
    )


def _list(text: str, inside: Inside) -> str:
    """A path, or several with colons between them, as they are inside."""
    return ":".join(inside.mapped(part) for part in text.split(":"))


def _loader(container: Contained, inside: Inside) -> tuple[str, ...]:
    """The words before a program that start it with a loader that was brought."""
    return () if container.brought is None else tuple(_list(word, inside) for word in container.brought.before)
