"""The contents of a results folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.analysis.folder import contents_in
from seatrial.analysis.history import long_histories
from seatrial.analysis.profile_folder import profiles_in
from seatrial.analysis.results import trials_of
from seatrial.analysis.study_results import study_results
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.history import FigureHistory
from seatrial.model.study.result import StudyResult, Trial
from seatrial.profiler.profile import Profile
from seatrial.store.contents import Contents


class Results(Frozen):
    """One trial per machine (its experiments, findings and environments), the latest run of each study by name, and the
    profiles, oldest first."""

    trials: tuple[Trial, ...]
    studies: tuple[StudyResult, ...]
    profiles: tuple[Profile, ...]
    histories: tuple[FigureHistory, ...] = ()
    """Figures with enough sessions to find a change; only `results_of_folders` looks for them."""

    @property
    def experiments(self) -> tuple[ExperimentResult, ...]:
        """Every experiment of every machine."""
        return tuple(result for trial in self.trials for result in trial.results)


def results(folder: str | Path = "seatrial-results") -> Results:
    """Read a results folder. Raises UsageError if it does not exist or is empty."""
    return _read(Path(folder))[1]


def _read(path: Path) -> tuple[Contents, Results]:
    profiles = profiles_in(path)
    contents = contents_in(path, may_be_empty=bool(profiles))
    trials = trials_of(contents)
    studies = study_results(contents, [result for trial in trials for result in trial.results])
    return contents, Results(trials, studies, tuple(profiles))


def results_of_folders(folders: Sequence[str | Path]) -> Results:
    """The contents of several folders, one after another; a folder that is named twice counts once.

    Raises UsageError if one does not exist or is empty.
    """
    distinct = {Path(folder).resolve(): folder for folder in folders}
    read = [_read(Path(folder)) for folder in distinct.values()]
    found = [one for _, one in read]
    return Results(
        tuple(trial for one in found for trial in one.trials),
        tuple(study for one in found for study in one.studies),
        tuple(profile for one in found for profile in one.profiles),
        long_histories([(contents, one.experiments) for contents, one in read]),
    )
