"""imported.hpcg-nvidia: the rating of NVIDIA's build of HPCG."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import given_limit, imported
from seatrial.benchmarks.imported.hpcg import PARAMETERS, figures

BENCHMARK = imported(
    "hpcg-nvidia",
    "HPCG of NVIDIA",
    "How fast did NVIDIA's HPCG solve a sparse linear system on GPUs?",
    PARAMETERS,
    figures(given_limit("flop/s")),
)
