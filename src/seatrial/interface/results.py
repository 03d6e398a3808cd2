"""The contents of a results folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.analysis.compare_along import Comparisons, compare_along
from seatrial.analysis.compare_folders import (
    PREFIX,
    NamedFolder,
    compare_folders,
    compare_with_reference,
    without_common,
)
from seatrial.analysis.folder import contents_in
from seatrial.analysis.history import long_histories
from seatrial.analysis.outliers import SCREENS, node_outliers, second_stage
from seatrial.analysis.profiles import profiles_in
from seatrial.analysis.results import all_results, trials_of
from seatrial.analysis.study_results import study_results
from seatrial.errors import UnknownNameError, UsageError, nearest_names
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.history import FigureHistory
from seatrial.model.results.rows import figure_rows, outcomes_text
from seatrial.model.spelling import count
from seatrial.model.study.result import Compared, StudyResult, Trial
from seatrial.model.study.study import DEFAULT_MARGIN, refuse_margin
from seatrial.profiler.profile import Profile
from seatrial.store.contents import Contents, joined


class Results(Frozen):
    """One trial per machine (its experiments, findings and environments), the latest run of each study by name, and the
    profiles, oldest first."""

    trials: tuple[Trial, ...]
    studies: tuple[StudyResult, ...]
    profiles: tuple[Profile, ...]
    histories: tuple[FigureHistory, ...] = ()
    """Figures with enough sessions to find a change; only `results_of_folders` looks for them."""

    def __repr__(self) -> str:
        more = [count(len(self.trials), "machine"), count(len(self.studies), "study", "studies")]
        return f"<{outcomes_text(self.experiments)}, {', '.join([*more, count(len(self.profiles), 'profile')])}>"

    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each figure (model/results/rows.py)."""
        return figure_rows(self.experiments)

    @property
    def experiments(self) -> tuple[ExperimentResult, ...]:
        """Every experiment of every machine."""
        return tuple(result for trial in self.trials for result in trial.results)


def results(folder: str | Path = "seatrial-results") -> Results:
    """Read a results folder. Raises UsageError if it does not exist or is empty."""
    contents, profiles = _read(Path(folder))
    trials = trials_of(contents)
    studies = study_results(contents, [result for trial in trials for result in trial.results])
    return Results(trials, studies, profiles)


def _read(path: Path) -> tuple[Contents, tuple[Profile, ...]]:
    profiles = tuple(profiles_in(path))
    return contents_in(path, may_be_empty=bool(profiles)), profiles


def results_of_folders(folders: Sequence[str | Path]) -> Results:
    """The contents of several folders; one that is named twice counts once. A machine with results in several folders
    is one trial, with the repeats of all; studies and profiles follow one after another.

    Raises UsageError if one does not exist or is empty.
    """
    distinct = {Path(folder).resolve(): folder for folder in folders}
    read = [(str(folder), *_read(Path(folder))) for folder in distinct.values()]
    trials = trials_of(joined([(name, contents) for name, contents, _ in read]))
    of_all = tuple(result for trial in trials for result in trial.results)
    own = [(contents, all_results(contents) if len(read) > 1 else of_all) for _, contents, _ in read]
    return Results(
        trials,
        tuple(study for one in own for study in study_results(*one)),
        tuple(profile for *_, profiles in read for profile in profiles),
        long_histories(own),
    )


def compare(
    *sides: str | Path, along: str | None = None, margin: float | None = None, equivalence: float | None = None
) -> Comparisons:
    """Compare two results folders (baseline, candidate), one of which may be a published value (`reference:ID`), or
    the results in one folder `along` an axis: a parameter, node, repeat, rank, pair. Two folders along `node` are a
    screen and its second stage: new repeats of the farthest nodes, and of others beside them.

    `margin` is the relative difference that counts as none (default: 0.02, which is 2 %); `equivalence` gives it
    instead, for verdicts `equivalent` in place of `same`. Without either, a study in the folder that asks for
    equivalence along the axis is judged by its own. Nothing is measured, and every verdict has its interval. Raises
    UsageError if there is nothing to compare.
    """
    share = margin_given(margin, equivalence)
    asks = equivalence is not None
    if along is not None:
        if asks and along in SCREENS:
            raise UsageError(
                f"--along {along} looks for outliers, which are not tested for equivalence", "give --margin"
            )
        if along == "node" and len(sides) == 1:
            return Comparisons(screen=node_outliers(Path(sides[0]), share))
        if along == "node" and len(sides) == 2:
            return Comparisons(screen=second_stage(Path(sides[0]), Path(sides[1]), share))
        if len(sides) != 1:
            if len(sides) == 2 and nearest_names(along, ["node"]):
                raise UnknownNameError("axis along which two folders are compared", along, ["node"])
            raise UsageError(
                "--along takes one results folder, or two with --along node",
                "seatrial compare DIR --along AXIS, or seatrial compare SCREEN AGAIN --along node",
            )
        given = None if margin is None and equivalence is None else share
        return compare_along(contents_in(Path(sides[0])), along, given, equivalence=asks)
    if len(sides) != 2:
        raise UsageError(
            f"compare takes two sides, or one results folder with --along, not {len(sides)}",
            "seatrial compare A B, or seatrial compare DIR --along AXIS (node, repeat, rank, pair, or a parameter)",
        )
    return Comparisons((_two_sides(str(sides[0]), str(sides[1]), share, equivalence=asks),))


def margin_given(margin: float | None, equivalence: float | None) -> float:
    """The margin, of equivalence or not, as a share. Raises UsageError for both, and for one that is not a share."""
    if margin is not None and equivalence is not None:
        raise UsageError("a margin and an equivalence were given", "leave the margin out: equivalence states it")
    share = next((one for one in (margin, equivalence) if one is not None), DEFAULT_MARGIN)
    refuse_margin(share)
    return share


def _two_sides(baseline: str, candidate: str, margin: float, *, equivalence: bool) -> Compared:
    if baseline.startswith(PREFIX) or candidate.startswith(PREFIX):
        folders = {side: contents_in(Path(side)) for side in (baseline, candidate) if not side.startswith(PREFIX)}
        if equivalence:
            raise UsageError(
                "a published value has no interval, so nothing can be equivalent to it", "leave the equivalence out"
            )
        return compare_with_reference(baseline, candidate, folders, margin)
    return without_common(Path(baseline), Path(candidate)) or compare_folders(
        NamedFolder(baseline, contents_in(Path(baseline))),
        NamedFolder(candidate, contents_in(Path(candidate))),
        margin,
        equivalence=equivalence,
    )
