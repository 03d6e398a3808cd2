"""The standard trial of a machine before anything runs: its experiments and the expected time."""

from __future__ import annotations

from seatrial.model.frozen import Frozen
from seatrial.plan.planned_study import PlannedExperiment
from seatrial.stats.interval import LOOKS, StoppingRule


class PlannedTrial(Frozen):
    """The experiments of the trial, each once. `rule` stops each; `build_s` is the time to build what is missing, in
    seconds."""

    experiments: tuple[PlannedExperiment, ...]
    rule: StoppingRule
    build_s: float = 0.0

    def estimate_of(self, experiment: PlannedExperiment) -> float:
        """The time until an experiment stops at the first look, in seconds, if it is precise then."""
        return self._until(LOOKS[0], experiment)

    def most_of(self, experiment: PlannedExperiment) -> float:
        """The time if it is never precise: to the end of its budget or the maximum of repeats, in seconds."""
        return self._until(self.rule.maximum, experiment)

    @property
    def estimate_s(self) -> float:
        """The expected time of all repeats, in seconds."""
        return sum(map(self.estimate_of, self.experiments))

    @property
    def most_s(self) -> float:
        """The longest expected time of all repeats, in seconds."""
        return sum(map(self.most_of, self.experiments))

    def _until(self, repeats: int, experiment: PlannedExperiment) -> float:
        least_s = self.rule.minimum * experiment.repeat_s
        return max(least_s, min(repeats * experiment.repeat_s, self.rule.budget_s))
