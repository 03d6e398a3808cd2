"""apps.star-ccm: Simcenter STAR-CCM+ on the user's simulation; its log is read as `seatrial import star-ccm=FILE` does.

The simulation must have the report `Total Solver Elapsed Time` and print its monitor: STAR-CCM+ prints no time else.
"""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FROM_DOCUMENTATION, application
from seatrial.benchmarks.imported.star_ccm import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT

BENCHMARK = application(
    "apps.star-ccm",
    "How long does STAR-CCM+ take for an iteration?",
    IMPORTED,
    tool="STAR-CCM+",
    programs=("starccm+",),
    install="STAR-CCM+ needs a licence (https://plm.sw.siemens.com): put starccm+ on PATH, and set its licence",
    arguments=lambda params: ["-batch", "run", "-np", str(params["processes"]), str(params[INPUT])],
    output="stdout",
    cases=(),
    starts="itself",
    evidence=FROM_DOCUMENTATION,
)
