"""Comparison of a published value with a results folder: a ratio for each matching figure, and no verdict."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.analysis.compare import compared
from seatrial.analysis.match import Match
from seatrial.analysis.measured import SideExperiment, measured
from seatrial.analysis.results import all_results
from seatrial.analysis.study_results import scope
from seatrial.errors import UsageError
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.results.history import Reference
from seatrial.model.study.result import Compared
from seatrial.references.loader import reference_named
from seatrial.references.matching import figures_of_reference, reference_side
from seatrial.store.contents import Contents

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
