"""The options of `seatrial container`; the commands are loaded when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.options import Format, FormatOption, detail_of, quiet_option, verbose_option

container_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@container_app.callback()
def _group() -> None:
    pass


@container_app.command()
def make(
    definition: Annotated[
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
    quiet: Annotated[bool, quiet_option("the path of the image")] = False,
    verbose: Annotated[bool, verbose_option("every package")] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Make an image, without a registry and a daemon."""
    from seatrial.cli.container import make_command

    make_command(
        definition,
        image,
        also_as=also_as or (),
        force=force,
        detail=detail_of(quiet, verbose),
        as_json=output_format is Format.JSON,
    )
