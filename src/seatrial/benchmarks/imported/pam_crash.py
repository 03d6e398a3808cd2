"""imported.pam-crash: the time that PAM-CRASH (ESI VPS) took."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import choice_parameter, imported, time_figure

BENCHMARK = imported(
    "pam-crash",
    "PAM-CRASH",
    "How long did PAM-CRASH take?",
    (choice_parameter("precision", "precision of the solver", "single", "double"),),
    (time_figure("wall", "elapsed time of the whole run (the last ELAPSED TIME)"),),
)
