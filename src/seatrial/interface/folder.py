"""Results folders that a caller points at."""

from __future__ import annotations

import logging
from pathlib import Path

from seatrial.analysis.trials import trials_of
from seatrial.errors import UsageError
from seatrial.model.machine import Machine
from seatrial.model.machine_document import machine_identity
from seatrial.model.trial import Trial
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)


def contents_in(folder: Path, *, may_be_empty: bool = False) -> Contents:
    """What a results folder holds; what is damaged in it is logged.

    Raises UsageError where there is no such folder, or nothing in it, unless it may be empty.
    """
    contents = read_contents(ResultsFolder.existing(folder))
    for line in contents.damaged:
        _log.warning("not accepted: %s", line)
    if not contents.experiments and not may_be_empty:
        raise UsageError(f"{folder} holds no finished repeat", "measure first: seatrial run")
    return contents


def trials_in(folder: Path) -> tuple[Trial, ...]:
    """The trials of a results folder, one for each machine; see `contents_in`."""
    return trials_of(contents_in(folder))


def machine_in(results: Path) -> Machine | None:
    """The machine of a results folder that holds one, None where it holds several.

    It is what is looked at when nothing but a folder is named: it may have been copied from the node that it was
    measured on.
    """
    trials = trials_in(results)
    return trials[0].machine if len(trials) == 1 else None


def trial_of(machine: Machine, results: Path) -> Trial:
    """What the folder holds about this machine; where it knows no such machine but only one, that, which is logged.

    Raises UsageError where the folder holds several machines and this is none of them.
    """
    trials = trials_in(results)
    identity = machine_identity(machine)
    for trial in trials:
        if machine_identity(trial.machine) == identity:
            return trial
    names = ", ".join(trial.machine.name for trial in trials)
    if len(trials) > 1:
        raise UsageError(
            f"{results} holds the results of {len(trials)} machines ({names}), and this is none of them",
            "give a folder with the results of this machine, or of one machine only",
        )
    _log.warning(
        "the results in %s were measured on %s, which is not just this machine (or not with these "
        "settings): they are judged as they stand",
        results,
        names,
    )
    return trials[0]
