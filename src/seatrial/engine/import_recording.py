"""Record imported repeats in a results folder: each file once, also if several imports run at the same time."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.engine.importing import ImportedRepeat
from seatrial.engine.trial import keep_machine
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.store.claim import Claim, abandoned, claim
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter


class ImportRun(Frozen):
    """The result of an import: its experiments in order; `added` are those that got a new repeat. `left_out` are the
    files that the folder held already, or that were named twice, in order."""

    experiments: tuple[Experiment, ...]
    environments: Mapping[str, Mapping[str, Any]]
    added: frozenset[str]
    left_out: tuple[str, ...] = ()


def record_repeats(repeats: Sequence[ImportedRepeat], folder: ResultsFolder) -> ImportRun:
    """Record the repeats that the folder does not hold yet. Raises StoreError; what is already written stays."""
    host = platform.node()
    writer = RecordWriter(folder, host)
    claims: dict[int, Claim] = {}
    try:
        _claim_all(repeats, folder, host, claims)
        for order, claimed in claims.items():
            repeat = repeats[order]
            keep_machine(folder, repeat.machine, repeat.experiment.machine)
            if repeat.experiment.environment:
                folder.put("environments", repeat.experiment.environment, repeat.environment)
            folder.put("experiments", repeat.experiment.id, repeat.experiment.document())
            writer.append(_record(repeat, claimed.repeat, order))
    finally:
        writer.close()
        for claimed in claims.values():
            claimed.release()
    return ImportRun(
        tuple({repeat.experiment.id: repeat.experiment for repeat in repeats}.values()),
        {repeat.experiment.environment: repeat.environment for repeat in repeats},
        frozenset(repeats[order].experiment.id for order in claims),
        _left_out([one for k, one in enumerate(repeats) if k not in claims]),
    )


def _left_out(repeats: Sequence[ImportedRepeat]) -> tuple[str, ...]:
    """The names of their files, those with equal names and other texts each."""
    return tuple({(one.file, one.seen["source"]["sha256"]): one.file for one in repeats}.values())


def _claim_all(repeats: Sequence[ImportedRepeat], folder: ResultsFolder, host: str, claims: dict[int, Claim]) -> None:
    """Claim a number for each repeat that the folder does not hold: position -> its claim, into `claims`.

    Another import may have recorded the same number, and released its claim, after we read the folder: so the folder
    is read again while all claims are held, until there is no conflict.
    """
    for key in {repeat.experiment.id for repeat in repeats}:
        for left in abandoned(folder, host, key):  # by a killed import: its file is imported again
            left.release()
    while True:
        records = read_contents(folder).records
        held = _held(repeats, records)
        numbers = {key: {record.repeat for record in own} for key, own in records.items()}
        is_settled = True
        for order, repeat in enumerate(repeats):
            key, mine = repeat.experiment.id, claims.get(order)
            taken = numbers.setdefault(key, set())
            if mine is not None and (order in held or mine.repeat in taken):
                claims.pop(order).release()
                mine, is_settled = None, False
            if mine is None and order not in held:
                mine, is_settled = _claim(folder, host, repeat, order, max(taken, default=-1) + 1), False
                claims[order] = mine
            if mine is not None:
                taken.add(mine.repeat)
        if is_settled:
            return


def _held(repeats: Sequence[ImportedRepeat], records: Mapping[str, Sequence[RepeatRecord]]) -> frozenset[int]:
    """The positions of the repeats that the folder holds already, or that come earlier in the list.

    A text counts once, whatever its name is.
    """
    known = {(key, _source_key(record.seen)) for key, own in records.items() for record in own}
    held: set[int] = set()
    for order, repeat in enumerate(repeats):
        source = (repeat.experiment.id, _source_key(repeat.seen))
        if source in known:
            held.add(order)
        known.add(source)
    return frozenset(held)


def _claim(folder: ResultsFolder, host: str, repeat: ImportedRepeat, order: int, number: int) -> Claim:
    """Claim the first free number from `number` on."""
    noted = {"order": order, "t0": repeat.t0}
    while (claimed := claim(folder, host, repeat.experiment.id, number, noted)) is None:
        number += 1
    return claimed


def _record(repeat: ImportedRepeat, number: int, order: int) -> RepeatRecord:
    """Its record. `wall_s` is 0: no file states how long the tool ran."""
    outcome, samples, checks = repeat.outcome, repeat.samples, dict(repeat.checks)
    return RepeatRecord(repeat.experiment.id, number, order, repeat.t0, 0.0, outcome, samples, checks, repeat.seen)


def _source_key(seen: Mapping[str, Any]) -> str:
    """Kind and content of the text of a repeat; "" for a record that was measured."""
    source = seen.get("source")
    if not isinstance(source, Mapping):
        return ""
    return " ".join(str(source.get(name)) for name in ("kind", "sha256", "run") if name in source)
