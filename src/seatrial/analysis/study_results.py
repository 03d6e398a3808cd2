"""Results of the studies in a results folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.compare import compared
from seatrial.analysis.container_contrast import container_contrast
from seatrial.analysis.experiment_figures import in_time
from seatrial.analysis.fairness.differences import differences, side_facts
from seatrial.analysis.grouped import grouped
from seatrial.analysis.match import Sequential, SideExperiment, blocks_of, matches
from seatrial.analysis.results import all_results
from seatrial.analysis.scaling import scaling
from seatrial.analysis.stretches import needed_budget
from seatrial.analysis.sweep import best_of, winners_of
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import RepeatRecord
from seatrial.model.spelling import UNSET, side_label
from seatrial.model.study.comparison import Comparison
from seatrial.model.study.result import Compared, StudyResult
from seatrial.model.study.study import (
    DEFAULT_MARGIN,
    SYSTEM,
    Axis,
    KeptStudy,
    RepeatPolicy,
    Study,
    StudyPoint,
    is_of_environment,
)
from seatrial.stats.sequential import LOOKS, least_blocks
from seatrial.store.contents import Contents


def asked_by(kept: KeptStudy) -> Hashable:
    """What parts of one study have in common, and runs of one study with another budget; a study on another machine is
    another one, unless it has systems."""
    study = replace(kept.study, question="", repeat=RepeatPolicy(), references=())
    if not study.systems:
        return study.name, kept.machine, repr(study)
    moving = study.moves_with(SYSTEM)
    axes = tuple(Axis(axis.name, ()) if axis.name in moving else axis for axis in study.axes)
    return study.name, "", repr(replace(study, axes=axes, include=()))


def joined(parts: Sequence[KeptStudy]) -> KeptStudy:
    """One study from runs of it, the latest last: of each system its latest part, that of the baseline first. Without
    systems, the latest run."""
    latest = {kept.study.systems: kept for kept in parts}
    if () in latest or len(latest) == 1:
        return parts[-1]
    compare = parts[-1].study.compare
    baseline = compare.baseline if compare is not None and compare.along == SYSTEM else None
    own = sorted(latest.values(), key=lambda kept: baseline not in kept.study.systems)
    study = own[0].study
    moving = study.moves_with(SYSTEM)
    whole = replace(
        study,
        axes=tuple(_axis(axis, own) if axis.name in moving else axis for axis in study.axes),
        include=tuple(entry for kept in own for entry in kept.study.include),
        repeat=replace(study.repeat, budget_s=sum(kept.study.repeat.budget_s for kept in own)),
    )
    return KeptStudy(whole, own[0].machine, tuple(point for kept in own for point in kept.points))


def _axis(axis: Axis, parts: Sequence[KeptStudy]) -> Axis:
    """An axis with the values of all parts."""
    own = (kept.study.axis(axis.name) for kept in parts)
    return Axis(axis.name, tuple(value for one in own if one is not None for value in one.values))


_AROUND_REPEATS_S = 1.0
"""A record has the time outside of repeats up to its own start: more than what follows until the budget ends a run."""


def study_results(contents: Contents, results: Sequence[ExperimentResult] | None = None) -> tuple[StudyResult, ...]:
    """Every study of the folder in the order of their names, each as it was last run."""
    known = {result.id: result for result in (all_results(contents) if results is None else results)}
    return tuple(study_result(kept, contents, known) for kept in latest_studies(contents))


def latest_studies(contents: Contents) -> tuple[KeptStudy, ...]:
    """Each study of the folder by name, as it was last run; its parts on several systems are one. Another budget or
    other references do not make it another study; different axes do, even under the same name."""
    kept = sorted(contents.studies, key=lambda kept: _age(kept, contents))
    runs = grouped((asked_by(one), one) for one in kept)
    return tuple(joined(runs[key]) for key in sorted(runs, key=repr))


def study_result(kept: KeptStudy, contents: Contents, known: Mapping[str, ExperimentResult]) -> StudyResult:
    """One study: its experiments in planned order, with the comparisons, scaling and best-of that it requests."""
    study = kept.study
    ids = dict.fromkeys(point.experiment for point in kept.points)
    results = tuple(known[key] for key in ids if key in known)
    blocks = {(key, repeat): block for key in ids for repeat, block in blocks_of(contents, key).items()}
    costs = {
        key: (len(contents.records[key]), sum(record.wall_s for record in contents.records[key]))
        for key in ids
        if key in contents.records
    }
    given = {point.experiment: point.given for point in kept.points}
    sweep = study.best_of
    best = best_of(results, sweep.over, sweep.figure, blocks, costs, given, sweep.at_most) if sweep else ()
    swept = sweep is not None and study.scaling is not None and study.scaling.along in sweep.over
    scaled = winners_of(results, best) if best and not swept else results  # the best settings at each point
    compare = study.compare
    compared_sides = compare and along_axis(
        kept,
        compare.along,
        contents,
        known,
        baseline=compare.baseline,
        margin=compare.margin,
        figures=frozenset(compare.figures),
        equivalence=compare.asks_equivalence,
    )
    records = records_of(study, contents, ids)
    outside = _outside_s(records)
    spent = sum(record.wall_s for record in records) + sum(outside.values())
    start = min(outside.values(), default=0.0)
    repeat_s = {key: total_s / repeats for key, (repeats, total_s) in costs.items() if repeats}
    return StudyResult(
        study=study,
        results=results,
        compared=compared_sides or (),
        scaling=scaling(scaled, study.scaling.kind, study.scaling.along, blocks, given) if study.scaling else (),
        best_of=best,
        spent_s=spent,
        start_s=start,
        repeat_s=repeat_s,
        needed=needed_budget(
            (one for side in compared_sides or () for one in side.comparisons), repeat_s, spent + start
        ),
        given=given,
    )


def records_of(study: Study, contents: Contents, ids: Iterable[str]) -> list[RepeatRecord]:
    """The repeats made for this study."""
    return [record for key in ids for record in contents.records.get(key, ()) if record.seen.get("study") == study.name]


def _outside_s(records: Sequence[RepeatRecord]) -> dict[str, float]:
    """The time that each process spent on other things than repeats, as its last record has it, in seconds; none of
    those whose budget was for repeats alone."""
    latest: dict[str, float] = {}
    for record in records:
        process = str(record.seen.get("block", "")).rpartition(":")[0]
        if (outside_s := record.seen.get("outside_s")) is not None:
            latest[process] = max(latest.get(process, 0.0), outside_s)
    return latest


def along_axis(
    kept: KeptStudy,
    along: str,
    contents: Contents,
    known: Mapping[str, ExperimentResult],
    *,
    baseline: Value | None,
    margin: float = DEFAULT_MARGIN,
    figures: frozenset[str] = frozenset(),
    equivalence: bool = False,
) -> tuple[Compared, ...]:
    """One for each value of the axis except the baseline; all belong to one family."""
    pairs: list[_Pair] = []
    compare = kept.study.compare
    # Systems are not measured side by side, so no block decides when a comparison ends.
    is_own = compare is not None and compare.along == along != SYSTEM
    spending = _spending(kept, contents) if is_own else None
    groups = _groups(kept, along)
    varied = _varied_settings(kept, along)
    least = _least_blocks(groups)
    for group in groups:
        minimum = least[group[0].benchmark]
        rule = None if spending is None else _rule(kept.study, spending, group, contents, minimum)
        first = next((p for p in group if p.given.get(along) == baseline), None)
        if first is None or first.experiment not in known:
            continue
        for point in group:
            if point is not first and point.experiment in known:
                pairs.append(_pair(along, first, point, known, contents, rule, varied))
    found = [
        [] if pair.is_itself else matches(pair.baseline, pair.candidate, figures=figures, rule=pair.rule)
        for pair in pairs
    ]
    comparisons = iter(compared([match for own in found for match in own], margin, equivalence=equivalence))
    by_value: dict[Value | None, list[Comparison]] = {}
    for pair, own in zip(pairs, found, strict=True):
        by_value.setdefault(pair.value, []).extend(next(comparisons) for _ in own)
    return tuple(
        _one(along, baseline, value, by_value[value], [pair for pair in pairs if pair.value == value], contents)
        for value in by_value
    )


class _Pair(Frozen):
    """Two experiments that differ only along the axis; `value` is the candidate's."""

    value: Value | None
    baseline: SideExperiment
    candidate: SideExperiment
    rule: Sequential | None

    @property
    def is_itself(self) -> bool:
        """Whether both values of the axis resolve to one experiment: a comparison would be with itself."""
        return _is_one(self.baseline, self.candidate)


def _pair(
    along: str,
    first: StudyPoint,
    second: StudyPoint,
    known: Mapping[str, ExperimentResult],
    contents: Contents,
    rule: Sequential | None,
    varied: Sequence[str],
) -> _Pair:
    settings = {name: UNSET if (value := second.given.get(name)) is None else value for name in varied}
    baseline, candidate = (
        SideExperiment(side_label(along, point.given.get(along)), known[point.experiment], contents, settings)
        for point in (first, second)
    )
    return _Pair(second.given.get(along), baseline, candidate, rule)


def _one(
    along: str,
    baseline: Value | None,
    value: Value | None,
    comparisons: Sequence[Comparison],
    pairs: Sequence[_Pair],
    contents: Contents,
) -> Compared:
    from seatrial.analysis.breakdown import breakdowns  # it loads what reads profiles

    first = side_facts(contents, [pair.baseline.result.id for pair in pairs])
    second = side_facts(contents, [pair.candidate.result.id for pair in pairs])
    parts = breakdowns(
        (pair.baseline, pair.candidate)
        for pair in pairs
        if not pair.is_itself and emulation_of(pair.baseline, pair.candidate) is None
    )
    return Compared(
        side_label(along, baseline),
        side_label(along, value),
        tuple(comparisons),
        differences(first, second, along),
        scope(comparisons),
        tuple(text for pair in pairs if (text := lost(pair.baseline, pair.candidate))),
        breakdowns=parts,
        along=along,
        containers=container_contrast(first, second, comparisons, parts),
    )


def lost(baseline: SideExperiment, candidate: SideExperiment) -> str:
    """Why a pair was not compared: the side that did not succeed, or that both are one experiment. "" if both
    succeeded, or neither."""
    if _is_one(baseline, candidate):
        benchmark = baseline.result.experiment.benchmark
        return f"{benchmark}: {baseline.name} and {candidate.name} are one experiment on this machine"
    if (why := emulation_of(baseline, candidate)) is not None:
        return f"{baseline.result.experiment.benchmark} of {baseline.name} and {candidate.name}: {why}"
    ok = [side.result.outcome.is_ok for side in (baseline, candidate)]
    if ok[0] == ok[1]:
        return ""
    bad = candidate if ok[0] else baseline
    return f"{bad.result.experiment.benchmark} of {bad.name}: {bad.result.outcome.state}: {bad.result.outcome.reason}"


def emulation_of(baseline: SideExperiment, candidate: SideExperiment) -> str | None:
    """Why a pair is not compared, if a side was measured on emulated processors: "guest: the processors ..."."""
    for side in (candidate, baseline):
        if side.result.emulated is not None:
            return f"{side.name}: {side.result.emulated.why}"
    return None


def _is_one(baseline: SideExperiment, candidate: SideExperiment) -> bool:
    """Whether both are one experiment of one folder."""
    return baseline.result.id == candidate.result.id and baseline.contents is candidate.contents


def scope(comparisons: Sequence[Comparison]) -> str:
    """The scope of the verdicts, in one sentence."""
    if not comparisons:
        return "Nothing was measured on both sides."
    if any(c.baseline.is_reference or c.candidate.is_reference for c in comparisons):
        return "One side is a published value from another machine: a ratio without a verdict."
    hosts = [
        {host for c in comparisons for host in c.baseline.hosts},
        {host for c in comparisons for host in c.candidate.hosts},
    ]
    if not hosts[0] or not hosts[1]:
        return "One side does not state its machines: the verdicts hold only for the machines that were measured."
    if hosts[0] != hosts[1]:
        return (
            f"Two machines, {', '.join(sorted(hosts[0]))} and {', '.join(sorted(hosts[1]))}: the verdicts hold for "
            "these two, not for other machines of the same type."
        )
    names = ", ".join(sorted(hosts[0]))
    if all(c.design.is_interleaved for c in comparisons):
        return f"One machine, {names}; the two sides were measured side by side in random order."
    return f"One machine, {names}; the two sides were not measured side by side, so the ratios include its drift."


def _varied_settings(kept: KeptStudy, along: str) -> list[str]:
    """The axes of the environment that have several values in a study, besides the one along which it compares."""
    moving = kept.study.moves_with(along)
    values: dict[str, set[Value | None]] = {}
    for point in kept.points:
        for name, value in point.given.items():
            if is_of_environment(name) and name not in moving:
                values.setdefault(name, set()).add(value)
    return [name for name, found in values.items() if len(found) > 1]


def _groups(kept: KeptStudy, along: str) -> list[list[StudyPoint]]:
    """Groups of experiments that differ only along the axis, and along axes that advance with it."""
    place = kept.study.place
    return list(grouped(((point.benchmark, *place(point.given, along)), point) for point in kept.points).values())


class _Spending(Frozen):
    """The time of all repeats of a study, in seconds, and the number of its ends. `is_whole`: the budget was for the
    whole command, which begins no blocks if there is no time for as many as an interval needs."""

    spent_s: float
    ends: int
    is_whole: bool = False


def _spending(kept: KeptStudy, contents: Contents) -> _Spending:
    records = records_of(kept.study, contents, dict.fromkeys(point.experiment for point in kept.points))
    # What a repeat was allowed by: a larger budget or maximum is a new end.
    allowed = {tuple(record.seen.get(name) for name in ("budget_s", "maximum", "again")) for record in records}
    outside_s = sum(_outside_s(records).values())
    spent = sum(record.wall_s for record in records) + (outside_s + _AROUND_REPEATS_S if outside_s else 0.0)
    return _Spending(spent, max(1, len(allowed)), outside_s > 0.0)


def _least_blocks(groups: Iterable[Sequence[StudyPoint]]) -> dict[str, int]:
    """The blocks that an interval needs, by benchmark: its comparisons are a family."""
    families: Counter[str] = Counter()
    for group in groups:
        families[group[0].benchmark] += len(group) - 1
    return {benchmark: least_blocks(max(1, family)) for benchmark, family in families.items()}


def _rule(
    study: Study, spending: _Spending, group: Sequence[StudyPoint], contents: Contents, minimum: int
) -> Sequential:
    """The stopping rule of a group: the last budget is spent if what is to be measured next does not fit in it, by the
    same estimate as the engine's: the mean of the last repeats of each side. That is one block, or those that are
    missing up to the `minimum`."""
    block_s, made = 0.0, minimum
    for key in dict.fromkeys(point.experiment for point in group):
        ended = [record.wall_s for record in in_time(contents.records.get(key, ())) if record.outcome.is_ok]
        last = ended[-LOOKS[-1] :]
        block_s += sum(last) / len(last) if last else 0.0
        made = min(made, len(ended))
    blocks = max(1, minimum - made) if spending.is_whole else 1
    is_spent = spending.spent_s + blocks * block_s > study.repeat.budget_s
    return Sequential(study.repeat.maximum, spending.ends, is_spent)


def _age(kept: KeptStudy, contents: Contents) -> tuple[float, float]:
    """When a study was last run; of two with the same repeats, the one with the larger budget is the later."""
    times = [
        in_time(contents.records[point.experiment])[-1].t0
        for point in kept.points
        if contents.records.get(point.experiment)
    ]
    return max(times, default=0.0), kept.study.repeat.budget_s
