"""Shared by the benchmarks of collective operations: parameters, sizes, figures, checks, limits.

`time_max` is the time of the slowest rank of an iteration and `time_mean` the mean over ranks, each then averaged over
the iterations of a sample. The start of an iteration determines what these times include:

- clock (the default): at an agreed time of a common clock, so that no rank waits inside the operation for a rank that
  left a barrier later. An iteration with a late rank is dropped (`overrun_share`). The method is
  that of S. Hunold, A. Carpen-Amarie, "Reproducible MPI benchmarking is still not as easy as you think", IEEE TPDS
  27(12), 2016, with the windows of SKaMPI. Ranks of one host share a clock; between hosts it is measured.
- barrier: after a barrier, as in the OSU micro-benchmarks (osu_allreduce, ...) and Intel MPI Benchmarks 2019 and
  later. The time includes the skew with which ranks leave the barrier.
- back-to-back: one call after another in one timed region, as in older Intel MPI Benchmarks, and as both suites time
  their barrier. Ranks that only send run ahead, so that the calls overlap.

The maximum in these suites is that of the means of the ranks, not the mean of the maxima of the iterations, and is
therefore smaller.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from seatrial.benchmarks.figures import between, zero
from seatrial.benchmarks.mpi.mpi_benchmark import (
    BUFFERS,
    SLICE_S,
    has_device_buffers,
    mpi_benchmark,
    resolved_ranks,
)
from seatrial.benchmarks.mpi.sizes import resolved_sizes, sizes_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, LimitOf, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.fact import sizing_memory_B
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample, point_key

_LARGEST_B = 4 << 20
_SHARE_OF_MEMORY = 2
_MOST_OVERRUN = 0.25
"""Above it, what is left is a choice: quick iterations after quick ones."""
_MOST_CLOCK_ERROR = 0.5
_COMPUTE_SHARE = (1 / 3, 3.0)
_PASSES = 40
"""How often a repeat goes over its buffers at the least: it fills, exchanges and compares, in five rounds."""
_SLOW_BPS = 2e9

Sizes = Callable[[Params], tuple[int, ...]]
_CALL = Parameter.choice(
    "call",
    "blocking",
    "form of the call; nonblocking: MPI_I..., with its overlap with computation; persistent: MPI_..._init (MPI 4)",
    ("blocking", "nonblocking", "persistent"),
    option="--call",
)
_TESTS = Parameter.integer(
    "tests",
    0,
    "MPI_Test calls during the computation that overlaps a non-blocking operation (osu_iallreduce -t)",
    option="--tests",
)
_START = Parameter.choice(
    "start",
    "auto",
    "how ranks start an iteration: by a common clock, after a barrier (as OSU and IMB do), or back-to-back;"
    " auto: clock, or barrier where ranks share CPUs",
    ("auto", "clock", "barrier", "back-to-back"),
    option="--start",
)
_LARGEST = Parameter.size(
    "largest_B",
    "auto",
    "largest size of a sweep; auto: 4 MiB, or less if the buffers of all ranks would fill half of the memory",
    minimum=1,
)


def _size_parameter(counted: str) -> Parameter:
    """`counted` says what has so many bytes."""
    return Parameter.size(
        "size_B",
        "sweep",
        f"bytes of {counted}; sweep: every power of two to largest_B; to-memory: up to what fits into memory",
        ("sweep", "to-memory"),
        minimum=1,
    )


def resolved_call(machine: Machine, params: Params) -> Params:
    """The parameters with ranks and start resolved. Raises Skip for what means nothing here."""
    params = resolved_ranks(machine, params)
    if has_device_buffers(params):
        raise Skip(
            f"buffers={params['buffers']}: these programs use host memory only; for collective operations of an "
            "MPI between devices, see `seatrial list gpu`"
        )
    if whole(params["ranks"]) < 2:
        raise Skip("a collective operation needs at least 2 ranks")
    if params["tests"] and params["call"] != "nonblocking":
        raise Skip("tests, the number of MPI_Test calls, needs call=nonblocking")
    start = params["start"]
    if start == "auto":
        start = "barrier" if params["oversubscribe"] else "clock"
    if start == "clock" and params["oversubscribe"]:
        raise Skip("ranks that share CPUs cannot all start at the same time: use start=barrier")
    return {**params, "start": start}


def _why_samples_missing(params: Params, notes: Mapping[str, object]) -> str:
    """By what the program counted of the agreed starts (bursts), of which those that a rank missed are repeated."""
    missed, bursts = notes.get("missed_bursts"), notes.get("bursts")
    if params.get("start") != "clock" or not isinstance(missed, int) or missed <= 0:
        return ""
    of_all = f" of {bursts}" if isinstance(bursts, int) and bursts >= missed else ""
    return f"ranks were late for {missed}{of_all} starts by the common clock; use start=barrier, which needs none"


def resolved_largest(machine: Machine, params: Params, buffers: int) -> Params:
    """The parameters with the sizes that their words stand for; `buffers` as in `resolved_sizes`."""
    if params["largest_B"] == "auto":
        memory = sizing_memory_B(machine.facts)
        most = _LARGEST_B if memory is None else min(_LARGEST_B, memory // _SHARE_OF_MEMORY // buffers)
        if most < 1:
            raise Skip(f"half of the memory is less than the {buffers} B of buffers that all ranks need")
        params = {**params, "largest_B": 1 << (most.bit_length() - 1)}
    return resolved_sizes(machine, params, buffers)


def fitting(params: Params, fits: Callable[[int], bool], why: str) -> tuple[int, ...]:
    """The sizes that MPI can take; `why` says what it cannot. Raises Skip where none is left."""
    sizes = tuple(size for size in sizes_of(params) if fits(size))
    if not sizes:
        raise Skip(why)
    return sizes


def _time(sample: Sample) -> float:
    """The time of one operation: imported samples count none, and are of one."""
    return sample.elapsed_s / sample.work.get("ops", 1.0)


def _overlap(sample: Sample) -> float:
    """The share of the operation that computation hid: what both took, less the computation, was not hidden.

    As osu_i* define it; Intel MPI Benchmarks divide by the longer of the two, which here are about as long. Noise may
    carry it past its ends, and does not carry the median of samples there.
    """
    exposed_s = sample.elapsed_s - sample.work["compute_s"]
    return min(1.0, max(0.0, 1.0 - exposed_s / sample.work["alone_s"]))


def _figures(work: str, limit: LimitOf) -> tuple[Figure, ...]:
    """The figures of one operation; `work` says what one of it is."""
    return (
        Figure(
            "time_max", "s", Better.LOWER, _time, f"{work}, on the slowest rank", role=Role.COLLECTIVE_TIME, limit=limit
        ),
        Figure("time_mean", "s", Better.LOWER, _time, f"{work}, mean over ranks", limit=limit),
        Figure(
            "overlap",
            "1",
            Better.HIGHER,
            _overlap,
            "share of the operation hidden by computation of equal length: 1 - (both - computation) / operation alone",
            is_there=lambda params: params["call"] == "nonblocking",
        ),
    )


def _slowest_over_mean(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """time_max over time_mean, in the sample where it is furthest outside of 1 to the number of ranks."""
    times: dict[tuple[object, ...], dict[str, float]] = defaultdict(dict)
    for sample in samples:
        if sample.series != "overlap":
            times[point_key(sample.point), sample.i][sample.series] = _time(sample)
    ratios = [both["time_max"] / both["time_mean"] for both in times.values()]
    return max(ratios, key=lambda ratio: max(1 - ratio, ratio - whole(params["ranks"])), default=None)


def _computed(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The computation over the operation alone, median of each size, of the size where it is furthest from 1."""
    if params["call"] != "nonblocking":
        return None
    shares: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for sample in samples:
        if sample.series == "overlap":
            shares[point_key(sample.point)].append(sample.work["compute_s"] / sample.work["alone_s"])
    medians = [median(of_size) for of_size in shares.values()]
    return max(medians, key=lambda share: abs(math.log(share)), default=0.0)


def _checks(sizes: Sizes) -> tuple[Check, ...]:
    """The checks of one operation; none of `sizes` where it has no size."""

    def missing(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
        wanted: set[object] = set(sizes(params)) or {None}
        series = {"time_max", "time_mean", *(("overlap",) if params["call"] == "nonblocking" else ())}
        found: set[tuple[str, object]] = {(sample.series, sample.point.get("size_B")) for sample in samples}
        return float(len({(name, size) for name in series for size in wanted} ^ found))

    return (
        Check("wrong_data", "wrong bytes of the result, or wrong elements of a reduction", zero),
        Check(
            "overrun_share",
            "share of the iterations started in time after which a rank was late for the next",
            between(0.0, _MOST_OVERRUN),
        ),
        Check(
            "clock_error",
            "largest error seen of the ranks' clocks, over the shortest time measured (not used by start=barrier)",
            between(0.0, _MOST_CLOCK_ERROR),
        ),
        Check(
            "slowest_over_mean",
            "time of the slowest rank over the mean of all ranks",
            lambda machine, params: (1 - 1e-9, whole(params["ranks"]) + 1e-9),
            _slowest_over_mean,
        ),
        Check(
            "computed_share",
            "time of the computation over that of the operation it overlaps; they must be about equal",
            lambda machine, params: _COMPUTE_SHARE,
            _computed,
        ),
        Check(
            "sizes_not_measured",
            "sizes and figures without samples, or with samples but not requested",
            zero,
            missing,
            counts_missing_samples=True,
        ),
    )


def refuse_datatype(params: Params, known: Sequence[str]) -> None:
    """Raise UsageError for a datatype whose elements cannot be reduced."""
    if params["datatype"] not in known:
        raise UsageError(
            f"datatype={params['datatype']} is not supported for reductions", f"use one of {', '.join(known)}"
        )


def collective(
    file: str,
    operation: str,
    question: str,
    work: str,
    counted: str,
    *,
    limit: LimitOf,
    sizes: Sizes,
    buffers: Callable[[Params], int],
    prepare: Callable[[Machine, Params], Params],
    first: Sequence[Parameter] = (),
    parameters: Sequence[Parameter] = (),
    trial: tuple[Params, ...] = (),
    between_nodes: Callable[[Params, Sequence[Sample]], Sequence[float]] | None = None,
) -> Benchmark:
    """The benchmark of one operation, whose program is beside the declaration `file`. `work` says what one of it is,
    `counted` what size_B counts the bytes of ("": there is no size); `buffers` are the bytes that all ranks of a node
    take for each byte of a size. `first` and `parameters` come before and after those of the sizes."""
    sized = (_size_parameter(counted), _LARGEST, BUFFERS) if counted else ()

    def sizes_argument(params: Params) -> list[str]:
        return ["--sizes", ",".join(map(str, found))] if (found := sizes(params)) else []

    def estimate_s(params: Params) -> float:
        """Where all ranks of a node reach its memory together."""
        forms = 3.0 if params["call"] == "nonblocking" else 1.0
        return 0.7 + SLICE_S * forms + _PASSES * sum(sizes(params)) * buffers(params) / _SLOW_BPS

    return mpi_benchmark(
        file,
        name=f"mpi.{operation}",
        question=question,
        parameters=(*first, *sized, *parameters, _CALL, _TESTS, _START),
        figures=_figures(work, limit),
        checks=_checks(sizes),
        prepare=prepare,
        words=(("--operation", operation), sizes_argument),
        why_samples_missing=_why_samples_missing,
        trial=trial,
        estimate_s=estimate_s,
        between_nodes=between_nodes,
    )
