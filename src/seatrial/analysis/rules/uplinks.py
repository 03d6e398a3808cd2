"""Rules about what several GPUs share on their path to the processor: uplinks of switches, redirection by ACS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import gpus, spans
from seatrial.analysis.rules.finding import Subject, rule, warning
from seatrial.analysis.rules.words import listed
from seatrial.model.frozen import Frozen
from seatrial.model.machine.finding import Finding
from seatrial.model.machine.links import faces_down
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.spelling import count, show

_NARROWER = 0.99


class Uplink(Frozen):
    """A link that `cards` (one GPU per PCI device) share; `rate` is its rate, `wanted` the sum of theirs, in B/s."""

    link: Link
    rate: float
    wanted: float
    cards: tuple[Device, ...]

    @property
    def each(self) -> float:
        """B/s per direction and card if all copy at once."""
        return self.rate / len(self.cards)


@rule(Subject.UPLINKS)
def shared_uplink(case: Case) -> Iterator[Finding]:
    """Fires if several GPUs share an uplink that is narrower than their links together.

    Each gets uplink / n if all copy to or from host memory at once. Of several uplinks on the path, the narrowest per
    GPU counts.
    """
    machine = case.machine
    shared = shared_uplinks(machine)
    if not shared:
        return
    worst = min(shared, key=lambda uplink: uplink.each)
    alike = [u for u in shared if len(u.cards) == len(worst.cards) and u.rate == worst.rate]
    others = [u for u in shared if u not in alike]
    own = worst.wanted / len(worst.cards)
    alone = min(_alone(card, machine) for card in worst.cards)
    how = "capable" if worst.link.capable_Bps else "trained"
    where = spans(card.id for card in worst.cards)
    also = (
        f" The same holds for {listed(spans(card.id for card in u.cards) for u in alike[1:])}."
        if len(alike) > 1
        else ""
    )
    rest = [f"{spans(card.id for card in u.cards)}: {show(u.each, 'B/s')} each" for u in others]
    yield warning(
        "gpus-share-uplink",
        devices=(card.id for u in shared for card in u.cards),
        observation=f"{count(len(worst.cards), 'GPU')} ({where}) share one uplink of {show(worst.rate, 'B/s')}: "
        f"{show(worst.each, 'B/s')} each if all copy at once, {show(alone, 'B/s')} alone.{also}"
        + (f" Others: {listed(rest)}." if rest else ""),
        diagnosis="Copies between host and several of these GPUs slow each other down, and so do storage and network "
        "traffic that goes through host memory. Copies between GPUs below one switch do not use its uplink.",
        remedy="Give ranks that copy much to or from the host GPUs on different uplinks; keep data on the GPUs; "
        "measure host copies of one GPU and of all at once",
        evidence="; ".join(
            [
                listed(f"{u.link.a} - {u.link.b}: {show(u.rate, 'B/s')} {how} ({u.link.source})" for u in alike),
                f"{how} links of the GPUs: {show(own, 'B/s')} each",
            ]
        ),
    )


def shared_uplinks(machine: Machine) -> list[Uplink]:
    """For each GPU, the uplink with the lowest rate per GPU, if below that of its link; in the order of the machine."""
    above = {link.b: link for link in machine.links if link.kind == "pcie"}
    below: dict[str, dict[str, tuple[Device, float]]] = {}
    for gpu in gpus(machine):
        own = _rate(above.get(gpu.id))
        if own is None:
            continue
        # Functions of one PCI device (a GPU's virtual functions) are one card behind one link.
        slot = gpu.id if gpu.pci is None else gpu.pci.rpartition(".")[0]
        for bridge in machine.ancestors(gpu):
            if bridge.kind is DeviceKind.BRIDGE and bridge.id in above and not faces_down(machine, bridge):
                below.setdefault(bridge.id, {}).setdefault(slot, (gpu, own))
    uplinks = [_uplink(above[bridge], cards) for bridge, cards in below.items() if len(cards) > 1]
    narrow = [u for u in uplinks if u is not None and u.rate < _NARROWER * u.wanted]
    least: dict[str, Uplink] = {}
    for uplink in narrow:
        for card in uplink.cards:
            # Of equal ones, the outermost: block diagrams show that one.
            if card.id not in least or uplink.each <= least[card.id].each:
                least[card.id] = uplink
    kept = {id(uplink) for uplink in least.values()}
    return [uplink for uplink in narrow if id(uplink) in kept]


def _alone(card: Device, machine: Machine) -> float:
    """B/s per direction of a GPU that copies alone: the lowest rate of the links on its path."""
    above = {link.b: link for link in machine.links if link.kind == "pcie"}
    rates = [_rate(above.get(device.id)) for device in (card, *machine.ancestors(card))]
    return min(rate for rate in rates if rate is not None)


def _uplink(link: Link, cards: Mapping[str, tuple[Device, float]]) -> Uplink | None:
    rate = _rate(link)
    if rate is None:
        return None
    return Uplink(link, rate, sum(own for _, own in cards.values()), tuple(gpu for gpu, _ in cards.values()))


def _rate(link: Link | None) -> float | None:
    """The capability of the link, or its trained rate if only that is known."""
    return None if link is None else link.capable_Bps or link.trained_Bps or None
