"""`seatrial.image/1`: an image that was made, as one JSON object."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.environment.image import ImageFormat, ImageProgram, Package
from seatrial.model.json_object import filled
from seatrial.model.json_shape import Count, Json, shape
from seatrial.places.images.make import MadeImage


@shape(None)
class ImageJson(TypedDict):
    """A container image that was made."""

    schema: Literal["seatrial.image/1"]
    path: str
    format: ImageFormat
    digest: Annotated[str, "SHA-256 of the file; of an OCI archive, of its manifest; of a folder, its `content`"]
    content: Annotated[str, "SHA-256 of files, permissions, owners and times: the same in every format"]
    definition: Annotated[str, "SHA-256 of the definition file"]
    base: str
    architecture: Annotated[str, "as Debian and OCI name it: amd64, arm64"]
    epoch_s: Annotated[Count, "the latest time of a file in it, in seconds since 1970"]
    size_B: Annotated[Count, "of the file; of a folder, of the files in it"]
    files: Count
    packages: Annotated[list[Package] | None, "null: it has a package manager other than dpkg"]
    variables: dict[str, str]
    programs: Annotated[list[ImageProgram], "measuring programs that were compiled inside"]
    dropped_setuid: Annotated[Count, "files of the base whose setuid and setgid bits were dropped"]


def image_document(made: MadeImage) -> Json:
    """The document."""
    own = {"path": str(made.path), "format": made.format, "digest": made.digest, "size_B": made.size_B}
    return filled(ImageJson, made.facts, **own)
