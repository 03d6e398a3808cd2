"""The parts of a declaration that all benchmarks of message passing share.

The least bytes that each node sends and receives together, in what a program with ranks on several nodes measured.

Warm-up and verification come on top. Ranks fill the nodes one after another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import TypedDict, Unpack

from msgspec.structs import replace

from seatrial.benchmarks.figures import Words, native_program, rate, zero
from seatrial.benchmarks.nodes import (
    NODE_PLACEMENT,
    NODES,
    RANKS_PER_NODE,
    cpus_of_nodes,
    node_count,
    on_each_node,
    with_ranks_per_node,
)
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Check, Figure, LimitOf, Skip
from seatrial.model.benchmark.parameter import UNKNOWN, Parameter, Params, whole
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.sample import Sample

RANKS = Parameter.integer("ranks", "all", "ranks, each bound to its own CPU; all: one per core", minimum=1)

OVERSUBSCRIBE = Parameter.switch(
    "oversubscribe", False, "allow more ranks than CPUs: they are not bound and share the CPUs"
)

_MIXED = tuple(f"{a}-{b}" for a, b in permutations(("host", "device", "managed"), 2))

BUFFERS = Parameter.choice(
    "buffers",
    "host",
    "memory of the message buffers; two words: the sender's and the receiver's",
    ("host", "device", "managed", *_MIXED),
)

MESSAGE_MEMORY = (
    replace(BUFFERS, option="--buffers"),
    Parameter.text(
        "message_devices",
        "auto",
        "CUDA devices of the ranks of a node, in turns, such as 2:0; auto: the first rank has the first device",
        ("auto",),
    ),
)
"""The parameters of programs that can send from and to the memory of devices."""


def message_devices_argument(params: Params) -> list[str]:
    """The argument with the devices of the ranks; none if the program chooses them."""
    devices = str(params["message_devices"])
    return [] if devices == "auto" else ["--message-devices", devices.replace(":", ",")]


def has_device_buffers(params: Params) -> bool:
    """Whether a rank sends from or receives in the memory of a device."""
    return params.get("buffers", "host") != "host"


HUGE_PAGES = Parameter.switch(
    "huge_pages",
    True,
    "ask the kernel for huge pages for the buffers, which speeds up copies through the kernel (OSU and IMB do not)",
    option="--huge-pages",
)

DATATYPE = Parameter.text("datatype", "MPI_CHAR", "MPI datatype of the elements", option="--datatype")


def resolved_ranks(machine: Machine, params: Params) -> Params:
    """The parameters with the number of ranks on this machine.

    `oversubscribe` is true afterwards only if there are more ranks than CPUs. Raises Skip if there are too few CPUs and
    ranks may not share them; UsageError for values that only imported files have.
    """
    refuse_unknown(params)
    devices = str(params.get("message_devices", "auto"))
    if devices != "auto" and re.fullmatch(r"\d{1,4}(:\d{1,4})*", devices) is None:
        raise UsageError(f"message_devices={devices} does not name devices", "give numbers such as 0:1, or auto")
    params = with_ranks_per_node(machine, params)
    ranks = params["ranks"]
    nodes = node_count(machine, params["nodes"], None if ranks == "all" else whole(ranks))
    params = {**params, "nodes": nodes}
    if ranks == "all":
        return {**params, "ranks": thread_count(machine, "all") * nodes, "oversubscribe": False}
    cpus = cpus_of_nodes(machine, nodes)
    if params["oversubscribe"] or whole(ranks) <= cpus:
        return {**params, "ranks": whole(ranks), "oversubscribe": whole(ranks) > cpus}
    where = "this process may use" if nodes == 1 else f"{nodes} nodes have"
    raise Skip(f"{ranks} ranks need {ranks} CPUs; {where} {cpus} (oversubscribe=true lets ranks share them)")


def refuse_unknown(params: Params) -> None:
    """Raise UsageError for a value that only imported results have."""
    for name, value in params.items():
        if value == UNKNOWN:
            raise UsageError(f"{name}={UNKNOWN} is only for imported results", "give a value")


def rank_cpus(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPU of each rank on its node; empty if ranks share CPUs."""
    ranks, nodes = whole(params["ranks"]), whole(params["nodes"])
    if params["oversubscribe"] and ranks > cpus_of_nodes(machine, nodes):
        return ()
    return on_each_node(machine, nodes, ranks, spread)


WRONG_BYTES = Check("wrong_bytes", "bytes that arrived wrong", zero)


def bandwidth(work: str, limit: LimitOf | None = None) -> Figure:
    """The figure `bandwidth`, of samples of that series; `work` says which bytes are counted."""
    return rate("bandwidth", "B/s", work, limit=limit)


def links_of_node(machine: Machine, params: Params, links: float = 1.0, times: str = "") -> Limit:
    """The rate of all adapters of a node together, per direction, times `links` (the nodes that send at once, described
    by `times`); unknown on one host, or if the rate of any adapter is unknown."""
    if whole(params["nodes"]) == 1:
        return Limit.unknown("B/s", "ranks of one host exchange messages through memory, not over a link")
    adapters = machine.of_kind(DeviceKind.NIC)
    rates = [adapter.facts.number("rate") for adapter in adapters]
    known = [rate for rate in rates if rate is not None]
    if not known or len(known) < len(rates):
        return Limit.unknown("B/s", "the rates of this node's adapters are not all known")
    names = " + ".join(f"{adapter.name} {rate / 1e9:.4g} GB/s" for adapter, rate in zip(adapters, known, strict=True))
    return Limit(sum(known) * links, "B/s", f"{names}{times}", Basis.PHYSICAL)


def exchanged_in_pairs(params: Params, samples: Sequence[Sample]) -> list[float]:
    """Rank p and rank p + n of 2n exchange the bytes of the samples, equally in all pairs."""
    ranks, nodes = whole(params["ranks"]), whole(params["nodes"])
    each, pairs = ranks // nodes, ranks // 2
    total = sum(sample.work["bytes"] for sample in samples if sample.series == "bandwidth")
    found = [0.0] * nodes
    for pair in range(pairs):
        for rank in (pair, pair + pairs):
            found[rank // each] += total / pairs
    return found


def exchanged_in_turns(series: Sequence[str]) -> Callable[[Params, Sequence[Sample]], list[float]]:
    """Two ranks on two nodes exchange `ops` messages of size_B in each sample of these series."""

    def exchanged(params: Params, samples: Sequence[Sample]) -> list[float]:
        own = [sample for sample in samples if sample.series in series]
        return [sum(sample.work["ops"] * whole(sample.point.get("size_B", 0)) for sample in own)] * 2

    return exchanged


def exchanged_in_tournament(params: Params, samples: Sequence[Sample]) -> list[float]:
    """Ranks a and b of each sample exchange its bytes."""
    nodes = whole(params["nodes"])
    each = whole(params["ranks"]) // nodes
    found = [0.0] * nodes
    for sample in samples:
        a, b = whole(sample.point["a"]) // each, whole(sample.point["b"]) // each
        if a != b:
            found[a] += sample.work["bytes"]
            found[b] += sample.work["bytes"]
    return found


def exchanged_together(moved: Callable[[int, int], float]) -> Callable[[Params, Sequence[Sample]], list[float]]:
    """In each of the `ops` calls of a sample, `moved(ranks, nodes)` times size_B pass the links of each node. Both
    directions together are at least what one carries without a network that reduces."""

    def exchanged(params: Params, samples: Sequence[Sample]) -> list[float]:
        ranks, nodes = whole(params["ranks"]), whole(params["nodes"])
        own = [sample for sample in samples if sample.series == "time_max"]
        calls_B = sum(sample.work["ops"] * whole(sample.point.get("size_B", 0)) for sample in own)
        return [calls_B * moved(ranks, nodes)] * nodes

    return exchanged


SLICE_S = 0.25
"""The time for which most of the programs sample."""

ALL_RANKS = (RANKS, NODES, RANKS_PER_NODE, NODE_PLACEMENT, OVERSUBSCRIBE)
"""The parameters of programs with any number of ranks."""
AWARE_RANKS = (*ALL_RANKS[:-1], replace(OVERSUBSCRIBE, option="--shares"))
"""The same for programs that must know whether ranks share CPUs."""


def pair(meaning: str) -> tuple[Parameter, ...]:
    """The parameters of programs with two ranks, which are `meaning`."""
    return (Parameter.integer("ranks", 2, meaning, minimum=2), NODES, NODE_PLACEMENT, OVERSUBSCRIBE)


class _More(TypedDict, total=False):
    """What few of these benchmarks state."""

    trial: tuple[Params, ...]
    between_nodes: Callable[[Params, Sequence[Sample]], Sequence[float]] | None
    why_samples_missing: Callable[[Params, Mapping[str, object]], str]


def mpi_benchmark(
    file: str,
    *,
    name: str,
    question: str,
    parameters: Sequence[Parameter],
    figures: Sequence[Figure],
    prepare: Callable[[Machine, Params], Params],
    estimate_s: Callable[[Params], float],
    ranks: Sequence[Parameter] = ALL_RANKS,
    words: Sequence[Words] = (),
    slice_s: float | None = SLICE_S,
    takes_turns: bool = True,
    checks: Sequence[Check] = (WRONG_BYTES,),
    placement: Callable[[Machine, Params], tuple[int, ...]] = rank_cpus,
    **more: Unpack[_More],
) -> Benchmark:
    """A benchmark whose program is beside the declaration `file`, with the same stem. `ranks` are its parameters of
    ranks and nodes, `words` its arguments besides those that parameters declare; `slice_s`: how long it samples, None
    if that is not for a time."""
    own = (*ranks, *parameters)
    slice_ = () if slice_s is None else ("--slice", str(slice_s))
    return Benchmark(
        name=name,
        question=question,
        program=native_program(file, own, slice_, *words, takes_turns=takes_turns),
        parameters=own,
        figures=tuple(figures),
        checks=tuple(checks),
        placement=placement,
        prepare=prepare,
        ranks="mpi",
        estimate_s=estimate_s,
        **more,
    )
