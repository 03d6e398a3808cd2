"""`seatrial history`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.output import print_json, style_of
from seatrial.interface.history import history
from seatrial.report.documents.history import history_document
from seatrial.report.text.history import history_text


def history_command(figure: str, folders: Sequence[Path], *, as_json: bool) -> None:
    """Print the history of a figure."""
    found = history(figure, folders)
    if as_json:
        print_json(history_document(found))
    else:
        print(history_text(found, style_of(sys.stdout)))
