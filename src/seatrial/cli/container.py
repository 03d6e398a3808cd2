"""`seatrial container make`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.output import message, print_json, style_of, write_file
from seatrial.errors import UnknownNameError, UsageError
from seatrial.interface.container import container_make, image_definition
from seatrial.report.documents.image import image_document
from seatrial.report.export.image_recipes import RECIPES
from seatrial.report.text.detail import Detail
from seatrial.report.text.image import image_text


def make_command(
    path: Path, image: Path, *, also_as: Sequence[str], force: bool, detail: Detail, as_json: bool
) -> None:
    """Make the image of the definition in `path`, then write its recipes for other tools (`KIND=FILE`), and print what
    was made."""
    definition = image_definition(path)
    folder = path.absolute().parent
    recipes = [(file, RECIPES[kind](definition, folder)) for kind, file in map(_kind_and_file, also_as)]
    for file, _ in recipes:
        if file.exists() and not force:
            raise UsageError(f"{file} exists already", "give another name, or replace it with --force")
    announce = (lambda text: None) if detail is Detail.BRIEF else message
    made = container_make(definition, image, force=force, announce=announce)
    for file, text in recipes:
        write_file(file, text)
    document = image_document(made)
    if as_json:
        print_json(document)
    else:
        print(image_text(document, style_of(sys.stdout), detail))


def _kind_and_file(text: str) -> tuple[str, Path]:
    kind, equals, file = text.partition("=")
    if kind not in RECIPES:
        raise UnknownNameError("recipe", kind, RECIPES)
    if not equals or not file:
        raise UsageError(f"--also-as {kind} names no file", f"write --also-as {kind}=FILE")
    return kind, Path(file)
