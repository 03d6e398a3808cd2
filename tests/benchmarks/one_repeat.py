"""Runs one repeat of an experiment through the real engine, where a test asks what comes out and not how it scatters."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.engine.engine import run_experiments
from seatrial.engine.events import Silent
from seatrial.engine.prepare import Ready
from seatrial.model.machine import Machine
from seatrial.model.record import RepeatRecord
from seatrial.stats.stopping import Stop, StoppingRule
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder


class _One(StoppingRule):
    @property
    def minimum(self) -> int:
        return 1

    def decide(self, figures: Sequence[Sequence[float]], spent_s: float, next_s: float) -> Stop | None:
        return Stop.COMPLETE if any(figures) else None


def run_one(ready: Ready, machine: Machine, folder: ResultsFolder) -> RepeatRecord:
    """The record of the only repeat."""
    run_experiments([ready], machine, folder, _One(budget_s=0.0), Silent())
    (record,) = read_contents(folder).records[ready.experiment.id]
    return record
