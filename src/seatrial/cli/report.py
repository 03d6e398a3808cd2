"""`seatrial report`."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from seatrial.cli.output import write_file
from seatrial.interface.results import results
from seatrial.report.pages.page import page


def report_command(folder: Path, output: Path) -> None:
    """Write the page of a results folder and print its path."""
    found = results(folder)
    link = quote(os.fsencode(os.path.relpath(folder.resolve(), output.resolve().parent)))
    write_file(output, page(found.trials, link, found.studies, found.profiles))
    print(output.resolve())
