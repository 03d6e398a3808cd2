"""cpu.gemm: the product of two square matrices by the site's BLAS, compared with the peak of the cores.

The product is C <- A B with 2 n^3 flop (a multiplication and an addition for each of n products in n^2 sums), of random
numbers, and every product is verified completely (see gemm.cpp). The limit is that of `cpu.peak`, cores x clock x
flop per cycle, with the clock of a chain of dependent additions (one cycle each) right before and after each product.

`n` is large enough for a good BLAS to be near its best rate: the matrices exceed the caches of every core many times,
and packing, n^2 work, is small beside n^3. With many cores, the time of a product bounds `n`, in small memory the
matrices. A product of this size is made however long it takes: a slow BLAS or a busy machine gives a low rate, not
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isqrt
from statistics import median

from msgspec.structs import replace

from seatrial.benchmarks.figures import between, exactly, native_program, rate, zero
from seatrial.benchmarks.placement import THREADS, memory_size, spread, thread_count
from seatrial.model.benchmark.benchmark import Benchmark, Ceiling, Check, Intensity, Role
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.machine.limit import ELEMENT_BITS, FmaUnit, Limit, fma_rate
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_SLICE_S = 0.5
_N_OF_ONE_THREAD = 1448
_N_MULTIPLE = 64
_NUMBERS_MOVED = 4
_FLOP_OF_A_THREAD = 1e10
"""At most this much work for each thread in one product: less than half a second where a core has 20 GFLOP/s."""
_SLOW_CORE_FLOPS = 2e10
_LEAST_SAMPLES = 3
_LONGEST_S = 5.0
"""A product of more than the size of `auto` is skipped if it would take longer."""
_MATRICES = 3
_SHARE_OF_MEMORY = 0.5
_PRODUCTS_BEFORE = 3
WORST_ERROR = 0.5
"""In units of n x eps x the magnitude of what is compared (native/matrix_product.hpp). A correct product stays within a
few standard deviations of 0.35 / sqrt(n): 0.05 for n = 1000, 0.2 for n = 64. 16-bit inputs in fp32 give more than 1."""

KERNEL_VARIABLES = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_CBWR",
    "BLIS_ARCH_TYPE",
    "BLIS_MODEL_TYPE",
    "NVPL_BLAS_DEBUG_CPU_TYPE",
)
"""Environment variables that make a library use the kernels of another processor."""
KERNELS = Parameter.choice(
    "kernels",
    "own",
    "BLAS kernels; own: the library's choice for this CPU; forced: as set in the environment (such as"
    " OPENBLAS_CORETYPE)",
    ("own", "forced"),
)


def _n(threads: int) -> int:
    """The size for this many threads: n^2 grows with them, and n^3 within the time allowed for a product."""
    largest: int = round((_FLOP_OF_A_THREAD * threads / 2) ** (1 / 3))
    n = min(isqrt(_N_OF_ONE_THREAD**2 * threads), largest)
    return int(-(-n // _N_MULTIPLE) * _N_MULTIPLE)


def _n_in_memory(machine: Machine) -> float:
    """The size whose matrices, in fp64, take half of the memory; infinite if its size is unknown."""
    memory_B = memory_size(machine, is_settled=True)
    return inf if memory_B is None else (_SHARE_OF_MEMORY * memory_B / (_MATRICES * 8)) ** 0.5


def _prepare(machine: Machine, params: Params) -> Params:
    threads = thread_count(machine, params["threads"])
    n = whole(params["n"]) if params["n"] != "auto" else _n(threads)
    if params["n"] == "auto" and n > (fits := _n_in_memory(machine)):
        n = max(int(fits) // _N_MULTIPLE, 1) * _N_MULTIPLE
    return {**params, "threads": threads, "n": n}


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return spread(machine, whole(params["threads"]))


def _arguments(params: Params) -> list[str]:
    arguments = ["--slice", str(_SLICE_S)]
    if whole(params["n"]) > _n(whole(params["threads"])):
        arguments += ["--longest", str(_LONGEST_S)]
    return arguments if params["kernels"] == "forced" else [*arguments, "--without", ",".join(KERNEL_VARIABLES)]


def _flop(params: Params) -> float:
    return 2.0 * whole(params["n"]) ** 3


def _estimate_s(params: Params) -> float:
    product_s = _flop(params) / (whole(params["threads"]) * _SLOW_CORE_FLOPS)
    return 0.2 + _PRODUCTS_BEFORE * product_s + max(_SLICE_S, _LEAST_SAMPLES * product_s)


def _counted(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """The flop that a sample counts over 2 n^3, of the sample with the largest deviation."""
    shares = (sample.work["flops"] / _flop(params) for sample in samples)
    return max(shares, key=lambda share: abs(share - 1.0))


def clocks_Hz(samples: Sequence[Sample]) -> tuple[float, ...]:
    """The clock of each thread's CPU over a repeat, in Hz: additions / time, the median over samples."""
    return tuple(
        median(sample.extra["add_ops"] / sample.extra["add_s"][thread] for sample in samples)
        for thread in range(len(samples[0].extra["add_s"]))
    )


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The sum over the cores that threads run on, each once: hardware threads of one core share its FMA units."""
    cpus = _placement(machine, params)
    clocks = clocks_Hz(samples)
    cores: dict[str, tuple[float, FmaUnit]] = {}
    for cpu, clock_Hz in zip(cpus, clocks, strict=False):
        unit, pu = machine.fma_unit(cpu), machine.pus.get(cpu)
        if unit is None or pu is None or len(clocks) != len(cpus):
            return Limit.unknown("flop/s", "the FMA units of this microarchitecture are not in the table")
        core = pu.parent or pu.id
        cores[core] = max(cores.get(core, (0.0, unit)), (clock_Hz, unit), key=lambda known: known[0])
    limit = fma_rate(list(cores.values()), str(params["precision"]))
    if _has_matrix_unit(machine, cpus):
        return replace(limit, derivation=limit.derivation + "; a matrix unit (SME) may do more", confirmed=False)
    return limit


def _has_matrix_unit(machine: Machine, cpus: Sequence[int]) -> bool:
    """Whether a core has outer products of fp64 or fp32 beside its FMA pipes (Arm SME, as /proc/cpuinfo names it)."""
    packages = (machine.package_of(cpu) for cpu in cpus)
    return any("sme" in (package.facts.text("isa") or "").split() for package in packages if package is not None)


def _intensity(params: Params) -> Intensity | None:
    """At least 4 n^2 numbers must move: two factors are read, and the result is read and written."""
    n, precision = params.get("n"), str(params["precision"])
    if not isinstance(n, int) or isinstance(n, bool) or n <= 0:
        return None
    moved = _NUMBERS_MOVED * n**2 * ELEMENT_BITS[precision] // 8
    counting = f"GEMM: 2 n^3 flop for {_NUMBERS_MOVED} n^2 numbers, the least that must move."
    return Intensity({"fp64": "DGEMM", "fp32": "SGEMM"}[precision], _flop(params), moved, counting)


def fma_ceiling(precision: Value, count: int, counted: str) -> Ceiling:
    """If the FMA units are unknown: the FMA rate that `cpu.peak` reached here, of so many threads or CPUs."""
    return Ceiling(
        roles=(Role.FMA_RATE,),
        parameters={"precision": precision, "cores": "one"},
        factor=count,
        derivation=f"best FMA rate of one core measured here ({{benchmark}}) x {count} {counted}",
    )


def _error(of_what: str, meaning: str) -> Check:
    return Check(f"{of_what}_error", f"{meaning}, as a multiple of n x eps x its size", between(0.0, WORST_ERROR))


_PARAMETERS = (
    Parameter.choice("precision", "fp64", "width of the numbers", ("fp64", "fp32"), option="--precision"),
    Parameter.integer(
        "n",
        "auto",
        "rows and columns of the matrices; auto: large enough for a rate near the best, by number of threads",
        minimum=_N_MULTIPLE,
        option="--n",
    ),
    THREADS,
    Parameter.text(
        "blas",
        "auto",
        "the library; auto: the first of LD_LIBRARY_PATH, modules, the system and seatrial's own whose kernels suit"
        " this CPU",
        ("auto",),
    ),
    Parameter.choice(
        "binding",
        "bound",
        "bound: each BLAS thread to its own CPU (if the library starts new threads for each product, all to the"
        " same set of CPUs); none: as the library and the kernel place them",
        ("bound", "none"),
        option="--binding",
    ),
    KERNELS,
)

BENCHMARK = Benchmark(
    name="cpu.gemm",
    question="How close to the peak of the cores is a matrix product by the site's BLAS?",
    program=native_program(__file__, _PARAMETERS, _arguments, library="blas", variables=KERNEL_VARIABLES),
    parameters=_PARAMETERS,
    figures=(
        rate(
            "gemm",
            "flop/s",
            "2 n^3 flop per product",
            limit=_limit,
            ceiling=lambda params: fma_ceiling(params["precision"], whole(params["threads"]), "threads"),
            one_limit_over=("n", "blas", "binding", "kernels"),
            role=Role.MATRIX_PRODUCT,
            intensity=_intensity,
        ),
    ),
    checks=(
        _error("row", "largest deviation of a row of C x from A (B x), x random, over all products (Freivalds)"),
        _error("element", "largest deviation of single elements from their sums in higher precision"),
        Check(
            "distinct_inputs",
            "share of input elements that are distinct and nonzero; constant data may save power",
            between(0.99, 1.0),
        ),
        Check("blas_threads", "threads that computed; a BLAS may use fewer or more than requested", exactly("threads")),
        Check(
            "unbound_threads", "BLAS threads that were not on their CPU after the products, as the kernel reports", zero
        ),
        Check(
            "crowded_threads",
            "BLAS threads without their own CPU, for example if all inherit the mask of one",
            zero,
        ),
        Check(
            "counted_flop",
            "flop counted by a sample, over 2 n^3; the sample with the largest deviation",
            exactly(1.0),
            _counted,
        ),
    ),
    placement=_placement,
    prepare=_prepare,
    trial=({"precision": "fp64"}, {"precision": "fp32"}),
    estimate_s=_estimate_s,
)
