"""A trial: the contents of the page of one machine, collected from records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seatrial.model.figure_result import ExperimentResult
from seatrial.model.finding import Finding
from seatrial.model.machine import Machine


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A benchmark that cannot run on this machine or in this environment, and what it needs."""

    benchmark: str
    question: str
    need: str


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """The place of the raw record of a repeat: a path relative to the results folder and a line, counted from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One machine with its results and findings. `seen` is what was observed around each repeat."""

    machine: Machine
    results: tuple[ExperimentResult, ...]
    findings: tuple[Finding, ...]
    not_measured: tuple[NotMeasured, ...]
    environments: Mapping[str, Mapping[str, Any]]
    places: Mapping[tuple[str, int], RecordPlace] = field(default_factory=dict)
    """(experiment id, repeat) -> its raw record; the repeats of an experiment in order of time."""
    seen: Mapping[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)
    version: str = ""
