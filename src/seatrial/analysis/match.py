"""What is compared: a figure of two experiments of results folders, with the block of each repeat, or of one and a
published value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from sys import intern

from msgspec.structs import replace

from seatrial.analysis.missing_cpus import missing_of_side
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.machine.host_list import by_number
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValue, RepeatValues, numbers
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import point_key
from seatrial.model.spelling import count
from seatrial.model.study.comparison import Comparison, Design, Side, Stopped, Verdict
from seatrial.model.units import Unit
from seatrial.stats.interval import LEAST_SESSIONS, MINIMUM_REPEATS
from seatrial.stats.ratio import RatioInterval, is_too_coarse, verdict
from seatrial.store.contents import Contents


class MeasuredSide(Frozen):
    """One figure of one experiment, as a side of a comparison. `blocks` maps a repeat to its block; `sessions`
    counts the files with its records: a session is what one process recorded."""

    name: str
    experiment: str
    figure: FigureResult
    hosts: tuple[str, ...] = ()
    machine: str = ""
    blocks: Mapping[int, str] = {}
    sessions: int = 1
    no_cpu: NoCpu | None = None
    beside: str = ""


class Sequential(Frozen):
    """The stopping rule of a study. `ends` counts its budgets and maximum numbers of repeats; `is_spent`: the last
    budget is spent."""

    maximum: int
    ends: int = 1
    is_spent: bool = True


class Match(Frozen):
    """Two sides of one figure, with the parameters that they share. Either may be a published value."""

    benchmark: str
    parameters: Mapping[str, Value]
    baseline: MeasuredSide | Side
    candidate: MeasuredSide | Side
    unit: Unit
    better: Better
    figure: str
    rule: Sequential | None = None
    is_secondary: bool = False


class Terms(Frozen):
    """What the comparisons of a family are read with: the margin, of equivalence or not, and their number."""

    margin: float
    family: int
    equivalence: bool = False


def side_of(measured: MeasuredSide, values: Sequence[RepeatValue]) -> Side:
    """The side with these repeats of a measured figure."""
    return Side(
        measured.name,
        median(numbers(values)),
        values if isinstance(values, RepeatValues) else RepeatValues.of(values),
        (measured.experiment,),
        measured.hosts,
        no_cpu=measured.no_cpu,
        beside=measured.beside,
    )


def comparison_of(
    match: Match,
    sides: tuple[Side, Side],
    intervals: tuple[RatioInterval, RatioInterval],
    terms: Terms,
    design: Design,
    p: float | None = None,
    pairs: Sequence[tuple[float, float]] = (),
    *,
    half_steps: float = 0.0,
    narrow: tuple[RatioInterval, RatioInterval] | None = None,
) -> Comparison:
    """The comparison with the verdict of its simultaneous interval, the second of `intervals`. `narrow` are both with
    twice the error; None: equivalence is not asked for."""
    plain, simultaneous = intervals
    ci90, ci90_family = (None, None) if narrow is None else (one.ends for one in narrow)
    higher = match.better is Better.HIGHER
    found = Comparison(
        benchmark=match.benchmark,
        figure=match.figure,
        parameters=match.parameters,
        unit=match.unit,
        better=match.better,
        baseline=sides[0],
        candidate=sides[1],
        ratio=plain.ratio,
        ci95=plain.ends,
        ci95_family=simultaneous.ends,
        verdict=verdict(simultaneous.low, simultaneous.high, terms.margin, higher, ci90_family),
        margin=terms.margin,
        n_repeats=min(len(side.values) for side in sides),
        family=terms.family,
        design=design,
        p_family=p,
        pairs=tuple(pairs),
        resolution=math.expm1(half_steps),
        is_secondary=match.is_secondary,
        asks_equivalence=narrow is not None,
        ci90=ci90,
        ci90_family=ci90_family,
    )
    return replace(found, note=_note(found))


def _note(found: Comparison) -> str:
    """What limits the verdict, as text."""
    baseline, candidate, design = found.baseline, found.candidate, found.design
    if baseline.is_reference or candidate.is_reference:
        return "one side is a published value: another machine, no interval"
    missing = [(one, name) for one, name in ((baseline.no_cpu, "baseline"), (candidate.no_cpu, "candidate")) if one]
    notes = [f"no CPU {' and '.join(f'{one.span} ({name})' for one, name in missing)}"] if missing else []
    if set(baseline.hosts) != set(candidate.hosts) and baseline.hosts and candidate.hosts:
        notes.append("two machines: the verdict holds for these two, not for other machines of the same type")
    fewest = min(len(baseline.values), len(candidate.values))
    if fewest < MINIMUM_REPEATS:
        notes.append(f"only {count(fewest, 'repeat')} on a side: an interval needs {MINIMUM_REPEATS}")
    elif design.sessions is not None and design.sessions < LEAST_SESSIONS:
        notes.append(
            f"measured apart, in {sessions_words(design)}: the machine may have changed in between, and the repeats of "
            "a session cannot show it"
        )
    elif design.stopped is Stopped.UNFINISHED:
        notes.append("unfinished: a verdict is read at the planned looks and at the end only")
    elif found.ci95_family is None:
        notes.append(f"{found.design.blocks or fewest} repeats are too few for an interval that holds for the family")
    if found.verdict is Verdict.AMBIGUOUS and is_too_coarse(found.margin, math.log1p(found.resolution)):
        notes.append(
            f"too coarse for this margin: the step of the timer or of the printed digits alone may change the ratio by "
            f"{100.0 * found.resolution:.2g} %"
        )
    return "; ".join(notes)


def sessions_words(design: Design) -> str:
    """The sessions of sides that were measured apart: "3 sessions per side", or "10 and 4 sessions, of which 2 of each
    side alternate"."""
    alternating = design.sessions or 1
    made = design.made_in or (alternating, alternating)
    if made == (alternating, alternating):
        return f"{count(alternating, 'session')} per side"
    words = f"{made[0]} and {made[1]} sessions"
    return f"{words} without alternation" if alternating == 1 else f"{words}, of which {alternating} per side alternate"


class SideExperiment(Frozen):
    """An experiment on one side, with the name of that side, and the folder with its records. `settings` are the other
    axes of its environment, which are not its parameters: they distinguish it from the other pairs of a study."""

    name: str
    result: ExperimentResult
    contents: Contents
    settings: Mapping[str, Value] = {}

    @property
    def parameters(self) -> Mapping[str, Value]:
        """What it was measured with: parameters and settings."""
        return {**self.result.experiment.parameters, **self.settings}


def blocks_of(contents: Contents, experiment: str) -> dict[int, str]:
    """Repeat -> the block in which it was made, if any."""
    return {
        record.repeat: intern(str(block))
        for record in contents.records.get(experiment, ())
        if (block := record.seen.get("block"))
    }


def hosts_of(contents: Contents, experiment: str) -> tuple[str, ...]:
    """The hosts that an experiment was measured on, sorted."""
    return hosts_of_records(contents.records.get(experiment, ()))


def hosts_of_records(records: Iterable[RepeatRecord]) -> tuple[str, ...]:
    """The hosts of all ranks and programs, sorted."""
    found = {str(host) for record in records for host in record.seen.get("hosts") or [record.seen.get("host")] if host}
    return tuple(sorted(found, key=by_number))


def matches(
    baseline: SideExperiment,
    candidate: SideExperiment,
    *,
    figures: frozenset[str] = frozenset(),
    rule: Sequential | None = None,
) -> list[Match]:
    """A match for each figure and point that both have, in the order of the baseline. `figures` empty: all."""
    if baseline.result.id == candidate.result.id and baseline.contents is candidate.contents:
        return []  # two settings that resolve to the same experiment
    shared = _shared(baseline.parameters, candidate.parameters)
    others = {(figure.name, point_key(figure.point)): figure for figure in candidate.result.figures}
    return [
        Match(
            baseline.result.experiment.benchmark,
            {**shared, **figure.point},
            measured(baseline, figure),
            measured(candidate, other),
            figure.unit,
            figure.better,
            figure.name,
            rule,
            figure.is_secondary,
        )
        for figure in baseline.result.figures
        if (not figures or figure.name in figures)
        and (other := others.get((figure.name, point_key(figure.point)))) is not None
        and all(value > 0 for one in (figure, other) for value in one.values)  # a ratio needs both
    ]


def measured(side: SideExperiment, figure: FigureResult) -> MeasuredSide:
    """One figure of an experiment as a side."""
    result, contents = side.result, side.contents
    places = contents.places.of(result.id)
    repeats = figure.repeats.repeats if isinstance(figure.repeats, RepeatValues) else [n.repeat for n in figure.repeats]
    return MeasuredSide(
        side.name,
        result.id,
        figure,
        result.hosts or hosts_of(contents, result.id),
        result.experiment.machine,
        blocks_of(contents, result.id),
        max(1, len({where.path for n in repeats if (where := places.get(n)) is not None})),
        missing_of_side(result, side.name),
        result.beside,
    )


def _shared(first: Mapping[str, Value], second: Mapping[str, Value]) -> Mapping[str, Value]:
    """The parameters that both have with the same value."""
    return {name: value for name, value in first.items() if name in second and second[name] == value}
