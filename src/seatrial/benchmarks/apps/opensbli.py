"""apps.opensbli: OpenSBLI's benchmark, whose case is compiled in; what it prints is read as `seatrial import
opensbli=FILE` does."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.imported.opensbli import BENCHMARK as IMPORTED
from seatrial.model.given_input import InputCase

BENCHMARK = application(
    "apps.opensbli",
    "How long does OpenSBLI take for an iteration of a Taylor-Green vortex?",
    IMPORTED,
    tool="OpenSBLI",
    programs=("OpenSBLI_mpi", "OpenSBLI_mpi_openmp"),
    install="build OpenSBLI's benchmark (https://github.com/hpc-uk/archer-benchmarks, apps/OpenSBLI) and put "
    "OpenSBLI_mpi on PATH",
    arguments=lambda params: [],
    output="stdout",
    cases=(InputCase("tgv", "the Taylor-Green vortex of the size that was compiled in", ""),),
    made=Made(inputs=lambda params: {}, parameters=()),
    has_start=False,
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
