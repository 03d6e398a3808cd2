"""apps.hoomd: HOOMD-blue on the scripts of hoomd-benchmarks; the metadata that these write are read as
`seatrial import hoomd=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, application
from seatrial.benchmarks.imported.hoomd import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase

_REPOSITORY = "https://github.com/joaander/hoomd-benchmarks"

BENCHMARK = application(
    "apps.hoomd",
    "How fast does HOOMD-blue simulate?",
    IMPORTED,
    tool="HOOMD-blue",
    programs=("hoomd",),
    install="install HOOMD-blue 1 or 2 (Spack: spack install hoomd-blue) and put hoomd on PATH",
    arguments=lambda params: [str(params[INPUT])],
    output="metadata.json",
    cases=(
        InputCase("hexagon", "1,048,576 hard hexagons", f"{_REPOSITORY}, folder hexagon", "bmark.py"),
        InputCase("quasicrystal", "100,000 particles", f"{_REPOSITORY}, folder quasicrystal", "bmark.py"),
    ),
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
