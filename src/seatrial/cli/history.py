"""`seatrial history`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seatrial.analysis.folder import contents_in
from seatrial.analysis.history import histories
from seatrial.cli.command import command
from seatrial.cli.output import RESULTS, Output, PageOption, write_file
from seatrial.report.documents.history import history_document
from seatrial.report.histories import history_page
from seatrial.report.text.history import history_text


@command("history")
def _history(
    figure: Annotated[
        str, typer.Argument(metavar="FIGURE", help="a figure, such as triad or BENCHMARK:triad, or a benchmark")
    ],
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="results folders (default: seatrial-results)")
    ] = None,
    output: PageOption = None,
    *,
    out: Annotated[Output, {"quiet": "a line for each change", "verbose": "every session, and all that changed"}],
) -> None:
    distinct = dict.fromkeys(folder.resolve() for folder in folders or [RESULTS])
    found = histories([contents_in(folder) for folder in distinct], figure)
    if output is not None:
        write_file(output, history_page(found, figure))
    out.show(lambda: history_document(found), lambda style: history_text(found, style, out.detail))
