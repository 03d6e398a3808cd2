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

from seatrial.applications.running.copies import with_copies
from seatrial.benchmarks.figures import between, exactly
from seatrial.benchmarks.placement import LAYOUT, RANKS, openmp_variables, placement, resolved, spread, thread_count
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Bound, Check, Skip
from seatrial.model.benchmark.given_input import AUTO, CASE, CLOCKED_S, FOLDER, INPUT, NONE, OWN, GivenInput, InputCase
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_LATE_S = 1.0
"""What a printed time may be more than ours: it may count whole seconds."""
NOT_STATED = "not stated in its log"
FORMAT_SEEN = "format seen, run unverified"
FROM_DOCUMENTATION = "format from documentation, run unverified"

TARGET = Parameter.text(
    "folder", "results", "a folder on the file system to measure; results: in the results folder", ("results",)
)
PROCESSES = Parameter.integer("processes", "all", "processes or threads that it starts itself", minimum=1)
EXPECTED_S = Parameter.integer(
    "expected_s", 60, "expected time of a run in seconds; a run that takes 20 times as long is stopped", minimum=1
)


def with_target(params: Params) -> Params:
    """The parameters with the whole path of the folder to measure. Raises UsageError if it is not a folder."""
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


def _case_parameters(cases: Sequence[InputCase], *, has_start: bool) -> tuple[Parameter, ...]:
    """The case, the folder of its files, and the file that the program is started with."""
    published = "; ".join(
        f"{case.name}: {case.what}, " + (f"from {case.source}" if case.source else "made here") for case in cases
    )
    names = (*(case.name for case in cases), OWN)
    first = next((case.name for case in cases if case.is_made_here), OWN if not cases else cases[0].name)
    about = f"the input; {published}; own: any other" if cases else "the input: the user's own"
    chosen = (
        Parameter.choice(CASE, first, about, names),
        Parameter.text(FOLDER, NONE, "the folder with the files of the input", (NONE,)),
    )
    if not has_start:
        return chosen
    help_text = "the file of that folder that the program is started with; auto: that of the published case"
    return (*chosen, Parameter.text(INPUT, AUTO, help_text, (AUTO,)))


def _with_case(program: GivenInput, params: Params) -> Params:
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
        raise Skip(f"the start file of {params[CASE]} is unknown: set {INPUT} to its name")
    return {**params, INPUT: case.start}


def _stated_check(what: str, name: str, tool: str, bound: Bound) -> Check:
    """What the log states of `what` must be as it was asked for. A number above 1 must be stated: a run on one rank
    that was to have several would else pass."""
    key = stated_key(what)

    def value(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
        number: float | None = samples[0].extra.get(key)
        return nan if number is None and bound(machine, params)[0] > 1 else number

    return Check(name, f"{what}, as {tool} reports them", bound, value, if_nan=NOT_STATED)


def _stated_checks(
    program: GivenInput, tool: str, stated: Mapping[str, str], bounds: Mapping[str, Bound]
) -> tuple[Check, ...]:
    def atoms(machine: Machine, params: Params) -> tuple[float, float]:
        case = program.case(params[CASE])
        return (1.0, inf) if case is None or case.atoms is None else (case.atoms, case.atoms)

    bounds = {"atoms": atoms, **bounds}
    return tuple(
        _stated_check(number, name, tool, bounds.get(number, exactly(name))) for number, name in stated.items()
    )


def _needed(name: str, tool: str) -> Check:
    key = stated_key(name)
    return Check(
        name,
        f"{name}, which {tool} must report",
        between(1.0, inf),
        lambda machine, params, samples: samples[0].extra[key],
    )


def _clock(tool: str) -> Check:
    return Check(
        "clock",
        f"elapsed time that {tool} prints minus ours, in s",
        between(-inf, _LATE_S),
        lambda machine, params, samples: samples[0].elapsed_s - samples[0].extra[CLOCKED_S],
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

    inputs: Callable[[Params], Mapping[str, bytes]] = lambda params: {}
    parameters: tuple[Parameter, ...] = ()
    parse: Callable[[bytes], ProgramRecord] = nothing_more
    checks: tuple[Check, ...] = ()
    prepare: Callable[[Params], Params] = lambda params: params
    estimate_s: Callable[[Params], float | None] = lambda params: None


def application(
    of: Benchmark,
    question: str,
    *,
    tool: str,
    programs: Sequence[str],
    install: str,
    name: str = "",
    version: Sequence[str] = (),
    arguments: Callable[[Params], Sequence[str]] = lambda params: (),
    output: str = "stdout",
    cases: tuple[InputCase, ...] = (),
    evidence: str = "",
    made: Made | None = None,
    starts: Literal["ranks", "itself"] = "ranks",
    stated: Mapping[str, str] | None = None,
    bounds: Mapping[str, Bound] = {},
    needed: Sequence[str] = (),
    has_start: bool = True,
    is_clocked: bool = False,
    ranks: Parameter = RANKS,
    places: Callable[[Params, Path], Sequence[str]] = lambda params, directory: (),
    preparation: Callable[[Params], Sequence[Sequence[str]]] = lambda params: (),
) -> Benchmark:
    """An application whose log the reader `imported.<kind>` reads, with the figures that `of` declares. `evidence` is
    what its adapter was checked with if it was never run; empty if it was. `made` is its case that is made here.

    `name`: where it is not that of its kind; `version`: the arguments that make it print its own. `starts`: whether an
    MPI launcher starts its ranks, or it starts its processes itself. `stated`: number that the log states -> the
    parameter that it must equal, unless it has a bound in `bounds`. `needed`: numbers above zero that the log must
    state. `is_clocked`: its first figure is the time of the whole run, which must not be more than ours. `ranks`: the
    parameter, where its default is not that of other programs. `places`: further arguments, from the parameters and the
    folder of the repeat. `preparation`: as in `External`.
    """
    kind = of.name.removeprefix("imported.")
    is_mpi = starts == "ranks"
    more, added = ((), ()) if made is None else (made.parameters, made.checks)
    own: tuple[Parameter, ...] = (ranks, *LAYOUT[1:]) if is_mpi else (PROCESSES,)
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
        version=tuple(version),
        variables=openmp_variables if is_mpi else lambda params: {},
        inputs=(lambda params: {}) if made is None else made.inputs,
        preparation=preparation,
        is_clocked=is_clocked,
        reader=kind,
        cases=cases,
        stated={**stated, **{name: name for name in needed}},
    )
    program = replace(program, alternatives=tuple(replace(program, name=other) for other in programs[1:]))

    def prepare(machine: Machine, params: Params) -> Params:
        params = _with_case(program, params if made is None else made.prepare(params))
        if is_mpi:
            return resolved(machine, params)
        return {**params, "processes": thread_count(machine, params["processes"])}

    def cpus(machine: Machine, params: Params) -> tuple[int, ...]:
        return placement(machine, params) if is_mpi else spread(machine, whole(params["processes"]))

    def estimate_s(params: Params) -> float:
        known = None if made is None else made.estimate_s(params)
        return float(whole(params[EXPECTED_S.name])) if known is None else known

    alone = Benchmark(
        name=name or f"apps.{kind}",
        question=question,
        program=program,
        parameters=(*_case_parameters(cases, has_start=has_start), *more, *own, EXPECTED_S),
        figures=(of.figures[0], *(replace(figure, is_secondary=True) for figure in of.figures[1:])),  # not in all logs
        checks=(
            *_stated_checks(program, tool, stated, bounds),
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
