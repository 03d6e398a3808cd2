"""Import results of other tools into a results folder."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from seatrial.analysis.results import Asked, results_of
from seatrial.engine.import_recording import record_repeats
from seatrial.engine.importing import Given, Repeat, ResultFile, read_repeats
from seatrial.imports.readers import reader_of
from seatrial.imports.text import MAX_BYTES
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.frozen import Frozen
from seatrial.plan.files import STDIN, read_output
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)


class ImportResult(Frozen):
    """The repeats in the files, and the experiments that they belong to."""

    repeats: tuple[Repeat, ...]
    experiments: tuple[ExperimentResult, ...]
    environments: Mapping[str, Mapping[str, Any]] = {}
    left_out: tuple[str, ...] = ()
    """The files that were imported before, or named twice: they do not count again."""

    @property
    def is_ok(self) -> bool:
        """Whether there are repeats, and all are ok. (An experiment is ok if one of its repeats is.)"""
        outcomes = [*(repeat.outcome for repeat in self.repeats), *(result.outcome for result in self.experiments)]
        return bool(outcomes) and all(outcome.is_ok for outcome in outcomes)


def import_results(files: Iterable[ResultFile], given: Given, results: Path) -> ImportResult:
    """Record each file as one repeat; a file that is imported again does not count twice. `given` is what is known
    in addition to the files. Raises UsageError before anything is written, and StoreError."""
    repeats = read_repeats(tuple(files), given)
    if not repeats:
        return ImportResult((), ())
    run = record_repeats(repeats, ResultsFolder.create(results))
    contents = read_contents(ResultsFolder.existing(results))
    for line in contents.damaged:
        _log.warning("ignored: %s", line)
    found = results_of(contents, [Asked(e, measured_now=e.id in run.added) for e in run.experiments])
    return ImportResult(repeats, found, run.environments, run.left_out)


def result_file(kind: str, name: str) -> ResultFile:
    """A result file of another tool; "-" is standard input. Raises UsageError for an unknown kind and for a file that
    cannot be read."""
    reader_of(kind)
    data = read_output(name, MAX_BYTES)
    if name == STDIN:
        return ResultFile(kind, "standard input", data)
    path = Path(name)
    place = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    return ResultFile(kind, path.name, data, path.stat().st_mtime, place)
