"""All container runtimes, those without peculiarities here, and the one for an image.

enroot starts squashfs files and unpacked images by name. pyxis is the plug-in of Slurm by which `srun
--container-image` starts the tasks of a step in enroot's containers. Options and their meaning: NVIDIA/pyxis, args.c
and its wiki, "Usage". The names of images stand for ones of a registry, from which pyxis would fetch them, so only
files are started.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from seatrial.model.environment.container import NVIDIA
from seatrial.places.containers.bubblewrap import Bubblewrap
from seatrial.places.containers.charliecloud import Charliecloud
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime, is_root
from seatrial.processes.start import OutOfTimeError, output_of
from seatrial.processes.working_folder import on_path

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
        found = on_path(self.command)
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


class Apptainer(Runtime):
    """Apptainer."""

    name = command = "apptainer"
    title = "Apptainer"
    kinds = frozenset({ImageKind.FOLDER, ImageKind.SQUASHFS, ImageKind.SIF})
    joins = True
    is_verified = False
    package = "Apptainer from apptainer.org"
    folder_words = ("--pwd", "{folder}")
    of_nvidia, of_rocm = ("--nv",), ("--rocm",)  # the vendor's devices, with the libraries that its list names

    def prefix(self, inside: Inside) -> list[str]:
        """The command: apptainer exec; root without CAP_SYS_RESOURCE needs a user namespace."""
        words = [self.command, "exec", "--bind", f"{SHARED}:{SHARED}"]
        if is_root():
            words.append("--userns")
        if inside.is_shared:
            words.append("--sharens")
        return [*words, *self.options(inside), inside.image.given]


class Singularity(Apptainer):
    """Singularity, which has no way to join."""

    name = command = "singularity"
    title = "Singularity"
    joins = False
    package = "SingularityCE from sylabs.io"


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
        if not _UNIFIED.exists() and on_path("runc"):
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


class Nspawn(Runtime):
    """systemd-nspawn, for root: an overlay in memory over the image, and its own process numbers. It passes no
    variables on, so a launcher outside cannot reach its ranks."""

    name = "nspawn"
    title = command = "systemd-nspawn"
    kinds = frozenset({ImageKind.FOLDER})
    ranks_outside = False
    package = "the package systemd-container (it needs root)"
    mount_words = ("--bind={mount.host}:{mount.inside}",)
    read_only_words = ("--bind-ro={mount.host}:{mount.inside}",)
    variable_words = ("--setenv={name}={value}",)
    folder_words = ("--chdir={folder}",)

    def prefix(self, inside: Inside) -> list[str]:
        """Without a journal, a machine's registration and its own unit."""
        words = [self.command, "-q", "-D", inside.image.given, "--volatile=overlay", "--as-pid2", "--register=no"]
        words += ["--keep-unit", "--link-journal=no", "--resolv-conf=off", "--timezone=off"]
        words += ["--console=pipe", f"--hostname={platform.node()}", f"--bind={SHARED}"]
        return [*words, *self.options(inside), "--"]


class Sarus(Runtime):
    """Sarus, which starts images of its own store."""

    name = command = "sarus"
    title = "Sarus"
    kinds = frozenset({ImageKind.NAME})
    is_verified = False
    package = "Sarus (the site's administrators do)"
    of_nvidia = of_rocm = ()  # the site's hooks add what the job got of the batch system
    mount_words = ("--mount=type=bind,source={mount.host},destination={mount.inside}",)
    read_only_words = ("--mount=type=bind,source={mount.host},destination={mount.inside},readonly",)
    variable_words = ("--env={name}={value}",)
    folder_words = ("--workdir={folder}",)

    def prefix(self, inside: Inside) -> list[str]:
        """The command: sarus run."""
        return [
            self.command,
            "run",
            *self.mount_option(Mount(SHARED, SHARED)),
            *self.options(inside),
            inside.image.given,
        ]


class Shifter(Runtime):
    """Shifter, which starts images that its gateway has prepared."""

    name = command = "shifter"
    title = "Shifter"
    kinds = frozenset({ImageKind.NAME})
    is_verified = False
    package = "Shifter (the site's administrators do)"
    of_nvidia = ("--module=gpu",)
    mount_words = ("--volume={mount.option}",)
    variable_words = ("--env={name}={value}",)
    folder_words = ("--workdir={folder}",)

    def prefix(self, inside: Inside) -> list[str]:
        """The command: shifter."""
        shared = f"--volume={SHARED}:{SHARED}"
        return [self.command, f"--image={inside.image.given}", shared, *self.options(inside), "--"]


_ALL = (Charliecloud, Apptainer, Singularity, Bubblewrap, Podman, Nspawn, Docker, Enroot, Sarus, Shifter, Pyxis)

RUNTIMES: Mapping[str, Runtime] = {kind.name: kind() for kind in _ALL}
"""Name -> runtime, in order of preference."""


def runtime_for(image: Image, name: str | None) -> Runtime:
    """The runtime of that name; without a name, the first installed one that starts such images. Raises
    ContainerError."""
    if name is not None:
        RUNTIMES[name].require(image)
        return RUNTIMES[name]
    able = [runtime for runtime in RUNTIMES.values() if image.kind in runtime.kinds]
    for runtime in able:
        if runtime.path() is not None:
            return runtime
    raise ContainerError(
        f"no runtime for {image.given} ({image.kind}) is installed: {', '.join(runtime.title for runtime in able)}",
        f"install {able[0].package}",
    )
