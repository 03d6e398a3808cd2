"""All container runtimes, and the one for an image."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.launch.containers.apptainer import Apptainer, Singularity
from seatrial.launch.containers.bubblewrap import Bubblewrap
from seatrial.launch.containers.charliecloud import Charliecloud
from seatrial.launch.containers.docker import Docker
from seatrial.launch.containers.enroot import Enroot
from seatrial.launch.containers.error import ContainerError
from seatrial.launch.containers.image import Image
from seatrial.launch.containers.nspawn import Nspawn
from seatrial.launch.containers.podman import Podman
from seatrial.launch.containers.pyxis import Pyxis
from seatrial.launch.containers.runtime import Runtime
from seatrial.launch.containers.sarus import Sarus
from seatrial.launch.containers.shifter import Shifter

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
