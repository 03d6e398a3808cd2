"""`seatrial discover`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.output import style_of, write_file
from seatrial.cli.sources import refuse_options
from seatrial.interface.fabric import discover_fabric, is_fabric
from seatrial.interface.machines import Discovered, discovered
from seatrial.model.fabric import Fabric
from seatrial.model.machine_document import machine_document
from seatrial.report.text.detail import Detail
from seatrial.report.text.machine import machine_text
from seatrial.report.text.terminal import PLAIN, Style


def discover_command(
    dumps: Sequence[tuple[str, str]],
    live: bool,
    results: Path | None,
    form: str,
    output: Path | None,
    detail: Detail = Detail.USUAL,
) -> None:
    """Print the description of a machine or fabric (`form`: text, json or svg), or write it to a file."""
    style = style_of(sys.stdout) if output is None else PLAIN
    if is_fabric(dumps):
        refuse_options({"--live": live, "--results": results is not None})
        text = _shown_fabric(discover_fabric(dumps), form, style, detail)
    else:
        text = _shown(discovered(dumps, live=live, results=results), form, style, detail)
    if output is None:
        print(text)
    else:
        write_file(output, text + "\n")


def _shown(found: Discovered, form: str, style: Style, detail: Detail) -> str:
    if form == "json":
        return json.dumps(machine_document(found.measured), indent=1, allow_nan=False)
    if form == "svg":
        from seatrial.report.drawing import machine_svg

        return machine_svg(found.measured, found.copies).rstrip("\n")
    return machine_text(found.measured, found.copies, style, detail)


def _shown_fabric(fabric: Fabric, form: str, style: Style, detail: Detail) -> str:
    if form == "json":
        from seatrial.report.documents.fabric import fabric_document

        return json.dumps(fabric_document(fabric), indent=1, allow_nan=False)
    if form == "svg":
        from seatrial.report.fabric_drawing import fabric_svg

        return fabric_svg(fabric).rstrip("\n")
    from seatrial.report.text.fabric import fabric_text

    return fabric_text(fabric, style, detail)
