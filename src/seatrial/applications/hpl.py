"""HPL: its output (hpl_output.py), and runs.

`apps.hpl`: the High-Performance Linpack benchmark (HPL) over block sizes and grids of processes.

It runs the site's `xhpl`, else the HPL inside `hpcc`. One run solves a system for each block size and each grid; each
layout of ranks and threads is a separate experiment. The result is the best of all.

`n` is the largest order that the time allows (all repeats of the default sweep within 4 minutes on 2 cores), and never
more than 80 % of memory; the parameter `bound` states which of the two limited it. The rate grows with `n`.

hpcc reads its input twice: when it starts, where it sizes its thirteen other tests by it, which take minutes at the
sizes of a good HPL; and again when HPL begins, the last test (src/io.c, HPL_pddriver.c of 1.5.0). It finds a small
matrix the first time and the real one the second. HPL itself is the same code on the same input either way. Were the
exchange ever to come too late, HPL would solve the small system, and the check `systems` would fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.applications import hpl_input
from seatrial.applications.hpl_output import BEGINS, SERIES, TOOL, HplTest, read_block, read_hpcc, read_hpl, read_xhpl
from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.copies import problem
from seatrial.benchmarks.cpu.gemm import KERNEL_VARIABLES, KERNELS, fma_ceiling
from seatrial.benchmarks.figures import between, exactly, rate, zero
from seatrial.benchmarks.nodes import NODE_PLACEMENT, node_count, on_each_node
from seatrial.benchmarks.nodes import NODES as NODES_PARAMETER
from seatrial.benchmarks.placement import (
    cpus_of,
    memory_size,
    numa_node,
    openmp_variables,
    refuse_too_many,
    spread,
    thread_count,
)
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Ceiling, Check, External, InputExchange, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import NODES, RANKS, THREADS
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample


def read(data: bytes) -> ImportedFile:
    """One run of HPL: one experiment per setting, with repeated rows as its samples.

    Raises ParseError if the output is cut off before its summary, has two runs, or contradicts itself.
    """
    log = Log(TOOL, data)
    block = read_block(log)
    output = block or read_hpl(log)
    groups: dict[tuple[Value, ...], list[HplTest]] = {}
    for test in output.tests:
        groups.setdefault(tuple(_parameters(test).values()), []).append(test)
    remarks = ("only a block of the output, without title and summary: other tests may be missing",) if block else ()
    experiments = (replace(_experiment(tests), remarks=remarks) for tests in groups.values())
    return ImportedFile(TOOL, output.version, tuple(experiments))


def _parameters(test: HplTest) -> dict[str, Value]:
    grid = {"p": test.p, "q": test.q, "ranks": test.p * test.q}
    return {"n": test.n, "nb": test.nb, **grid, "variant": test.variant}


def _experiment(tests: Sequence[HplTest]) -> ImportedExperiment:
    samples: list[Sample] = []
    for i, test in enumerate(tests):
        # A time printed as 0.00 follows more exactly from the rate.
        time, rate = test.printed_time, test.rate
        samples += [
            rate.rate_sample("rate", 1e9, i=i),
            time.sample("time", i=i)
            if time.value
            else figures.time_sample("time", test.time_s, i=i, resolution=rate.resolution),
        ]
    wrong = next((test for test in tests if not test.is_right), None)
    failed = "" if wrong is None else f"residual FAILED: the solution is wrong (line {wrong.line.number})"
    residuals = [value if passed else None for test in tests for value, passed in test.residuals]
    parameters = _parameters(tests[0])
    return ImportedExperiment("imported.hpl", tuple(samples), parameters, {"residuals": residuals}, failed=failed)


PARAMETERS = (
    *figures.counts(n="order of the matrix", nb="block size"),
    *figures.counts(p="rows of the process grid", q="columns of the process grid", ranks="processes, p x q"),
    figures.text("variant", "algorithm, as HPL encodes it (WR11C2R4)"),
)
WORK = "2/3 n^3 + 3/2 n^2 flop, as HPL counts"

IMPORTED = figures.imported(
    "hpl",
    "HPL",
    "How fast did HPL solve a dense system of linear equations?",
    PARAMETERS,
    (
        figures.rate("rate", "flop/s", WORK, figures.device_flops_limit("ranks")),
        figures.time("time", "time to factor and solve"),
    ),
)

READER = figures.Reader("hpl", read, BEGINS)


_BLOCKS = (128, 192, 256)
_GRID = Pattern(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,6})")
_SHARE_OF_MEMORY = 0.8
_WORST_RESIDUAL = 16.0
"""HPL's own threshold of the scaled residual (HPL.dat, HPL_pdtest.c)."""

_SWEEP_S = 170.0
"""Time for which the default sweep is made: one of 4 minutes, which leaves room for a start and a slow machine."""
_REPEATS = 6
_SURE_CLOCK_HZ = 2.5e9
_SURE_SHARE = 0.5
_SLOW_CORE_FLOPS = 2e10
_START_S = 1.0

_HPCC_INPUT, _HPCC_OUTPUT = "hpccinf.txt", "hpccoutf.txt"
_AFTER_FIRST_READING = b"Begin of MPIRandomAccess section."
_SMALL_N, _SMALL_N_OF_ONE = 128, 500
"""Orders for hpcc's other tests: they last half a second, in which the input is exchanged. One rank sends no messages,
and is through with a small one in a twentieth of that."""

_THREADS_OF_BLAS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def _prepare(machine: Machine, params: Params) -> Params:
    nodes = node_count(machine, params[NODES], whole(params[RANKS]) if isinstance(params[RANKS], int) else None)
    ranks, threads = _layout(machine, params, nodes)
    params = {**params, RANKS: ranks, THREADS: threads, NODES: nodes}
    refuse_too_many(machine, nodes, ranks, threads)
    for p, q in grids(params):
        if p * q != ranks:
            raise Skip(f"a grid of {p}x{q} needs {p * q} ranks, not {ranks}")
    return {**params, **_order(machine, params)}


def _layout(machine: Machine, params: Params, nodes: int) -> tuple[int, int]:
    """Ranks, and threads of each: what is not given takes the cores that the other leaves."""
    cores = nodes * thread_count(machine, "all")
    ranks, threads = params[RANKS], params[THREADS]
    if ranks == "numa":
        ranks = nodes * _numa_nodes(machine)
    elif ranks == "all":
        ranks = cores if threads == "auto" else max(1, cores // whole(threads))
    if threads == "auto":
        threads = max(1, cores // whole(ranks))
    return whole(ranks), whole(threads)


def _numa_nodes(machine: Machine) -> int:
    """The NUMA nodes that hold the cores."""
    return len({numa_node(machine, cpu) for cpu in machine.cpus_one_per_core})


def blocks(params: Params) -> tuple[int, ...]:
    """The block sizes that a resolved experiment solves with."""
    return _BLOCKS if params["nb"] == "auto" else (whole(params["nb"]),)


def grids(params: Params) -> tuple[hpl_input.Grid, ...]:
    """The grids that a resolved experiment solves on. Raises UsageError for an invalid `grid`."""
    if params["grid"] == "auto":
        return hpl_input.grids_of(whole(params[RANKS]))
    match = _GRID.fullmatch(str(params["grid"]))
    if match is None:
        raise UsageError(f"grid cannot be {params['grid']!r}", "give auto, or rows x columns such as 2x4")
    return ((int(match[1]), int(match[2])),)


def _order(machine: Machine, params: Params) -> Params:
    """`n`, and what bound it. It is the same for every layout of the same CPUs, so that these can be compared."""
    of_a_node_B = memory_size(machine, is_settled=params["n"] == "auto")
    memory_B = None if of_a_node_B is None else of_a_node_B * whole(params[NODES])
    if params["n"] != "auto":
        needed_B = hpl_input.matrix_B(whole(params["n"]))
        if memory_B is not None and needed_B > memory_B:
            raise Skip(f"a matrix of {needed_B / 1e9:.3g} GB does not fit into {memory_B / 1e9:.3g} GB of memory")
        return {"bound": "given"}
    if memory_B is None and params["bound"] == "memory":
        raise Skip("the memory size is unknown; give n")
    by_memory = None if memory_B is None else hpl_input.largest_in_memory(_SHARE_OF_MEMORY * memory_B)
    if by_memory is not None and params["bound"] == "memory":
        return {"n": by_memory, "bound": "memory"}
    cpus = cpus_of(params)
    by_time = hpl_input.largest_in_time(_SWEEP_S / _solutions(machine, params), _sure_flops(machine, params), cpus)
    if by_memory is not None and by_memory < by_time:
        return {"n": by_memory, "bound": "memory"}
    return {"n": by_time, "bound": "time"}


def _solutions(machine: Machine, params: Params) -> int:
    """How many systems all repeats of the default sweep solve, over its layouts."""
    layouts = {min(cpus_of(params), ranks) for ranks in (cpus_of(params), whole(params[NODES]) * _numa_nodes(machine))}
    tried = [len(hpl_input.grids_of(ranks)) if params["grid"] == "auto" else 1 for ranks in layouts]
    return len(blocks(params)) * _REPEATS * sum(tried)


def _sure_flops(machine: Machine, params: Params) -> float:
    """A rate that HPL surely comes near here: half of the FMA peak at a low clock."""
    total = 0.0
    for cpu in _placement(machine, params):
        unit = machine.fma_unit(cpu)
        peak = None if unit is None else unit.pipes * unit.vector_bits / 64 * 2 * _SURE_CLOCK_HZ
        total += _SLOW_CORE_FLOPS if peak is None else _SURE_SHARE * peak
    return total


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """A core for each thread as long as there are cores; the threads of a rank are neighbours."""

    def in_order_of_numa_nodes(node: Machine, count: int) -> tuple[int, ...]:
        return tuple(sorted(spread(node, count), key=lambda cpu: numa_node(node, cpu) or 0))  # cores stay first

    return on_each_node(machine, params[NODES], cpus_of(params), in_order_of_numa_nodes)


def _estimate_s(params: Params) -> float:
    cpus = cpus_of(params)
    solutions = len(blocks(params)) * len(grids(params))
    return _START_S + solutions * hpl_input.solution_s(whole(params["n"]), cpus * _SLOW_CORE_FLOPS, cpus)


def _variables(params: Params) -> Mapping[str, str | None]:
    """As many BLAS threads as each rank has CPUs, and (unless kernels=forced) the library's choice of kernels."""
    threads = dict.fromkeys(_THREADS_OF_BLAS, str(whole(params[THREADS])))
    own = dict.fromkeys(KERNEL_VARIABLES) if params["kernels"] == "own" else {}
    return {**openmp_variables(params), **threads, **own}


def _real_input(name: str) -> Callable[[Params], Mapping[str, bytes]]:
    return lambda params: {name: hpl_input.hpl_dat(whole(params["n"]), blocks(params), grids(params))}


def _small_input(params: Params) -> Mapping[str, bytes]:
    n = _SMALL_N if whole(params[RANKS]) > 1 else _SMALL_N_OF_ONE
    return {_HPCC_INPUT: hpl_input.hpl_dat(n, blocks(params)[:1], grids(params)[:1])}


def _as_asked(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """1 if exactly the requested systems were solved, each once; else 0."""
    solved = sorted(
        (whole(sample.point["n"]), whole(sample.point["nb"]), str(sample.point["grid"])) for sample in samples
    )
    wanted = sorted((whole(params["n"]), nb, f"{p}x{q}") for nb in blocks(params) for p, q in grids(params))
    return float(solved == wanted)


def _nominal(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The peak of the cores that are used, at the highest clock that the machine states: HPL measures no clock."""
    peak = machine.named_limit("cpu.fp64")
    if peak is None or peak.value is None:
        return peak or Limit.unknown("flop/s", "the peak of the cores is unknown")
    nodes = whole(params[NODES])
    cores = len(machine.cpus_one_per_core)
    used = min(nodes * cores, cpus_of(params))
    if nodes > 1:
        of_all = f"{used} cores of {nodes} nodes, each node: {peak.derivation}"
        return replace(peak, value=peak.value * used / cores, derivation=of_all)
    if used == cores:
        return peak
    return replace(peak, value=peak.value * used / cores, derivation=f"{used} of {cores} cores: {peak.derivation}")


def _of_peak(params: Params) -> Ceiling:
    return fma_ceiling("fp64", cpus_of(params), "CPUs")


def _of_gemm(params: Params) -> Ceiling:
    cpus = cpus_of(params)
    return Ceiling(
        roles=(Role.MATRIX_PRODUCT,),
        parameters={"precision": "fp64", "threads": cpus},
        factor=1.0,
        derivation=f"best matrix product measured here on {cpus} CPUs ({{benchmark}})",
        ignored=("n", "blas", "binding", "kernels"),
    )


_SETTINGS = ("n", "bound", "nb", "grid", RANKS, THREADS, "kernels")
_COUNTED = "2/3 n^3 + 3/2 n^2 flop, as HPL counts; `bound` states what limited n: time, memory, or given"


_HPCC = External(
    name="hpcc",
    install="install the HPC Challenge (Debian: package hpcc; Spack: spack install hpcc)",
    output=_HPCC_OUTPUT,
    arguments=lambda params, directory: [],
    parse=read_hpcc,
    version=(),
    inputs=_small_input,
    variables=_variables,
    sensitive_to=KERNEL_VARIABLES,
    input_exchange=InputExchange(_HPCC_OUTPUT, _AFTER_FIRST_READING, _real_input(_HPCC_INPUT)),
)
_XHPL = External(
    name="xhpl",
    install="install HPL (Spack: spack install hpl; Debian: package hpcc, which contains HPL) and put xhpl on PATH",
    output=hpl_input.OUTPUT_FILE,
    arguments=lambda params, directory: [],
    parse=read_xhpl,
    alternatives=(_HPCC,),
    version=(),
    inputs=_real_input("HPL.dat"),
    variables=_variables,
    sensitive_to=KERNEL_VARIABLES,
)

BENCHMARK = problem(
    _XHPL,
    name="apps.hpl",
    question="How fast does this machine solve a dense system of linear equations?",
    parameters=(
        Parameter.integer(
            "n",
            "auto",
            "order of the matrix; auto: the largest that the default sweep solves in 4 minutes, at most 80 % of memory",
            minimum=2,
        ),
        Parameter.choice(
            "bound",
            "auto",
            "what limits n=auto; time; memory: 80 % of it, however long that takes; auto: the lower of the two; records"
            " state the one applied (given: n was set)",
            ("auto", "time", "memory", "given"),
        ),
        Parameter.integer("nb", "auto", f"block size; auto: each of {', '.join(map(str, _BLOCKS))}", minimum=2),
        Parameter.text(
            "grid",
            "auto",
            "rows x columns of the process grid, such as 2x4; auto: each of the two closest to a square",
            ("auto",),
        ),
        Parameter.integer(
            RANKS,
            "all",
            "MPI ranks; all: as many as fit on the cores; numa: one per NUMA node",
            ("all", "numa"),
            minimum=1,
        ),
        NODES_PARAMETER,
        NODE_PLACEMENT,
        Parameter.integer(
            THREADS, "auto", "BLAS threads per rank, each on its own CPU; auto: the cores of the rank", minimum=1
        ),
        KERNELS,
    ),
    figures=(
        rate("rate", "flop/s", _COUNTED, series=SERIES, limit=_nominal, ceiling=_of_peak, one_limit_over=_SETTINGS),
        rate(
            "sustained",
            "flop/s",
            "the same rate, compared with the matrix product",
            series=SERIES,
            ceiling=_of_gemm,
            one_limit_over=_SETTINGS,
        ),
    ),
    checks=(
        Check(
            "residual",
            "largest scaled residual ||Ax-b|| / (eps (||A|| ||x|| + ||b||) n), by HPL",
            between(0.0, _WORST_RESIDUAL),
        ),
        Check("wrong_solutions", "systems that HPL failed or skipped", zero),
        Check("systems", "1 if exactly the requested systems were solved, each once", exactly(1), _as_asked),
    ),
    placement=_placement,
    prepare=_prepare,
    sweep=({RANKS: "all"}, {RANKS: "numa"}),
    estimate_s=_estimate_s,
)
