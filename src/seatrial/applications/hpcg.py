"""HPCG: its reports (hpcg_output.py), and runs.

`apps.hpcg`: the High Performance Conjugate Gradients benchmark (HPCG), the site's own `xhpcg`.

HPCG is memory-bound: each nonzero of the matrix takes at least 12 B (a number and its column) for two operations. The
limit of the rating is therefore the memory bandwidth over 6 B per operation, if the matrix is beyond the caches. A
rating is official only after a run of at least 1800 s (HPCG's own report); the figure here estimates it, and the note
`submission_valid` says whether the run could be submitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.applications.hpcg_output import SHORTEST_OFFICIAL_S, TOOL, HpcgReport, read_hpcg
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.run_output import output_file
from seatrial.applications.reading.text import SIX_DIGITS
from seatrial.applications.running.copies import problem
from seatrial.benchmarks.figures import exactly, rate, zero
from seatrial.benchmarks.placement import LAYOUT, counted_by, cpus_of, openmp_variables, placement, resolved
from seatrial.model.benchmark.benchmark import Ceiling, Check, External, Figure, LimitOf, Role
from seatrial.model.benchmark.parameter import Parameter, Params, Value, beyond_caches_B, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample


def read(data: bytes) -> ImportedFile:
    """One report of HPCG. Raises ParseError if it is cut off, has two runs, or contradicts itself."""
    report = read_hpcg(Log(TOOL, data))
    parameters: dict[str, Value] = dict(report.counts)
    experiment = ImportedExperiment("imported.hpcg", tuple(_samples(report)), parameters, report.notes)
    return ImportedFile(TOOL, report.version, (experiment,), report.failed)


def _samples(report: HpcgReport) -> list[Sample]:
    if report.failed:
        return []
    samples = [
        figures.rate_sample(name, figures.in_SI(value, 1e9), resolution=SIX_DIGITS)
        for name, value in report.rates.items()
    ]
    return [*samples, figures.time_sample("time", report.total_s, resolution=SIX_DIGITS)]


PARAMETERS = (
    *figures.counts(ranks="processes", threads="threads per process"),
    *(figures.count(axis, f"local problem of each process, {axis[1]}") for axis in ("nx", "ny", "nz")),
)


def figures_of(limit: LimitOf) -> tuple[Figure, ...]:
    """The figures of a report; `limit` is that of the arithmetic."""
    return (
        figures.rate("rating", "flop/s", "all operations, over the total time with overheads", limit),
        # HPCG models these bytes, and caches may serve some of them, so the DRAM bandwidth is not a limit.
        figures.rate("bandwidth", "B/s", "bytes that HPCG's model counts, over the total time with overheads"),
        *(
            figures.rate(name, "flop/s", f"operations of {kernel}, raw", limit)
            for name, kernel in (("ddot", "DDOT"), ("waxpby", "WAXPBY"), ("spmv", "SpMV"), ("mg", "MG"))
        ),
        figures.time("time", "time of the timed sets"),
    )


IMPORTED = figures.imported(
    "hpcg",
    "HPCG",
    "How fast did HPCG solve a sparse linear system by conjugate gradients?",
    PARAMETERS,
    figures_of(figures.device_flops_limit("ranks")),
)

READER = figures.Reader("hpcg", read, ("HPCG-Benchmark",))


RATING, TIMED = "rating", "timed_sets"
_SMALLEST = 64
_STEP = 8
"""HPCG halves the grid three times for its coarse levels (GenerateCoarseProblem.cpp)."""
_NONZEROS_PER_ROW = 27
_BYTES_PER_NONZERO = 12
_FLOP_PER_NONZERO = 2
_SLOW_CPU_FLOPS = 1e9
_ITERATIONS = 50
_FLOP_PER_ROW = 370
"""Of one iteration: the report of HPCG 3.1 for 524,288 rows counts 9.56e9 for 50."""
_SETS_BESIDE_THE_TIMED = 5
"""What setting up, testing and timing the reference code takes, in sets of 50 iterations (HPCG 3.1)."""


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved(machine, params)
    return {**params, "size": _auto_size(machine, params) if params["size"] == "auto" else whole(params["size"])}


def _auto_size(machine: Machine, params: Params) -> int:
    """The least edge, from 64, with which the matrix is beyond the caches."""
    least_B = beyond_caches_B(machine, placement(machine, params)) or 0
    size = _SMALLEST
    while _matrix_B({**params, "size": size}) < least_B:
        size += _STEP
    return size


def _rows(params: Params) -> int:
    return whole(params["size"]) ** 3 * whole(params["ranks"])


def _matrix_B(params: Params) -> int:
    return _rows(params) * _NONZEROS_PER_ROW * _BYTES_PER_NONZERO


def _estimate_s(params: Params) -> float:
    set_s = _ITERATIONS * _FLOP_PER_ROW * _rows(params) / (_SLOW_CPU_FLOPS * cpus_of(params))
    return _SETS_BESIDE_THE_TIMED * set_s + max(set_s, whole(params["seconds"]))


def _arguments(params: Params, directory: Path) -> list[str]:
    edge = whole(params["size"])
    return [*(f"--{axis}={edge}" for axis in ("nx", "ny", "nz")), f"--rt={whole(params['seconds'])}"]


@output_file(TOOL)
def read_report(log: Log) -> ProgramRecord:
    """The rating in a report of HPCG. Raises ProtocolError where it is not one whole report that fits together."""
    report = read_hpcg(log)
    return ProgramRecord(
        samples=tuple(_samples_of_run(report)),
        checks={
            "tests_failed": float(report.failed != ""),
            **{name: float(count) for name, count in report.counts.items()},
        },
        notes={"hpcg_version": report.version, **report.notes, **({"failed": report.failed} if report.failed else {})},
        ended=True,
    )


def _samples_of_run(report: HpcgReport) -> list[Sample]:
    """The time of the timed sets and, where HPCG's own tests passed, the operations that its rating counts for it."""
    total_s = report.total_s
    samples = [Sample(TIMED, 0, total_s)]
    if not report.failed:
        rates = {name: rate * 1e9 for name, rate in report.rates.items()}
        samples.append(Sample(RATING, 0, total_s, {"flops": rates.pop(RATING) * total_s}, extra=rates))
    return samples


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    if whole(params["nodes"]) > 1:
        return Limit.unknown("flop/s", "the limit is that of the memory of one node")
    memory = machine.named_limit("dram.bandwidth")
    least_B = beyond_caches_B(machine, placement(machine, params))
    if least_B is None or _matrix_B(params) < least_B:
        return Limit.unknown(
            "flop/s", "memory is a limit only if the matrix is known to be at least four times the caches"
        )
    if memory is None or memory.value is None:
        return Limit.unknown("flop/s", memory.derivation if memory is not None else "the memory modules are unknown")
    flop_per_B = _FLOP_PER_NONZERO / _BYTES_PER_NONZERO
    derivation = f"{memory.derivation}; 12 B per nonzero for 2 flop"
    return Limit(memory.value * flop_per_B, "flop/s", derivation, memory.basis, memory.confirmed)


def _ceiling(params: Params) -> Ceiling:
    return Ceiling(
        roles=(Role.MEMORY_BANDWIDTH, Role.MEMORY_STREAM),
        parameters={"nontemporal": True},
        factor=_FLOP_PER_NONZERO / _BYTES_PER_NONZERO,
        derivation="best non-temporal rate of {benchmark} measured here; 12 B per nonzero for 2 flop",
        ignored=("threads", "node", "memory", "huge_pages", "kernel", "array_B"),
    )


def _customary(params: Params, value: float) -> str:
    seconds = whole(params["seconds"])
    return "long enough to be official" if seconds >= SHORTEST_OFFICIAL_S else f"not official: {seconds} s of 1800 s"


BENCHMARK = problem(
    External(
        name="xhpcg",
        install="build HPCG (https://www.hpcg-benchmark.org; Spack: spack install hpcg) and put xhpcg on PATH",
        output="HPCG-Benchmark_*.txt",
        arguments=_arguments,
        parse=read_report,
        version=(),
        variables=openmp_variables,
    ),
    name="apps.hpcg",
    question="How fast does this machine solve a sparse linear system by conjugate gradients?",
    parameters=(
        Parameter.integer(
            "size",
            "auto",
            "rows along each edge of the cube of one rank, a multiple of 8; auto: 64, or more to exceed the caches",
            minimum=16,
        ),
        Parameter.integer("seconds", 10, "minimum duration of the timed sets; an official run takes 1800", minimum=1),
        *LAYOUT,
    ),
    figures=(
        rate(
            RATING,
            "flop/s",
            "operations as HPCG counts them, over the total time with overheads",
            limit=_limit,
            ceiling=_ceiling,
            one_limit_over=("ranks", "threads", "size", "seconds"),
            customary=_customary,
        ),
    ),
    checks=(
        Check("tests_failed", "0 if HPCG's own tests passed: convergence, symmetry, iterations, reproducibility", zero),
        *counted_by("HPCG"),
        *(Check(axis, f"rows of one rank along {axis[1]}", exactly("size")) for axis in ("nx", "ny", "nz")),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
