"""apps.mechanical: Ansys Mechanical APDL on the user's input; its output is read as `seatrial import mechanical=FILE`
does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FROM_DOCUMENTATION, application
from seatrial.benchmarks.imported.mechanical import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT

BENCHMARK = application(
    "apps.mechanical",
    "How long does Ansys Mechanical take?",
    IMPORTED,
    tool="Mechanical APDL",
    programs=("mapdl", *(f"ansys{year}{release}" for year in (26, 25, 24, 23) for release in (2, 1))),
    install="Mechanical needs a licence (https://www.ansys.com): put mapdl, or ansys251 and the like, on PATH",
    arguments=lambda params: ["-b", "-np", str(params["processes"]), "-i", str(params[INPUT]), "-o", "solve.out"],
    output="solve.out",
    cases=(),
    starts="itself",
    stated={"cores": "processes"},
    evidence=FROM_DOCUMENTATION,  # the only sample is a run without a licence, which is refused
)
