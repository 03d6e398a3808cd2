"""What the imported benchmarks of simulation codes share: the parameters that their logs state."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter

RUN_PARAMETERS = (
    count_parameter("atoms", "atoms of the system"),
    count_parameter("nodes", "hosts"),
    count_parameter("ranks", "processes"),
    count_parameter("threads", "threads of each process"),
)
