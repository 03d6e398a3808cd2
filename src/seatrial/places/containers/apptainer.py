"""Apptainer, and Singularity, which takes the same options."""

from __future__ import annotations

from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime, is_root


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
