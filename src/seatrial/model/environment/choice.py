"""The part of the environment that a study selects; the rest is as found on the machine."""

from __future__ import annotations

from typing import Annotated

from seatrial.model.benchmark.declaration import StoredDeclaration
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import check_of_keys, or_null
from seatrial.model.json_shape import As, Key, Sparse, published


@published("Chosen")
class EnvironmentChoice(Frozen):
    """The parts of the environment that the study sets.

    `compiler` is a command on PATH, or None for the first that is found. `flags` follow those of seatrial on the
    compiler's command line. `variables` are set when programs run, and do not affect how they are built.

    `mpi` is the name of a library; `mpi_settings` are settings that each library has under its own name, such as the
    algorithm of a collective.

    `machine_settings` are clocks, governors and limits of the node while a repeat runs, each as text
    (model/environment/machine_settings.py).

    `container` is the path or name of an image, or the name of a container of the site file. `container_build` None:
    inside where the image's C library does not fit; `container_mounts` and `container_devices` are one text each
    (model/environment/container.py).
    """

    compiler: str | None = None
    flags: tuple[str, ...] = ()
    variables: Annotated[tuple[tuple[str, str | None], ...], As(dict[str, str | None]), "null: unset"] = ()
    mpi: Annotated[str | None, "null: the first one found"] = None
    mpi_settings: Annotated[
        tuple[tuple[str, str], ...],
        As(dict[str, str]),
        Key("settings"),
        "of the MPI library, such as collective_algorithm",
    ] = ()
    container: Annotated[str | None, "the image, or container of the site, that programs run in; null: none"] = None
    container_runtime: Annotated[str | None, "null: the first one that starts the image"] = None
    container_mpi: Annotated[str | None, "where the launcher of ranks is; null: where ranks can meet"] = None
    container_build: Annotated[str | None, "where programs are built; null: outside, if the image's C library fits"] = (
        None
    )
    container_mounts: Annotated[str | None, "what is mounted besides: SOURCE:INSIDE[:ro], with + between several"] = (
        None
    )
    container_devices: Annotated[str | None, "the devices that it gets, with + between several"] = None
    vm: Annotated[str | None, "the guest that programs run in; null: this machine"] = None
    python: Annotated[Sparse[str | None], "the interpreter of libraries of Python; null: the first that has them"] = (
        None
    )
    machine_settings: Annotated[
        Sparse[tuple[tuple[str, str], ...]],
        As(dict[str, str]),
        "clocks, governors and limits of the node while a repeat runs, such as turbo",
    ] = ()

    @property
    def text(self) -> str:
        """In the form that `--set` accepts, such as "mpi=mpich transport=tcp flags=-O2"; "" if nothing was chosen."""
        words = [f"{name}={value}" for name in TEXT_PARTS if (value := getattr(self, name))]
        words += [f"flags={' '.join(self.flags)}"] if self.flags else []
        words += [f"{name}={value}" for name, value in (*self.mpi_settings, *self.machine_settings)]
        words += [f"{name}={value}" if value is not None else f"without {name}" for name, value in self.variables]
        return " ".join(words)


AS_IT_IS = EnvironmentChoice()
TEXT_PARTS = (
    *("mpi", "compiler", "container", "container_runtime", "container_mpi", "container_mounts", "container_devices"),
    *("container_build", "vm", "python"),
)
"""The parts that are one text each."""


_VARIABLES = dict[str, str | None] | None
check_environment = check_of_keys(
    {},
    {
        "name": str,
        **dict.fromkeys(("flags", "added_flags"), list[str]),
        "variables": _VARIABLES,
        "settings": dict[str, str],
        "machine_settings": dict[str, str],
        **dict.fromkeys(("compiler", "target"), dict[str, object]),
        "mpi": or_null(check_of_keys({}, {"variables": _VARIABLES})),
        "declaration": StoredDeclaration,
    },
)
"""Raises ShapeError for a document that is not what a program was built and run in, as far as its parts are used by
name."""
