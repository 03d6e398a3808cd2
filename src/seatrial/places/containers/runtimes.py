"""All container runtimes, and the one for an image."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.places.containers.apptainer import Apptainer, Singularity
from seatrial.places.containers.bubblewrap import Bubblewrap
from seatrial.places.containers.charliecloud import Charliecloud
from seatrial.places.containers.docker import Docker
from seatrial.places.containers.enroot import Enroot
from seatrial.places.containers.image import ContainerError, Image
from seatrial.places.containers.nspawn import Nspawn
from seatrial.places.containers.podman import Podman
from seatrial.places.containers.pyxis import Pyxis
from seatrial.places.containers.runtime import Runtime
from seatrial.places.containers.sarus import Sarus
from seatrial.places.containers.shifter import Shifter

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
