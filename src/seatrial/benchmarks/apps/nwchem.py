"""apps.nwchem: NWChem on an input of the user; its log is read as `seatrial import nwchem=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.nwchem import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase

BENCHMARK = application(
    "apps.nwchem",
    "How long does NWChem take?",
    IMPORTED,
    tool="NWChem",
    programs=("nwchem", "nwchem.openmpi", "nwchem.mpich"),
    install="install NWChem (Debian: package nwchem; Spack: spack install nwchem)",
    arguments=lambda params: [str(params[INPUT])],
    output="stdout",
    cases=(
        InputCase(
            "c240", "the fullerene C240, basis 6-31G*", "https://nwchemgit.github.io/Benchmarks.html", "c240_631gs.nw"
        ),
    ),
    evidence=FORMAT_SEEN,
)
