"""`seatrial report`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from seatrial.cli.command import command
from seatrial.cli.output import RESULTS, Amount, encoded, message, write_file
from seatrial.errors import UsageError
from seatrial.interface.results import Results, results_of_folders
from seatrial.model.spelling import count
from seatrial.report.pages.page import machines_words, page_pieces
from seatrial.store.files import reason, write_once


@command("report")
def _report(
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="results folders (default: seatrial-results)")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE.html", help="the page to write (default: report.html in the first folder)"),
    ] = None,
    *,
    amount: Annotated[
        Amount,
        {
            "quiet": "nothing, if the page was written",
            "verbose": "the number of experiments, studies and profiles on the page",
        },
    ],
) -> None:
    folders = results or [RESULTS]
    is_default = output is None
    output = folders[0] / "report.html" if output is None else output
    found = results_of_folders(folders)
    link = None
    if len(folders) == 1:  # its records are linked
        beside = folders[0].resolve() if is_default else output.resolve().parent
        link = quote(os.fsencode(os.path.relpath(folders[0].resolve(), beside)))
    text = page_pieces(found.trials, link, found.studies, found.profiles, found.histories)
    if is_default:  # the folder may be somebody else's: a link or FIFO of that name is replaced
        try:
            write_once(folders[0], output.name, data=encoded(text))
        except OSError as error:
            raise UsageError(f"{str(output)!r} cannot be written: {reason(error)}", "give a file with -o") from error
    else:
        write_file(output, text)
    if amount.verbose:
        message(f"the page shows {_contents(found)}")
    if not amount.quiet:
        print(output.resolve())


def _contents(found: Results) -> str:
    return ", ".join(
        (
            machines_words(found.trials),
            count(len(found.experiments), "experiment"),
            count(len(found.studies), "study", "studies"),
            count(len(found.profiles), "profile"),
            count(len(found.histories), "history", "histories"),
        )
    )
