"""`seatrial report`."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from seatrial.cli.folder import trials_in
from seatrial.cli.output import write_file
from seatrial.report.page import page


def report_command(results: Path, output: Path) -> None:
    """Write the page of a results folder and print its path."""
    trials = trials_in(results)
    link = quote(os.fsencode(os.path.relpath(results.resolve(), output.resolve().parent)))
    write_file(output, page(trials, link))
    print(output.resolve())
