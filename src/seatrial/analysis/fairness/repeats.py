"""Differences recorded by repeats: CPUs, libraries, variables, notes, and outcomes."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from statistics import median
from typing import Any, TypeVar

from msgspec.structs import replace

from seatrial.analysis.fairness.environments import compilation_differences, stated
from seatrial.analysis.fairness.side import (
    Noticed,
    SideFacts,
    Topic,
    clearly_apart,
    clearly_unlike,
    contrast,
    counted,
    distinct,
    tally,
)
from seatrial.benchmarks.declared import typed_command
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.model.spelling import cpu_list, plain
from seatrial.model.study.study import is_number

_Value = TypeVar("_Value", str, str | None)
Records = Sequence[RepeatRecord]
Sides = tuple[Records, Records]

_FILES = {"libraries": Topic.LIBRARY, "programs": Topic.PROGRAM, "input_files": Topic.INPUT}
"""Notes of the benchmark `command` about files."""
_IGNORED_NOTES = frozenset(
    {
        "libraries_seen",
        "libraries_listed",
        "seed",
        "started_at_s",
        "blas_why",
        "blas_better",
        "fft_why",
        "arguments",
        "loss",
        "warmup",
        "processes",
    }
)
"""Notes that differ from repeat to repeat, or state how something was observed or chosen; the arguments, which are
those of the command; and what a training did: its losses, the steps of its warm-up, and what each process saw."""
_BY_CHANCE = frozenset({"bursts", "dropped_iterations", "missed_bursts", "turns"})
"""Notes that count random events during a run: never compared as exact values."""
_PER_JOB = frozenset({"SLURM_JOB_ID"})
"""Variables that differ in every job."""
_ID_DIGITS = 12
_NUMBERS_APART = 0.05
_REPEAT_FOLDER = re.compile(r"[^\s=]{0,4000}/artefacts/[0-9a-f]{16}/[0-9]{1,9}")
_RECORD = "--record"
"""The first argument of each program of ours."""
_NOT_OF_THE_PROGRAM = frozenset({_RECORD, "--parent"})
_OF_A_START = ("--word", "--image", "--bare")
"""What container.start and `command` start: a runtime's command, which is in the facts of the container, and that of an
application, which is a parameter."""


def repeat_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """All differences between the repeats of two groups of experiments."""
    sides = (baseline.all_records(), candidate.all_records())
    yield from _outcomes(sides)
    yield from _affinity(sides)
    yield from _libraries(sides)
    yield from _files(sides)
    yield from _variables(sides)
    yield from _notes(sides)
    typed = [_typed(side) for side in (baseline, candidate)]
    is_contained = any("container" in record.seen for records in sides for record in records)
    if all(typed) and not is_contained:
        yield from _unlike(Topic.COMMAND, typed)
    else:
        yield from _commands(sides)


def _typed(side: SideFacts) -> Counter[str]:
    """The users' commands as typed, with the number of repeats; none if the programs are not started as such."""
    found: Counter[str] = Counter()
    for key, experiment in side.experiments.items():
        for command, times in distinct(record.seen.get("command") for record in side.records.get(key, ())):
            words = typed_command(experiment.benchmark, experiment.parameters, command or ())
            if words is not None:
                found[shlex.join(words)] += times
    return found


def _outcomes(sides: Sides) -> Iterator[Noticed]:
    yield from _unlike(Topic.OUTCOME, [tally((record.outcome for record in records), _outcome) for records in sides])


def _unlike(kind: Topic, by_side: Sequence[Counter[str]]) -> Iterator[Noticed]:
    if all(by_side) and set(by_side[0]) != set(by_side[1]):
        yield contrast(kind, "", *map(counted, by_side))


def _outcome(outcome: Outcome) -> str:
    detail = outcome.check or outcome.stage or ""
    return f"{outcome.state} ({detail})" if detail else str(outcome.state)


def _affinity(sides: Sides) -> Iterator[Noticed]:
    """CPU masks as read back by the threads. A different mask in any repeat counts, because masks are never random."""
    known = ((record.seen["affinity"] for record in records if "affinity" in record.seen) for records in sides)
    yield from _unlike(Topic.AFFINITY, [tally(affinities, masks) for affinities in known])


def masks(affinity: Any) -> str:
    """Masks of threads as text: "2 threads, one on each of 0-1", or each mask."""
    if not isinstance(affinity, list) or not all(isinstance(mask, list) for mask in affinity):
        return plain(affinity)
    if all(len(mask) == 1 for mask in affinity):
        return f"{len(affinity)} on CPUs {cpu_list(mask[0] for mask in affinity)}"
    return f"{len(affinity)} on CPUs {'; '.join(cpu_list(mask) for mask in affinity)}"


def _libraries(sides: Sides) -> Iterator[Noticed]:
    """Libraries of the measuring program, by build id. They rank lower if the measured program is another one."""
    is_wrapper = any("libraries" in _notes_of(record) for records in sides for record in records)
    by_side = [
        [
            ({name: {"id": build_id} for name, build_id in libs.items()}, times)
            for libs, times in distinct(record.seen["libs"] for record in records if "libs" in record.seen)
        ]
        for records in sides
    ]
    yield from _by_file(Topic.OWN_LIBRARY if is_wrapper else Topic.LIBRARY, by_side)


def _files(sides: Sides) -> Iterator[Noticed]:
    for note, kind in _FILES.items():
        by_side = [
            [
                (_as_files(entries), times)
                for entries, times in distinct(_notes_of(record).get(note) for record in records)
                if isinstance(entries, Mapping)
            ]
            for records in sides
        ]
        compiled: list[tuple[str, Noticed]] = []
        if kind is Topic.PROGRAM and all(by_side):
            compiled = list(compilation_differences(*map(stated, by_side)))
        explained = {name for name, _ in compiled}
        yield from (difference for _, difference in compiled)
        yield from (item for item in _by_file(kind, by_side) if item.name not in explained)


def _as_files(entries: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: entry if isinstance(entry, Mapping) else {"id": entry} for name, entry in entries.items()}


Files = Mapping[str, Mapping[str, Any]]
Times = Sequence[tuple[Mapping[str, Any], int]]
"""Entries for one file, each with the number of repeats that it is of."""


def _by_file(kind: Topic, by_side: Sequence[Sequence[tuple[Files, int]]]) -> Iterator[Noticed]:
    """Files by name: a different identity in any repeat, or a file in at least half of the repeats of one side only.

    Files mapped briefly are not seen in every repeat. Unreadable files are compared by path; a library without a build
    id is compared as such. Each set of files comes with the number of its repeats.
    """
    if not all(by_side):
        return
    repeats = [sum(times for _, times in side) for side in by_side]
    for name in dict.fromkeys(name for side in by_side for files, _ in side for name in files):
        found = [[(files[name], times) for files, times in side if name in files] for side in by_side]
        if all(found):
            ids = _identities(found)
            if ids[0] != ids[1]:
                yield _with_code(contrast(kind, name, *(_entries(entries) for entries in found)), found)
        elif any(2 * sum(times for _, times in own) >= n for own, n in zip(found, repeats, strict=True)):
            item = contrast(kind, name, *(_entries(entries) if entries else None for entries in found))
            yield _with_twin(item, name, found, by_side)


_EQUAL_CODE = "equal machine code"


def _with_code(item: Noticed, found: Sequence[Times]) -> Noticed:
    """Says of two programs that their code is equal: builds that differ in build id, names or time stamps only."""
    first, second = (_codes(entries) for entries in found)
    if len(first) != 1 or first != second or None in first:
        return item
    return replace(item, candidate=f"{item.candidate}, {_EQUAL_CODE}")


def _with_twin(
    item: Noticed, name: str, found: Sequence[Times], by_side: Sequence[Sequence[tuple[Files, int]]]
) -> Noticed:
    """Says of a program on one side that one of another name on the other side has equal code."""
    codes = _codes([*found[0], *found[1]])
    others = by_side[0 if found[1] else 1]
    code = next(iter(codes), None)
    if len(codes) != 1 or code is None:
        return item
    twin = next((other for files, _ in others for other, entry in files.items() if entry.get("code") == code), None)
    if twin is None or twin == name:
        return item
    words = f", {_EQUAL_CODE} as {twin}"
    return replace(
        item,
        baseline=None if item.baseline is None else item.baseline + words,
        candidate=None if item.candidate is None else item.candidate + words,
    )


def _codes(entries: Times) -> set[str | None]:
    """The hashes of the machine code of a program; None where there is none."""
    return {code if isinstance(code := entry.get("code"), str) and code else None for entry, _ in entries}


def _entries(entries: Times) -> str:
    return counted(_times((_file(entry), times) for entry, times in entries))


def _identities(found: Sequence[Times]) -> list[set[str]]:
    """The identities of the files of each side: their ids if known, else their paths, else that they have no id."""
    known = [{str(entry["id"]) for entry, _ in entries if entry.get("id")} for entries in found]
    has_places = any("path" in entry for entries in found for entry, _ in entries)
    if all(known) and has_places:
        return known
    key = "path" if has_places else "id"
    return [{str(entry.get(key)) for entry, _ in entries} for entries in found]


def _file(entry: Mapping[str, Any]) -> str:
    path, identity = entry.get("path"), str(entry.get("id") or "")
    shown = identity[:_ID_DIGITS] if re.fullmatch(r"[0-9a-f]{1,128}", identity) else identity
    return f"{path} ({shown or 'no id'})" if path else shown or "no id"


def _variables(sides: Sides) -> Iterator[Noticed]:
    by_side = [
        distinct(record.seen["variables"] for record in records if "variables" in record.seen) for records in sides
    ]
    if not all(by_side):
        return
    for name in dict.fromkeys(name for side in by_side for variables, _ in side for name in variables):
        values = [_times((variables.get(name), times) for variables, times in side) for side in by_side]
        if name not in _PER_JOB and set(values[0]) != set(values[1]):
            yield contrast(Topic.VARIABLE, name, *(None if set(own) == {None} else _shown(own) for own in values))


def _times(values: Iterable[tuple[_Value, int]]) -> Counter[_Value]:
    """How often each value occurs, from values with a number of times."""
    found: Counter[_Value] = Counter()
    for value, times in values:
        found[value] += times
    return found


def _shown(values: Counter[str | None]) -> str:
    return counted(Counter({"not set" if value is None else value or '""': n for value, n in values.items()}))


def _notes_of(record: RepeatRecord) -> Mapping[str, Any]:
    notes = record.seen.get("notes")
    return notes if isinstance(notes, Mapping) else {}


def _notes(sides: Sides) -> Iterator[Noticed]:
    names = dict.fromkeys(name for records in sides for notes, _ in distinct(map(_notes_of, records)) for name in notes)
    for name in names:
        if name in _FILES or name in _IGNORED_NOTES:
            continue
        values = [[notes[name] for record in records if name in (notes := _notes_of(record))] for records in sides]
        if not all(values):
            # A repeat that died early has no notes, so only notes missing from finished repeats count.
            finished = [[record for record in records if record.outcome.is_ok] for records in sides]
            if all(finished):
                yield contrast(Topic.NOTE, name, *(counted(tally(side, plain)) if side else None for side in values))
        elif all(is_number(value) for side in values for value in side):
            yield from _numbers(name, values)
        else:
            by_side = [tally(side, plain) for side in values]
            if clearly_unlike(*by_side):
                yield contrast(Topic.NOTE, name, *map(counted, by_side))


def _numbers(name: str, values: Sequence[Sequence[float]]) -> Iterator[Noticed]:
    """Values that are constant on each side are compared exactly; others must differ clearly, by at least 5 %."""
    steady = name not in _BY_CHANCE and all(
        len(set(side)) == 1 and (len(side) > 1 or isinstance(side[0], int)) for side in values
    )
    largest = max(abs(median(side)) for side in values)
    if (steady and values[0][0] != values[1][0]) or (
        not steady and clearly_apart(values[0], values[1], max(_NUMBERS_APART * largest, 1e-300))
    ):
        yield contrast(Topic.NOTE, name, *(plain(median(side)) for side in values))


def _commands(sides: Sides) -> Iterator[Noticed]:
    """The arguments that only one side has, without the path of the program, its folder and its parent."""
    is_contained = any("container" in record.seen for records in sides for record in records)
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    by_side = [
        Counter(parts for record in records if (parts := _parts(record.seen.get("command"), known, is_contained)))
        for records in sides
    ]
    if not clearly_unlike(*(Counter({" ".join(parts): n for parts, n in side.items()}) for side in by_side)):
        return
    usual = [Counter(side.most_common(1)[0][0]) for side in by_side]
    rest = [" ".join((own - other).elements()) for own, other in zip(usual, reversed(usual), strict=True)]
    yield contrast(Topic.COMMAND, "", *(text or "without these" for text in rest))


def _without(command: Sequence[Any], names: tuple[str, ...]) -> list[Any]:
    """Without the arguments whose names begin so, and their values."""
    is_dropped = [str(word).startswith(names) for word in command]
    return [
        word for place, word in enumerate(command) if not is_dropped[place] and not (place and is_dropped[place - 1])
    ]


def _parts(command: Any, known: dict[tuple[str, ...], tuple[str, ...]], is_contained: bool) -> tuple[str, ...]:
    """The arguments of a command, each `--name` with its value. Those that differ only in the folder of the repeat are
    read once, and then `known`.

    `is_contained`: a container's runtime may stand before the program. What it is and does is in the facts of the
    container, and what an application is asked to do in its parameters, so only the program's own words count.
    """
    if not isinstance(command, list) or not command:
        return ()
    if is_contained:
        command = command[command.index(_RECORD) - 1 :] if _RECORD in command[1:] else []
        command = _without(command, _OF_A_START)
    texts = (str(word) for word in command[1:])
    read = (_REPEAT_FOLDER.sub("REPEAT", text) if "/artefacts/" in text else text for text in texts)
    words = (*map(str, command[:1]), *read)
    if words not in known:
        parts = [[PurePath(words[0]).name]] if words else []
        for word in words[1:]:
            if word.startswith("--") or len(parts) == 1:
                parts.append([word])
            else:
                parts[-1].append(word)
        known[words] = tuple(" ".join(part) for part in parts if part[0] not in _NOT_OF_THE_PROGRAM)
    return known[words]
