"""The sections of a page about one machine, in order: findings first, provenance last.

To add one, write `panels/<name>.py` and `templates/panels/<name>.html.j2` and add it to `PANELS`.
"""

from __future__ import annotations

from seatrial.report.panels.charts import CHART_PANELS, FINDINGS_PANEL, UNMEASURED_PANEL, Panel
from seatrial.report.panels.figure_table import FIGURES_PANEL
from seatrial.report.panels.node import NODE_PANEL
from seatrial.report.panels.provenance import PROVENANCE_PANEL

PANELS: tuple[Panel, ...] = (
    FINDINGS_PANEL,
    NODE_PANEL,
    FIGURES_PANEL,
    *CHART_PANELS,
    UNMEASURED_PANEL,
    PROVENANCE_PANEL,
)
