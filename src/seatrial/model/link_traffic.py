"""Whether what ranks sent to other nodes has passed the links of these nodes.

MPI libraries that take two nodes for one pass messages through memory; a run like that measures no network. The bytes
that an interface counts include headers and repeated packets, so they cannot be fewer than the payload.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.frozen import Frozen
from seatrial.model.spelling import show


class Traffic(Frozen):
    """Bytes that a node sends and receives: counted on its interfaces, or the payload that its ranks exchange with
    those on other nodes."""

    sent_B: int
    received_B: int

    def since(self, before: Traffic) -> Traffic:
        """The bytes since an earlier count."""
        return Traffic(self.sent_B - before.sent_B, self.received_B - before.received_B)


def too_little(least_B: Mapping[str, float], counted: Mapping[str, Traffic]) -> str:
    """Why nodes cannot have exchanged that many bytes, sent and received together, over their links; "" if they can."""
    for node, asked_B in least_B.items():
        seen = counted[node]
        if seen.sent_B < 0 or seen.received_B < 0:
            return f"the interfaces of {node} count fewer bytes than before"
        if (found_B := seen.sent_B + seen.received_B) < asked_B:
            return (
                f"the ranks on {node} sent and received {show(asked_B, 'B')}, but its interfaces counted "
                f"{show(found_B, 'B')}: the rest did not pass the link. The MPI library takes the nodes for one "
                "(they share /dev/shm, System V IPC or the boot id), or uses adapters whose bytes are not counted"
            )
    return ""


def traffic_missing(payload: Mapping[str, Traffic], counted: Mapping[str, Traffic]) -> str:
    """Why the payload cannot have passed the links, "" if it can. Both are by node, for the same span of time.

    A node without counters, and one whose counters went back, prove nothing.
    """
    for node, asked in payload.items():
        seen = counted.get(node)
        if seen is None:
            return f"the interfaces of {node} were not counted"
        for what, least_B, found_B in (
            ("sent", asked.sent_B, seen.sent_B),
            ("received", asked.received_B, seen.received_B),
        ):
            if found_B < 0:
                return f"the interfaces of {node} count fewer bytes {what} than before"
            if found_B < least_B:
                return (
                    f"the ranks on {node} {what} {show(least_B, 'B')}, but its interfaces counted "
                    f"{show(found_B, 'B')}: the rest did not pass the link"
                )
    return ""
