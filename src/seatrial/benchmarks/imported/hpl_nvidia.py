"""imported.hpl-nvidia: the rate at which NVIDIA's build of HPL solved a dense system of linear equations."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import given_limit, imported, rate_figure, time_figure
from seatrial.benchmarks.imported.hpl import PARAMETERS, WORK

BENCHMARK = imported(
    "hpl-nvidia",
    "HPL of NVIDIA",
    "How fast did NVIDIA's HPL solve a dense system of linear equations on GPUs?",
    PARAMETERS,
    (
        rate_figure("rate", "flop/s", f"{WORK}, of all GPUs", given_limit("flop/s")),
        time_figure("time", "time to factor and solve"),
    ),
)
