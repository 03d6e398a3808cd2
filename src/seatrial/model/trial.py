"""A trial: the contents of the page of one machine, collected from records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from seatrial.model.figure_result import ExperimentResult
from seatrial.model.finding import Finding
from seatrial.model.frozen import Frozen
from seatrial.model.machine import Machine


class NotMeasured(Frozen):
    """A benchmark that cannot run on this machine or in this environment, and what it needs."""

    benchmark: str
    question: str
    need: str


class RecordPlace(Frozen):
    """The place of the raw record of a repeat: a path relative to the results folder and a line, counted from 1."""

    path: str
    line: int


T_co = TypeVar("T_co", covariant=True)


class PerRepeat(Mapping[tuple[str, int], T_co]):
    """(experiment id, repeat) -> a value of that repeat, stored by experiment: a key object for each repeat would take
    more memory than the value."""

    __slots__ = ("_by_experiment",)

    def __init__(self, by_experiment: Mapping[str, Mapping[int, T_co]]) -> None:
        self._by_experiment = by_experiment

    def of(self, experiment: str) -> Mapping[int, T_co]:
        """Repeat -> value of one experiment."""
        return self._by_experiment.get(experiment, {})

    def __getitem__(self, place: tuple[str, int]) -> T_co:
        experiment, repeat = place
        return self._by_experiment[experiment][repeat]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return ((experiment, repeat) for experiment, own in self._by_experiment.items() for repeat in own)

    def __len__(self) -> int:
        return sum(map(len, self._by_experiment.values()))


class Trial(Frozen):
    """One machine with its results and findings. `seen` is what was observed around each repeat."""

    machine: Machine
    results: tuple[ExperimentResult, ...]
    findings: tuple[Finding, ...]
    not_measured: tuple[NotMeasured, ...]
    environments: Mapping[str, Mapping[str, Any]]
    places: Mapping[tuple[str, int], RecordPlace] = {}
    """(experiment id, repeat) -> its raw record; the repeats of an experiment in order of time."""
    seen: Mapping[tuple[str, int], Mapping[str, Any]] = {}
    version: str = ""
