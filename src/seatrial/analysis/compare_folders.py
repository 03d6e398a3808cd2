"""Comparison of two results folders: what was measured in both; or of a published value with one: a ratio for each
matching figure, and no verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.analysis.compare import compared
from seatrial.analysis.container_contrast import container_contrast
from seatrial.analysis.fairness.differences import SideFacts, differences, side_facts
from seatrial.analysis.match import Match, SideExperiment, hosts_of, matches, measured
from seatrial.analysis.results import all_results
from seatrial.analysis.study_results import lost, scope
from seatrial.errors import UsageError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.history import Reference
from seatrial.model.spelling import count
from seatrial.model.study.result import Compared
from seatrial.model.study.study import DEFAULT_MARGIN
from seatrial.references.loader import reference_named
from seatrial.references.words import figures_of_reference, reference_side
from seatrial.store.contents import Contents, kept_facts
from seatrial.store.folder import ResultsFolder


class NamedFolder(Frozen):
    """The contents of a results folder, with the name given by the user."""

    name: str
    contents: Contents


def compare_folders(
    baseline: NamedFolder, candidate: NamedFolder, margin: float = DEFAULT_MARGIN, *, equivalence: bool = False
) -> Compared:
    """Every figure that both folders have, candidate over baseline, and everything else that differs.

    Experiments are matched by benchmark and parameters. A parameter that is constant in each folder, with
    different values, is a difference between the folders and does not prevent the comparison. `equivalence`: the
    margin is one of equivalence.
    """
    first, second = (all_results(folder.contents) for folder in (baseline, candidate))
    pairs = matched(first, second)
    sides = [
        (SideExperiment(baseline.name, a, baseline.contents), SideExperiment(candidate.name, b, candidate.contents))
        for a, b in pairs
    ]
    found = [match for pair in sides for match in matches(*pair)]
    _refuse_copies(baseline, candidate, pairs)
    comparisons = compared(found, margin, equivalence=equivalence)
    facts = (
        side_facts(baseline.contents, [a.id for a, _ in pairs] or [result.id for result in first]),
        side_facts(candidate.contents, [b.id for _, b in pairs] or [result.id for result in second]),
    )
    from seatrial.analysis.breakdown import breakdowns  # it loads what reads profiles

    parts = breakdowns(pair for pair in sides if all(side.result.emulated is None for side in pair))
    hosts = [any(hosts_of(side.contents, key) for key in side.contents.experiments) for side in (baseline, candidate)]
    return Compared(
        baseline.name,
        candidate.name,
        comparisons,
        differences(*facts, None),
        scope(comparisons),
        tuple(text for pair in sides if (text := lost(*pair))),
        is_described=all(hosts),
        breakdowns=parts,
        containers=container_contrast(*facts, comparisons, parts),
    )


def without_common(baseline: Path, candidate: Path) -> Compared | None:
    """The answer for two folders that have no benchmark in common, from their documents alone, so that nobody waits for
    many records to be read; None if they may have one. Raises StoreError, UsageError."""
    sides = []
    for path in (baseline, candidate):
        folder = ResultsFolder.existing(path)
        facts = kept_facts(folder, dict.fromkeys(folder.keys("experiments"), 0), [])
        sides.append(SideFacts(facts.experiments, {}, facts.environments, facts.machines))
    names = [{one.benchmark for one in side.experiments.values()} for side in sides]
    if not all(names) or names[0] & names[1]:
        return None
    return Compared(str(baseline), str(candidate), (), differences(sides[0], sides[1], None), scope(()))


def _refuse_copies(
    baseline: NamedFolder, candidate: NamedFolder, pairs: Sequence[tuple[ExperimentResult, ExperimentResult]]
) -> None:
    """Raise UsageError if both folders contain the same repeats: a copy is not a second measurement."""
    for a, b in pairs:
        others = candidate.contents.records.get(b.id, ())
        at = {record.t0 for record in others}
        made = {record.t0: record for record in baseline.contents.records.get(a.id, ()) if record.t0 in at}
        common = sum(record.t0 in made and record.samples == made[record.t0].samples for record in others)
        if common:
            raise UsageError(
                f"{baseline.name} and {candidate.name} contain the same {count(common, 'repeat')} of "
                f"{a.experiment.benchmark}",
                "one is a copy of the other: measure again into a new folder, or name another",
            )


Key = tuple[tuple[str, Value | None], ...]


def matched(
    first: Sequence[ExperimentResult], second: Sequence[ExperimentResult]
) -> list[tuple[ExperimentResult, ExperimentResult]]:
    """The pairs of experiments with the same parameters on both sides, in the order of the first.

    If a side has several with the same parameters (other environments or machines), the last one with figures is used.
    """
    pairs = []
    benchmarks = dict.fromkeys(result.experiment.benchmark for result in first)
    for benchmark in benchmarks:
        sides = [[r for r in side if r.experiment.benchmark == benchmark] for side in (first, second)]
        if not all(sides):
            continue
        ignored = _distinguished_by_folder(*sides)
        keyed = [_by_key(side, ignored) for side in sides]
        pairs += [(result, keyed[1][key]) for key, result in keyed[0].items() if key in keyed[1]]
    return pairs


def _by_key(results: Sequence[ExperimentResult], ignored: frozenset[str]) -> Mapping[Key, ExperimentResult]:
    found: dict[Key, ExperimentResult] = {}
    for result in results:
        key = tuple(sorted((n, v) for n, v in result.experiment.parameters.items() if n not in ignored))
        if key not in found or result.shown or not found[key].shown:
            found[key] = result
    return found


def _distinguished_by_folder(first: Sequence[ExperimentResult], second: Sequence[ExperimentResult]) -> frozenset[str]:
    """The parameters that are constant on each side, with different values; None: no such parameter."""
    sides = [[result.experiment.parameters for result in side] for side in (first, second)]
    names = {name for side in sides for own in side for name in own}
    values = {name: [{own.get(name) for own in side} for side in sides] for name in names}
    return frozenset(name for name, (one, other) in values.items() if len(one) == len(other) == 1 and one != other)


PREFIX = "reference:"
"""Prefix of the id of a published value on the command line."""


def compare_with_reference(baseline: str, candidate: str, folders: Mapping[str, Contents], margin: float) -> Compared:
    """The sides as the command line names them; `folders` has the contents of the one that is a folder.

    Raises UsageError if both are published values, or the folder has no figure to compare with the published one.
    """
    if len(folders) != 1:
        raise UsageError(
            "two published values cannot be compared",
            "give a results folder for one side, and reference:ID for the other",
        )
    ((folder, contents),) = folders.items()
    reference = reference_named((baseline if folder != baseline else candidate).removeprefix(PREFIX))
    matches = [
        _match(reference, SideExperiment(folder, result, contents), figure, reference_first=folder != baseline)
        for result, figure in figures_of_reference(reference, all_results(contents))
        if all(repeat.value > 0 for repeat in figure.repeats)
    ]
    if not matches:
        raise UsageError(
            f"{folder} contains no figure to compare with reference {reference.id} "
            f"({reference.benchmark} {reference.figure} in {reference.unit})",
            "`seatrial list --references` shows the figure of each reference",
        )
    comparisons = compared(matches, margin)
    return Compared(baseline, candidate, comparisons, (), scope(comparisons), is_described=False)


def _match(reference: Reference, side: SideExperiment, figure: FigureResult, *, reference_first: bool) -> Match:
    published, own = reference_side(reference), measured(side, figure)
    return Match(
        side.result.experiment.benchmark,
        {**side.result.experiment.parameters, **figure.point},
        published if reference_first else own,
        own if reference_first else published,
        figure.unit,
        figure.better,
        figure.name,
    )
