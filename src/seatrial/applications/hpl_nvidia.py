"""NVIDIA's build of HPL: the output of HPL among its own lines, read as that of HPL.

`apps.hpl-nvidia`: HPL of the NVIDIA HPC Benchmarks, a rank for each GPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from seatrial.applications.hpl import PARAMETERS, WORK
from seatrial.applications.hpl import read as read_hpl
from seatrial.applications.hpl_input import grids_of, hpl_dat
from seatrial.applications.hpl_output import BEGINS
from seatrial.applications.reading import figures
from seatrial.applications.running.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.placement import RANKS
from seatrial.errors import ParseError
from seatrial.model.benchmark.given_input import NONE, InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.results.imported import ImportedFile

_MARK = re.compile(rb"NVIDIA|CUDA|GPU")


def of_nvidia(found: ImportedFile, data: bytes, kind: str, title: str) -> ImportedFile:
    """What the reader of other builds found, as experiments of NVIDIA's. Raises ParseError for another build."""
    if not _MARK.search(data):
        plain = kind.removesuffix("-nvidia")
        raise ParseError(found.tool, None, "", f"no line such as `{title}`: `import {plain}=FILE` reads others")
    return replace(found, experiments=tuple(replace(one, benchmark=f"imported.{kind}") for one in found.experiments))


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError as the reader of HPL does, and for another build."""
    return of_nvidia(read_hpl(data), data, "hpl-nvidia", "HPL-NVIDIA 25.4.0  -- NVIDIA accelerated HPL benchmark")


IMPORTED = figures.imported(
    "hpl-nvidia",
    "HPL of NVIDIA",
    "How fast did NVIDIA's HPL solve a dense system of linear equations on GPUs?",
    PARAMETERS,
    (
        figures.rate("rate", "flop/s", f"{WORK}, of all GPUs", figures.given_limit("flop/s")),
        figures.time("time", "time to factor and solve"),
    ),
)

READER = figures.Reader("hpl-nvidia", read, BEGINS)


INSTALL = "get NVIDIA's HPC Benchmarks (https://developer.nvidia.com, or the container of its catalogue) and put "
ONE_PER_GPU = replace(RANKS, default=1, help="MPI ranks, one for each GPU")
_DAT = "HPL.dat"


def _inputs(params: Params) -> Mapping[str, bytes]:
    if params["inputs"] != NONE:
        return {}
    n, nb = whole(params["n"]), whole(params["nb"])
    return {_DAT: hpl_dat(n, (nb,), grids_of(whole(params["ranks"]))[:1], to_stdout=True)}


BENCHMARK = application(
    IMPORTED,
    "How fast does NVIDIA's HPL solve a dense system of linear equations on GPUs?",
    tool="HPL",
    programs=("hpl.sh",),
    install=f"{INSTALL}hpl.sh on PATH",
    arguments=lambda params: ["--dat", _DAT],
    cases=(
        InputCase("square", "one matrix of order n on the grid nearest to a square", ""),
        InputCase("sample", "a file HPL.dat that comes with the program", "its folder sample-dat", files=(_DAT,)),
    ),
    made=Made(
        inputs=_inputs,
        parameters=(
            Parameter.integer("n", 92160, "order of the matrix (square); 8 n^2 B on the GPUs", minimum=1),
            Parameter.integer("nb", 1024, "block size (square)", minimum=1),
        ),
    ),
    has_start=False,
    stated={"ranks": "ranks"},
    ranks=ONE_PER_GPU,
    evidence=FORMAT_SEEN,
)
