"""Which differences a comparison is about, and which the axis brings along; all others nobody asked for.

What can be worked out is worked out: CPUs follow from the axis only where the benchmark's own placement gives them, a
parameter only where the benchmark makes it of the others. So a `taskset` beside an axis of threads is still seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from seatrial.analysis.fairness.environments import BUILD
from seatrial.analysis.fairness.noticed import Kind, Noticed
from seatrial.analysis.fairness.side import Group, SideFacts, worked_out
from seatrial.benchmarks import registry
from seatrial.errors import SeatrialError
from seatrial.model.benchmark import Benchmark, Native, Skip
from seatrial.model.experiment import Experiment
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_from_document
from seatrial.model.parameter import Params
from seatrial.model.study import ENVIRONMENT_PREFIX, LABEL

_COMPILER, _FLAGS = "environment.compiler", "environment.flags"
_OF_A_COMPILER = re.compile(r"lib(stdc\+\+|gcc_s|c\+\+(abi)?|unwind|atomic|g?omp5?|iomp5|gfortran|quadmath|m?vec)\.so")
"""Libraries that come with a compiler, or that flags such as -fopenmp and -stdlib add."""
_LOADER = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD"})
_CHOOSE_A_PROGRAM = _LOADER | {"PATH"}
_NOTES_OF_FLAGS = frozenset({"vector_bits", "fma"})
_THREAD_VARIABLES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTOBLAS_", "MKL_", "BLIS_", "NVPL_")
_PAGE_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_")
_LIBRARIES = (Kind.LIBRARY, Kind.OWN_LIBRARY)


def intent(noticed: Sequence[Noticed], group: Group, axis: str | None) -> list[tuple[Noticed, bool, str]]:
    """Each with whether it is intended, and the axis that brings it along ("" for the axis itself)."""
    if axis is None:
        return [(item, False, "") for item in noticed]
    judged = []
    for item in noticed:
        if item.kind is Kind.COMMAND:
            continue
        if _is_axis(item, axis):
            judged.append((item, True, ""))
        else:
            follows = axis != LABEL and _follows(item, group, axis)
            judged.append((item, follows, axis if follows else ""))
    # A command line is made of parameters, CPUs and libraries: it is as intended as all of these are.
    made_of = (Kind.PARAMETER, Kind.AFFINITY, Kind.LIBRARY, Kind.PROGRAM)
    causes = [intended for item, intended, _ in judged if item.kind in made_of]
    follows = bool(causes) and all(causes)
    judged += [(item, follows, axis if follows else "") for item in noticed if item.kind is Kind.COMMAND]
    return judged


def _is_axis(item: Noticed, axis: str) -> bool:
    """Whether it is what the comparison varies."""
    if item.kind is Kind.PARAMETER:
        return item.name == axis
    bare = axis.removeprefix(ENVIRONMENT_PREFIX)
    if bare == axis:
        return False
    if item.kind is Kind.ENVIRONMENT:
        wanted = "added flags" if axis == _FLAGS else bare
        return item.name == wanted or item.name.startswith(f"{wanted} ")
    return item.kind is Kind.VARIABLE and item.name == bare


def _follows(item: Noticed, group: Group, axis: str) -> bool:
    if axis.startswith(ENVIRONMENT_PREFIX):
        if axis in (_COMPILER, _FLAGS):
            return _follows_building(item, axis)
        return _follows_variable(item, axis.removeprefix(ENVIRONMENT_PREFIX), group)
    return _follows_parameter(item, group, axis)


def _follows_building(item: Noticed, axis: str) -> bool:
    match item.kind:
        case Kind.ENVIRONMENT:
            return axis == _COMPILER and (item.name == "flags" or item.name.startswith("target"))
        case Kind.PROGRAM:
            return item.name == BUILD
        case Kind.LIBRARY | Kind.OWN_LIBRARY:
            return _OF_A_COMPILER.match(item.name) is not None
        case Kind.NOTE:
            return item.name in _NOTES_OF_FLAGS
        case _:
            return False


def _follows_variable(item: Noticed, name: str, group: Group) -> bool:
    if item.kind in _LIBRARIES:
        return name in _CHOOSE_A_PROGRAM
    if item.kind is Kind.PROGRAM:
        return name in _CHOOSE_A_PROGRAM or (item.name == BUILD and name in _variables_of(group.benchmark))
    if item.kind is Kind.NOTE:
        return ("blas" in item.name and name.startswith((*_THREAD_VARIABLES, *_LOADER))) or (
            "huge" in item.name and name.startswith(_PAGE_VARIABLES)
        )
    return False


def _variables_of(benchmark: str) -> tuple[str, ...]:
    """The variables that are part of what identifies a program of this benchmark."""
    known = registry().get(benchmark)
    return known.program.variables if known is not None and isinstance(known.program, Native) else ()


def _follows_parameter(item: Noticed, group: Group, axis: str) -> bool:
    benchmark = registry().get(group.benchmark)
    if benchmark is None or all(parameter.name != axis for parameter in benchmark.parameters):
        return False
    match item.kind:
        case Kind.PARAMETER:
            return item.name in worked_out(benchmark.name) and _is_worked_out(benchmark, item.name, group)
        case Kind.AFFINITY:
            return _is_placed(benchmark, group)
        case Kind.PROGRAM | Kind.INPUT | Kind.LIBRARY:
            return _chooses_a_program(benchmark, axis)
        case Kind.NOTE:
            return _note_follows(item.name, axis)
        case _:
            return False


def _chooses_a_program(benchmark: Benchmark, axis: str) -> bool:
    """Whether the parameter names the program to start, or the library to load."""
    program = benchmark.program
    return isinstance(program, Native) and (
        axis == program.library or (axis == "argv" and program.commands is not None)
    )


def _note_follows(note: str, axis: str) -> bool:
    if note == axis or note.startswith(f"{axis.removesuffix('s')}_"):
        return True
    if axis in ("memory", "node"):
        return note.startswith("page_nodes")
    return "blas" in note and axis in ("blas", "threads", "cores")


def _is_worked_out(benchmark: Benchmark, name: str, group: Group) -> bool:
    """Whether every experiment has of this parameter what the benchmark makes of its default beside the others."""
    default = benchmark.parameter(name).default

    def holds(machine: Machine, experiment: Experiment) -> bool:
        made = benchmark.prepare(machine, {**experiment.parameters, name: default})
        return made[name] == experiment.parameters[name]

    return all(_hold(side, holds) for side in (group.baseline, group.candidate))


def _is_placed(benchmark: Benchmark, group: Group) -> bool:
    """Whether all repeats that told their CPUs had those that the benchmark's placement gives."""

    def wanted(machine: Machine, params: Params) -> list[list[int]]:
        return [[cpu] for cpu in benchmark.placement(machine, params)]

    def holds(side: SideFacts, machine: Machine, experiment: Experiment) -> bool:
        records = side.records.get(experiment.id, ())
        seen = [record.seen["affinity"] for record in records if "affinity" in record.seen]
        return all(masks == wanted(machine, experiment.parameters) for masks in seen)

    return all(_hold(side, partial(holds, side)) for side in (group.baseline, group.candidate))


def _hold(side: SideFacts, holds: Callable[[Machine, Experiment], bool]) -> bool:
    """Whether something holds for every experiment of a side on its machine; False where that cannot be asked."""
    try:
        return all(
            holds(machine_from_document(side.machines[experiment.machine]), experiment)
            for experiment in side.experiments.values()
        )
    except (SeatrialError, Skip, KeyError, TypeError, ValueError, IndexError):
        return False
