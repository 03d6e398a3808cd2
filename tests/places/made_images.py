"""Definitions of small images, and a static program for them, compiled once."""

from __future__ import annotations

import subprocess
from pathlib import Path

from seatrial.model.environment.image import ImageDefinition
from seatrial.places.images.make import MadeImage, make_image
from seatrial.plan.image_file import read_image_file

_SOURCE = """
#include <stdio.h>
#include <stdlib.h>
int main(void) { const char *text = getenv("GREETING"); return puts(text ? text : "none") < 0; }
"""


def static_program(folder: Path) -> Path:
    """A static program in `folder` that prints $GREETING. Raises FileNotFoundError without a compiler."""
    (folder / "greet.c").write_text(_SOURCE)
    subprocess.run(["gcc", "-static", "-O1", "-o", folder / "greet", folder / "greet.c"], check=True)
    return folder / "greet"


def defined(text: str, folder: Path) -> ImageDefinition:
    """A definition whose sources are in `folder`."""
    return read_image_file(text.encode(), "image.yaml", folder)


def made(text: str, image: Path, *, force: bool = False) -> MadeImage:
    """The image of a definition whose sources are beside it."""
    return make_image(defined(text, image.parent), image, force=force)
