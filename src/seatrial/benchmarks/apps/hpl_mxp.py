"""apps.hpl-mxp: HPL-MxP of the NVIDIA HPC Benchmarks, a rank for each GPU; what it prints is read as `seatrial import
hpl-mxp=FILE` does."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.apps.hpl_input import grids_of
from seatrial.benchmarks.apps.hpl_nvidia import INSTALL, ONE_PER_GPU
from seatrial.benchmarks.imported.hpl_mxp import BENCHMARK as IMPORTED
from seatrial.model.given_input import InputCase
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole


def _arguments(params: Params) -> Sequence[str]:
    ranks = whole(params["ranks"])
    p, q = grids_of(ranks)[0]
    devices = ":".join(map(str, range(-(-ranks // whole(params["nodes"])))))
    size = ["--n", str(params["n"]), "--nb", str(params["nb"])]
    return [*size, "--nprow", str(p), "--npcol", str(q), "--nporder", "row", "--gpu-affinity", devices]


BENCHMARK = application(
    "apps.hpl-mxp",
    "How fast does HPL-MxP solve a dense system of linear equations in mixed precision?",
    IMPORTED,
    tool="HPL-MxP",
    programs=("hpl-mxp.sh",),
    install=f"{INSTALL}hpl-mxp.sh on PATH",
    arguments=_arguments,
    output="stdout",
    cases=(InputCase("square", "one matrix of order n on the grid nearest to a square", ""),),
    made=Made(
        inputs=lambda params: {},
        parameters=(
            Parameter("n", ParameterKind.INTEGER, 92160, "order of the matrix", minimum=1),
            Parameter("nb", ParameterKind.INTEGER, 1024, "block size", minimum=1),
        ),
    ),
    has_start=False,
    stated={"ranks": "ranks", "n": "n", "nb": "nb"},
    ranks=ONE_PER_GPU,
    evidence=FORMAT_SEEN,
)
