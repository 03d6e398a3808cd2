"""`seatrial report`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from seatrial.cli.output import write_file
from seatrial.interface.results import results_of_folders
from seatrial.report.pages.page import page


def report_command(folders: Sequence[Path], output: Path | None) -> None:
    """Write the page of results folders and print its path. Records are linked if there is one folder."""
    output = folders[0] / "report.html" if output is None else output
    found = results_of_folders(folders)
    link = None
    if len(folders) == 1:
        link = quote(os.fsencode(os.path.relpath(folders[0].resolve(), output.resolve().parent)))
    write_file(output, page(found.trials, link, found.studies, found.profiles, found.histories))
    print(output.resolve())
