"""enroot, which starts squashfs files and unpacked images by name, and pyxis.

pyxis is the plug-in of Slurm by which `srun --container-image` starts the tasks of a step in enroot's containers.
Options and their meaning: NVIDIA/pyxis, args.c and its wiki, "Usage". The names of images stand for ones of a registry,
from which pyxis would fetch them, so only files are started.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from functools import cache

from seatrial.model.environment.container import NVIDIA
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime
from seatrial.processes.start import OutOfTimeError, output_of

_IMAGE = "--container-image"
_JOB = "SLURM_JOB_ID"
_ASK_LIMIT_S = 10.0


class Enroot(Runtime):
    """enroot."""

    name = title = command = package = "enroot"
    kinds = frozenset({ImageKind.SQUASHFS, ImageKind.NAME})
    is_verified = False
    of_nvidia = ("--env", "NVIDIA_VISIBLE_DEVICES=all")  # by its hook (98-nvidia.sh), which this variable asks for

    def prefix(self, inside: Inside) -> list[str]:
        """The command: enroot start; mounts are lines of fstab(5)."""
        if inside.works_in is not None:
            raise ContainerError(
                "enroot cannot start a program in a folder that its image does not choose",
                "use another environment.container_runtime for applications",
            )
        return [self.command, "start", "--mount", f"{SHARED}:{SHARED}", *self.options(inside), inside.image.given]

    def mount_option(self, mount: Mount) -> list[str]:
        """HOST:INSIDE, with the escape of fstab(5) for blanks, and its options."""
        text = f"{mount.host}:{mount.inside}".replace(" ", r"\040")
        return ["--mount", f"{text}:none:x-create=auto,bind,ro" if mount.is_read_only else text]

    def version_words(self) -> list[str]:
        """A subcommand."""
        return ["version"]


class Pyxis(Runtime):
    """pyxis."""

    name = title = "pyxis"
    command = launcher = "srun"
    kinds = frozenset({ImageKind.SQUASHFS})
    is_verified = False
    package = "pyxis (the site's administrators do)"
    of_nvidia = ()  # by enroot's hook, which a variable asks for, to the step that has the job's GPUs

    def prefix(self, inside: Inside) -> list[str]:
        """One task on this node, with all CPUs of the job there; the program binds itself."""
        here = os.environ.get("SLURMD_NODENAME") or platform.node().partition(".")[0]
        step = [self.command, "--ntasks=1", "--nodes=1", f"--nodelist={here}", "--overlap", "--cpu-bind=none"]
        return [*_outside(inside), *step, "--input=none", *self.options(inside)]

    def of_ranks(self, launcher: Sequence[str], placing: Sequence[str], inside: Inside) -> list[str]:
        """The containers are tasks of the step, so ranks are placed inside."""
        return [*_outside(inside), *launcher, *self.options(inside), *map(inside.mapped, placing)]

    def options(self, inside: Inside) -> list[str]:
        """The options of a step in containers. Without more, they have the home folder of the user, run the entrypoint
        of the image, and their variables are those of the image rather than ours."""
        mounted = (Mount(SHARED, SHARED), *inside.all_mounts)
        mounts = ",".join(mount.option.replace(" ", r"\040") for mount in mounted)  # the escape of fstab(5) for blanks
        words = [f"{_IMAGE}={inside.image.given}", f"--container-mounts={mounts}", *self.devices(inside)]
        words += ["--no-container-mount-home", "--no-container-remap-root", "--no-container-entrypoint"]
        if inside.works_in is not None:
            words.append(f"--container-workdir={inside.works_in}")
        names = list(inside.variables)
        names += [name for device in inside.devices for name in _VARIABLES.get(device.name, {})]
        if exported := [f"{name}={value}" for name, value in inside.variables.items() if "," not in value]:
            words.append(f"--export=ALL,{','.join(exported)}")
        return [*words, *([f"--container-env={','.join(names)}"] if names else [])]

    def path(self) -> str | None:
        """srun, if it has the plug-in."""
        found = shutil.which(self.command)
        return found if found is not None and _has_plug_in(found) else None

    def require(self, image: Image) -> None:
        """Raise ContainerError outside of a job as well: seatrial asks for no resources by srun."""
        if self.path() is None:
            raise ContainerError("pyxis is not installed: no srun on PATH that has it", f"install {self.package}")
        super().require(image)
        if _JOB not in os.environ:
            raise ContainerError(
                "pyxis starts containers in a Slurm allocation, and this is none",
                "run inside one (salloc, sbatch), or submit with --system",
            )


_VARIABLES = {NVIDIA: {"NVIDIA_VISIBLE_DEVICES": "all"}}
"""What asks enroot's hooks for devices (98-nvidia.sh)."""


def _outside(inside: Inside) -> list[str]:
    """Variables of srun itself, which it passes on: those with a comma, at which its option splits, and those of
    hooks."""
    words = [f"{name}={value}" for name, value in inside.variables.items() if "," in value]
    for device in inside.devices:
        words += [f"{name}={value}" for name, value in _VARIABLES.get(device.name, {}).items()]
    return ["env", *words] if words else []


@cache
def _has_plug_in(srun: str) -> bool:
    """Whether the options of pyxis are among those of srun."""
    try:
        return _IMAGE.encode() in output_of([srun, "--help"], os.environ, _ASK_LIMIT_S).stdout
    except (OSError, OutOfTimeError):
        return False
