"""Rules about what several GPUs share on their path to the processor: uplinks of switches; and about copies between the
host and several GPUs: simultaneous copies compared with one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.analysis.device_copies import WORDS, HostCopy, host_copies
from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.devices import coherent_gpus, gpus, spans
from seatrial.analysis.rules.finding import Case, Subject, again, listed, rule, warning
from seatrial.model.benchmark.benchmark import Direction
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding
from seatrial.model.machine.links import faces_down, way_up
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.spelling import count, settings, show, show_percent, show_range

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
    coherent = coherent_gpus(machine)
    for gpu in gpus(machine):
        own = _rate(above.get(gpu.id))
        if own is None or gpu.id in coherent:  # which copies over another link
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


_LEAST_LOSS = 0.15
"""A smaller loss of simultaneous copies is not reported: healthy hosts lose a few percent at their memory. The interval
of the rate at once must be below that of the rate alone by at least this share."""
_FILLED = 0.6
"""An uplink that carries at least this share of its rate is full, including headers: see `links`."""


class _Device(Frozen):
    """A device's rates in B/s for one direction and setting: median and interval, alone and at once."""

    id: str
    alone: FigureResult
    at_once: FigureResult

    @property
    def is_slowed(self) -> bool:
        """Whether other copies clearly slow it down."""
        return _ends(self.at_once)[1] < (1 - _LEAST_LOSS) * _ends(self.alone)[0]


class _Comparison(Frozen):
    """All devices for one direction and setting. `copy` is one of the simultaneous copies: how it was measured."""

    direction: Direction
    copy: HostCopy
    devices: tuple[_Device, ...]

    def loss(self, ids: Sequence[str]) -> float:
        """The share of the summed rate alone that is lost at once, by medians."""
        own = [device for device in self.devices if device.id in ids]
        return 1 - sum(d.at_once.median for d in own) / sum(d.alone.median for d in own)


class _Slowed(Frozen):
    """The GPUs behind one uplink that slow each other down, in the direction with the largest loss."""

    uplink: Uplink
    worst: _Comparison

    @property
    def ids(self) -> list[str]:
        """The GPUs behind the uplink."""
        return [card.id for card in self.uplink.cards]

    @property
    def own(self) -> list[_Device]:
        """The rates of those that were measured."""
        return [device for device in self.worst.devices if device.id in self.ids]

    @property
    def loss(self) -> float:
        """The share of their summed rate alone that is lost at once."""
        return self.worst.loss(self.ids)

    @property
    def diagnosis(self) -> str:
        """Whether the uplink explains the loss."""
        link, rate = self.uplink.link, self.uplink.rate
        ways = 2 if self.worst.direction is Direction.BOTH else 1
        filled = sum(device.at_once.median for device in self.own) / ways / rate
        how = "can carry" if link.capable_Bps else "is trained for"
        shared = f"{count(len(self.ids), 'GPU')} share the uplink {link.a} - {link.b}, which {how} {show(rate, 'B/s')} "
        shared += "per direction"
        if filled >= _FILLED:
            return f"{shared}. Together they fill {show_percent(filled)} of it: the uplink is the bottleneck."
        return (
            f"{shared}. Together they fill only {show_percent(filled)} of it, so something else slows them down "
            "as well: memory on the far socket, IOMMU translation, or an uplink that slows down under load."
        )


@rule(Subject.COPIES)
def copies_slow_each_other(case: Case) -> Iterator[Finding]:
    """Fires if GPUs that copy at once reach much less than one at a time, and names what they share.

    GPUs behind narrow uplinks are one finding; those that no uplink of the graph explains are another.
    """
    compared = _comparisons(case)
    if not compared:
        return
    slowed = [
        _Slowed(uplink, worst)
        for uplink in shared_uplinks(case.machine)
        if (worst := _worst(compared, [card.id for card in uplink.cards])) is not None
    ]
    if slowed:
        yield _of_uplinks(sorted(slowed, key=lambda one: -one.loss), compared)
    explained = {name for one in slowed for name in one.ids}
    rest = [device.id for device in compared[0].devices if device.id not in explained]
    worst = _worst(compared, rest)
    if worst is not None:
        slowed_too = [device.id for device in worst.devices if device.id in rest and device.is_slowed]
        yield _unexplained(case.machine, worst, slowed_too)


def _comparisons(case: Case) -> list[_Comparison]:
    """For each direction, the comparison with the largest copies among those measured both alone and at once."""
    copies = [copy for copy in host_copies(case.machine, case.results, case.seen) if copy.id is not None]
    largest: dict[str, tuple[float, _Comparison]] = {}
    for own in grouped(((copy.direction, copy.settings), copy) for copy in copies).values():
        alone, at_once = ({copy.id: copy for copy in own if copy.at_once is together} for together in (False, True))
        both = [name for name in at_once if name in alone]
        if len(both) < 2:
            continue
        some = at_once[both[0]]
        devices = tuple(_Device(name or "", alone[name].figure, at_once[name].figure) for name in both)
        size = some.figure.point.get("size_B", 0)
        rank = float(size) if isinstance(size, int | float) else 0.0
        if rank >= largest.get(some.direction, (0.0, None))[0]:
            largest[some.direction] = rank, _Comparison(some.direction, some, devices)
    return [comparison for _, comparison in largest.values()]


def _worst(compared: Sequence[_Comparison], ids: Sequence[str]) -> _Comparison | None:
    """The direction in which these devices lose most, if at least two are slowed; one way preferred over both."""
    able = [
        comparison
        for comparison in compared
        if sum(device.is_slowed for device in comparison.devices if device.id in ids) > 1
    ]
    return max(able, key=lambda each: (each.direction is not Direction.BOTH, each.loss(ids)), default=None)


def _ends(figure: FigureResult) -> tuple[float, float]:
    """The 95 % interval of the median; with too few repeats, their range."""
    values = [repeat.value for repeat in figure.repeats] or [figure.median]
    return figure.ci95 or (min(values), max(values))


def _of_uplinks(slowed: Sequence[_Slowed], compared: Sequence[_Comparison]) -> Finding:
    first, others = slowed[0], slowed[1:]
    likewise = listed(
        f"{spans(one.ids)} ({show_percent(1 - one.loss)}, over {one.uplink.link.a} - {one.uplink.link.b})"
        for one in others
    )
    return warning(
        "copies-share-uplink",
        devices=(name for one in slowed for name in one.ids),
        observation=_observed(first.worst, first.own) + (f" Likewise {likewise}." if others else ""),
        diagnosis=first.diagnosis,
        remedy="Give ranks that copy much to or from the host GPUs on different uplinks, and keep data on the GPUs; if "
        "the board has slots with separate uplinks, use those",
        evidence=f"{_evidence(first.worst, first.own)}; uplink: {first.uplink.link.source}"
        + _others(first.worst, compared, first.ids),
        loss=first.loss,
    )


def _unexplained(machine: Machine, worst: _Comparison, ids: Sequence[str]) -> Finding:
    own = [device for device in worst.devices if device.id in ids]
    if _is_tree_known(machine, ids):
        diagnosis = (
            "No PCIe link that all of them share is narrower than their links together, so the bottleneck is further "
            "up: the memory of one NUMA node, the link between sockets, a root complex, an IOMMU."
        )
        remedy = "Let each GPU copy from memory of its local NUMA node (see the bindings), and measure again: "
    else:
        diagnosis = (
            "The bottleneck is unknown: no source reports the PCIe tree above all of these GPUs with its link speeds. "
            "Possible causes: a narrow uplink of a switch, the memory of one NUMA node, the link between sockets."
        )
        remedy = "Provide the PCIe tree: `sudo lspci -vv > lspci.txt` and `seatrial check --from "
        remedy += "lspci-vv=lspci.txt --results DIR`; then measure again: "
    return warning(
        "copies-slow-each-other",
        devices=(device.id for device in own),
        observation=_observed(worst, own),
        diagnosis=diagnosis,
        remedy=f"{remedy}`{again(machine, worst.copy.result)}`",
        evidence=_evidence(worst, own),
        loss=worst.loss(ids),
    )


def _is_tree_known(machine: Machine, ids: Sequence[str]) -> bool:
    found = [machine.device(name) for name in ids]
    return all(device is not None and len(way_up(machine, device)) > 1 for device in found)


def _observed(worst: _Comparison, own: Sequence[_Device]) -> str:
    alone, at_once = sum(d.alone.median for d in own), sum(d.at_once.median for d in own)
    return (
        f"{spans(device.id for device in own)} reach {show(at_once, 'B/s')} in total when they copy at the same time "
        f"({WORDS[worst.direction]}), {show_percent(at_once / alone)} of the {show(alone, 'B/s')} that they reach "
        "one at a time."
    )


def _evidence(worst: _Comparison, own: Sequence[_Device]) -> str:
    figure = worst.copy.figure
    point: Mapping[str, object] = {name: value for name, value in figure.point.items() if name != "device"}
    where = f" ({settings({name: figure.point[name] for name in point}, ', ')})" if point else ""
    rates = (
        f"{device.id}: {show_range(*_ends(device.at_once), 'B/s')} at once, "
        f"{show_range(*_ends(device.alone), 'B/s')} alone"
        for device in own
    )
    return f"{worst.copy.result.experiment.benchmark}{where}: {listed(rates)}"


def _others(worst: _Comparison, compared: Sequence[_Comparison], ids: Sequence[str]) -> str:
    shares = [f"{WORDS[each.direction]} {show_percent(1 - each.loss(ids))}" for each in compared if each is not worst]
    return f"; at once over alone in other directions: {', '.join(shares)}" if shares else ""
