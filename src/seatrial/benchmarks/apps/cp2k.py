"""apps.cp2k: CP2K on the inputs of its own repository; its log is read as `seatrial import cp2k=FILE` does.

Run with CP2K 2023.1 on one molecule of water, with one and two ranks; the published input takes longer than was tried.
"""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import application
from seatrial.benchmarks.imported.cp2k import BENCHMARK as IMPORTED
from seatrial.model.given_input import INPUT, InputCase

_REPOSITORY = "https://github.com/cp2k/cp2k, folder benchmarks"

BENCHMARK = application(
    "apps.cp2k",
    "How long does CP2K take?",
    IMPORTED,
    tool="CP2K",
    programs=("cp2k.psmp", "cp2k.popt", "cp2k"),
    install="install CP2K (Debian: package cp2k; Spack: spack install cp2k)",
    arguments=lambda params: ["-i", str(params[INPUT])],
    output="stdout",
    cases=(InputCase("h2o-64", "64 water molecules", f"{_REPOSITORY}/QS", "H2O-64.inp", atoms=192),),
)
