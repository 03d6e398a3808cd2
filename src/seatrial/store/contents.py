"""Everything that a results folder holds, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.errors import ProtocolError, StoreError
from seatrial.model.experiment import Experiment
from seatrial.model.record import RepeatRecord, decode
from seatrial.model.trial import RecordPlace
from seatrial.store.folder import ResultsFolder


@dataclass(frozen=True, slots=True)
class Contents:
    """All records by experiment, each list in order of repeat, with the facts that they refer to.

    `damaged` has one sentence for each line that was not accepted; a torn last line of a file (its writer was killed
    while it wrote) is left out silently, since that repeat was not finished.
    """

    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    records: Mapping[str, tuple[RepeatRecord, ...]] = field(default_factory=dict)
    places: Mapping[tuple[str, int], RecordPlace] = field(default_factory=dict)
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()


def read_contents(folder: ResultsFolder) -> Contents:
    """The whole folder. Raises StoreError where a fact that a record needs is missing."""
    by_experiment: dict[str, dict[int, RepeatRecord]] = {}
    places: dict[tuple[str, int], RecordPlace] = {}
    damaged: list[str] = []
    for path in sorted((folder.path / "records").glob("*.jsonl")):
        for number, record in _records(path):
            if isinstance(record, ProtocolError):
                damaged.append(f"{path.name} line {number}: {record.message}")
                continue
            repeats = by_experiment.setdefault(record.experiment, {})
            if record.repeat in repeats:
                damaged.append(f"{path.name} line {number}: repeat {record.repeat} of {record.experiment} once more")
                continue
            repeats[record.repeat] = record
            places[(record.experiment, record.repeat)] = RecordPlace(f"records/{path.name}", number)
    experiments = {key: _experiment(folder, key) for key in by_experiment}
    return Contents(
        experiments=experiments,
        records={key: tuple(repeats[n] for n in sorted(repeats)) for key, repeats in by_experiment.items()},
        places=places,
        machines=_machines(folder, {experiment.machine for experiment in experiments.values()}),
        environments={
            key: folder.get("environments", key) for key in {e.environment for e in experiments.values()} if key
        },
        damaged=tuple(damaged),
    )


def _machines(folder: ResultsFolder, identities: set[str]) -> dict[str, dict[str, Any]]:
    """Identity -> the document that knows most about that machine: root sees memory modules, hwloc names of devices."""
    best: dict[str, dict[str, Any]] = {}
    for key in folder.keys("machines"):
        document = folder.get("machines", key)
        identity = document.get("identity")
        if identity in identities and (
            identity not in best or len(document.get("unread", ())) < len(best[identity].get("unread", ()))
        ):
            best[identity] = document
    missing = identities - best.keys()
    if missing:
        raise StoreError(f"{folder.path / 'machines'} lacks the machine {sorted(missing)[0]}, which records refer to")
    return best


def _records(path: Path) -> Iterator[tuple[int, RepeatRecord | ProtocolError]]:
    """The lines of one file, with their numbers from 1; a line that is not accepted as the error it gave."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last newline is a torn line, or nothing
        try:
            yield number, decode(line)
        except ProtocolError as error:
            yield number, error


def _experiment(folder: ResultsFolder, key: str) -> Experiment:
    try:
        return Experiment.from_document(folder.get("experiments", key))
    except (KeyError, TypeError) as error:
        raise StoreError(f"experiments/{key}.json does not describe an experiment ({error!r})") from error
