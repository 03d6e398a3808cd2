"""Make a container image from its definition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seatrial.benchmarks import registry
from seatrial.environments.chosen import isa_of
from seatrial.machine.live import discover_live
from seatrial.model.image import ImageDefinition
from seatrial.places.images.make import MadeImage, make_image
from seatrial.places.images.programs import Wanted
from seatrial.plan.image_file import read_image_path


def image_definition(path: Path) -> ImageDefinition:
    """The definition of an image in a file. Raises UsageError."""
    return read_image_path(path)


def container_make(
    definition: ImageDefinition,
    image: Path,
    *,
    force: bool = False,
    announce: Callable[[str], None] = lambda text: None,
) -> MadeImage:
    """Make the image of a definition, with the programs that it names compiled inside; `announce` is called with a line
    of text before each step that takes time.

    Raises UsageError before anything is made, ImageError if it cannot be made; then nothing of it is there.
    """
    programs = ((name, registry()[name].program) for name in definition.build)
    wanted = [Wanted(name, program.source) for name, program in programs if program.source is not None]
    return make_image(
        definition, image, force=force, wanted=wanted, isa=lambda: isa_of(discover_live()), announce=announce
    )
