"""What a single reading of link counters shows. Counters add up since they were last cleared, which is usually unknown:
errors may be old, so every finding says that, and the remedy is to read them again.

A symbol error rate of up to 1e-12 per bit is within the specification of InfiniBand (IBTA, Volume 2): where the data
received is known, errors below that share of it are a note. So are counters that ordinary events raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.links import (
    LINK_COUNTERS,
    PACKETS_RECEIVED,
    PACKETS_SENT,
    WORDS_RECEIVED,
    CounterKind,
    LinkCounter,
    Readings,
)
from seatrial.model.spelling import show_percent

_BIT_ERRORS = 1e-12
_BITS = 32  # of a word
_MUCH = 1e-3
"""Of the packets. TCP loses most of its rate with one packet in a thousand lost (Mathis et al. 1997: rate ~ 1/sqrt)."""
_MOST_PORTS, _MOST_COUNTERS = 8, 4
_SINCE = "since the counters were last cleared"
_SENT = ("tx_", "port_xmit")


class _Count(Frozen):
    """A counter of a port, and what it reached."""

    port: str
    counter: LinkCounter
    value: int
    share: float | None = None
    """Of the packets in that direction; None if they are unknown."""

    @property
    def text(self) -> str:
        """Such as: "symbol_error 65535 (where it stops)"."""
        share = "" if self.share is None else f" ({_show_share(self.share)} of the packets)"
        end = " (where it stops)" if self.value == self.counter.largest else share
        return f"{self.counter.name} {self.value}{end}"


def _show_share(share: float) -> str:
    return show_percent(share) if share >= _MUCH else f"{share:.1g}"


def counter_findings(readings: Readings, source: str, command: str) -> tuple[Finding, ...]:
    """What the counters of these ports, read from `source`, call for. `command` reads them again."""
    counts = [
        _count(port, values, name) for port, values in readings.items() for name in LINK_COUNTERS if values.get(name)
    ]
    return tuple(
        Finding(rule, severity, tuple(_by_port(own)), *words, evidence=_evidence(own, source))
        for own, rule, severity, words in _groups(
            counts, readings, f"Read them again after an hour of work ({command})"
        )
        if own
    )


def _count(port: str, values: Mapping[str, int], name: str) -> _Count:
    packets = values.get(PACKETS_SENT if name.startswith(_SENT) else PACKETS_RECEIVED)
    value = values[name]
    is_share = LINK_COUNTERS[name].kind is CounterKind.DISCARD and packets
    return _Count(port, LINK_COUNTERS[name], value, value / max(value, packets or 0) if is_share else None)


def _groups(
    counts: Sequence[_Count], readings: Readings, again: str
) -> Iterator[tuple[list[_Count], str, Severity, tuple[str, str, str]]]:
    errors = [one for one in counts if one.counter.kind is CounterKind.ERROR]
    faults = [one for one in errors if not one.counter.usual and not _is_within(one, readings[one.port])]
    faulty = {one.port for one in faults}
    discards = [one for one in counts if one.counter.kind is CounterKind.DISCARD and not one.counter.usual]
    much = [one for one in discards if (one.share or 0.0) >= _MUCH]
    yield (
        [one for one in errors if one.port in faulty], "link-errors-counted", Severity.WARNING,
        (
            f"{_listed([one for one in errors if one.port in faulty])}, {_SINCE}.",
            "Data arrived damaged, or the link had to be trained again. When the counters were cleared is unknown, "
            "so the errors may be old.",
            f"{again}; if they grow, reseat the cable at both ends, then exchange it with that of a good port",
        ),
    )  # fmt: skip
    few = [one for one in errors if one.port not in faulty]
    reasons = dict.fromkeys(one.counter.usual or "fewer than one bit in 1e12 was wrong" for one in few)
    yield (
        few, "link-events-counted", Severity.INFO,
        (
            f"{_listed(few)}, {_SINCE}.",
            f"By themselves they show no fault: {'; '.join(reasons)}.",
            f"{again}; look at the link if they grow",
        ),
    )  # fmt: skip
    yield (
        much, "link-discards-counted", Severity.WARNING,
        (
            f"{_listed(much)}, {_SINCE}.",
            "Packets that are thrown away are sent again or lost, which costs far more time than their share. Whether "
            "they are lost now is unknown.",
            f"{again}; if they grow, look for receivers that cannot keep up (PCIe, CPU, ring sizes) and for full links "
            "of switches",
        ),
    )  # fmt: skip
    small = [one for one in discards if one not in much]
    yield (
        small, "link-discards-counted", Severity.INFO,
        (
            f"{_listed(small)}, {_SINCE}.",
            "Few of the packets, or the number of packets is not in the text. Links that went down, and full links, "
            "discard packets.",
            f"{again}, and before and after a run: those that grow cost time",
        ),
    )  # fmt: skip
    pauses = [one for one in counts if "pause" in one.counter.name]
    yield (
        pauses, "link-pauses-counted", Severity.INFO,
        (
            f"{_listed(pauses)}, {_SINCE}.",
            "An end that asks for pauses could not take data as fast as it came; the other end then stops all that it "
            "sends on the link.",
            f"{again}; if the pauses grow, look for a receiver that cannot keep up (PCIe, CPU, ring sizes)",
        ),
    )  # fmt: skip


def _is_within(one: _Count, values: Mapping[str, int]) -> bool:
    """Whether so few symbol errors are within the specification, measured by the data received."""
    words = values.get(WORDS_RECEIVED, 0)
    is_stopped = one.value == one.counter.largest
    return one.counter.name == "symbol_error" and not is_stopped and one.value <= _BIT_ERRORS * _BITS * words


def _by_port(counts: Iterable[_Count]) -> dict[str, list[_Count]]:
    found: dict[str, list[_Count]] = {}
    for one in counts:
        found.setdefault(one.port, []).append(one)
    return found


def _listed(counts: Sequence[_Count]) -> str:
    """Such as: "leaf-1 port 5: symbol_error 12, link_downed 2; leaf-1 port 7: ... and 3 more ports"."""
    ports = _by_port(counts)
    texts = []
    for port, own in list(ports.items())[:_MOST_PORTS]:
        more = len(own) - _MOST_COUNTERS
        texts.append(
            f"{port}: {', '.join(one.text for one in own[:_MOST_COUNTERS])}" + (f" and {more} more" if more > 0 else "")
        )
    rest = len(ports) - _MOST_PORTS
    return "; ".join(texts) + (f" and {rest} more {'port' if rest == 1 else 'ports'}" if rest > 0 else "")


def _evidence(counts: Sequence[_Count], source: str) -> str:
    meanings = {one.counter.name: one.counter.meaning for one in counts}
    return f"{source}; " + "; ".join(f"{name}: {meaning}" for name, meaning in meanings.items())
