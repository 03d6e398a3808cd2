"""`apps.neuron`: rings of nerve cells by NEURON, over MPI ranks and threads.

The model is made here (neuron_ring.py): cells with the channels of Hodgkin and Huxley and a passive dendrite, in rings
round which a spike runs for ever. It is small per cell and even, so what it shows is the solver and, with many ranks,
the exchange of spikes, which NEURON makes every 1 ms of simulated time (the delay of a connection).

Two checks. All cells are alike, so a spike must take the same time from every cell to the next, to one time step; and
the number of spikes follows from it. With several ranks or threads, every spike must be that of a run with one (made
before each repeat, outside the measured time): the same cell at the same time, bit by bit.

The published model of the olfactory bulb (YuEtAl2012, ModelDB 144570) is not run: its files are its authors'.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from seatrial.applications.running.copies import problem
from seatrial.applications.running.interpreter import read_result
from seatrial.benchmarks.figures import between, duration, exactly, time_step
from seatrial.benchmarks.placement import RANK_LAYOUT, cpus_of, openmp_variables, resolved
from seatrial.model.benchmark.benchmark import Check, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.benchmark.python_script import PythonScript
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

SCRIPT = Path(__file__).with_name("neuron_ring.py")
RUN = "run"
_OUTPUT, _REFERENCE, _NONE = "result.json", "one-rank.json", "-"
_TIMESTEP_MS = 0.025
_LEAST_HOP_MS, _MOST_HOP_MS = 1.0, 10.0
"""From a spike to the next cell's: the delay of a connection, and far more than a synapse needs."""
_S_PER_COMPARTMENT_STEP = 3e-7
_START_S = 3.0


def read_run(data: bytes) -> ProgramRecord:
    """What the script wrote, not `ended` if it wrote nothing: `hop_change_ms` is by how much the time from cell to cell
    varies, `spikes_missing` how many spikes are too few or too many for that time. Raises ProtocolError for other
    content."""
    return read_result("NEURON", data, _record)


def _record(found: dict[str, Any]) -> ProgramRecord:
    cells, rings = found["cells"] // found["rings"], found["rings"]
    time_ms = found["steps"] * _TIMESTEP_MS
    times: list[list[float]] = [[] for _ in range(rings)]
    order: list[list[int]] = [[] for _ in range(rings)]
    for gid, at_ms in sorted(found["spikes"], key=lambda spike: spike[1]):
        times[gid // cells].append(at_ms)
        order[gid // cells].append(gid % cells)
    hops = [b - a for ring in times for a, b in pairwise(ring)]
    in_order = all(ring == [n % cells for n in range(len(ring))] for ring in order)
    checks: dict[str, float | None] = {
        "ranks": float(found["ranks"]),
        "threads": float(found["threads"]),
        "cells": float(found["cells"]),
        "in_order": float(in_order),
        "hop_ms": sum(hops) / len(hops) if hops else None,
        "hop_change_ms": max(hops) - min(hops) if hops else None,
        "spikes_missing": _missing(times, sum(hops) / len(hops), time_ms) if hops else None,
    }
    if found["spikes_differ"] is not None:
        checks["spikes_differ"] = float(found["spikes_differ"])
    elif found["ranks"] == found["threads"] == 1:
        checks["spikes_differ"] = 0.0  # it is the run that others are compared with
    sample = Sample(RUN, 0, found["elapsed_s"], {"steps": float(found["steps"]), "spikes": float(len(found["spikes"]))})
    return ProgramRecord(samples=(sample,), checks=checks, notes={"version": found["version"]}, ended=True)


def _missing(times: Sequence[Sequence[float]], hop_ms: float, time_ms: float) -> float:
    """Spikes that are too few or too many, of all rings; one more or less at the very end is none."""
    missing = 0.0
    for ring in times:
        expected = 1 + (time_ms - ring[0]) / hop_ms if ring else time_ms / hop_ms
        missing += max(0.0, abs(len(ring) - expected) - 1.0)
    return missing


def _arguments(params: Params, output: str, reference: str, threads: object) -> list[str]:
    sizes = (params[name] for name in ("rings", "cells", "segments", "time_ms"))
    return [str(SCRIPT), output, reference, *map(str, sizes), str(threads)]


def _run(params: Params, directory: Path) -> Sequence[str]:
    return _arguments(params, _OUTPUT, _NONE if _is_alone(params) else _REFERENCE, params["threads"])


def _is_alone(params: Params) -> bool:
    return cpus_of(params) == 1


def _prepare(machine: Machine, params: Params) -> Params:
    params = resolved(machine, params)
    if whole(params["rings"]) * whole(params["cells"]) < cpus_of(params):
        raise Skip("there are more ranks x threads than cells")
    return params


def _estimate_s(params: Params) -> float:
    compartments = whole(params["rings"]) * whole(params["cells"]) * (1 + whole(params["segments"]))
    serial_s = _S_PER_COMPARTMENT_STEP * compartments * whole(params["time_ms"]) / _TIMESTEP_MS
    return _START_S + serial_s / cpus_of(params) + (0.0 if _is_alone(params) else serial_s)


BENCHMARK = problem(
    PythonScript(
        name="NEURON",
        install="install NEURON (python -m pip install neuron) into a Python on PATH, or set "
        "environment.python to its path",
        output=_OUTPUT,
        arguments=_run,
        parse=read_run,
        version=(),
        preparation=lambda params: () if _is_alone(params) else (_arguments(params, _REFERENCE, _NONE, 1),),
        variables=openmp_variables,
        module="neuron",
        package="neuron",
        parts=(SCRIPT,),
        variable_of_mpi="MPI_LIB_NRN_PATH",
    ),
    name="apps.neuron",
    question="How fast does NEURON simulate rings of nerve cells?",
    parameters=(
        Parameter.integer("rings", 32, "rings of cells", minimum=1),
        Parameter.integer("cells", 16, "cells of a ring", minimum=8),
        Parameter.integer("segments", 10, "compartments of a cell's dendrite", minimum=1),
        Parameter.integer("time_ms", 100, "simulated time, in steps of 0.025 ms", minimum=20),
        *RANK_LAYOUT,
        Parameter.integer("threads", 1, "threads of NEURON per rank", minimum=1),
    ),
    figures=(
        time_step(RUN, "one time step of 0.025 ms, of all cells"),
        duration("wall", "the simulated time, without making the cells", series=RUN),
    ),
    checks=(
        Check("ranks", "ranks, as NEURON reports", exactly("ranks")),
        Check("threads", "threads per rank, as NEURON reports", exactly("threads")),
        Check("cells", "cells of all rings", exactly(lambda params: whole(params["rings"]) * whole(params["cells"]))),
        Check("in_order", "1: every spike comes after that of the cell before it in its ring", exactly(1.0)),
        Check("hop_ms", "time from a spike to the next cell's", between(_LEAST_HOP_MS, _MOST_HOP_MS)),
        Check(
            "hop_change_ms",
            "how much that time varies between cells, which are all alike",
            between(0.0, 1.01 * _TIMESTEP_MS),
        ),
        Check("spikes_missing", "spikes too few or too many for that time", exactly(0.0)),
        Check("spikes_differ", "spikes that differ from those of a run with one rank and thread", exactly(0.0)),
    ),
    prepare=_prepare,
    estimate_s=_estimate_s,
)
