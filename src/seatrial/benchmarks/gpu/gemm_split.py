"""gpu.gemm-split and gpu.gemm-blocked: one product C = A B of matrices in host memory, by the host's CPUs and devices
together, in two forms of how it is shared.

`split`: each part computes some columns of C. It gets as many as its speed allows, measured in the run: first of each
part alone with blocks of the same shape, then in the products before. `blocked`: C is computed in quarters, eight
products of quarters of A and B on the devices (each goes to the device that would finish it first) and four sums on the
host.

On a device a block of C stays in its memory while panels of A and B are copied there and multiplied, up to three of
each at once: copies and products overlap, and matrices may be larger than that memory, which `resident_B` limits. CPUs
use seatrial's own product (K. Goto and R. A. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM
TOMS 34, 2008) or a BLAS of the site.

Each product has other rows and columns of A and B and another factor, and C is NaN before it: what an earlier product
left anywhere is wrong in the next. Every product is verified completely (native/matrix_product.hpp). The limit is the
sum of what the parts reach alone, measured after each product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from seatrial.benchmarks.cpu.gemm import WORST_ERROR
from seatrial.benchmarks.figures import between, duration, rate
from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.model.benchmark.benchmark import Benchmark, Better, Check, Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_N = (16384, 1024)
"""On a GPU, and on a processor."""
_FLOPS = {"fp64": 1e10, "fp32": 2e10}
"""Of a core or a device that is slow."""

_PRECISION = Parameter.choice("precision", "fp64", "floating-point precision", ("fp64", "fp32"), option="--precision")
_LIBRARY = Parameter.choice(
    "library",
    "portable",
    "on devices: portable: seatrial's own tiled kernel; vendor: cuBLAS with CUDA, CLBlast with OpenCL",
    ("portable", "vendor"),
    option="--library",
)
_ORDER = device.size_of("n", *_N, "rows and columns of the matrices", minimum=64)
_TILE = Parameter.integer(
    "tile",
    "auto",
    "side of the blocks of C that stay on a device, a multiple of 128; auto: n / 4, at most 16384, or what fits",
    minimum=128,
    option="--tile",
    spelled={"auto": "0"},
)
_RESIDENT = Parameter.size(
    "resident_B",
    "auto",
    "memory of each device that may be used; auto: 80 % of what is free",
    minimum=1 << 16,
    option="--resident",
    spelled={"auto": "0"},
)
_HOST = Parameter.choice("host", "pinned", "host memory of the matrices", ("pinned", "pageable"), option="--host")
_BLAS = Parameter.text(
    "blas",
    "own",
    "on the CPUs: seatrial's own product, auto: a BLAS whose kernels suit this CPU; or the name or file of one",
    ("own", "auto"),
)


def _cpu_threads(meaning: str) -> Parameter:
    return Parameter.integer("cpu_threads", "auto", meaning, minimum=0)


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """Those of the threads that drive devices and of those that compute, once it is known how many devices there are:
    one per core, or all if a number of threads is given."""
    every = len(machine.allowed_cpus)
    return spread(machine, thread_count(machine, "all") if params["cpu_threads"] == device.AUTO else every)


def _prepare(machine: Machine, params: Params) -> Params:
    if params["tile"] != "auto" and whole(params["tile"]) % 128:
        raise Skip(f"tile={params['tile']}: not a multiple of 128")
    if params["devices"] == 0 and params.get("cpu_threads") == 0:
        raise Skip("without devices and without threads of CPUs nothing computes")
    return params


def _flop(params: Params) -> float:
    n = _N[0] if params["n"] == device.AUTO else whole(params["n"])
    return 2.0 * n**3


def _estimate_s(params: Params) -> float:
    return 5.0 + 8 * _flop(params) / _FLOPS[str(params["precision"])] / (50 if params["n"] == device.AUTO else 1)


def _sum_of_parts(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """What the parts reach together if none slows another down: the median over the repeat's rounds."""
    alone = [float(sample.extra["alone_flops"]) for sample in samples]
    derivation = "the sum of the rates of the devices and the CPUs, each measured alone after each product"
    return Limit(median(alone), "flop/s", derivation, Basis.MEASURED)


def _of(name: str) -> Callable[[Sample], float]:
    return lambda sample: float(sample.extra[name])


def _kernels(sample: Sample) -> float:
    return float(sample.extra["kernels_s"]) / sample.elapsed_s


def _copying_s(sample: Sample) -> float:
    """At least the resolution of a clock: a figure of 0 has no ratio."""
    return max(sample.elapsed_s - float(sample.extra["kernels_s"]), 1e-9)


def _has_devices(params: Params) -> bool:
    return params["devices"] != 0


def _has_cpus(params: Params) -> bool:
    return params["cpu_threads"] != 0


def _of_parts(name: str, what: str) -> tuple[Figure, Figure]:
    """The rate of a part in the product, and alone."""
    there = _has_devices if name == "device" else _has_cpus
    return (
        rate(name, "flop/s", f"of {what} in the product", is_there=there, is_of_one_worker=True),
        rate(f"{name}_alone", "flop/s", f"of {what} alone", is_there=there, is_of_one_worker=True),
    )


_PRODUCT = rate(
    "gemm", "flop/s", "2 n^3 flop over the time of the whole product", series="product", limit=_sum_of_parts
)
_OF_DEVICES = (
    *_of_parts("device", "each device"),
    Figure(
        "multiplying",
        "1",
        Better.HIGHER,
        _kernels,
        "share of the time of a device in which it multiplies",
        series="device",
        is_there=_has_devices,
    ),
    Figure(
        "copying",
        "s",
        Better.LOWER,
        _copying_s,
        "time of a device in which it only copies or waits",
        series="device",
        is_there=_has_devices,
    ),
)
_BALANCE = Figure(
    "balance", "1", Better.HIGHER, _of("balance"), "mean time of the parts over that of the slowest", series="product"
)
_CPU_SHARE = Figure(
    "cpu_share",
    "1",
    Better.HIGHER,
    _of("cpu_share"),
    "share of the product that the CPUs compute",
    series="product",
    is_there=_has_cpus,
    is_secondary=True,
)


def _error(of_what: str, meaning: str) -> Check:
    return Check(f"{of_what}_error", f"{meaning}, as a multiple of n x eps x its size", between(0.0, WORST_ERROR))


_CHECKS = (
    _error("row", "largest deviation of a row of C x from A (B x), x random, over all products (Freivalds)"),
    _error("element", "largest deviation of single elements from their sums in higher precision"),
)


def _benchmark(form: str, question: str, cpu_threads: str, least_devices: int, figures: Sequence[Figure]) -> Benchmark:
    parameters = (
        _PRECISION,
        _LIBRARY,
        _ORDER,
        _cpu_threads(cpu_threads),
        *((_BLAS,) if form == "split" else ()),
        _TILE,
        _RESIDENT,
        _HOST,
    )
    return device.benchmark(
        __file__,
        name=f"gpu.gemm-{form}",
        question=question,
        words=(("--form", form),),
        parameters=parameters,
        devices=device.number_of_devices(least_devices),
        figures=(_PRODUCT, *figures, *_OF_DEVICES, _BALANCE),
        checks=_CHECKS,
        placement=_placement,
        prepare=_prepare,
        sizes={"n": _N},
        estimate_s=_estimate_s,
    )


BENCHMARK = _benchmark(
    "split",
    "How fast is one matrix product that CPUs and devices share by their speed?",
    "threads that compute, each on its own CPU; auto: those that drive no device; 0: devices alone",
    0,
    (*_of_parts("cpu", "the CPUs"), _CPU_SHARE),
)

BENCHMARKS = (
    _benchmark(
        "blocked",
        "How fast is one matrix product in 2 x 2 blocks, multiplied on devices and summed on the host?",
        "threads that sum beside those that drive the devices, each on its own CPU; auto: one for each such CPU",
        1,
        (duration("sums", "the four sums of products on the host"),),
    ),
)
