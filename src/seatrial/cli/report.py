"""`seatrial report`."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from seatrial.analysis.trials import trials_of
from seatrial.cli.output import message, write_file
from seatrial.errors import UsageError
from seatrial.report.page import page
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder


def report_command(results: Path, output: Path) -> None:
    """Write the page of a results folder and print its path."""
    contents = read_contents(ResultsFolder.existing(results))
    for line in contents.damaged:
        message(f"not accepted: {line}")
    trials = trials_of(contents)
    if not trials:
        raise UsageError(f"{results} holds no finished repeat", "measure first: seatrial run")
    link = quote(os.fsencode(os.path.relpath(results.resolve(), output.resolve().parent)))
    write_file(output, page(trials, link))
    print(output.resolve())
