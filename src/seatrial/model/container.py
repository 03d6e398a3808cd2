"""Containers as a part of the environment: the runtimes that are known, where the launcher of ranks runs, and where
programs are built."""

from __future__ import annotations

CONTAINER = "container"
CONTAINER_RUNTIME = "container_runtime"
CONTAINER_MPI = "container_mpi"
CONTAINER_MOUNTS = "container_mounts"
CONTAINER_DEVICES = "container_devices"
CONTAINER_BUILD = "container_build"
NO_CONTAINER = "none"

OUTSIDE, JOINED, INSIDE, BIND = "outside", "joined", "inside", "bind"
PLACEMENTS = (OUTSIDE, JOINED, INSIDE, BIND)
"""The launcher outside with each rank in a container of its own, the same with all ranks of a node in one container,
launcher and ranks inside of one container, or the launcher outside and the host's MPI library brought in."""

BROUGHT = "brought"
BUILDS = (OUTSIDE, INSIDE, BROUGHT)
"""Programs built on the host that use the libraries of the image, built by the image's compiler, or built on the host
and brought in with the host's C library, loader and other libraries."""

RUNTIMES = (
    "charliecloud",
    "apptainer",
    "singularity",
    "bubblewrap",
    "podman",
    "nspawn",
    "docker",
    "enroot",
    "sarus",
    "shifter",
    "pyxis",
)
"""In order of preference, where an image does not decide."""
