"""What an image that seatrial made says about itself, in the file `FACTS_FILE` inside it.

An image may come from someone else: what does not match the shape is `None`, never an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, filled, shape

FACTS_FOLDER = ".seatrial"
FACTS_FILE = f"{FACTS_FOLDER}/image.json"
"""The path of the facts in the image, without the leading slash."""
MOST_FACTS_B = 8 << 20
FACTS_SCHEMA = "seatrial.image-facts/1"

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Package(Frozen):
    """An installed package of Debian."""

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
    """The facts of an image.

    `content` is the SHA-256 of its files, types, owners, permissions and times (places/images/canonical.py),
    without the file of these facts: it is the same in every format. `definition` is that of the definition file.
    `base` is in words; `packages` None: the image has no list of packages that we read. `dropped_setuid`: files of a
    given base whose setuid and setgid bits were dropped. `epoch_s`: the time that the image has.
    """

    content: str
    definition: str
    base: str
    architecture: str
    epoch_s: int
    packages: tuple[Package, ...] | None
    variables: tuple[tuple[str, str], ...]
    programs: tuple[ImageProgram, ...]
    files: int
    size_B: int
    dropped_setuid: int
    version: str


@shape(Package)
class PackageJson(TypedDict):
    """An installed package."""

    name: str
    version: str
    architecture: str


@shape(ImageProgram)
class ImageProgramJson(TypedDict):
    """A measuring program that was compiled inside the image."""

    benchmark: str
    path: str
    mpi: str | None
    compiler: str
    march: str
    command: list[str]
    digest: str


@shape(None)
class ImageFactsJson(TypedDict):
    """The facts of an image that seatrial made, as they are in the image."""

    schema: Literal["seatrial.image-facts/1"]
    content: str
    definition: str
    base: str
    architecture: str
    epoch_s: int
    packages: list[PackageJson] | None
    variables: dict[str, str]
    programs: list[ImageProgramJson]
    files: Count
    size_B: Count
    dropped_setuid: Count
    version: str


def facts_document(facts: ImageFacts) -> ImageFactsJson:
    """The JSON object of the facts."""
    return ImageFactsJson(
        schema="seatrial.image-facts/1",
        content=facts.content,
        definition=facts.definition,
        base=facts.base,
        architecture=facts.architecture,
        epoch_s=facts.epoch_s,
        packages=None if facts.packages is None else [filled(PackageJson, one) for one in facts.packages],
        variables=dict(facts.variables),
        programs=[filled(ImageProgramJson, one) for one in facts.programs],
        files=facts.files,
        size_B=facts.size_B,
        dropped_setuid=facts.dropped_setuid,
        version=facts.version,
    )


def facts_text(facts: ImageFacts) -> bytes:
    """The content of `FACTS_FILE`; the same facts give the same bytes."""
    return (json.dumps(facts_document(facts), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def read_facts(data: bytes) -> ImageFacts | None:
    """The facts in a file's content; None for anything else."""
    if len(data) > MOST_FACTS_B:
        return None
    try:
        found = json.loads(data)
        return _facts(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _facts(found: Any) -> ImageFacts:
    """Raises ValueError, KeyError or TypeError for an object of another shape."""
    if not isinstance(found, dict) or found["schema"] != FACTS_SCHEMA:
        raise ValueError
    packages = found["packages"]
    return ImageFacts(
        _digest(found, "content"),
        _digest(found, "definition"),
        _text(found, "base"),
        _text(found, "architecture"),
        _whole(found, "epoch_s"),
        None if packages is None else tuple(_package(one) for one in _list(packages)),
        tuple((_line(name), _line(value)) for name, value in dict(found["variables"]).items()),
        tuple(_program(one) for one in _list(found["programs"])),
        _whole(found, "files"),
        _whole(found, "size_B"),
        _whole(found, "dropped_setuid"),
        _text(found, "version"),
    )


def _package(found: Mapping[str, Any]) -> Package:
    return Package(_text(found, "name"), _text(found, "version"), _text(found, "architecture"))


def _program(found: Mapping[str, Any]) -> ImageProgram:
    mpi = found["mpi"]
    return ImageProgram(
        _text(found, "benchmark"),
        _text(found, "path"),
        None if mpi is None else _line(mpi),
        _text(found, "compiler"),
        _text(found, "march"),
        tuple(map(_line, _list(found["command"]))),
        _digest(found, "digest"),
    )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _line(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError
    return value


def _text(found: Mapping[str, Any], name: str) -> str:
    return _line(found[name])


def _digest(found: Mapping[str, Any], name: str) -> str:
    if not _DIGEST.fullmatch(text := _text(found, name)):
        raise ValueError
    return text


def _whole(found: Mapping[str, Any], name: str) -> int:
    value = found[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value
