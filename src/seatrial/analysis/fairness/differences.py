"""The fairness list: all differences between the sides of a comparison besides the figures.

A difference is intended if the comparison varies it, or if it follows from that (`Difference.follows_from`). All others
are listed first. Values that always vary (load, steal, free memory) have their own rules; `fairness/` has one module
for each source of differences, and only `intent` below decides which are intended.

Which differences are intended: those of the compared axis, and those that follow from it.

Whether CPUs and parameters follow from the axis is computed: the benchmark resolves the baseline's parameters with the
axis changed, and only values equal to the result are intended. So a `taskset` is still reported if threads vary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from seatrial.analysis.fairness.environments import BUILD, environment_differences, parameter_differences
from seatrial.analysis.fairness.machines import ALLOWED_CPUS, circumstance_differences, machine_differences
from seatrial.analysis.fairness.repeats import repeat_differences
from seatrial.analysis.fairness.side import (
    RANK,
    Noticed,
    SideFacts,
    SideGroup,
    Topic,
    derived_parameters,
    groups,
    side_facts,
    together,
)
from seatrial.benchmarks import registry
from seatrial.errors import SeatrialError
from seatrial.model.benchmark.benchmark import Benchmark, Skip
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.benchmark.program import NODES, RANKS
from seatrial.model.environment.container import (
    CONTAINER,
    CONTAINER_BUILD,
    CONTAINER_DEVICES,
    CONTAINER_MOUNTS,
    CONTAINER_MPI,
    CONTAINER_RUNTIME,
)
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS
from seatrial.model.environment.mpi import BINDING, SETTINGS
from seatrial.model.machine.document import machine_from_document
from seatrial.model.machine.guest import VM
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import Experiment
from seatrial.model.spelling import count
from seatrial.model.study.comparison import Difference
from seatrial.model.study.study import ENVIRONMENT_PREFIX, LABEL, SYSTEM, is_of_environment

_COMPILER, _FLAGS, _MPI = "environment.compiler", "environment.flags", "environment.mpi"
_GUEST = ENVIRONMENT_PREFIX + VM
_CONTAINERS = tuple(
    ENVIRONMENT_PREFIX + name
    for name in (CONTAINER, CONTAINER_RUNTIME, CONTAINER_MPI, CONTAINER_BUILD, CONTAINER_MOUNTS, CONTAINER_DEVICES)
)
_OF_A_COMPILER = re.compile(r"lib(stdc\+\+|gcc_s|c\+\+(abi)?|unwind|atomic|g?omp5?|iomp5|gfortran|quadmath|m?vec)\.so")
"""Libraries that come with a compiler, or that flags such as -fopenmp and -stdlib add."""
_LOADER = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD"})
_CHOOSE_A_PROGRAM = _LOADER | {"PATH"}
_OF_PARTITIONS = frozenset({"SLURM_JOB_PARTITION"})
_NOTES_OF_FLAGS = frozenset({"vector_bits", "fma"})
_THREAD_VARIABLES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTOBLAS_", "MKL_", "BLIS_", "NVPL_")
_PAGE_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_")
_LIBRARIES = (Topic.LIBRARY, Topic.OWN_LIBRARY)
_OF_THE_SYSTEM = re.compile(
    r"(ld-|lib(c|m|dl|rt|pthread|util|resolv|blas|cblas|lapack|openblas[0-9a-z_-]*|mkl_\w+)\.so)"
)
"""Libraries that do not come with an MPI library: a change of these is a separate difference."""
_MODULE_OF_MPI = re.compile(r"mca_\w+\.so")
"""Open MPI's modules: which transports it loads depends on the number of ranks and on where they are."""
_LAYOUT = frozenset({RANKS, NODES, "ranks_per_node", "node_placement", "placement"})
_TRANSPORT = "transport"
_NOTES_OF_MPI = ("mpi_", "control_variables", "ranks_with_other_settings", "launcher", _TRANSPORT)
_MPI_VARIABLES = ("OMPI_", "MPIR_CVAR_", "UCX_")


def intent(noticed: Sequence[Noticed], group: SideGroup, axis: str | None) -> list[tuple[Noticed, bool, str]]:
    """Each with whether it is intended, and the axis that it follows from ("" for the axis itself)."""
    if axis is None:
        return [(item, False, "") for item in noticed]
    judged = []
    for item in noticed:
        if item.kind is Topic.COMMAND:
            continue
        if _is_axis(item, axis):
            judged.append((item, True, ""))
        else:
            follows = axis != LABEL and _follows(item, group, axis)
            judged.append((item, follows, axis if follows else ""))
    causes = [intended for item, intended, _ in judged if item.kind in _MADE_OF]
    follows = bool(causes) and all(causes)
    judged += [(item, follows, axis if follows else "") for item in noticed if item.kind is Topic.COMMAND]
    return judged


def _is_axis(item: Noticed, axis: str) -> bool:
    """Whether it is the axis itself."""
    if item.kind is Topic.PARAMETER:
        return item.name == axis
    if not is_of_environment(axis):
        return False
    bare = axis.removeprefix(ENVIRONMENT_PREFIX)
    if item.kind is Topic.ENVIRONMENT and axis in _CONTAINERS:
        return item.name.startswith("container ")
    if item.kind is Topic.ENVIRONMENT and axis == _GUEST:
        return item.name.startswith(f"{VM} ")
    if item.kind is Topic.ENVIRONMENT:
        head = "settings " if bare in SETTINGS else "machine settings " if bare in MACHINE_SETTINGS else ""
        wanted = "added flags" if axis == _FLAGS else head + bare.replace("_", " ") if head else bare
        return item.name == wanted or item.name.startswith(f"{wanted} ")
    return item.kind is Topic.VARIABLE and item.name == bare


def _follows(item: Noticed, group: SideGroup, axis: str) -> bool:
    if axis == SYSTEM:
        return _follows_system(item)
    if is_of_environment(axis):
        if axis in (_COMPILER, _FLAGS):
            return _follows_building(item, axis)
        if axis == _MPI or axis.removeprefix(ENVIRONMENT_PREFIX) in SETTINGS:
            return _follows_mpi(item, group, axis)
        if axis == _GUEST:
            return _follows_system(item) or item.kind in (*_LIBRARIES, Topic.AFFINITY)
        if axis in _CONTAINERS:
            return item.kind in (*_LIBRARIES, Topic.AFFINITY) or _is_loaders(item)
        return _follows_variable(item, axis.removeprefix(ENVIRONMENT_PREFIX), group)
    return _follows_parameter(item, group, axis)


def _follows_system(item: Noticed) -> bool:
    """Whether it follows from another partition: its name, its nodes, and the build for their CPU. What else differs
    between the machines is what may explain the ratio, and so is shown."""
    match item.kind:
        case Topic.VARIABLE:
            return item.name in _OF_PARTITIONS
        case Topic.ENVIRONMENT:
            return item.name.startswith("target")
        case Topic.PROGRAM:
            return item.name == BUILD
        case _:
            return item.kind is Topic.HOST


def _is_loaders(item: Noticed) -> bool:
    return item.kind is Topic.NOTE and item.name.startswith(_NOTES_OF_MPI)


def _follows_building(item: Noticed, axis: str) -> bool:
    match item.kind:
        case Topic.ENVIRONMENT:
            return axis == _COMPILER and (item.name == "flags" or item.name.startswith("target"))
        case Topic.PROGRAM:
            return item.name == BUILD
        case Topic.LIBRARY | Topic.OWN_LIBRARY:
            return _OF_A_COMPILER.match(item.name) is not None
        case Topic.NOTE:
            return item.name in _NOTES_OF_FLAGS
        case _:
            return False


def _follows_mpi(item: Noticed, group: SideGroup, axis: str) -> bool:
    """Whether it follows from another MPI library (its build, libraries, and variables for the same settings), or from
    a setting of one (variables of the library, and CPU masks if the setting is the binding)."""
    match item.kind:
        case Topic.PROGRAM:
            return axis == _MPI and item.name == BUILD
        case Topic.AFFINITY:
            return axis == ENVIRONMENT_PREFIX + BINDING
        case Topic.LIBRARY | Topic.OWN_LIBRARY:
            return not (_OF_THE_SYSTEM.match(item.name) or _OF_A_COMPILER.match(item.name))
        case Topic.NOTE:
            return item.name.startswith(_NOTES_OF_MPI)
        case _:
            return item.kind is Topic.VARIABLE and _is_set_by_seatrial(item.name, group)


def _is_set_by_seatrial(name: str, group: SideGroup) -> bool:
    """Whether the environment of either side sets a variable."""
    documents = [*group.baseline.environments.values(), *group.candidate.environments.values()]
    variables_set = (
        {**(document.get("variables") or {}), **((document.get("mpi") or {}).get("variables") or {})}
        for document in documents
    )
    return any(name in variables for variables in variables_set)


def _follows_variable(item: Noticed, name: str, group: SideGroup) -> bool:
    if item.kind in _LIBRARIES:
        return name in _CHOOSE_A_PROGRAM
    if item.kind is Topic.PROGRAM:
        return name in _CHOOSE_A_PROGRAM or (item.name == BUILD and _identifies(name, group.benchmark))
    if item.kind is Topic.NOTE:
        return (
            ("blas" in item.name and name.startswith((*_THREAD_VARIABLES, *_LOADER)))
            or ("huge" in item.name and name.startswith(_PAGE_VARIABLES))
            or (item.name.startswith(_TRANSPORT) and name.startswith(_MPI_VARIABLES))
        )
    return False


def _identifies(variable: str, benchmark: str) -> bool:
    """Whether a variable is part of what identifies the program of this benchmark."""
    known = registry().get(benchmark)
    return known is not None and known.program.is_sensitive_to(variable)


def _follows_parameter(item: Noticed, group: SideGroup, axis: str) -> bool:
    benchmark = registry().get(group.benchmark)
    if benchmark is None or all(parameter.name != axis for parameter in benchmark.parameters):
        return False
    match item.kind:
        case Topic.PARAMETER:
            known = item.name in derived_parameters(benchmark.name)
            return known and _follows_from_axis(benchmark, item.name, group, axis)
        case Topic.AFFINITY:
            return _follows_from_axis(benchmark, None, group, axis)
        case Topic.LIBRARY if axis in _LAYOUT and _MODULE_OF_MPI.match(item.name):
            return item.baseline is None or item.candidate is None  # another version of it is a separate difference
        case Topic.PROGRAM | Topic.INPUT | Topic.LIBRARY:
            return benchmark.program.is_chosen_by(axis)
        case Topic.VARIABLE:
            return item.name in benchmark.program.sets_by(axis)
        case Topic.NOTE:
            return _note_follows(item.name, axis)
        case _:
            return False


def _note_follows(note: str, axis: str) -> bool:
    if note == axis or note.startswith(f"{axis.removesuffix('s')}_"):
        return True
    if axis in ("memory", "node"):
        return note.startswith("page_nodes")
    if axis in _LAYOUT:
        return note.startswith(_TRANSPORT)  # one rank has no neighbour whose memory it could read
    return "blas" in note and axis in ("blas", "threads", "cores")


def _with_axis(benchmark: Benchmark, machine: Machine, params: Params, axis: str, value: Value) -> Params:
    """The parameters with the axis set to `value`; those that the benchmark derives itself are derived again. Raises
    Skip if the benchmark cannot run with them on this machine."""
    free = {
        name: default
        for name in derived_parameters(benchmark.name) - {axis}
        for default in (benchmark.parameter(name).default,)
        if benchmark.prepare(machine, {**params, name: default}).get(name) == params.get(name)
    }
    return benchmark.prepare(machine, {**params, **free, axis: value})


def _follows_from_axis(benchmark: Benchmark, name: str | None, group: SideGroup, axis: str) -> bool:
    """Whether each experiment of the candidate has the value of a parameter (`name` None: the CPUs of its threads) that
    an experiment of the baseline would have with the axis changed, on the baseline's machine."""

    def explains(first: Experiment, second: Experiment) -> bool:
        machine = machine_from_document(group.baseline.machines[first.machine])
        changed = _with_axis(benchmark, machine, first.parameters, axis, second.parameters[axis])
        if name is not None:
            return changed[name] == second.parameters[name]
        return _all_on(group.baseline, first, benchmark.placement(machine, first.parameters)) and _all_on(
            group.candidate, second, benchmark.placement(machine, changed)
        )

    def may_explain(first: Experiment, second: Experiment) -> bool:
        try:
            return explains(first, second)
        except (SeatrialError, Skip, KeyError, TypeError, ValueError, IndexError):
            return False  # cannot be computed: not known to follow

    baseline = group.baseline.experiments.values()
    return all(any(may_explain(first, second) for first in baseline) for second in group.candidate.experiments.values())


def _all_on(side: SideFacts, experiment: Experiment, cpus: Sequence[int]) -> bool:
    """Whether all repeats that recorded their CPUs used these."""
    seen = [record.seen["affinity"] for record in side.records.get(experiment.id, ()) if "affinity" in record.seen]
    return all(masks == [[cpu] for cpu in cpus] for masks in seen)


__all__ = ["SideFacts", "differences", "side_facts"]


def differences(baseline: SideFacts, candidate: SideFacts, axis: str | None) -> tuple[Difference, ...]:
    """The differences, unintended first, then by importance. `axis` is what the comparison varies: a parameter,
    `environment.NAME`, `label` (nothing), or None for two folders.

    Invalid and failed repeats count as well: the outcome is a difference, and their records may explain it. Empty if a
    side has no experiments.
    """
    if not baseline.experiments or not candidate.experiments:
        return ()
    judged: list[tuple[Noticed, bool, str]] = []
    for group in groups(baseline, candidate, axis):
        judged += intent(list(_of_group(group)), group, axis)
    whole = [*machine_differences(baseline, candidate), *circumstance_differences(baseline, candidate)]
    judged += [(item, False, "") for item in whole]
    return tuple(_merged(_with_allowed_cpus(judged, baseline, candidate)))


_ALLOWED = f"{Topic.FACT} {ALLOWED_CPUS}"
_OF_ALLOWED = frozenset({Topic.AFFINITY, Topic.DELAY, Topic.OTHERS_CPUS})
_MADE_OF = (Topic.PARAMETER, Topic.AFFINITY, Topic.LIBRARY, Topic.PROGRAM)
"""A command line depends on these: it follows if all of their differences do."""


def _with_allowed_cpus(
    judged: Sequence[tuple[Noticed, bool, str]], baseline: SideFacts, candidate: SideFacts
) -> list[tuple[Noticed, bool, str]]:
    """With what follows from other allowed CPUs (taskset, a binding of the job): the CPUs of threads, and parameters
    whose default is their number. They are not intended, but one change."""
    if not any(item.what == _ALLOWED for item, _, _ in judged):
        return list(judged)
    derived = {
        name
        for side in (baseline, candidate)
        for one in side.experiments.values()
        for name in derived_parameters(one.benchmark)
    }

    def follows(item: Noticed) -> bool:
        return item.kind in _OF_ALLOWED or (item.kind is Topic.PARAMETER and item.name in derived)

    causes = [item for item, is_meant, _ in judged if item.kind in _MADE_OF and not is_meant]
    is_command_too = bool(causes) and all(map(follows, causes))

    def root(item: Noticed) -> bool:
        return follows(item) or (is_command_too and item.kind is Topic.COMMAND)

    return [(item, is_meant, _ALLOWED if not is_meant and root(item) else axis) for item, is_meant, axis in judged]


def _of_group(group: SideGroup) -> Iterator[Noticed]:
    """The differences between experiments that are compared with each other."""
    if not group.baseline.experiments or not group.candidate.experiments:
        shown = (
            count(len(side.experiments), "experiment") if side.experiments else None
            for side in (group.baseline, group.candidate)
        )
        yield Noticed(Topic.POINT, group.benchmark, *shown)
        return
    yield from parameter_differences(group.baseline, group.candidate)
    seen = list(repeat_differences(group.baseline, group.candidate))
    yield from seen
    reported = {(item.kind, item.name) for item in seen}
    # The key of a build holds its input files and its program: where these are named, it says nothing more.
    if any(item.kind in (Topic.INPUT, Topic.PROGRAM) for item in seen):
        reported.add((Topic.PROGRAM, BUILD))
    for item in environment_differences(group.baseline, group.candidate):
        if (item.kind, item.name) not in reported:  # a variable that a study sets is also in the records of repeats
            yield item


def _merged(judged: list[tuple[Noticed, bool, str]]) -> list[Difference]:
    """One for each name and intent: an intended difference of one experiment never hides an unintended one of
    another."""
    found: dict[tuple[Topic, str, bool, str], list[Noticed]] = {}
    for item, intended, follows in judged:
        found.setdefault((item.kind, item.name, intended, follows), []).append(item)
    ordered = sorted(found.items(), key=lambda entry: (entry[0][2], bool(entry[0][3]), RANK[entry[0][0]]))
    return [
        Difference(
            items[0].what,
            together(item.baseline for item in items),
            together(item.candidate for item in items),
            intended,
            follows,
        )
        for (_, _, intended, follows), items in ordered
    ]
