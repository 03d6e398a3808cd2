"""Whether the messages between nodes have passed the links of these nodes, by what the program counted there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.engine.ready import Runnable
from seatrial.model.link_traffic import Traffic, too_little
from seatrial.model.outcome import Outcome
from seatrial.model.protocol import UNREADABLE, ProgramRecord
from seatrial.plan.points import Point

_CHECK = "traffic"


def messages_astray(point: Point, program: Runnable, record: ProgramRecord) -> Outcome | None:
    """The outcome if what the ranks of several nodes exchanged is not on their links; None if it is, on one node, and
    if the bytes of an adapter cannot be counted, which the record notes.

    A program that counts and reports nothing does not pass.
    """
    if len(point.hosts) < 2 or not program.writes_record or record.hello is None:
        return None
    try:
        counted = counted_traffic(record.notes)
    except UNREADABLE as error:
        return Outcome.invalid(_CHECK, f"what the program reports of its nodes' links cannot be read ({error!r})")
    nodes = list(dict.fromkeys(record.hello.hosts))
    unseen = [node for node in nodes if node not in counted]
    if unseen or not counted:
        return Outcome.invalid(
            _CHECK, f"the program did not count the bytes on the links of {', '.join(unseen or nodes)}"
        )
    exchanged = point.benchmark.between_nodes
    try:
        least = [1.0] * len(nodes) if exchanged is None else exchanged(point.parameters, record.samples)
    except UNREADABLE as error:
        return Outcome.invalid(_CHECK, f"the payload cannot be computed: values missing from the samples ({error!r})")
    known = {node: traffic for node, traffic in counted.items() if traffic is not None}
    why = too_little({node: most for node, most in zip(nodes, least, strict=False) if node in known}, known)
    return Outcome.invalid(_CHECK, why) if why else None


def counted_traffic(notes: Mapping[str, Any]) -> dict[str, Traffic | None]:
    """Node -> what passed its links during the run, None if unknown; from the note `traffic`. Raises what UNREADABLE
    lists."""
    entries: Sequence[Mapping[str, Any]] = notes.get("traffic", ())
    return {
        str(entry["host"]): Traffic(int(entry["sent_B"]), int(entry["received_B"])) if "sent_B" in entry else None
        for entry in entries
    }
