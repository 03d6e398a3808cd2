"""Containers as a part of the environment: the runtimes that are known, and where the launcher of ranks runs."""

from __future__ import annotations

CONTAINER = "container"
CONTAINER_RUNTIME = "container_runtime"
CONTAINER_MPI = "container_mpi"
CONTAINER_MOUNTS = "container_mounts"
CONTAINER_DEVICES = "container_devices"
NO_CONTAINER = "none"

OUTSIDE, JOINED, INSIDE = "outside", "joined", "inside"
PLACEMENTS = (OUTSIDE, JOINED, INSIDE)
"""The launcher outside with each rank in a container of its own, the same with all ranks of a node in one container,
or launcher and ranks inside of one container."""

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
)
"""In order of preference, where an image does not decide."""
