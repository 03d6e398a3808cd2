"""`seatrial discover`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seatrial.cli.output import write_file
from seatrial.machine.live import discover_live
from seatrial.model.machine_document import machine_document
from seatrial.report.machine_text import machine_text


def discover_command(*, as_json: bool, output: Path | None) -> None:
    """Print what this machine is, or write it to a file."""
    machine = discover_live()
    colour = output is None and sys.stdout.isatty()
    text = (
        json.dumps(machine_document(machine), indent=1, allow_nan=False) if as_json else machine_text(machine, colour)
    )
    if output is None:
        print(text)
    else:
        write_file(output, text + "\n")
