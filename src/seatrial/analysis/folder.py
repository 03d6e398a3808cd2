"""Results folders named by the caller."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from seatrial.analysis.index.known import is_large, known_contents
from seatrial.analysis.results import trials_of
from seatrial.errors import StoreError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Key, published
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.study.result import Trial
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)


@published("Folder")
class FolderSummary(Frozen):
    """One results folder. Times are in seconds since the epoch; null: it has no repeat."""

    path: str
    name: Annotated[str, "empty: it has no name"]
    tags: tuple[str, ...]
    notes: tuple[str, ...]
    benchmarks: tuple[str, ...]
    hosts: tuple[str, ...]
    studies: Count
    experiments: Count
    ok: Annotated[Count, "experiments whose outcome is ok"]
    repeats: Count
    first_t0: Annotated[float | None, Key("first_s")]
    last_t0: Annotated[float | None, Key("last_s")]
    damaged: Annotated[Count, "lines and files that were rejected"]
    trash: Annotated[tuple[str, ...], "what was dropped and can be restored"]


def contents_in(folder: Path, *, may_be_empty: bool = False) -> Contents:
    """The contents of a results folder; damaged lines are logged.

    Raises UsageError if the folder does not exist, or if it is empty and must not be.
    """
    opened = ResultsFolder.existing(folder)
    contents: Contents | None = None
    with suppress(StoreError, OSError):  # the records are enough
        contents = known_contents(opened) if is_large(opened) else None
    if contents is None:
        contents = read_contents(opened)
    tell_of_folder(folder, contents.damaged, is_empty=not contents.experiments and not may_be_empty)
    return contents


def tell_of_folder(folder: Path, damaged: Iterable[str], *, is_empty: bool) -> None:
    """Log what is damaged in a folder. Raises UsageError if it is empty."""
    for line in damaged:
        _log.warning("ignored: %s", line)
    if is_empty:
        raise UsageError(f"{folder} contains no finished repeat", "measure first: seatrial run")


def trials_in(folder: Path) -> tuple[Trial, ...]:
    """The trials of a results folder, one per machine; see `contents_in`."""
    return trials_of(contents_in(folder))


def machine_in(results: Path) -> Machine | None:
    """The machine of a results folder; None if the folder has results of several.

    It is the default machine of a command that names only a folder: the folder may be a copy from another node.
    """
    trials = trials_in(results)
    return trials[0].machine if len(trials) == 1 else None


def trial_of(machine: Machine, results: Path) -> Trial:
    """The results of this machine in a folder. If the folder has results of one other machine only, those, with a
    warning.

    Raises UsageError if the folder has results of several machines but not of this one.
    """
    trials = trials_in(results)
    identity = machine_identity(machine)
    for trial in trials:
        if machine_identity(trial.machine) == identity:
            return trial
    names = ", ".join(trial.machine.name for trial in trials)
    if len(trials) > 1:
        raise UsageError(
            f"{results} contains results of {len(trials)} machines ({names}), but not of this one",
            "give a folder with the results of this machine, or of one machine only",
        )
    _log.warning(
        "the results in %s were measured on %s, which is not this machine or had other settings; they are used anyway",
        results,
        names,
    )
    return trials[0]
