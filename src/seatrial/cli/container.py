"""`seatrial container`: images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.benchmarks import registry
from seatrial.cli.command import command
from seatrial.cli.output import Output, write_file
from seatrial.environments.chosen import isa_of
from seatrial.errors import UnknownNameError, UsageError
from seatrial.machine.live import discover_live
from seatrial.places.images.make import make_image
from seatrial.places.images.programs import WantedProgram
from seatrial.plan.image_file import read_image_path
from seatrial.report.documents.places import image_document
from seatrial.report.export.image_recipes import RECIPES
from seatrial.report.text.places import image_text


@command("container make")
def _make(
    path: Annotated[
        Path, typer.Argument(metavar="DEFINITION", help="a YAML file: base, packages, files, variables, build")
    ],
    image: Annotated[
        Path,
        typer.Option(
            "-o", metavar="IMAGE", help="the image: NAME (a folder), NAME.sqfs, NAME.tar, NAME.oci.tar or NAME.sif"
        ),
    ],
    also_as: Annotated[
        list[str] | None,
        typer.Option(
            "--also-as", metavar="KIND=FILE", help="also write its recipe: apptainer=FILE, containerfile=FILE"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="replace an image that exists")] = False,
    *,
    out: Annotated[Output, {"quiet": "the path of the image", "verbose": "every package"}],
) -> None:
    """Make an image, without a registry or a daemon."""
    definition = read_image_path(path)
    folder = path.absolute().parent
    recipes = [(file, RECIPES[kind](definition, folder)) for kind, file in map(_kind_and_file, also_as or ())]
    for file, _ in recipes:
        if file.exists() and not force:
            raise UsageError(f"{file} exists already", "give another name, or replace it with --force")
    programs = ((name, registry()[name].program) for name in definition.build)
    wanted = [WantedProgram(name, program.source) for name, program in programs if program.source is not None]
    made = make_image(
        definition, image, force=force, wanted=wanted, isa=lambda: isa_of(discover_live()), announce=out.announce
    )
    for file, text in recipes:
        write_file(file, text)
    document = image_document(made)
    out.show(lambda: document, lambda style: image_text(document, style, out.detail))


def _kind_and_file(text: str) -> tuple[str, Path]:
    kind, equals, file = text.partition("=")
    if kind not in RECIPES:
        raise UnknownNameError("recipe", kind, RECIPES)
    if not equals or not file:
        raise UsageError(f"--also-as {kind} names no file", f"write --also-as {kind}=FILE")
    return kind, Path(file)
