"""The parameter `copies` of applications: independent jobs that share a node, as on a busy cluster.

All copies run the same job. Its size (`auto`) is that of a single job on the whole node, but for the memory, of which
each copy has its part: so a run with 1 copy and one with 4 do the same job, and their throughputs can be compared. Its
layout (`ranks=all`) is that of the share. The figures of several copies: rates are summed, times are those of the
slowest (model/results/record.py).

And what our own problems of applications have in common: `problem`, and their input files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Literal

from msgspec.structs import replace

from seatrial.benchmarks import placement as layout
from seatrial.benchmarks.figures import duration, rate
from seatrial.benchmarks.nodes import RANKS_PER_NODE
from seatrial.model.benchmark.benchmark import Benchmark, Check, External, Figure, Skip
from seatrial.model.benchmark.copies import (
    COPIES,
    COPY_DEVICES,
    DIVIDED,
    JOB,
    JOBS,
    copies_of,
    devices_of,
    one_of,
    shares_of,
)
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.benchmark.program import NODES, RANKS, THREADS
from seatrial.model.benchmark.python_script import PythonScript
from seatrial.model.machine.machine import Machine

_COPIES = Parameter.integer(
    COPIES,
    1,
    "jobs that run at once on the node, each on its own share of the cores; `ranks` and threads are those of each",
    minimum=1,
)
_DEVICES = Parameter.choice(
    COPY_DEVICES,
    "shared",
    "GPUs of several copies; shared: each copy may use all; divided: each has equally many, in the order of their "
    "numbers",
    ("shared", DIVIDED),
)
_LAYOUT = frozenset({RANKS, THREADS, NODES, RANKS_PER_NODE.name, "processes"})


def _per_day(params: Params, rate: float) -> str:
    value = 86400.0 * rate
    return f"{value:.0f} jobs/day" if value >= 100 else f"{value:.3g} jobs/day"


_FIGURES = (
    rate(
        "throughput",
        "op/s",
        "jobs, over the time from their common start to the end of the last one, by our own clock",
        "jobs",
        series=JOBS,
        customary=_per_day,
        is_secondary=True,
    ),
    duration(
        "slowest_job", "the copy that ends last, from the common start, by our own clock", series=JOB, is_secondary=True
    ),
)


def with_copies(benchmark: Benchmark) -> Benchmark:
    """An application of which several copies can run at once."""

    def prepare(machine: Machine, params: Params) -> Params:
        copies = copies_of(params)
        if copies == 1:
            return benchmark.prepare(machine, params)
        _refuse_other_nodes(machine, params)
        devices_of(machine, params)
        share = shares_of(machine, copies)[0]
        one = one_of(params)
        job = benchmark.prepare(replace(share, allowed_cpus=machine.allowed_cpus), one)
        try:
            own = benchmark.prepare(share, {**job, **{name: one[name] for name in _LAYOUT & one.keys()}})
        except Skip as skip:
            raise Skip(f"each of {copies} copies: {skip.reason}") from None
        return {**job, **{name: own[name] for name in _LAYOUT & own.keys()}, COPIES: copies}

    def placement(machine: Machine, params: Params) -> tuple[int, ...]:
        if copies_of(params) == 1:
            return benchmark.placement(machine, params)
        shares = shares_of(machine, copies_of(params))
        return tuple(cpu for share in shares for cpu in benchmark.placement(share, one_of(params)))

    return replace(
        benchmark,
        parameters=(*benchmark.parameters, _COPIES, _DEVICES),
        figures=(*benchmark.figures, *_FIGURES),
        prepare=prepare,
        placement=placement,
    )


def _refuse_other_nodes(machine: Machine, params: Params) -> None:
    """Raise Skip unless the copies can all run on this node."""
    if params.get(NODES, 1) not in ("all", 1):
        raise Skip(f"copies share one node; nodes={params[NODES]} is for a single job")
    allocation = machine.allocation
    if allocation is not None and allocation.nodes[0].machine.name != machine.name:
        raise Skip(f"copies run on the node that seatrial runs on, which {allocation.source} does not begin with")


def problem(
    program: External | PythonScript,
    *,
    name: str,
    question: str,
    parameters: tuple[Parameter, ...],
    figures: tuple[Figure, ...],
    checks: tuple[Check, ...],
    estimate_s: Callable[[Params], float],
    prepare: Callable[[Machine, Params], Params] = layout.resolved,
    placement: Callable[[Machine, Params], tuple[int, ...]] = layout.placement,
    ranks: Literal["mpi", "one"] = "mpi",
    sweep: tuple[Params, ...] = (),
) -> Benchmark:
    """An application on a problem that is made here, of which several copies can run at once."""
    return with_copies(
        Benchmark(
            name=name,
            question=question,
            program=program,
            parameters=parameters,
            figures=figures,
            checks=checks,
            placement=placement,
            prepare=prepare,
            ranks=ranks,
            sweep=sweep,
            estimate_s=estimate_s,
        )
    )


def input_files(folder: str, **values: object) -> dict[str, bytes]:
    """Path -> content of the files in a folder of `applications/inputs`, with `$name` replaced by these values."""
    root = Path(__file__).parents[1] / "inputs" / folder
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): Template(path.read_text()).substitute(values).encode() for path in found}
