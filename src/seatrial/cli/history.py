"""`seatrial history`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.output import print_json, style_of, write_file
from seatrial.interface.history import history
from seatrial.report.documents.history import history_document
from seatrial.report.histories.page import history_page
from seatrial.report.text.detail import Detail
from seatrial.report.text.history import history_text


def history_command(
    figure: str, folders: Sequence[Path], *, output: Path | None, as_json: bool, detail: Detail = Detail.USUAL
) -> None:
    """Print the history of a figure, and write it as a page."""
    found = history(figure, folders)
    if output is not None:
        write_file(output, history_page(found, figure))
    if as_json:
        print_json(history_document(found))
    else:
        print(history_text(found, style_of(sys.stdout), detail))
