"""apps.pmemd: molecular dynamics by AMBER's pmemd, on the inputs of `apps.amber`."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.benchmarks.apps.amber import declared
from seatrial.benchmarks.apps.given_input import FORMAT_SEEN

BENCHMARK = replace(
    declared(
        "apps.pmemd",
        ("pmemd.MPI", "pmemd"),
        "pmemd needs a licence (https://ambermd.org): put pmemd.MPI or pmemd on PATH",
        "How fast does AMBER's pmemd simulate a box of water?",
    ),
    verified=False,
    evidence=FORMAT_SEEN,
)
