"""The contents of a results folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seatrial.analysis.study_results import study_results
from seatrial.analysis.trials import trials_of
from seatrial.interface.folder import contents_in
from seatrial.interface.profile_folder import profiles_in
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.study_result import StudyResult
from seatrial.model.trial import Trial
from seatrial.profiler.profile import Profile


@dataclass(frozen=True, slots=True)
class Results:
    """One trial per machine (its experiments, findings and environments), the latest run of each study by name, and the
    profiles, oldest first."""

    trials: tuple[Trial, ...]
    studies: tuple[StudyResult, ...]
    profiles: tuple[Profile, ...]

    @property
    def experiments(self) -> tuple[ExperimentResult, ...]:
        """Every experiment of every machine."""
        return tuple(result for trial in self.trials for result in trial.results)


def results(folder: str | Path = "seatrial-results") -> Results:
    """Read a results folder. Raises UsageError if it does not exist or is empty."""
    path = Path(folder)
    profiles = profiles_in(path)
    contents = contents_in(path, may_be_empty=bool(profiles))
    trials = trials_of(contents)
    studies = study_results(contents, [result for trial in trials for result in trial.results])
    return Results(trials, studies, tuple(profiles))
