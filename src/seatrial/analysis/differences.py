"""The fairness list: all differences between the sides of a comparison besides the figures.

A difference is intended if the comparison varies it, or if it follows from that (`Difference.follows_from`). All others
are listed first. Values that always vary (load, steal, free memory) have their own rules; `fairness/` has one module
for each source of differences, and only `intent` decides which are intended.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.fairness.circumstances import circumstance_differences
from seatrial.analysis.fairness.environments import environment_differences, parameter_differences
from seatrial.analysis.fairness.intent import intent
from seatrial.analysis.fairness.machines import machine_differences
from seatrial.analysis.fairness.noticed import RANK, Kind, Noticed, together
from seatrial.analysis.fairness.repeats import repeat_differences
from seatrial.analysis.fairness.side import Group, SideFacts, groups, side_facts
from seatrial.model.spelling import count
from seatrial.model.study.comparison import Difference

__all__ = ["SideFacts", "differences", "side_facts"]


def differences(baseline: SideFacts, candidate: SideFacts, axis: str | None) -> tuple[Difference, ...]:
    """The differences, unintended first, then by importance. `axis` is what the comparison varies: a parameter,
    `environment.NAME`, `label` (nothing), or None for two folders.

    Invalid and failed repeats count as well: the outcome is a difference, and their records may explain it. Empty if a
    side has no experiments.
    """
    if not baseline.experiments or not candidate.experiments:
        return ()
    judged: list[tuple[Noticed, bool, str]] = []
    for group in groups(baseline, candidate, axis):
        judged += intent(list(_of_group(group)), group, axis)
    whole = [*machine_differences(baseline, candidate), *circumstance_differences(baseline, candidate)]
    judged += [(item, False, "") for item in whole]
    return tuple(_merged(judged))


def _of_group(group: Group) -> Iterator[Noticed]:
    """The differences between experiments that are compared with each other."""
    if not group.baseline.experiments or not group.candidate.experiments:
        sides = [count(len(side.experiments), "experiment") for side in (group.baseline, group.candidate)]
        shown = [
            text if side.experiments else None
            for text, side in zip(sides, (group.baseline, group.candidate), strict=True)
        ]
        yield Noticed(Kind.POINT, group.benchmark, shown[0], shown[1])
        return
    yield from parameter_differences(group.baseline, group.candidate)
    seen = list(repeat_differences(group.baseline, group.candidate))
    yield from seen
    reported = {(item.kind, item.name) for item in seen}
    for item in environment_differences(group.baseline, group.candidate):
        if (item.kind, item.name) not in reported:  # a variable that a study sets is also in the records of repeats
            yield item


def _merged(judged: list[tuple[Noticed, bool, str]]) -> list[Difference]:
    """One for each name and intent: an intended difference of one experiment never hides an unintended one of
    another."""
    found: dict[tuple[Kind, str, bool, str], list[Noticed]] = {}
    for item, intended, follows in judged:
        found.setdefault((item.kind, item.name, intended, follows), []).append(item)
    ordered = sorted(found.items(), key=lambda entry: (entry[0][2], bool(entry[0][3]), RANK[entry[0][0]]))
    return [
        Difference(
            items[0].what,
            together(item.baseline for item in items),
            together(item.candidate for item in items),
            intended,
            follows,
        )
        for (_, _, intended, follows), items in ordered
    ]
