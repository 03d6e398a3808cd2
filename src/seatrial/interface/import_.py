"""Other tools' results as records of a results folder."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.analysis.results import Asked, results_of
from seatrial.engine.importing import Given, Repeat, ResultFile, read_repeats, record_repeats
from seatrial.imports.readers import reader_of
from seatrial.imports.text import MAX_BYTES
from seatrial.interface.files import STDIN, read_output
from seatrial.model.figure_result import ExperimentResult
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The repeats that the files hold, and the experiments that they belong to."""

    repeats: tuple[Repeat, ...]
    experiments: tuple[ExperimentResult, ...]
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether all repeats are: one that is invalid beside sound ones leaves its experiment ok."""
        outcomes = [*(repeat.outcome for repeat in self.repeats), *(result.outcome for result in self.experiments)]
        return all(outcome.is_ok for outcome in outcomes)


def import_results(files: Iterable[ResultFile], given: Given, results: Path) -> ImportResult:
    """Record what the files hold, each as one repeat, however often it is imported. `given` is what is known beside
    them. Raises UsageError before anything is written, StoreError."""
    repeats = read_repeats(tuple(files), given)
    run = record_repeats(repeats, ResultsFolder.create(results))
    contents = read_contents(ResultsFolder.existing(results))
    for line in contents.damaged:
        _log.warning("not accepted: %s", line)
    found = results_of(contents, [Asked(e, measured_now=e.id in run.added) for e in run.experiments])
    return ImportResult(repeats, found, run.environments)


def result_file(kind: str, name: str) -> ResultFile:
    """A file with another tool's results; "-" for standard input. Raises UsageError where it cannot be read, or no
    reader has that name."""
    reader_of(kind)
    data = read_output(name, MAX_BYTES)
    if name == STDIN:
        return ResultFile(kind, "standard input", data)
    path = Path(name)
    return ResultFile(kind, path.name, data, path.stat().st_mtime)
