"""NVIDIA's build of HPCG: its output on the terminal, with the report of HPCG, which is read as that of HPCG.

Before the report it prints ratings of its own, of other phases and versions of the benchmark: none of them counts.

`apps.hpcg-nvidia`: HPCG of the NVIDIA HPC Benchmarks, a rank for each GPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.applications.hpcg import PARAMETERS, figures_of
from seatrial.applications.hpcg import read as read_hpcg
from seatrial.applications.hpcg_output import TOOL
from seatrial.applications.hpl_nvidia import INSTALL, ONE_PER_GPU, of_nvidia
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, Made, application
from seatrial.model.benchmark.given_input import InputCase
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.results.imported import ImportedFile

_BANNER = Pattern(r"HPCG-NVIDIA ([0-9][0-9.]{0,15})\s{1,9}--.{0,100}")


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError as the reader of HPCG does, and for another build."""
    found = of_nvidia(read_hpcg(data), data, "hpcg-nvidia", "HPCG-NVIDIA 25.4.0  -- NVIDIA accelerated HPCG")
    banner = Log(TOOL, data).at_most_one(_BANNER, "title `HPCG-NVIDIA`")
    version = found.version if banner is None else f"{found.version} (HPCG-NVIDIA {banner.text(1)})"
    return replace(found, version=version)


IMPORTED = figures.imported(
    "hpcg-nvidia",
    "HPCG of NVIDIA",
    "How fast did NVIDIA's HPCG solve a sparse linear system on GPUs?",
    PARAMETERS,
    figures_of(figures.given_limit("flop/s")),
)

READER = figures.Reader("hpcg-nvidia", read)


_AXES = ("nx", "ny", "nz")


def _arguments(params: Params) -> Sequence[str]:
    sizes = (word for axis in _AXES for word in (f"--{axis}", str(params[axis])))
    return [*sizes, "--rt", str(params["seconds"])]


BENCHMARK = application(
    IMPORTED,
    "How fast does NVIDIA's HPCG solve a sparse linear system on GPUs?",
    tool="HPCG",
    programs=("hpcg.sh",),
    install=f"{INSTALL}hpcg.sh on PATH",
    arguments=_arguments,
    cases=(InputCase("box", "nx x ny x nz points of each rank", ""),),
    made=Made(
        parameters=(
            *(Parameter.integer(axis, 256, f"points of a rank along {axis[1]}", minimum=8) for axis in _AXES),
            Parameter.integer("seconds", 60, "length of the timed part; an official result: 1800", minimum=1),
        )
    ),
    has_start=False,
    stated={"ranks": "ranks", **{axis: axis for axis in _AXES}},
    ranks=ONE_PER_GPU,
    evidence=FORMAT_SEEN,
)
