"""The fairness list: everything but the figures that is not the same on both sides of a comparison.

Intended is what the comparison is about, and what that brings along (`Difference.follows_from`). All else is listed
first. What changes by itself (load, steal, free memory) has a rule each; `fairness/` has one module for each place
where a difference can show, and none of them looks at what was intended.
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
from seatrial.model.difference import Difference
from seatrial.model.spelling import count

__all__ = ["SideFacts", "differences", "side_facts"]


def differences(baseline: SideFacts, candidate: SideFacts, axis: str | None) -> tuple[Difference, ...]:
    """What differs, unintended first, each by how much it matters. `axis` is what the comparison varies: a parameter,
    `environment.NAME`, `label` (nothing), or None where two folders are held against each other.

    Repeats that are invalid or failed count as well: that they are is a difference, and what they saw explains it. A
    side without experiments was not measured; then there is nothing to tell.
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
    """What differs between experiments that stand against each other."""
    if not group.baseline.experiments or not group.candidate.experiments:
        sides = [count(len(side.experiments), "point") for side in (group.baseline, group.candidate)]
        shown = [
            text if side.experiments else None
            for text, side in zip(sides, (group.baseline, group.candidate), strict=True)
        ]
        yield Noticed(Kind.POINT, group.benchmark, shown[0], shown[1])
        return
    yield from parameter_differences(group.baseline, group.candidate)
    seen = list(repeat_differences(group.baseline, group.candidate))
    yield from seen
    told = {(item.kind, item.name) for item in seen}
    for item in environment_differences(group.baseline, group.candidate):
        if (item.kind, item.name) not in told:  # a variable that a study sets, and that the repeats saw
            yield item


def _merged(judged: list[tuple[Noticed, bool, str]]) -> list[Difference]:
    """One for each name and intent: what is intended at one point never covers what is not at another."""
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
