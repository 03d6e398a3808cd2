"""apps.hpl-nvidia: HPL of the NVIDIA HPC Benchmarks, a rank for each GPU; what it prints is read as `seatrial import
hpl-nvidia=FILE` does."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.apps.hpl_input import grids_of, hpl_dat
from seatrial.benchmarks.apps.layout import RANKS
from seatrial.benchmarks.imported.hpl_nvidia import BENCHMARK as IMPORTED
from seatrial.model.given_input import NONE, InputCase
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole

INSTALL = "get NVIDIA's HPC Benchmarks (https://developer.nvidia.com, or the container of its catalogue) and put "
ONE_PER_GPU = replace(RANKS, default=1, help="MPI ranks, one for each GPU")
_DAT = "HPL.dat"


def _inputs(params: Params) -> Mapping[str, bytes]:
    if params["inputs"] != NONE:
        return {}
    n, nb = whole(params["n"]), whole(params["nb"])
    return {_DAT: hpl_dat(n, (nb,), grids_of(whole(params["ranks"]))[:1], to_stdout=True)}


BENCHMARK = application(
    "apps.hpl-nvidia",
    "How fast does NVIDIA's HPL solve a dense system of linear equations on GPUs?",
    IMPORTED,
    tool="HPL",
    programs=("hpl.sh",),
    install=f"{INSTALL}hpl.sh on PATH",
    arguments=lambda params: ["--dat", _DAT],
    output="stdout",
    cases=(
        InputCase("square", "one matrix of order n on the grid nearest to a square", ""),
        InputCase("sample", "a file HPL.dat that comes with the program", "its folder sample-dat", files=(_DAT,)),
    ),
    made=Made(
        inputs=_inputs,
        parameters=(
            Parameter(
                "n", ParameterKind.INTEGER, 92160, "order of the matrix (square); 8 n^2 B on the GPUs", minimum=1
            ),
            Parameter("nb", ParameterKind.INTEGER, 1024, "block size (square)", minimum=1),
        ),
    ),
    has_start=False,
    stated={"ranks": "ranks"},
    ranks=ONE_PER_GPU,
    evidence=FORMAT_SEEN,
)
