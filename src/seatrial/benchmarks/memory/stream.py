"""memory.stream: sustained memory bandwidth by copy, scale, add and triad.

The kernels and the counting of bytes are those of STREAM (J. D. McCalpin, "Memory Bandwidth and Machine Balance in
Current High Performance Computers", IEEE TCCA Newsletter, December 1995): 16 B per element for copy and scale, 24 for
add and triad. Plain stores move 8 B more, because a line is read before it is overwritten; non-temporal stores do not.

`node` selects the CPUs and `memory` the NUMA node of the arrays, so that every pair of nodes can be measured; the
program checks where the pages are after the run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

from msgspec.structs import replace

from seatrial.benchmarks import placement
from seatrial.benchmarks.figures import between, exactly, native_program, rate, zero
from seatrial.model.benchmark.benchmark import ALL_OF_IT, Attainable, Benchmark, Ceiling, Check, Figure, Intensity, Role
from seatrial.model.benchmark.parameter import CACHES_TIMES, UNKNOWN, Parameter, Params, beyond_caches_B, whole
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import show_percent

_BYTES_PER_ELEMENT = {"copy": 16, "scale": 16, "add": 24, "triad": 24}
_WRITE_ALLOCATE_BYTES = 8
_ARRAY_WITHOUT_CACHES = 1 << 30
_LINE = 64
_SLICE_S = 0.25


def _prepare(machine: Machine, params: Params) -> Params:
    placement.require_memory(machine, placement.node_of_memory(params))
    threads = placement.thread_count(machine, params["threads"], placement.node_of_cpus(params))
    array = params["array_B"]
    if array == "auto":
        size, unit = _cache_bound(machine, placement.spread(machine, threads, placement.node_of_cpus(params))), 1 << 20
    else:
        size, unit = whole(array), _LINE
    return {**params, "threads": threads, "array_B": math.ceil(size / unit) * unit}


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return placement.spread(machine, whole(params["threads"]), placement.node_of_cpus(params))


def _cache_bound(machine: Machine, cpus: Sequence[int]) -> int:
    """The smallest array, in bytes, that measures memory and not caches."""
    least_B = beyond_caches_B(machine, cpus)
    return _ARRAY_WITHOUT_CACHES if least_B is None else least_B


def _counted(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
    """The bytes that a sample counts over the expected ones, of the sample with the largest deviation."""
    elements = whole(params["array_B"]) // 8
    shares = (
        sample.work["bytes"] / (elements * _BYTES_PER_ELEMENT[sample.series])
        for sample in samples
        if sample.series in _BYTES_PER_ELEMENT
    )
    return max(shares, key=lambda share: abs(share - 1.0), default=None)


def _dram(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The DRAM bandwidth of the sockets that the threads run on: first touch makes each part local to its thread."""
    cpus = _placement(machine, params)
    node = placement.node_of_memory(params)
    if not placement.is_local(machine, cpus, node):
        missing = f"threads reach NUMA node {node} over links between nodes, whose rate is unknown"
        return Limit.unknown("B/s", missing)
    limit = machine.named_limit("dram.bandwidth")
    if limit is None or limit.value is None:
        return limit or Limit.unknown("B/s", "the memory modules are unknown")
    packages = _packages(machine, params, cpus)
    one_node = placement.node_of_cpus(params) != "auto" or node != "local"
    if one_node and (nodes := _nodes_of(machine, packages)) > 1:
        missing = f"one of {nodes} NUMA nodes of a socket; which memory channels serve it is unknown"
        return Limit.unknown("B/s", missing)
    sockets = len(machine.memory.sockets)
    if not packages or len(packages) >= sockets:
        return limit
    share = len(packages) / sockets
    derivation = f"{len(packages)} of {sockets} sockets; all: {limit.derivation}"
    return replace(limit, value=limit.value * share, derivation=derivation)


def _packages(machine: Machine, params: Params, cpus: Sequence[int]) -> Set[str]:
    """The sockets that the threads may have run on: if their sockets are unknown, as many sockets as threads reach."""
    if params.get(placement.NODE.name) == UNKNOWN:
        sockets = sorted({package.id for cpu in machine.pus if (package := machine.package_of(cpu))})
        return frozenset(sockets[: whole(params["threads"])])
    return {package.id for cpu in cpus if (package := machine.package_of(cpu))}


def _nodes_of(machine: Machine, packages: Set[str]) -> int:
    """How many NUMA nodes the CPUs of these packages belong to."""
    return len(
        {
            placement.numa_node(machine, cpu)
            for cpu in machine.pus
            if (package := machine.package_of(cpu)) is not None and package.id in packages
        }
    )


def _ceiling(name: str, params: Params) -> Ceiling | None:
    """Where the memory modules are unknown, plain stores are compared with the best non-temporal rate here."""
    if params["nontemporal"] is not False:
        return None
    counted = _BYTES_PER_ELEMENT[name]
    moved = counted + _WRITE_ALLOCATE_BYTES
    return Ceiling(
        roles=(Role.MEMORY_BANDWIDTH, Role.MEMORY_STREAM),
        parameters={"nontemporal": True},
        factor=counted / moved,
        derivation=f"best non-temporal rate measured here x {counted}/{moved}, since plain stores read each line"
        f" before they overwrite it: {moved} B move for {counted} B counted",
    )


def _attainable(name: str, params: Params) -> Attainable:
    """Plain stores read each line before they overwrite it, and STREAM does not count that."""
    if params["nontemporal"] is not False:
        return ALL_OF_IT
    counted = _BYTES_PER_ELEMENT[name]
    moved = counted + _WRITE_ALLOCATE_BYTES
    percent = show_percent(counted / moved)
    return Attainable(counted / moved, f"plain stores: at most {percent} of it can be counted, {counted} of {moved} B")


def _triad_intensity(params: Params) -> Intensity:
    """An addition and a multiplication for each element."""
    name = "triad, non-temporal" if params.get("nontemporal") is True else "triad"
    counted = _BYTES_PER_ELEMENT["triad"]
    return Intensity(name, 2, counted, f"Triad: 2 flop for {counted} B, as STREAM counts.")


def _figure(name: str) -> Figure:
    return rate(
        name,
        "B/s",
        f"{_BYTES_PER_ELEMENT[name]} B per element, as STREAM counts",
        limit=_dram,
        ceiling=lambda params: _ceiling(name, params),
        attainable=lambda params: _attainable(name, params),
        one_limit_over=("threads", "nontemporal", "huge_pages", "array_B", "kernel"),
        is_there=lambda params: params["kernel"] in ("all", name),
        role=Role.MEMORY_BANDWIDTH if name == "triad" else Role.MEMORY_STREAM,
        intensity=_triad_intensity if name == "triad" else None,
    )


def _mismatches(name: str) -> Check:
    return Check(f"{name}_mismatches", f"wrong elements in the output of {name}; all are compared exactly", zero)


_PARAMETERS = (
    placement.THREADS,
    placement.NODE,
    placement.MEMORY,
    Parameter.switch(
        "nontemporal",
        False,
        "non-temporal stores: write past the caches, without reading lines first",
        option="--nontemporal",
    ),
    Parameter.switch("huge_pages", True, "ask the kernel for huge pages", option="--huge-pages"),
    Parameter.choice(
        "kernel", "all", "the kernel to measure; all: each in turn", ("all", *_BYTES_PER_ELEMENT), option="--kernel"
    ),
    Parameter.size(
        "array_B",
        "auto",
        f"size of each of the three arrays; auto: {CACHES_TIMES} x the last-level caches that the threads reach",
        minimum=4096,
        option="--array-bytes",
    ),
)

BENCHMARK = Benchmark(
    name="memory.stream",
    question="What memory bandwidth do threads reach on arrays larger than the caches?",
    program=native_program(__file__, _PARAMETERS, ("--slice", str(_SLICE_S)), takes_turns=True),
    parameters=_PARAMETERS,
    figures=tuple(_figure(name) for name in _BYTES_PER_ELEMENT),
    checks=(
        *(_mismatches(name) for name in _BYTES_PER_ELEMENT),
        Check(
            "distinct_inputs",
            "share of input elements that are distinct and nonzero; constant data may be compressed or save power",
            between(0.99, 1.0),
        ),
        Check(
            "array_bytes",
            f"size of each array; below {CACHES_TIMES} x the last-level caches, caches serve part of it",
            lambda machine, params: (_cache_bound(machine, _placement(machine, params)), math.inf),
        ),
        Check(
            "counted_bytes",
            "bytes counted by a sample, over those of the arrays; the sample with the largest deviation",
            exactly(1.0),
            _counted,
        ),
        placement.pages_check(_placement),
    ),
    placement=_placement,
    prepare=_prepare,
    trial=(
        {"threads": "all", "nontemporal": False},
        {"threads": "all", "nontemporal": True},
        {"threads": 1, "nontemporal": False},
        {"threads": 1, "nontemporal": True},
    ),
    estimate_s=lambda params: _SLICE_S + 0.1 + whole(params["array_B"]) * 8 / 5e9,
)
