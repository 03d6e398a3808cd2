"""podman, rootless and as root, with the network, processes, memory and limits of the host, and docker."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime, is_root

_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")

_QUEUES = Path("/dev/mqueue")
_MEMORY = "/dev/shm"  # noqa: S108  the folder that the ranks of MPI libraries share

_OWN_MOUNTS = ("unshare", "--mount", "--propagation", "slave")
"""Root's podman mounts images where everybody sees them; so they end with its processes, whatever ends these."""


class Podman(Runtime):
    """podman."""

    name = title = command = "podman"
    kinds = frozenset({ImageKind.FOLDER, ImageKind.NAME})
    package = "the packages podman, runc, uidmap, slirp4netns and fuse-overlayfs"
    mount_words = ("-v", "{mount.option}")
    variable_words = ("-e", "{name}={value}")
    of_nvidia = ("--device", "nvidia.com/gpu=all")
    of_rocm = ("--device", "/dev/kfd", "--device", "/dev/dri")  # its images have the libraries
    of_cdi = ("--device", "{device.name}")

    def prefix(self, inside: Inside) -> list[str]:
        """The command: crun, its default, does not start on hosts with cgroups v1 or hybrid, runc does. Limits that
        root could not raise are given as they are."""
        words = [*(_OWN_MOUNTS if is_root() else ()), self.command]
        if not _UNIFIED.exists() and shutil.which("runc"):
            words += ["--runtime", "runc", "--cgroup-manager=cgroupfs", "--storage-driver", "overlay"]
        words += ["run", "--rm", "--pull=never", "--network=host", "--pid=host", "--uts=host", "--log-driver=none"]
        words += ["--security-opt", "label=disable", "--security-opt", "seccomp=unconfined", "--env-host"]
        words += _shared_memory()
        if is_root():
            words += ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
        words += ["-v", f"{SHARED}:{SHARED}", *self.options(inside)]
        image = inside.image
        return [*words, *(["--rootfs", f"{image.given}:O"] if image.kind is ImageKind.FOLDER else [image.given])]


def _shared_memory() -> list[str]:
    """The host's System V IPC and /dev/shm. Without root, podman's own way to share them needs /dev/mqueue; a host
    without it shares /dev/shm alone."""
    if is_root() or _QUEUES.exists():
        return ["--ipc=host"]
    return ["-v", f"{_MEMORY}:{_MEMORY}"]


class Docker(Podman):
    """docker, whose daemon passes no variables on: ranks need their launcher inside."""

    name = title = command = package = "docker"
    kinds = frozenset({ImageKind.NAME})
    ranks_outside = False
    is_verified = False
    of_nvidia = ("--gpus", "all")

    def prefix(self, inside: Inside) -> list[str]:
        """The command: docker run as this user."""
        words = [self.command, "run", "--rm", "--pull=never", "--init", "--network=host", "--ipc=host", "--uts=host"]
        words += [f"--user={os.geteuid()}:{os.getegid()}", "-v", f"{SHARED}:{SHARED}"]
        return [*words, *self.options(inside), inside.image.given]
