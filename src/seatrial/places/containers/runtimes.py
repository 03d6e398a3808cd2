"""All container runtimes, those of one command here, and the one for an image."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from seatrial.places.containers.apptainer import Apptainer, Singularity
from seatrial.places.containers.bubblewrap import Bubblewrap
from seatrial.places.containers.charliecloud import Charliecloud
from seatrial.places.containers.enroot import Enroot, Pyxis
from seatrial.places.containers.image import ContainerError, Image, ImageKind
from seatrial.places.containers.podman import Docker, Podman
from seatrial.places.containers.runtime import SHARED, Inside, Mount, Runtime


class Nspawn(Runtime):
    """systemd-nspawn, for root: an overlay in memory over the image, and process numbers of its own. It passes no
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
        """Without a journal, a machine's registration and a unit of its own."""
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
