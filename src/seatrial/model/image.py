"""The definition of a container image: what `seatrial container make` puts into it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from seatrial.model.frozen import Frozen


class ImageFormat(StrEnum):
    """How an image is written."""

    FOLDER = "folder"
    SQUASHFS = "squashfs"
    OCI = "oci"
    TAR = "tar"
    SIF = "sif"


IMAGE_ENDINGS = {
    ".sqfs": ImageFormat.SQUASHFS,
    ".squashfs": ImageFormat.SQUASHFS,
    ".oci.tar": ImageFormat.OCI,
    ".oci": ImageFormat.OCI,
    ".tar": ImageFormat.TAR,
    ".sif": ImageFormat.SIF,
}
"""The end of an image's name -> its format, where the definition states none; a name without an ending is a folder."""


class DebianBase(Frozen):
    """A release of Debian, by its name, from a mirror; None: the mirror that mmdebstrap takes by itself."""

    suite: str
    mirror: str | None = None


class GivenBase(Frozen):
    """A folder, tar, OCI archive or squashfs with the files of a system."""

    path: Path


class StaticBase(Frozen):
    """No system: only the folders that runtimes mount on, for programs that are linked statically."""


Base = DebianBase | GivenBase | StaticBase


class AddedFile(Frozen):
    """One addition: to the absolute path `to`, from a file or folder (`source`), a text, or as a link to `link`.

    `mode` are permission bits without setuid, setgid and sticky; None: those of the source, 0644 for a text.
    """

    to: str
    source: Path | None = None
    text: str | None = None
    link: str | None = None
    mode: int | None = None


class ImageDefinition(Frozen):
    """What an image is made from. `file` is its name, for messages; `build` are benchmarks whose programs are compiled
    inside, for the instruction set `march`. `format` None: by the name of the image."""

    file: str
    digest: str
    base: Base
    packages: tuple[str, ...] = ()
    programs: tuple[Path, ...] = ()
    files: tuple[AddedFile, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    build: tuple[str, ...] = ()
    march: str = "native"
    format: ImageFormat | None = None
