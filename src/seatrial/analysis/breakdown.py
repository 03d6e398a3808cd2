"""Which calls and parts explain the difference between two sides, from the records of probes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.breakdown_causes import change_diagnoses
from seatrial.analysis.breakdown_programs import program_change
from seatrial.analysis.breakdown_rows import repeat_of
from seatrial.analysis.match import SideExperiment
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import RepeatRecord
from seatrial.model.study.comparison import COMPUTING, OTHER_CALLS, Breakdown, Moved, Part
from seatrial.stats.max_t import adjusted_p

MOST_PARTS = 12
"""Parts shown individually; the rest are combined."""

_COUNTERS = {
    "asked_read_B": "read, as requested by the program",
    "asked_written_B": "written, as requested by the program",
    "device_read_B": "read from devices",
    "device_written_B": "written to devices",
}
_Key = tuple[str, int | None]
_Repeat = dict[_Key, tuple[float, float]]
"""The time of one repeat: part -> (seconds, calls) per rank."""


class _Profiles(Frozen):
    """The repeats of a side with complete profiles, with the block of each ("" if none), and the number of others."""

    repeats: list[_Repeat]
    blocks: list[str]
    incomplete: int
    summaries: list[Mapping[str, Any]]


_WHOLE: _Key = ("wall", None)


def breakdowns(pairs: Iterable[tuple[SideExperiment, SideExperiment]]) -> tuple[Breakdown, ...]:
    """The breakdown of each pair with records of probes, or of programs that were looked at and clearly differ."""
    return tuple(found for baseline, candidate in pairs if (found := breakdown(baseline, candidate)) is not None)


def breakdown(baseline: SideExperiment, candidate: SideExperiment) -> Breakdown | None:
    """The breakdown of a pair; None if a side has neither records of probes, nor was looked at."""
    first, second = (_repeats(side) for side in (baseline, candidate))
    moved = _moved(baseline, candidate)
    sides = (first.repeats, second.repeats)
    records = [side.contents.records.get(side.result.id, ()) for side in (baseline, candidate)]
    program = None if all(sides) else program_change(*records)
    if not (all(sides) or moved or program is not None):
        return None
    made = Breakdown(
        benchmark=baseline.result.experiment.benchmark,
        parameters={n: v for n, v in baseline.parameters.items() if candidate.parameters.get(n) == v},
        baseline=baseline.name,
        candidate=candidate.name,
        whole=None,
        parts=(),
        moved=tuple(moved),
        repeats=(len(sides[0]), len(sides[1])),
        incomplete=first.incomplete + second.incomplete,
    )
    if program is not None:
        return replace(
            made,
            whole=program.whole,
            parts=program.parts,
            repeats=program.repeats,
            blocks=program.blocks,
            diagnoses=program.diagnoses,
            per="run",
        )
    if not all(sides):
        return made
    places = _places(first, second)
    whole, parts = _parts(sides, [(sides[0][a], sides[1][b]) for a, b in places])
    return replace(
        made,
        whole=whole,
        parts=tuple(parts),
        blocks=len(places),
        diagnoses=change_diagnoses(
            [repeat_of(first.summaries[a]) for a, _ in places], [repeat_of(second.summaries[b]) for _, b in places]
        ),
    )


def _ok_records(side: SideExperiment, probe: str) -> list[RepeatRecord]:
    """The repeats that succeeded with records of a probe, in order."""
    records = side.contents.records.get(side.result.id, ())
    return [record for record in records if record.outcome.is_ok and isinstance(record.seen.get(probe), dict)]


def _repeats(side: SideExperiment) -> _Profiles:
    """The repeats with complete profiles."""
    found: list[_Repeat] = []
    blocks: list[str] = []
    summaries: list[Mapping[str, Any]] = []
    records = _ok_records(side, "mpi")
    for record in records:
        profile = record.seen["mpi"]
        ranks = profile["tables"]
        if not profile["complete"] or not ranks or ranks != profile["ranks"]:
            continue
        parts: _Repeat = {}
        for call, size, n, _, s in profile["calls"]:
            # A program may call the `_c` variant of a function with one library and not with the other.
            key = (call.removesuffix("_c"), size)
            time_s, calls = parts.get(key, (0.0, 0.0))
            parts[key] = (time_s + s / ranks, calls + n / ranks)
        parts[_WHOLE] = (profile["wall_s"] / ranks, 0.0)
        parts[COMPUTING, None] = (max(0.0, profile["wall_s"] - profile["mpi_s"]) / ranks, 0.0)
        found.append(parts)
        summaries.append(profile)
        blocks.append(str(record.seen.get("block") or ""))
    return _Profiles(found, blocks, len(records) - len(found), summaries)


def _places(baseline: _Profiles, candidate: _Profiles) -> list[tuple[int, int]]:
    """The positions, among those of their sides, of the repeats in each block that has both."""
    of_baseline = {block: place for place, block in enumerate(baseline.blocks) if block}
    return [(of_baseline[block], place) for place, block in enumerate(candidate.blocks) if block in of_baseline]


def _parts(sides: Sequence[Sequence[_Repeat]], pairs: Sequence[tuple[_Repeat, _Repeat]]) -> tuple[Part, list[Part]]:
    """The whole, and its parts by the difference between the sides.

    All parts are tested together before the largest are chosen. What is combined was chosen by its size, so it is not
    tested. Repeats that were measured apart are not tested: what the machine did in between is in none of them.
    """
    keys = dict.fromkeys(key for side in sides for repeat in side for key in repeat)
    made = {key: _part(sides, [key], key) for key in keys}
    whole = made.pop(_WHOLE)
    ordered = sorted(made, key=lambda key: -abs(made[key].difference_s))
    p_values = adjusted_p([[_second(b, key) - _second(a, key) for a, b in pairs] for key in ordered])
    shown = [replace(made[key], p_value=p) for key, p in zip(ordered[:MOST_PARTS], p_values[:MOST_PARTS], strict=True)]
    if ordered[MOST_PARTS:]:
        shown.append(_part(sides, ordered[MOST_PARTS:], (OTHER_CALLS, None)))
    return whole, shown


def _second(repeat: _Repeat, key: _Key) -> float:
    return repeat.get(key, (0.0, 0.0))[0]


def _part(sides: Sequence[Sequence[_Repeat]], keys: Sequence[_Key], named: _Key) -> Part:
    seconds = [fmean([sum(repeat.get(key, (0.0, 0.0))[0] for key in keys) for repeat in side]) for side in sides]
    counts = [fmean(sum(repeat.get(key, (0.0, 0.0))[1] for key in keys) for repeat in side) for side in sides]
    return Part(named[0], named[1], seconds[0], seconds[1], counts[0], counts[1])


def _moved(baseline: SideExperiment, candidate: SideExperiment) -> list[Moved]:
    sides = [[record.seen["io"] for record in _ok_records(side, "io")] for side in (baseline, candidate)]
    if not all(sides):
        return []
    return [
        Moved(words, fmean(one[name] for one in sides[0]), fmean(one[name] for one in sides[1]))
        for name, words in _COUNTERS.items()
    ]
