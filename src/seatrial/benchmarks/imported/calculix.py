"""imported.calculix: the time that CalculiX took."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, time_figure

BENCHMARK = imported(
    "calculix",
    "CalculiX",
    "How long did CalculiX take?",
    (
        count_parameter("threads", "threads, at most"),
        count_parameter("nodes", "nodes of the mesh (upper bound)"),
        count_parameter("elements", "elements of the mesh (upper bound)"),
    ),
    (time_figure("wall", "elapsed time of the whole run, with reading the input"),),
)
