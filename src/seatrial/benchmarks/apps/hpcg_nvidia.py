"""apps.hpcg-nvidia: HPCG of the NVIDIA HPC Benchmarks, a rank for each GPU; read as `seatrial import hpcg-nvidia=FILE`
does."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.apps.hpl_nvidia import INSTALL, ONE_PER_GPU
from seatrial.benchmarks.imported.hpcg_nvidia import BENCHMARK as IMPORTED
from seatrial.model.given_input import InputCase
from seatrial.model.parameter import Parameter, ParameterKind, Params

_AXES = ("nx", "ny", "nz")


def _arguments(params: Params) -> Sequence[str]:
    sizes = (word for axis in _AXES for word in (f"--{axis}", str(params[axis])))
    return [*sizes, "--rt", str(params["seconds"])]


BENCHMARK = application(
    "apps.hpcg-nvidia",
    "How fast does NVIDIA's HPCG solve a sparse linear system on GPUs?",
    IMPORTED,
    tool="HPCG",
    programs=("hpcg.sh",),
    install=f"{INSTALL}hpcg.sh on PATH",
    arguments=_arguments,
    output="stdout",
    cases=(InputCase("box", "nx x ny x nz points of each rank", ""),),
    made=Made(
        inputs=lambda params: {},
        parameters=(
            *(
                Parameter(axis, ParameterKind.INTEGER, 256, f"points of a rank along {axis[1]}", minimum=8)
                for axis in _AXES
            ),
            Parameter(
                "seconds", ParameterKind.INTEGER, 60, "length of the timed part; an official result: 1800", minimum=1
            ),
        ),
    ),
    has_start=False,
    stated={"ranks": "ranks", **{axis: axis for axis in _AXES}},
    ranks=ONE_PER_GPU,
    evidence=FORMAT_SEEN,
)
