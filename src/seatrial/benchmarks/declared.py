"""Declared benchmarks (`local.<name>`) as benchmarks like all others: from a declaration, or from what a results folder
stored of one, whose figures can be read but which cannot be run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.benchmarks import know_stored, placement, registry
from seatrial.benchmarks.command import command
from seatrial.benchmarks.figures import between, exactly, wall_time
from seatrial.benchmarks.nodes import NODE_PLACEMENT, NODES
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.errors import ProtocolError
from seatrial.model.benchmark.benchmark import (
    Benchmark,
    Better,
    Check,
    DeclaredCommand,
    DeclaredRanks,
    Figure,
    ImportedOnly,
)
from seatrial.model.benchmark.declaration import PREFIX, WALL, Declaration, DeclaredCheck, StoredDeclaration, filled_in
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.benchmark.program import THREADS, ProgramRecord
from seatrial.model.json_object import record_of
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample
from seatrial.model.units import Unit

_HOW_TO_RUN = "only its results are here: run it from its declaration file"


def declared_benchmark(declaration: Declaration, folder: Path) -> Benchmark:
    """The benchmark of a declaration, whose files are in `folder`."""
    program: DeclaredCommand | DeclaredRanks
    if declaration.ranks:
        program = DeclaredRanks(
            declaration.argv[0],
            f"correct the first word of `argv` in the declaration of {declaration.full_name}",
            "stdout",
            lambda params, directory: words_of(declaration, params)[1:],
            lambda data: _not_parsed(),
            version=(),
            declaration=declaration,
            folder=folder,
        )
    else:
        program = DeclaredCommand(
            source=command.BENCHMARK.program.source or Path(),
            arguments=lambda params: command.arguments_of(
                [program_of(declaration, folder, params), *words_of(declaration, params)[1:]], declaration.exit_status
            ),
            commands=lambda params: (program_of(declaration, folder, params),),
            inputs=lambda params: words_of(declaration, params)[1:],
            declaration=declaration,
            folder=folder,
        )
    return Benchmark(
        name=declaration.full_name,
        question=declaration.question,
        program=program,
        parameters=(*declaration.parameters, *((NODES, NODE_PLACEMENT) if declaration.ranks else ())),
        figures=_figures([(f.name, f.unit, f.is_higher_better) for f in declaration.figures]),
        checks=_checks(declaration),
        placement=placement.placement if declaration.ranks else _placement,
        prepare=placement.resolved if declaration.ranks else _prepare,
        ranks="mpi" if declaration.ranks else "one",
        estimate_s=lambda params: declaration.expected_s,
    )


def words_of(declaration: Declaration, params: Params) -> list[str]:
    """The command with the values of its parameters."""
    return [filled_in(word, params) for word in declaration.argv]


def program_of(declaration: Declaration, folder: Path, params: Params) -> str:
    """The program of a command: a path with a slash is relative to the folder of the declaration."""
    first = words_of(declaration, params)[0]
    return str((folder / first).absolute()) if "/" in first else first


def _not_parsed() -> ProgramRecord:
    raise ProtocolError("the outputs of a declared program are read by its declaration")


def _figures(declared: Iterable[tuple[str, Unit, bool]]) -> tuple[Figure, ...]:
    own = {name: _figure(name, unit, is_higher) for name, unit, is_higher in declared}
    return (*(figure for name, figure in own.items() if name != WALL), own.get(WALL, _WALL))


def _figure(name: str, unit: Unit, is_higher: bool) -> Figure:
    better = Better.HIGHER if is_higher else Better.LOWER
    return Figure(
        name,
        unit,
        better,
        lambda sample: sample.work["value"],
        "as the declaration states",
        series=f"{name} [{unit}, {better} is better]",
    )


_WALL = wall_time("one run of the program")


def _checks(declaration: Declaration) -> tuple[Check, ...]:
    own = tuple(
        Check(
            check.name, _meaning(check), exactly(1) if check.must_match is not None else between(check.low, check.high)
        )
        for check in declaration.checks
    )
    if declaration.ranks:  # the launcher's status is judged before any check
        return own
    return (Check("exit_status", "exit status of the program", exactly(declaration.exit_status)), *own)


def _meaning(check: DeclaredCheck) -> str:
    if check.must_match is None:
        return check.pick.words
    return f"1 if {'a' if check.must_match else 'no'} line matches {check.pick.pattern!r}"


def _threads(machine: Machine, params: Params) -> int:
    """As many CPUs as a parameter of that name says; without one, all that this process may use."""
    if THREADS not in params:
        return len(machine.allowed_cpus)
    return thread_count(machine, params[THREADS])


def _placement(machine: Machine, params: Params) -> tuple[int, ...]:
    return spread(machine, _threads(machine, params))


def _prepare(machine: Machine, params: Params) -> Params:
    return params if THREADS not in params else {**params, THREADS: _threads(machine, params)}


def typed_command(benchmark: str, params: Params, arguments: Sequence[object]) -> tuple[str, ...] | None:
    """The user's command, as typed or declared, from the arguments of the program that measured it; None if these start
    no command."""
    words = command.words_in(arguments)
    known = registry().get(benchmark)
    declared = known.program.declaration if known is not None else None
    if words is None or declared is None or not declared.argv:
        return words
    try:
        return (filled_in(declared.argv[0], params), *words[1:])
    except (KeyError, ValueError):  # the parameters of an earlier declaration
        return words


def timed(samples: Iterable[Sample], wall_s: float) -> tuple[Sample, ...]:
    """The samples of figures with the elapsed time of the run, which they were read without."""
    return tuple(
        Sample(s.series, s.i, wall_s, s.work, s.rank, s.point, s.extra) if math.isnan(s.elapsed_s) else s
        for s in samples
    )


def _stored_benchmark(documents: Iterable[StoredDeclaration]) -> Benchmark:
    """The benchmark of the declarations of one name in results folders: all figures that any of them has. It cannot be
    run."""
    declarations = list(documents)
    latest = declarations[-1]
    figures = {
        (f.name, f.unit, f.better): (f.name, f.unit, f.better == "higher")
        for document in declarations
        for f in document.figures
    }
    names = dict.fromkeys(name for document in declarations for name in document.parameters)
    return Benchmark(
        name=PREFIX + latest.name,
        question=latest.question,
        program=ImportedOnly(_HOW_TO_RUN, latest),
        parameters=tuple(Parameter.text(name, "", "stated by its declaration") for name in names),
        figures=_figures(figures.values()),
        checks=(),
        placement=lambda machine, params: (),
    )


def know_declarations(environments: Iterable[Mapping[str, Any]]) -> None:
    """Make the figures of declared benchmarks readable whose declarations are stored in these environments."""
    by_name: dict[str, list[StoredDeclaration]] = {}
    for environment in environments:
        if (stored := environment.get("declaration")) is not None:
            declaration = record_of(StoredDeclaration, stored)
            by_name.setdefault(declaration.name, []).append(declaration)
    if by_name:
        know_stored([_stored_benchmark(stored) for stored in by_name.values()])
