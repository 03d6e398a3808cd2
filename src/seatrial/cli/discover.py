"""`seatrial discover`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.output import style_of, write_file
from seatrial.interface.machines import Discovered, discovered
from seatrial.model.machine_document import machine_document
from seatrial.report.text.machine import machine_text
from seatrial.report.text.terminal import PLAIN, Style


def discover_command(
    dumps: Sequence[tuple[str, str]], live: bool, results: Path | None, form: str, output: Path | None
) -> None:
    """Print the description of a machine (`form`: text, json or svg), or write it to a file."""
    found = discovered(dumps, live=live, results=results)
    text = _shown(found, form, style_of(sys.stdout) if output is None else PLAIN)
    if output is None:
        print(text)
    else:
        write_file(output, text + "\n")


def _shown(found: Discovered, form: str, style: Style) -> str:
    if form == "json":
        return json.dumps(machine_document(found.measured), indent=1, allow_nan=False)
    if form == "svg":
        from seatrial.report.drawing import machine_svg

        return machine_svg(found.measured, found.copies).rstrip("\n")
    return machine_text(found.measured, found.copies, style)
