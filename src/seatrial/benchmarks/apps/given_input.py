"""What the applications whose input the user gives have in common: their parameters, checks and figures.

The figures are those of `imported.<kind>`, read from the log by the same reader. An adapter states only how the program
is started and which published inputs it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from seatrial.benchmarks.apps.copies import with_copies
from seatrial.benchmarks.apps.layout import RANKS, THREADS, openmp_variables, placement, resolved
from seatrial.benchmarks.bounds import between, exactly
from seatrial.benchmarks.node_placement import NODE_PLACEMENT
from seatrial.benchmarks.nodes import NODES, RANKS_PER_NODE
from seatrial.benchmarks.placement import spread, thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark import Benchmark, Bound, Check, Figure, Skip
from seatrial.model.frozen import Frozen
from seatrial.model.given_input import AUTO, CASE, CLOCKED_S, FOLDER, INPUT, NONE, OWN, GivenInput, InputCase
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, whole
from seatrial.model.protocol import ProgramRecord
from seatrial.model.sample import Sample

_LATE_S = 1.0
"""What a printed time may be more than ours: it may count whole seconds."""
NOT_STATED = "not stated in its log"
FORMAT_SEEN = "format seen, run unverified"
FROM_DOCUMENTATION = "format from documentation, run unverified"

TARGET = Parameter(
    "folder",
    ParameterKind.TEXT,
    "results",
    "a folder on the file system to measure; results: in the results folder",
    words=("results",),
)
PROCESSES = Parameter(
    "processes", ParameterKind.INTEGER, "all", "processes or threads that it starts itself", words=("all",), minimum=1
)
EXPECTED_S = Parameter(
    "expected_s",
    ParameterKind.INTEGER,
    60,
    "expected time of a run in seconds; a run that takes 20 times as long is stopped",
    minimum=1,
)


def with_target(params: Params) -> Params:
    """The parameters with the whole path of the folder to measure. Raises UsageError if it is no folder."""
    if params[TARGET.name] == TARGET.default:
        return params
    folder = Path(str(params[TARGET.name]))
    if not folder.is_dir():
        raise UsageError(f"folder={folder} is not a folder", "name a folder on the file system to measure")
    return {**params, TARGET.name: str(folder.resolve())}


def target(params: Params, directory: Path) -> Path:
    """A new folder or file in the folder to measure, for one repeat (`directory`)."""
    if params[TARGET.name] == TARGET.default:
        return directory / "data"
    return Path(str(params[TARGET.name])) / f"seatrial-{directory.parent.name[:12]}-{directory.name}"


def case_parameters(cases: Sequence[InputCase], *, has_start: bool) -> tuple[Parameter, ...]:
    """The case, the folder of its files, and the file that the program is started with."""
    published = "; ".join(
        f"{case.name}: {case.what}, " + (f"from {case.source}" if case.source else "made here") for case in cases
    )
    names = (*(case.name for case in cases), OWN)
    first = next((case.name for case in cases if case.is_made_here), OWN if not cases else cases[0].name)
    about = f"the input; {published}; own: any other" if cases else "the input: the user's own"
    chosen = (
        Parameter(CASE, ParameterKind.CHOICE, first, about, words=names),
        Parameter(FOLDER, ParameterKind.TEXT, NONE, "the folder with the files of the input", words=(NONE,)),
    )
    if not has_start:
        return chosen
    help_text = "the file of that folder that the program is started with; auto: that of the published case"
    return (*chosen, Parameter(INPUT, ParameterKind.TEXT, AUTO, help_text, words=(AUTO,)))


def with_case(program: GivenInput, params: Params) -> Params:
    """The parameters with the name of the start file. Raises Skip where the input is not given."""
    case = program.case(params[CASE])
    if params[FOLDER] == NONE and (case is None or not case.is_made_here):
        where = (
            "" if case is None else f" with {', '.join(case.files) or case.start or 'its files'} (from {case.source})"
        )
        raise Skip(f"the input is not given: set {FOLDER} to the folder{where}")
    if params.get(INPUT) != AUTO:
        return params
    if case is None or not case.start:
        raise Skip(f"the start file of {params[CASE]} is not known: set {INPUT} to its name")
    return {**params, INPUT: case.start}


def stated_check(what: str, name: str, tool: str, bound: Bound) -> Check:
    """What the log states of `what` must be as it was asked for. A number above 1 must be stated: a run on one rank
    that was to have several would else pass."""
    key = stated_key(what)

    def value(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
        number: float | None = samples[0].extra.get(key)
        return nan if number is None and bound(machine, params)[0] > 1 else number

    return Check(name, f"{what}, as {tool} reports them", bound, derive=value, if_nan=NOT_STATED)


def _stated_checks(program: GivenInput, tool: str, stated: Mapping[str, str]) -> tuple[Check, ...]:
    def atoms(machine: Machine, params: Params) -> tuple[float, float]:
        case = program.case(params[CASE])
        return (1.0, inf) if case is None or case.atoms is None else (case.atoms, case.atoms)

    return tuple(
        stated_check(number, name, tool, atoms if number == "atoms" else exactly(name))
        for number, name in stated.items()
    )


def _needed(name: str, tool: str) -> Check:
    key = stated_key(name)
    return Check(
        name,
        f"{name}, which {tool} must report",
        bound=lambda machine, params: (1.0, inf),
        derive=lambda machine, params, samples: samples[0].extra[key],
    )


def _clock(tool: str) -> Check:
    return Check(
        "clock",
        f"elapsed time that {tool} prints minus ours, in s",
        between(-inf, _LATE_S),
        derive=lambda machine, params, samples: samples[0].elapsed_s - samples[0].extra[CLOCKED_S],
    )


def stated_key(name: str) -> str:
    """The key of a sample's `extra` under which the number is that a log states."""
    return f"stated_{name}"


def nothing_more(data: bytes) -> ProgramRecord:
    """For a log of which the reader reads all that is needed."""
    return ProgramRecord(ended=True)


class Made(Frozen):
    """A case that is made here: its files, its parameters (`prepare` may raise Skip), and the checks on what `parse`
    reads in the log. Checks and `parse` must let the other cases pass. `estimate_s` is None for these."""

    inputs: Callable[[Params], Mapping[str, bytes]]
    parameters: tuple[Parameter, ...]
    parse: Callable[[bytes], ProgramRecord] = nothing_more
    checks: tuple[Check, ...] = ()
    prepare: Callable[[Params], Params] = lambda params: params
    estimate_s: Callable[[Params], float | None] = lambda params: None


def application(
    name: str,
    question: str,
    of: Benchmark,
    *,
    tool: str,
    programs: Sequence[str],
    install: str,
    arguments: Callable[[Params], Sequence[str]],
    output: str,
    cases: tuple[InputCase, ...],
    evidence: str = "",
    made: Made | None = None,
    starts: Literal["ranks", "itself"] = "ranks",
    stated: Mapping[str, str] | None = None,
    needed: Sequence[str] = (),
    has_start: bool = True,
    is_clocked: bool = False,
    ranks: Parameter = RANKS,
    places: Callable[[Params, Path], Sequence[str]] = lambda params, directory: (),
    preparation: Callable[[Params], Sequence[Sequence[str]]] = lambda params: (),
    variables: Callable[[Params], Mapping[str, str | None]] | None = None,
) -> Benchmark:
    """An application whose log the reader `imported.<kind>` reads, with the figures that `of` declares. `evidence` is
    what its adapter was checked with if it was never run; empty if it was. `made` is its case that is made here.

    `starts`: whether an MPI launcher starts its ranks, or it starts its processes itself. `stated`: number that the log
    states -> the parameter that it must equal. `needed`: numbers above zero that the log must state. `is_clocked`: its
    first figure is the time of the whole run, which must not be more than ours. `ranks`: the
    parameter, where its default is not that of other programs. `places`: further arguments, from the parameters and the
    folder of the repeat. `preparation`: as in `External`.
    """
    is_mpi = starts == "ranks"
    more, added = ((), ()) if made is None else (made.parameters, made.checks)
    own: tuple[Parameter, ...] = (ranks, NODES, RANKS_PER_NODE, NODE_PLACEMENT, THREADS) if is_mpi else (PROCESSES,)
    if stated is None:
        stated = {"ranks": "ranks", "threads": "threads"} if is_mpi else {"ranks": "processes"}
    if any(case.atoms for case in cases):
        stated = {**stated, "atoms": "atoms"}

    program = GivenInput(
        name=programs[0],
        install=install,
        output=output,
        arguments=lambda params, directory: (*arguments(params), *places(params, directory)),
        parse=nothing_more if made is None else made.parse,
        version=(),
        variables=variables or (openmp_variables if is_mpi else lambda params: {}),
        inputs=(lambda params: {}) if made is None else made.inputs,
        preparation=preparation,
        is_clocked=is_clocked,
        reader=of.name.removeprefix("imported."),
        cases=cases,
        stated={**stated, **{name: name for name in needed}},
    )
    program = with_alternatives(program, programs)

    def prepare(machine: Machine, params: Params) -> Params:
        params = with_case(program, params if made is None else made.prepare(params))
        if is_mpi:
            return resolved(machine, params)
        return {**params, "processes": thread_count(machine, params["processes"])}

    def cpus(machine: Machine, params: Params) -> tuple[int, ...]:
        return placement(machine, params) if is_mpi else spread(machine, whole(params["processes"]))

    def estimate_s(params: Params) -> float:
        known = None if made is None else made.estimate_s(params)
        return float(whole(params[EXPECTED_S.name])) if known is None else known

    alone = Benchmark(
        name=name,
        question=question,
        program=program,
        parameters=(*case_parameters(cases, has_start=has_start), *more, *own, EXPECTED_S),
        figures=first_counts(of.figures),
        checks=(
            *_stated_checks(program, tool, stated),
            *(_needed(name, tool) for name in needed),
            *((_clock(tool),) if is_clocked else ()),
            *added,
        ),
        placement=cpus,
        prepare=prepare,
        ranks="mpi" if is_mpi else "one",
        estimate_s=estimate_s,
        verified=not evidence,
        evidence=evidence,
    )
    return with_copies(alone)


def with_alternatives(program: GivenInput, names: Sequence[str]) -> GivenInput:
    """The program under the first of these names, or under the next if that is not installed."""
    return replace(program, name=names[0], alternatives=tuple(replace(program, name=one) for one in names[1:]))


def first_counts(figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Figures of a reader: the log has the first one, and the others in some versions only."""
    return (figures[0], *(replace(figure, is_secondary=True) for figure in figures[1:]))
