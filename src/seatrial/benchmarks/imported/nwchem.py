"""imported.nwchem: elapsed times of NWChem."""

from __future__ import annotations

from seatrial.benchmarks.imported.application_runs import RUN_PARAMETERS
from seatrial.benchmarks.imported.declarations import imported, time_figure

BENCHMARK = imported(
    "nwchem",
    "NWChem",
    "How long did NWChem take?",
    RUN_PARAMETERS,
    (time_figure("wall", "elapsed time of the whole run"),),
)
