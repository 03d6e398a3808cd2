"""The part of the environment that a study selects; the rest is as found on the machine."""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class EnvironmentChoice(Frozen):
    """`compiler` is a command on PATH, or None for the first that is found. `flags` follow those of
    seatrial on the compiler's command line. `variables` are set (None: unset) when programs run, and do not affect how
    they are built.

    `mpi` is the name of a library, or None for the first that is found; `mpi_settings` are settings that each library
    has under its own name, such as the algorithm of a collective.

    `container` is the path or name of an image, or the name of a container of the site file, that programs run in
    (None: in none), `container_runtime` what starts it (None: the first one that can), `container_mpi` where the
    launcher of ranks is (None: where ranks can meet), `container_build` where programs are built (None: outside, inside
    where the image's C library does not fit), `container_mounts` and `container_devices` what it gets besides, as one
    text (model/container_mount.py).
    `vm` is the guest that they run in (None: this machine).
    """

    compiler: str | None = None
    flags: tuple[str, ...] = ()
    variables: tuple[tuple[str, str | None], ...] = ()
    mpi: str | None = None
    mpi_settings: tuple[tuple[str, str], ...] = ()
    container: str | None = None
    container_runtime: str | None = None
    container_mpi: str | None = None
    container_build: str | None = None
    container_mounts: str | None = None
    container_devices: str | None = None
    vm: str | None = None


AS_IT_IS = EnvironmentChoice()
