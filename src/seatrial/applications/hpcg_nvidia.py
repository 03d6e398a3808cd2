"""NVIDIA's build of HPCG: its output on the terminal, with the report of HPCG, which is read as that of HPCG.

Before the report it prints ratings of its own, of other phases and versions of the benchmark: none of them counts.
Its builds of 2017 print no report: the last block has the final rating, that of all kernels and the grid of processes.

`apps.hpcg-nvidia`: HPCG of the NVIDIA HPC Benchmarks, a rank for each GPU.
"""

from __future__ import annotations

import math
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
from seatrial.model.benchmark.parameter import Parameter, Params, Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile

_START = Pattern(r"start of application \(([0-9]{1,4}) OMP threads\).{0,9}")
_END = Pattern(r"end of application.{0,9}")
_RATES = r" *= *(\S{1,20}) GF \(.{1,60}\) +(\S{1,20}) GF_per\b.{0,60}"
_FINAL, _SPMV = Pattern("final" + _RATES), Pattern("SpMV" + _RATES)
_GRID = Pattern(r"([0-9]{1,7})x([0-9]{1,7})x([0-9]{1,7}) process grid")
_LOCAL = Pattern(r"([0-9]{1,7})x([0-9]{1,7})x([0-9]{1,7}) local domain")
_TOTAL_S = Pattern(r"Total Time: +(\S{1,20}) sec")
_BANNER = Pattern(r"HPCG-NVIDIA ([0-9][0-9.]{0,15})\s{1,9}--.{0,100}")


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError as the reader of HPCG does, and for another build."""
    log = Log(TOOL, data)
    if log.found(_FINAL):
        return _of_2017(log)
    found = of_nvidia(read_hpcg(data), data, "hpcg-nvidia", "HPCG-NVIDIA 25.4.0  -- NVIDIA accelerated HPCG")
    banner = Log(TOOL, data).at_most_one(_BANNER, "title `HPCG-NVIDIA`")
    version = found.version if banner is None else f"{found.version} (HPCG-NVIDIA {banner.text(1)})"
    return replace(found, version=version)


def _of_2017(log: Log) -> ImportedFile:
    """A run of a build without the report of HPCG. Raises ParseError if it did not end, or contradicts itself."""
    log.banner(_START, "start of application (16 OMP threads)...")
    log.end(_END, "there is no `end of application`")
    final = log.only(_FINAL, "line `final`")
    block = log.lines[: final.line.number]
    grid, local = log.found(_GRID, block), log.found(_LOCAL, block)
    if not grid or not local:
        raise final.error("no line `NxNxN process grid` and `NxNxN local domain` above it")
    ranks = math.prod(grid[-1].whole(axis, "a process count") for axis in (1, 2, 3))
    samples = [log.only(_TOTAL_S, "line `Total Time`").printed(1, "the total time").sample("time")]
    for series, found in (("rating", final), ("spmv", log.only(_SPMV, "line `SpMV`"))):
        rate, each = found.printed(1, "the rate"), found.printed(2, "the rate of a process")
        if not rate.agrees(each.scaled(ranks)):
            raise found.error(f"{found.match[1]} GF are not {ranks} x {found.match[2]}")
        samples.append(rate.rate_sample(series, 1e9))
    parameters: dict[str, Value] = {axis: local[-1].whole(place, axis) for place, axis in enumerate(_AXES, start=1)}
    parameters |= {"ranks": ranks, "threads": log.only(_START, "start").whole(1, "the threads")}
    remarks = ("this build prints no validation of its result",)
    experiment = ImportedExperiment("imported.hpcg-nvidia", tuple(samples), parameters, remarks=remarks)
    return ImportedFile("HPCG of NVIDIA", "", (experiment,))


_AXES = ("nx", "ny", "nz")

IMPORTED = figures.imported(
    "hpcg-nvidia",
    "HPCG of NVIDIA",
    "How fast did NVIDIA's HPCG solve a sparse linear system on GPUs?",
    PARAMETERS,
    figures_of(figures.given_limit("flop/s")),
)

READER = figures.Reader("hpcg-nvidia", read, (_BANNER.text, _START.text, "HPCG-Benchmark"))


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
