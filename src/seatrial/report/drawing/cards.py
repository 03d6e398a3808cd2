"""Devices -> cards: one per device, one for the functions of an adapter, one for many equal devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Link
from seatrial.model.spelling import count, few_names, show
from seatrial.report.drawing.geometry import clean, model_name, several
from seatrial.report.drawing.scene import Card, Note, Rate, Tone, rate_of

ENDPOINTS = frozenset({DeviceKind.GPU, DeviceKind.SWITCH, DeviceKind.NIC, DeviceKind.NVME, DeviceKind.BLOCK})
_DISKS = frozenset({DeviceKind.NVME, DeviceKind.BLOCK})
_NOUNS = {
    DeviceKind.GPU: "GPU",
    DeviceKind.SWITCH: "NVSwitch",
    DeviceKind.NIC: "adapter",
    DeviceKind.NVME: "NVMe disk",
    DeviceKind.BLOCK: "disk",
}
_PLURALS = {DeviceKind.SWITCH: "NVSwitches"}
_ALONE = {DeviceKind.GPU: 16, DeviceKind.NIC: 8, DeviceKind.SWITCH: 1, DeviceKind.NVME: 1, DeviceKind.BLOCK: 1}
"""Up to this number of equal devices in one box, each gets a separate card."""
_MOST_CARDS = 18
_ORDER = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.SWITCH, DeviceKind.NVME, DeviceKind.BLOCK)


class Endpoint(Frozen):
    """Devices behind one link: one, or the functions of one adapter. `chain` is the path to it, the nearest link
    last."""

    devices: tuple[Device, ...]
    chain: tuple[Link, ...] = ()

    @property
    def kind(self) -> DeviceKind:
        """The kind of all of them."""
        return self.devices[0].kind


class CardMaker:
    """Makes the cards of one machine. `notes` are extra lines per device; `is_crowded` merges all of one kind."""

    def __init__(
        self,
        affinity: Iterable[Affinity] = (),
        notes: dict[str, list[Note]] | None = None,
        *,
        has_measured: bool = False,
        is_crowded: bool = False,
    ) -> None:
        self._affinity = {entry.device: entry for entry in affinity}
        self._notes = notes or {}
        self._has_measured = has_measured
        self._is_crowded = is_crowded

    def rate(self, chain: Sequence[Link]) -> Rate:
        """The rate of the path along these links."""
        return rate_of(chain, has_measured=self._has_measured)

    def cards(self, endpoints: Sequence[Endpoint]) -> tuple[Card, ...]:
        """The cards of one box: GPUs, adapters, switches, disks; many equal devices become one card."""
        cards: list[Card] = []
        for kind in _ORDER:
            groups: dict[object, list[Endpoint]] = {}
            mine = [endpoint for endpoint in endpoints if endpoint.kind is kind]
            for endpoint in mine:
                groups.setdefault(self._group_key(endpoint), []).append(endpoint)
            for endpoint in mine:  # a group where its first member is; the others in their order
                group = groups[self._group_key(endpoint)]
                if len(group) <= (1 if self._is_crowded else _ALONE[kind]):
                    cards.append(self._card(endpoint))
                elif endpoint is group[0]:
                    cards.append(self._merged(group))
        return gather(cards)

    def _group_key(self, endpoint: Endpoint) -> object:
        if self._is_crowded:
            return endpoint.kind
        device, rate = endpoint.devices[0], self.rate(endpoint.chain)
        notes = tuple(self._notes.get(device.id, ()))
        return len(endpoint.devices), _model(device), _size(device), rate.text, rate.also, rate.grade, notes

    def _card(self, endpoint: Endpoint) -> Card:
        first = endpoint.devices[0]
        names = [_name(device) for device in endpoint.devices]
        number = len(endpoint.devices)
        functions = "disks on one controller" if endpoint.kind in _DISKS else "functions of one adapter"
        lines = [Note(f"{number} {functions}", Tone.MUTED)] if number > 1 else []
        lines += [Note(model)] if (model := _model(first)) else []
        aliases = [alias for device in endpoint.devices for alias in device.aliases]
        if aliases and endpoint.kind is DeviceKind.NIC:
            lines.append(Note(f"({several(aliases)})", Tone.MUTED))
        lines += [Note(text) for text in _amounts(endpoint.devices)]
        lines += [line for device in endpoint.devices for line in self._notes.get(device.id, ())]
        rate = self.rate(endpoint.chain)
        hint = "; ".join(self._in_words(device, rate) for device in endpoint.devices[:12])
        ids = tuple(device.id for device in endpoint.devices)
        return Card(first.kind.value, several(names), tuple(lines), ids, hint, rate)

    def _merged(self, group: Sequence[Endpoint]) -> Card:
        devices = [device for endpoint in group for device in endpoint.devices]
        kind = group[0].kind
        title = f"{len(devices)} \N{MULTIPLICATION SIGN} {_PLURALS.get(kind, _NOUNS[kind])}"
        models = list(dict.fromkeys(model for device in devices if (model := _model(device))))
        rates = list(dict.fromkeys(self.rate(endpoint.chain) for endpoint in group))
        grades = {rate.grade for rate in rates}
        rate = rates[0] if len(rates) == 1 else Rate(grade=grades.pop() if len(grades) == 1 else Rate().grade)
        lines = [Note(several([_name(device) for device in devices]))]
        lines += [Note(models[0])] if len(models) == 1 else [Note(f"{len(models)} models")] if models else []
        lines += [Note(text) for text in _amounts(devices)]
        lines += self._notes.get(devices[0].id, []) if not self._is_crowded else []
        if len(rates) > 1:
            low = sum(bool(rate_of_one.also) or rate_of_one.grade.value == "low" for rate_of_one in rates)
            tone = Tone.WARNING if low else Tone.MUTED
            lines.append(Note("links differ" + (", some trained low" if low else ""), tone))
        hint = f"{title}: {few_names([clean(device.id) for device in devices], 64)}"
        ids = tuple(device.id for device in devices)
        return Card(kind.value, title, tuple(lines), ids, hint, rate)

    def _in_words(self, device: Device, rate: Rate) -> str:
        affinity = self._affinity.get(device.id)
        numa = device.numa if device.numa is not None else affinity.numa if affinity is not None else None
        words = (
            f"{_NOUNS[device.kind]} {clean(device.id)}",
            clean(device.name) if device.name not in ("", device.id) else None,
            model if (model := _model(device)) and model not in device.name else None,
            f"also {', '.join(clean(alias) for alias in device.aliases[:4])}" if device.aliases else None,
            f"PCI {clean(device.pci)}" if device.pci else None,
            f"NUMA node {numa}" if numa is not None else None,
            f"link {rate.text}" if rate.text else None,
            *rate.also,
        )
        return ", ".join(word for word in words if word)


def merge_functions(endpoints: Iterable[Endpoint]) -> list[Endpoint]:
    """Merge adapters and disks of the same PCI slot: they share its link."""
    merged: list[Endpoint] = []
    places: dict[tuple[DeviceKind, str], int] = {}
    for endpoint in endpoints:
        slot = (endpoint.devices[0].pci or "").rpartition(".")[0]
        if endpoint.kind not in (DeviceKind.NIC, *_DISKS) or not slot:
            merged.append(endpoint)
            continue
        place = places.setdefault((endpoint.kind, slot), len(merged))
        if place == len(merged):
            merged.append(endpoint)
        else:
            merged[place] = replace(merged[place], devices=merged[place].devices + endpoint.devices)
    return merged


def _name(device: Device) -> str:
    """The OS name of a disk; the id of a GPU or adapter, as in the matrix, or of a disk that is named by its product
    only."""
    is_product = device.name in (device.facts.text("pci_name"), device.facts.text("model_name"))
    return device.name if device.kind in _DISKS and device.name and not is_product else device.id


def _model(device: Device) -> str:
    facts = device.facts
    known = (facts.text("model_name"), facts.text("pci_name"), device.name)
    name = next((text for text in known if text and text not in (device.id, *device.aliases)), "")
    if device.kind in (DeviceKind.NIC, *_DISKS) and name not in known[:2]:
        return ""
    return model_name(name) if name else ""


def _size(device: Device) -> float | None:
    return device.facts.number("size") if device.kind in _DISKS else None


def _amounts(devices: Sequence[Device]) -> list[str]:
    """Sizes of disks, and the rate and state of an adapter's ports."""
    sizes = [size for device in devices if (size := _size(device)) is not None]
    amounts: list[str] = []
    if sizes:
        same = max(sizes) - min(sizes) <= 0.01 * max(sizes)
        each = " each" if len(devices) > 1 else ""
        amounts.append(show(sizes[0], "B") + each if same else f"{show(min(sizes), 'B')} to {show(max(sizes), 'B')}")
    if devices[0].kind is DeviceKind.NIC:
        rates = {device.facts.number("rate") for device in devices}
        states = {device.facts.text("state") for device in devices}
        if len(rates) == 1 and (rate := rates.pop()):
            amounts.append(f"port {show(rate, 'B/s')}")
        if len(states) == 1 and (state := states.pop()) not in (None, "", "up", "ACTIVE"):
            amounts.append(clean(state or ""))
    return amounts


def _rest(cards: Sequence[Card]) -> Card:
    devices = tuple(device for card in cards for device in card.devices)
    hint = f"also here: {few_names([clean(device) for device in devices], 64)}"
    return Card("rest", f"and {count(len(devices), 'more device')}", (Note(several(devices)),), devices, hint)


def gather(cards: Sequence[Card]) -> tuple[Card, ...]:
    """The cards; beyond a maximum, the rest as one card."""
    return tuple(cards) if len(cards) <= _MOST_CARDS else (*cards[: _MOST_CARDS - 1], _rest(cards[_MOST_CARDS - 1 :]))
