"""The page of the history of a figure, as a separate file."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.history import FigureHistory
from seatrial.report.histories.article import history_article
from seatrial.report.pages.templating import style_sheet, templates
from seatrial.version import __version__


def history_page(found: Sequence[FigureHistory], figure: str) -> str:
    """The whole file as text."""
    environment = templates()
    return environment.get_template("page.html.j2").render(
        title=f"History of {figure}",
        style=style_sheet(),
        studies=[history_article(environment, found, figure)],
        articles=[],
        version=__version__,
    )
