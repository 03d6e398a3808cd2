"""`seatrial discover`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import Amount, FromOption, LiveOption, OutputOption, style_of, write_file
from seatrial.cli.sources import parse_dumps, refuse_options
from seatrial.interface.machines import Discovered, discover_fabric, discovered, is_fabric
from seatrial.model.json_object import json_of
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.fabric import Fabric
from seatrial.report.blocks import Detail
from seatrial.report.text.machine import machine_text
from seatrial.report.text.terminal import PLAIN, Style


class PictureFormat(StrEnum):
    """Output format of `discover`."""

    TEXT = "text"
    JSON = "json"
    SVG = "svg"


@command("discover")
def _discover(
    dumps: FromOption = None,
    live: LiveOption = False,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="DIR", help="also show the rates measured in this results folder"),
    ] = None,
    output_format: Annotated[
        PictureFormat, typer.Option("--format", help="json: a single JSON object on stdout; svg: a drawing")
    ] = PictureFormat.TEXT,
    output: OutputOption = None,
    *,
    amount: Annotated[
        Amount,
        {"quiet": "the machine or fabric in a few lines", "verbose": "every fact of every device, with its source"},
    ],
) -> None:
    sources = parse_dumps(dumps)
    style = style_of(sys.stdout) if output is None else PLAIN
    if is_fabric(sources):
        refuse_options({"--live": live, "--results": results is not None})
        text = _shown_fabric(discover_fabric(sources), output_format, style, amount.detail)
    else:
        text = _shown(discovered(sources, live=live, results=results), output_format, style, amount.detail)
    if output is None:
        print(text)
    else:
        write_file(output, text + "\n")


def _shown(found: Discovered, form: PictureFormat, style: Style, detail: Detail) -> str:
    if form is PictureFormat.JSON:
        return json_of(machine_document(found.measured), indent=1)
    if form is PictureFormat.SVG:
        from seatrial.report.drawing import machine_svg

        return machine_svg(found.measured, found.copies).rstrip("\n")
    return machine_text(found.measured, found.copies, style, detail)


def _shown_fabric(fabric: Fabric, form: PictureFormat, style: Style, detail: Detail) -> str:
    if form is PictureFormat.JSON:
        from seatrial.report.documents.check import fabric_document

        return json_of(fabric_document(fabric), indent=1)
    if form is PictureFormat.SVG:
        from seatrial.report.fabric_drawing import fabric_svg

        return fabric_svg(fabric).rstrip("\n")
    from seatrial.report.text.fabric import fabric_text

    return fabric_text(fabric, style, detail)
