"""The facts that an image states about itself, in any of its formats."""

from __future__ import annotations

import os
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from seatrial.errors import ImageError, StoreError, UsageError
from seatrial.model.environment.image import FACTS_FILE, FACTS_FOLDER, MOST_FACTS_B, ImageFacts, read_facts
from seatrial.model.secrets import sounds_like_a_secret
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.images.entries import LeftOut
from seatrial.places.images.given import Given, kind_of
from seatrial.places.images.oci import add_oci
from seatrial.places.images.tools import run_tool, tool
from seatrial.places.images.tree import Kind, Tree
from seatrial.store.files import read_file

_NAMES = frozenset({FACTS_FILE, f"./{FACTS_FILE}"})


def facts_of_image(image: Path) -> ImageFacts | None:
    """The facts of an image: a folder, tar, OCI archive or squashfs. None if seatrial did not make it, or it cannot be
    read here. They are what the image says; what it holds may have been changed since, if it is a folder."""
    try:
        match kind_of(image):
            case Given.FOLDER:
                return read_facts(read_file(image, FACTS_FOLDER, Path(FACTS_FILE).name, most=MOST_FACTS_B))
            case Given.TAR:
                return _in_tar(image)
            case Given.OCI:
                return _in_oci(image)
            case Given.DOCKER:
                return None  # seatrial makes none
            case Given.SQUASHFS:
                return _in_squashfs(image)
    except (ImageError, UsageError, StoreError, OSError):
        return None


def _in_tar(image: Path) -> ImageFacts | None:
    try:
        with tarfile.open(image, "r:") as stream:
            for member in stream:
                if member.name in _NAMES and member.isreg() and member.size <= MOST_FACTS_B:
                    content: BinaryIO | None = stream.extractfile(member)  # type: ignore[assignment]
                    return None if content is None else read_facts(content.read())
    except (tarfile.TarError, EOFError, OverflowError):
        return None
    return None


def _in_oci(image: Path) -> ImageFacts | None:
    with tempfile.TemporaryDirectory(prefix="seatrial-facts-") as work:
        tree = Tree(0)
        add_oci(tree, image, Path(work), 0, LeftOut())
        entry = tree.get(FACTS_FILE)
        if entry is None or entry.kind is not Kind.FILE or entry.size > MOST_FACTS_B:
            return None
        with entry.content.open() as stream:
            return read_facts(stream.read(entry.size))


def _in_squashfs(image: Path) -> ImageFacts | None:
    descriptor, name = tempfile.mkstemp(prefix="seatrial-facts-")
    os.close(descriptor)
    try:
        run_tool([tool("unsquashfs", "squashfs-tools"), "-cat", str(image), FACTS_FILE], output=Path(name))
        with Path(name).open("rb") as stream:
            return read_facts(stream.read(MOST_FACTS_B + 1))
    finally:
        Path(name).unlink()


@cache
def stated_by(image: Image) -> dict[str, Any]:
    """Its base, content, packages with their versions, and variables; empty if seatrial did not make it. Variables
    whose names suggest secrets are left out: an image may come from someone else."""
    from seatrial.places.images.facts import facts_of_image  # most runs have no image

    facts = None if image.kind in (ImageKind.NAME, ImageKind.SIF) else facts_of_image(image.path)
    if facts is None:
        return {}
    packages = None if facts.packages is None else [f"{one.name}={one.version}" for one in facts.packages]
    return {
        "made": {
            "base": facts.base,
            "content": facts.content,
            "packages": packages,
            "variables": {name: value for name, value in facts.variables if not sounds_like_a_secret(name)},
            "programs": [one.path for one in facts.programs],
        }
    }
