"""Counters of network links: what each one means, and what happened between two readings.

Sources: InfiniBand Architecture Specification, Volume 1, "Performance management" (PortCounters); Linux,
Documentation/ABI/stable/sysfs-class-infiniband and Documentation/ABI/testing/sysfs-class-net-statistics; NVIDIA,
"Understanding mlx5 Linux counters and status parameters".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from seatrial.model.frozen import Frozen

Readings = Mapping[str, Mapping[str, int]]
"""Port ("mlx5_0 port 1") -> counter -> value."""


class CounterKind(StrEnum):
    """What a counter that grows is a sign of."""

    ERROR = "error"  # data arrived damaged, or the link failed
    DISCARD = "discard"  # packets were thrown away
    CONGESTION = "congestion"  # packets had to wait
    RETRY = "retry"  # packets were sent again, or arrived out of order


class LinkCounter(Frozen):
    """One counter. `name` is that of sysfs; `other` are names that tools print. `largest` is the value at which the
    counter stops in its classic form (None: it does not stop)."""

    name: str
    kind: CounterKind
    meaning: str
    other: tuple[str, ...] = ()
    largest: int | None = None


_ERROR, _DISCARD, _CONGESTION, _RETRY = CounterKind
_8, _16, _32 = (1 << 8) - 1, (1 << 16) - 1, (1 << 32) - 1

_COUNTERS = (
    LinkCounter("symbol_error", _ERROR, "symbols that arrived damaged", ("SymbolErrorCounter",), _16),
    LinkCounter(
        "link_error_recovery", _ERROR, "times the link retrained after errors", ("LinkErrorRecoveryCounter",), _8
    ),
    LinkCounter("link_downed", _ERROR, "times the link went down", ("LinkDownedCounter",), _8),
    LinkCounter("port_rcv_errors", _ERROR, "packets that arrived damaged", ("PortRcvErrors",), _16),
    LinkCounter(
        "port_rcv_remote_physical_errors",
        _ERROR,
        "packets that another switch had marked as damaged",
        ("PortRcvRemotePhysicalErrors",),
        _16,
    ),
    LinkCounter(
        "local_link_integrity_errors", _ERROR, "times too many errors came in a row", ("LocalLinkIntegrityErrors",), 15
    ),
    LinkCounter(
        "excessive_buffer_overrun_errors",
        _ERROR,
        "times the receive buffer overran repeatedly",
        ("ExcessiveBufferOverrunErrors",),
        15,
    ),
    LinkCounter(
        "port_rcv_switch_relay_errors",
        _DISCARD,
        "packets that the switch could not forward, such as multicasts back to their sender",
        ("PortRcvSwitchRelayErrors",),
        _16,
    ),
    LinkCounter(
        "port_xmit_discards",
        _DISCARD,
        "packets that were not sent, because the port was down or congested for too long",
        ("PortXmitDiscards",),
        _16,
    ),
    LinkCounter(
        "port_xmit_constraint_errors",
        _DISCARD,
        "packets that a partition or raw filter did not let out",
        ("PortXmitConstraintErrors",),
        _8,
    ),
    LinkCounter(
        "port_rcv_constraint_errors",
        _DISCARD,
        "packets that a partition or raw filter did not let in",
        ("PortRcvConstraintErrors",),
        _8,
    ),
    LinkCounter("VL15_dropped", _DISCARD, "management packets dropped for want of buffers", ("VL15Dropped",), _16),
    LinkCounter(
        "port_xmit_wait",
        _CONGESTION,
        "ticks during which data waited and the receiver gave no credits",
        ("PortXmitWait",),
        _32,
    ),
    LinkCounter("out_of_buffer", _DISCARD, "packets that found no receive buffer posted", ("rx_out_of_buffer",)),
    LinkCounter("out_of_sequence", _RETRY, "packets that arrived out of order"),
    LinkCounter("packet_seq_err", _RETRY, "times the receiver asked for packets again"),
    LinkCounter("local_ack_timeout_err", _RETRY, "times the sender waited in vain for an acknowledgement"),
    LinkCounter("rnr_nak_retry_err", _RETRY, "times the receiver was not ready until the retries were used up"),
    LinkCounter("np_cnp_sent", _CONGESTION, "congestion notifications sent (RoCE)"),
    LinkCounter("rp_cnp_handled", _CONGESTION, "congestion notifications that slowed this sender down (RoCE)"),
    LinkCounter("np_ecn_marked_roce_packets", _CONGESTION, "packets that switches had marked for congestion (RoCE)"),
    LinkCounter("rx_errors", _ERROR, "frames that arrived damaged"),
    LinkCounter("rx_crc_errors", _ERROR, "frames whose checksum was wrong", ("rx_crc_errors_phy",)),
    LinkCounter("tx_errors", _ERROR, "frames that could not be sent", ("tx_errors_phy",)),
    LinkCounter("tx_carrier_errors", _ERROR, "frames that were not sent because the link was down"),
    LinkCounter("rx_dropped", _DISCARD, "frames that the host did not process"),
    LinkCounter("tx_dropped", _DISCARD, "frames that were dropped before sending"),
    LinkCounter("rx_missed_errors", _DISCARD, "frames that the host was too slow to take"),
    LinkCounter("rx_discards_phy", _DISCARD, "frames dropped because the adapter's buffers were full"),
    LinkCounter("tx_discards_phy", _DISCARD, "frames that the adapter did not send"),
    LinkCounter("rx_pause_ctrl_phy", _CONGESTION, "requests of the other end to pause sending"),
    LinkCounter("tx_pause_ctrl_phy", _CONGESTION, "requests to the other end to pause sending"),
)

LINK_COUNTERS: Mapping[str, LinkCounter] = {counter.name: counter for counter in _COUNTERS}
"""Name -> counter. Counters of traffic are not here: they are no sign of anything."""

CANONICAL: Mapping[str, str] = {
    other: counter.name for counter in _COUNTERS for other in (counter.name, *counter.other)
}
"""Any name -> the name in LINK_COUNTERS."""


class CounterChange(Frozen):
    """What a counter did between two readings. `grew_by` is None if that is unknown (`why`)."""

    port: str
    counter: LinkCounter
    grew_by: int | None
    why: str = ""


def counters_between(before: Readings, after: Readings) -> tuple[CounterChange, ...]:
    """The counters that grew between two readings, or of which it is not known; errors first.

    Counters that only one of the readings has, and names that are not in LINK_COUNTERS, are left out.
    """
    order = list(CounterKind)
    found = _changes(before, after)
    return tuple(sorted(found, key=lambda change: (order.index(change.counter.kind), change.port)))


def _changes(before: Readings, after: Readings) -> Iterator[CounterChange]:
    for port, counters in after.items():
        for name, value in counters.items():
            counter = LINK_COUNTERS.get(CANONICAL.get(name, ""))
            earlier = before.get(port, {}).get(name)
            if counter is None or earlier is None:
                continue
            if value < earlier:
                yield CounterChange(port, counter, None, "the counter was reset, or the link restarted, in between")
            elif value == earlier == counter.largest:
                yield CounterChange(port, counter, None, f"the counter stopped at its largest value, {value}")
            elif value > earlier:
                yield CounterChange(port, counter, value - earlier)
