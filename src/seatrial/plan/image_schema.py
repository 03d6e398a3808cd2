"""The structure of a definition of an image as pydantic models, and the published JSON schema.

The schema is generated when the package is built (hatch_build.py); `python -m seatrial.plan.image_schema` prints it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from seatrial.benchmarks import benchmark_of
from seatrial.model.image import ImageFormat
from seatrial.model.role import Role

MOST_PACKAGES = 10_000
MOST_FILES = 10_000

_EXAMPLE = benchmark_of(Role.MEMORY_BANDWIDTH)
_FORMATS = [one.value for one in ImageFormat]

ACCEPTED = {
    "": "a mapping: base, packages, programs, files, variables, build, march, format",
    "base": "static, {debian: SUITE} such as {debian: bookworm}, or {image: PATH} of a folder, tar, OCI archive or "
    "squashfs",
    "base.debian": "the name of a release of Debian, such as bookworm",
    "base.mirror": "the URL of a mirror of Debian: begins with http://, https:// or file:/// (default: deb.debian.org)",
    "base.image": "the path of a folder, tar, OCI archive or squashfs: absolute, from ~/, or in this file's folder",
    "packages": "a list of Debian packages, such as [g++, openmpi-bin]; needs base: {debian: ...}",
    "packages.*": "the name of a package, such as openmpi-bin, or with a version: openmpi-bin=4.1.4-3",
    "programs": "a list of statically linked programs, which go into /usr/bin",
    "programs.*": "a command on PATH, or a path: absolute, from ~/, or in the folder of this file",
    "files": "a mapping of paths in the image to what goes there, such as {/opt/app: ./app}",
    "files.*": "the path of a file or folder, or a mapping with one of from, text, link, and mode",
    "files.*.from": "the path of a file or folder: absolute, from ~/, or in the folder of this file",
    "files.*.text": "the content of the file",
    "files.*.link": "what the symbolic link points to",
    "files.*.mode": "permissions, such as 0755; without setuid, setgid and sticky bits",
    "variables": "a mapping of environment variables to values, such as {OMP_PROC_BIND: close}",
    "variables.*": "text, a number, true or false",
    "build": f"a list of benchmarks whose programs are compiled inside, such as [{_EXAMPLE}]; needs a compiler there",
    "build.*": f"the name of a benchmark, such as {_EXAMPLE}",
    "march": "the instruction set that `build` compiles for: native (the default) or what -march accepts, such as "
    "x86-64-v3",
    "format": f"{', '.join(_FORMATS[:-1])} or {_FORMATS[-1]} (default: by the ending of the image's name)",
}
"""Key of a definition ("*": any name or position) -> what it accepts, for messages and schema descriptions."""

NAMED = frozenset({"files", "variables"})
"""Mappings whose keys are names that the user chooses."""

_Text = Annotated[StrictStr, Field(min_length=1, max_length=4096)]
_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr


def _described(place: str, **more: Any) -> Any:
    return Field(description=ACCEPTED[place], **more)


class _Closed(BaseModel):
    """A mapping whose keys are all known; values are never converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class BaseModelOfImage(_Closed):
    """What the image begins with: a release of Debian, or an image that exists."""

    debian: Annotated[_Text | None, _described("base.debian")] = None
    mirror: Annotated[_Text | None, _described("base.mirror")] = None
    image: Annotated[_Text | None, _described("base.image")] = None


class FileModel(_Closed):
    """What goes to a path of the image."""

    source: Annotated[_Text | None, _described("files.*.from", alias="from")] = None
    text: Annotated[StrictStr | None, _described("files.*.text", max_length=1 << 20)] = None
    link: Annotated[_Text | None, _described("files.*.link")] = None
    mode: Annotated[StrictInt | StrictStr | None, _described("files.*.mode")] = None


class ImageModel(_Closed):
    """The definition of an image."""

    base: Annotated[Literal["static"] | BaseModelOfImage, _described("base")]
    packages: Annotated[list[_Text] | None, _described("packages", max_length=MOST_PACKAGES)] = None
    programs: Annotated[list[_Text] | None, _described("programs", max_length=MOST_FILES)] = None
    files: Annotated[dict[_Text, StrictStr | FileModel] | None, _described("files", max_length=MOST_FILES)] = None
    variables: Annotated[dict[_Text, _Scalar] | None, _described("variables", max_length=1000)] = None
    build: Annotated[list[_Text] | None, _described("build", max_length=1000)] = None
    march: Annotated[_Text | None, _described("march")] = None
    format: Annotated[_Text | None, _described("format", json_schema_extra={"enum": [*_FORMATS, None]})] = None


def image_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a definition of an image."""
    schema = ImageModel.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        model.pop("title", None)
        for place in model["properties"].values():
            place.pop("title", None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "seatrial image, version 1"}
    return head | schema


if __name__ == "__main__":
    print(json.dumps(image_schema(), indent=1, ensure_ascii=False))
