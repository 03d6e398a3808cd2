"""The history of a figure over results folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.analysis.folder import contents_in
from seatrial.analysis.history import histories
from seatrial.model.history import FigureHistory


def history(figure: str, folders: Sequence[str | Path]) -> tuple[FigureHistory, ...]:
    """The histories of a figure (`FIGURE`, or `BENCHMARK:FIGURE`), one for each setting and host, over these folders.

    A folder that is named twice counts once. Raises UsageError if a folder is none or empty, UnknownNameError if no
    folder has the figure.
    """
    distinct = dict.fromkeys(Path(folder).resolve() for folder in folders)
    return histories([contents_in(folder) for folder in distinct], figure)
