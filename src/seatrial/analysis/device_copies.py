"""Copies between the host and its devices, and between devices, as measured: figures by the devices of the machine's
graph.

A backend counts devices in an order of its own; the records' notes say at which PCI address each of them is. This is
the place that knows which figures of which benchmarks are copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.host_links import gpu_at, pci_address
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.parameter import Value
from seatrial.model.sample import point_key

Seen = Mapping[tuple[str, int], Mapping[str, Any]]

HOST_TO_DEVICE, DEVICE_TO_HOST, BOTH = "h2d", "d2h", "both"
WORDS = {HOST_TO_DEVICE: "host to device", DEVICE_TO_HOST: "device to host", BOTH: "both ways at once"}
_BUS_SPEED = {"download": HOST_TO_DEVICE, "readback": DEVICE_TO_HOST}
_TOGETHER, _ALL = "_together", "_all"


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device: `number` as the backend counts, `id` in the machine's graph (None where it is not there)."""

    backend: str
    number: int
    name: str
    id: str | None

    @property
    def label(self) -> str:
        """As the drawing names it; else by its number."""
        return self.id or f"device {self.number}"


@dataclass(frozen=True, slots=True)
class HostCopy:
    """The rate of copies between host and `device` (None: the sum over all of the experiment), alone or while others
    copy too. `settings` are those that must be alike to compare."""

    device: DeviceName | None
    direction: str
    at_once: bool
    figure: FigureResult
    result: ExperimentResult
    settings: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class PeerRates:
    """A figure over pairs of devices: (row, column) -> the figure from the row's device to the column's."""

    figure: str
    devices: tuple[DeviceName, ...]
    values: Mapping[tuple[int, int], FigureResult]
    result: ExperimentResult
    is_direct: bool
    """Whether devices were allowed to reach each other's memory."""

    @property
    def title(self) -> str:
        """What was measured between which, in words."""
        between = "GPUs" if all(device.id for device in self.devices) else "devices"
        return f"Copies between {between}: {WORDS.get(self.figure, self.figure)}"


def devices_of(machine: Machine, result: ExperimentResult, seen: Seen) -> Mapping[int, DeviceName]:
    """Number -> device, of the devices that the last repeat behind an experiment's figures notes."""
    repeats = [repeat.repeat for figure in result.figures[:1] for repeat in figure.repeats]
    told = (_noted(seen.get((result.id, repeat), {})) for repeat in reversed(repeats))
    facts: Sequence[Mapping[str, Any]] = next(filter(None, told), [])
    by_rank = _by_rank(machine, facts)
    found: dict[int, DeviceName] = {}
    for each in facts:
        number, address = each.get("index"), str(each.get("pci") or "")
        if isinstance(number, int):
            gpu = gpu_at(machine, address)
            own = gpu.id if gpu is not None else by_rank.get(pci_address(address) or "")
            found[number] = DeviceName(str(each.get("backend", "")), number, str(each.get("name", "")), own)
    return found


def _noted(seen: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    notes = seen.get("notes")
    devices = notes.get("devices") if isinstance(notes, Mapping) else None
    return [each for each in devices if isinstance(each, Mapping)] if isinstance(devices, list) else []


def _by_rank(machine: Machine, facts: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """PCI address -> GPU, where the graph comes from a matrix that knows no addresses: `nvidia-smi` counts GPUs by
    address, so with all of them told the order says which is which."""
    gpus = machine.of_kind(DeviceKind.GPU)
    addresses = sorted(filter(None, (pci_address(str(each.get("pci") or "")) for each in facts)))
    if len(set(addresses)) != len(gpus) or any(gpu.pci is not None for gpu in gpus):
        return {}
    return dict(zip(addresses, (gpu.id for gpu in gpus), strict=True))


def host_copies(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> tuple[HostCopy, ...]:
    """All of them, in the order of the results."""
    found: list[HostCopy] = []
    for result in results:
        if result.experiment.benchmark in ("gpu.transfer", "gpu.bus-speed") and result.figures:
            devices = devices_of(machine, result, seen)
            read = _transfer if result.experiment.benchmark == "gpu.transfer" else _bus_speed
            found += (copy for figure in result.figures for copy in read(result, figure, devices))
    return tuple(found)


def _transfer(result: ExperimentResult, figure: FigureResult, devices: Mapping[int, DeviceName]) -> Iterator[HostCopy]:
    stem = figure.name.removesuffix(_TOGETHER).removesuffix(_ALL)
    if stem not in WORDS:
        return
    device = None if figure.name.endswith(_ALL) else _device(result, figure, devices)
    if device is not None or figure.name.endswith(_ALL):
        yield HostCopy(device, stem, figure.name != stem, figure, result, _settings(result, figure))


def _bus_speed(result: ExperimentResult, figure: FigureResult, devices: Mapping[int, DeviceName]) -> Iterator[HostCopy]:
    direction = _BUS_SPEED.get(figure.name.removesuffix(_ALL))
    if direction is None:
        return
    is_all = figure.name.endswith(_ALL)
    device = None if is_all else _device(result, figure, devices)
    if device is not None or is_all:
        at_once = result.experiment.parameters.get("devices") != 1
        yield HostCopy(device, direction, at_once, figure, result, _settings(result, figure))


def _device(result: ExperimentResult, figure: FigureResult, devices: Mapping[int, DeviceName]) -> DeviceName | None:
    number = figure.point.get("device", result.experiment.parameters.get("device"))
    if not isinstance(number, int):
        return None
    return devices.get(number) or DeviceName(str(result.experiment.parameters.get("backend", "")), number, "", None)


_OF_THE_DEVICES = frozenset({"mode", "device", "devices"})


def _settings(result: ExperimentResult, figure: FigureResult) -> tuple[tuple[str, Value], ...]:
    """What copies must have in common to be compared, whichever devices they are of."""
    settings = {"benchmark": result.experiment.benchmark, **result.experiment.parameters, **figure.point}
    environment = result.experiment.environment or ""
    kept = {name: value for name, value in settings.items() if name not in _OF_THE_DEVICES}
    return point_key({**kept, "environment": environment})


def peer_rates(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> tuple[PeerRates, ...]:
    """The matrices of gpu.p2p, one for each figure of each experiment."""
    found: list[PeerRates] = []
    for result in results:
        if result.experiment.benchmark != "gpu.p2p":
            continue
        by_name: dict[str, dict[tuple[int, int], FigureResult]] = {}
        for figure in result.figures:
            source, target = figure.point.get("source"), figure.point.get("target")
            if isinstance(source, int) and isinstance(target, int):
                by_name.setdefault(figure.name, {})[source, target] = figure
        known = devices_of(machine, result, seen)
        backend = str(result.experiment.parameters.get("backend", ""))
        is_direct = result.experiment.parameters.get("p2p", "on") == "on"
        for name, figures in by_name.items():
            numbers = sorted({number for pair in figures for number in pair})
            devices = tuple(known.get(n) or DeviceName(backend, n, "", None) for n in numbers)
            place = {number: at for at, number in enumerate(numbers)}
            values = {(place[a], place[b]): figure for (a, b), figure in figures.items()}
            found.append(PeerRates(name, devices, values, result, is_direct))
    return tuple(found)
