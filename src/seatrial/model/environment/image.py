"""Images of containers: their definition, and what they say about themselves.

What an image that seatrial made says about itself is in the file `FACTS_FILE` inside it. An image may come from someone
else: what does not match the shape is `None`, never an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec.structs import astuple

from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_json
from seatrial.model.json_object import plain, record_of
from seatrial.model.json_shape import As, Count


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
    """A release of Debian, by its name, from a mirror; None: from the sources of this machine's apt."""

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


FACTS_FOLDER = ".seatrial"
FACTS_FILE = f"{FACTS_FOLDER}/image.json"
"""The path of the facts in the image, without the leading slash."""
MOST_FACTS_B = 8 << 20

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Package(Frozen):
    """An installed package.

    Of Debian.
    """

    name: str
    version: str
    architecture: str


class ImageProgram(Frozen):
    """A measuring program that was compiled inside the image.

    `mpi`: the command of the image that compiled it for an MPI library; None: without MPI. `command` compiles its own
    source, with paths in the image while it was made.
    """

    benchmark: str
    path: str
    mpi: str | None
    compiler: str
    march: str
    command: tuple[str, ...]
    digest: str


class ImageFacts(Frozen):
    """The facts of an image that seatrial made, as they are in the image.

    `content` is the SHA-256 of its files, types, owners, permissions and times (places/images/write.py),
    without the file of these facts: it is the same in every format. `definition` is that of the definition file.
    `base` is in words; `packages` None: the image has no list of packages that we read. `dropped_setuid`: files of a
    given base whose setuid and setgid bits were dropped. `epoch_s`: the time that the image has.
    """

    schema: ClassVar[Literal["seatrial.image-facts/1"]] = "seatrial.image-facts/1"
    content: str
    definition: str
    base: str
    architecture: str
    epoch_s: int
    packages: tuple[Package, ...] | None
    variables: Annotated[tuple[tuple[str, str], ...], As(dict[str, str], back=lambda found: tuple(found.items()))]
    programs: tuple[ImageProgram, ...]
    files: Count
    size_B: Count
    dropped_setuid: Count
    version: str


def facts_text(facts: ImageFacts) -> bytes:
    """The content of `FACTS_FILE`; the same facts give the same bytes."""
    return (json.dumps(plain(facts), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def read_facts(data: bytes) -> ImageFacts | None:
    """The facts in a file's content; None for anything else."""
    if len(data) > MOST_FACTS_B:
        return None
    try:
        facts = record_of(ImageFacts, parse_json(data))
    except (ValueError, RecursionError):
        return None
    digests = [facts.content, facts.definition, *(program.digest for program in facts.programs)]
    is_ours = facts.epoch_s >= 0 and all(map(_DIGEST.fullmatch, digests)) and all(map(str.isprintable, _texts(facts)))
    return facts if is_ours else None


def _texts(of: Any) -> Iterator[str]:
    """All text in a record."""
    if isinstance(of, str):
        yield of
    elif isinstance(of, tuple | Frozen):
        for part in of if isinstance(of, tuple) else astuple(of):
            yield from _texts(part)
