"""A group in progress, with the policy that decides when it is finished."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from seatrial.engine.events import Progress
from seatrial.engine.group import Group
from seatrial.engine.policy import Policy


class Entry(Struct):
    """A group in progress."""

    group: Group
    policy: Policy
    study: str
    again: bool

    def update(self) -> None:
        """Check whether it is finished: it has enough repeats, or no member is left."""
        self.group.is_finished = not self.group.alive or self.policy.has_enough(self.group)
        self.policy.changed(self.group)


def progress_of(entries: Sequence[Entry]) -> Progress:
    """The progress of all groups together."""
    still_open = [entry for entry in entries if not entry.group.is_finished]
    policies = {id(entry.policy.budget_source): entry.policy for entry in still_open}
    remaining_s = sum(
        policy.remaining_s([entry.group for entry in still_open if entry.policy.budget_source is policy.budget_source])
        for policy in policies.values()
    )
    members = sum(len(entry.group.members) for entry in entries)
    return Progress(sum(len(entry.group.alive) for entry in still_open), members, remaining_s)
