"""apps.vasp: VASP on an input of the user; its OUTCAR is read as `seatrial import vasp=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.vasp import BENCHMARK as IMPORTED

BENCHMARK = application(
    "apps.vasp",
    "How long does VASP take?",
    IMPORTED,
    tool="VASP",
    programs=("vasp_std", "vasp_gam", "vasp_ncl"),
    install="VASP needs a licence (https://www.vasp.at): put vasp_std on PATH",
    arguments=lambda params: [],
    output="OUTCAR",
    cases=(),  # potentials (POTCAR) may not be published, so there is no complete input to be had
    has_start=False,
    evidence=FORMAT_SEEN,
)
