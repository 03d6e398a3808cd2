"""The parts of a declaration that all benchmarks of message passing share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict, Unpack

from msgspec.structs import replace

from seatrial.benchmarks.mpi.messages import WRONG_BYTES
from seatrial.benchmarks.mpi.ranks import OVERSUBSCRIBE, RANKS, rank_cpus
from seatrial.benchmarks.native_program import Words, native_program
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.model.benchmark.benchmark import Benchmark, Check, Figure
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

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
