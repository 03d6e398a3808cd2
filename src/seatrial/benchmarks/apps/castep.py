"""apps.castep: CASTEP on its published inputs; its log is read as `seatrial import castep=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.castep import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase

BENCHMARK = application(
    "apps.castep",
    "How long does CASTEP take?",
    IMPORTED,
    tool="CASTEP",
    programs=("castep.mpi", "castep"),
    install="CASTEP needs a licence (http://www.castep.org): put castep.mpi on PATH",
    arguments=lambda params: [str(params[INPUT]).removesuffix(".param")],
    output="*.castep",
    cases=(
        InputCase(
            "al3x3",
            "a slab of sapphire, 270 atoms",
            "http://www.castep.org/CASTEP/Benchmarks",
            "al3x3.param",
            ("al3x3.cell",),
            270,
        ),
    ),
    evidence=FORMAT_SEEN,
)
