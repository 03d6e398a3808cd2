"""`seatrial discover`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from seatrial.analysis.overlay import with_measured
from seatrial.cli.folder import trial_of
from seatrial.cli.output import write_file
from seatrial.cli.sources import Sources
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_document
from seatrial.report.machine_text import machine_text


def discover_command(sources: Sources, results: Path | None, form: str, output: Path | None) -> None:
    """Print what this machine is (`form`: text, json or svg), or write it to a file."""
    machine = sources.machine()
    if results is not None:
        machine = with_measured(machine, trial_of(machine, results).results)
    text = _shown(machine, form, colour=output is None and sys.stdout.isatty())
    if output is None:
        print(text)
    else:
        write_file(output, text + "\n")


def _shown(machine: Machine, form: str, *, colour: bool) -> str:
    if form == "json":
        return json.dumps(machine_document(machine), indent=1, allow_nan=False)
    if form == "svg":
        from seatrial.report.drawing import machine_svg

        return machine_svg(machine).rstrip("\n")
    return machine_text(machine, colour)
