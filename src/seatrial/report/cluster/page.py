"""The page of a cluster, as a separate file."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.jobs.screen import JobRow
from seatrial.model.screen import Screen
from seatrial.report.cluster.article import cluster_article
from seatrial.report.pages.templating import style_sheet, templates
from seatrial.report.units import count
from seatrial.version import __version__


def cluster_page(found: Screen, name: str = "", jobs: Sequence[JobRow] = ()) -> str:
    """The whole file as text. `name` is that of the cluster, "" if unknown."""
    environment = templates()
    shown = name or f"Cluster of {count(len(found.nodes), 'node')}"
    return environment.get_template("page.html.j2").render(
        title=f"Screen of {shown[:1].lower()}{shown[1:]}" if not name else f"Screen of {name}",
        style=style_sheet(),
        studies=[cluster_article(environment, found, shown, jobs)],
        articles=[],
        version=__version__,
    )
