"""`seatrial report`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from seatrial.cli.output import message, write_file
from seatrial.interface.results import Results, results_of_folders
from seatrial.report.pages.page import page
from seatrial.report.text.detail import Detail
from seatrial.report.units import count


def report_command(folders: Sequence[Path], output: Path | None, detail: Detail = Detail.USUAL) -> None:
    """Write the page of results folders and print its path (in brief, nothing; in full, also what it shows).
    Records are linked if there is one folder."""
    output = folders[0] / "report.html" if output is None else output
    found = results_of_folders(folders)
    link = None
    if len(folders) == 1:
        link = quote(os.fsencode(os.path.relpath(folders[0].resolve(), output.resolve().parent)))
    write_file(output, page(found.trials, link, found.studies, found.profiles, found.histories))
    if detail is Detail.FULL:
        message(f"the page shows {_contents(found)}")
    if detail is not Detail.BRIEF:
        print(output.resolve())


def _contents(found: Results) -> str:
    return ", ".join(
        (
            count(len(found.trials), "machine"),
            count(len(found.experiments), "experiment"),
            count(len(found.studies), "study", "studies"),
            count(len(found.profiles), "profile"),
            count(len(found.histories), "history", "histories"),
        )
    )
