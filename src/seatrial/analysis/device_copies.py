"""Measured copies between the host and devices, and between devices, by the devices of the machine's graph.

Each backend numbers devices in its own order; the notes of records contain the PCI address of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.analysis.roles import figures_with, role_of
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.role import Direction, HostCopies, Role
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import gpu_at, pci_address
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.sample import point_key

Seen = Mapping[tuple[str, int], Mapping[str, Any]]

WORDS = {
    Direction.HOST_TO_DEVICE: "host to device",
    Direction.DEVICE_TO_HOST: "device to host",
    Direction.BOTH: "both ways at once",
}
_PEER_ROLES = (Role.PEER_COPY, Role.PEER_COPY_BOTH_WAYS, Role.PEER_LATENCY)


class DeviceName(Frozen):
    """A device: `number` in the backend, `id` in the machine's graph (None if it is not in it)."""

    backend: str
    number: int
    name: str
    id: str | None

    @property
    def label(self) -> str:
        """Its id as in the drawing, else its number."""
        return self.id or f"device {self.number}"


class HostCopy(Frozen):
    """The rate of copies between host and `device` (None: the sum over all devices of the experiment), alone or at the
    same time as others. Only copies with equal `settings` are comparable."""

    device: DeviceName | None
    direction: Direction
    at_once: bool
    figure: FigureResult
    result: ExperimentResult
    settings: tuple[tuple[str, Value], ...]


class PeerRates(Frozen):
    """A figure over pairs of devices: (row, column) -> the figure from the row's device to the column's."""

    figure: str
    role: Role
    devices: tuple[DeviceName, ...]
    values: Mapping[tuple[int, int], FigureResult]
    result: ExperimentResult
    is_direct: bool
    """Whether the devices had peer access."""

    @property
    def title(self) -> str:
        """The title of the matrix."""
        between = "GPUs" if all(device.id for device in self.devices) else "devices"
        what = WORDS[Direction.BOTH] if self.role is Role.PEER_COPY_BOTH_WAYS else self.figure
        return f"Copies between {between}: {what}"


def devices_of(machine: Machine, result: ExperimentResult, seen: Seen) -> Mapping[int, DeviceName]:
    """Number -> device, from the notes of the last repeat of an experiment."""
    repeats = [repeat.repeat for figure in result.figures[:1] for repeat in figure.repeats]
    notes = (_noted(seen.get((result.id, repeat), {})) for repeat in reversed(repeats))
    facts: Sequence[Mapping[str, Any]] = next(filter(None, notes), [])
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
    """PCI address -> GPU, if the graph comes from a matrix without addresses: `nvidia-smi` numbers GPUs by address, so
    the order identifies them if all are known."""
    gpus = machine.of_kind(DeviceKind.GPU)
    addresses = sorted(filter(None, (pci_address(str(each.get("pci") or "")) for each in facts)))
    if len(set(addresses)) != len(gpus) or any(gpu.pci is not None for gpu in gpus):
        return {}
    return dict(zip(addresses, (gpu.id for gpu in gpus), strict=True))


def host_copies(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> tuple[HostCopy, ...]:
    """The copies between host and devices, in the order of the results."""
    found: list[HostCopy] = []
    for result in results:
        roles = [(figure, role) for figure in result.figures if isinstance(role := role_of(result, figure), HostCopies)]
        devices = devices_of(machine, result, seen) if roles else {}
        for figure, role in roles:
            device = None if role.is_sum else _device(result, figure, devices)
            if device is not None or role.is_sum:
                at_once = role.at_once(result.experiment.parameters)
                settings = _settings(result, figure)
                found.append(HostCopy(device, role.direction, at_once, figure, result, settings))
    return tuple(found)


def _device(result: ExperimentResult, figure: FigureResult, devices: Mapping[int, DeviceName]) -> DeviceName | None:
    number = figure.point.get("device", result.experiment.parameters.get("device"))
    if not isinstance(number, int):
        return None
    return devices.get(number) or DeviceName(str(result.experiment.parameters.get("backend", "")), number, "", None)


_OF_THE_DEVICES = frozenset({"mode", "device", "devices"})


def _settings(result: ExperimentResult, figure: FigureResult) -> tuple[tuple[str, Value], ...]:
    """The settings that must be equal for a comparison, except those that select devices."""
    settings = {"benchmark": result.experiment.benchmark, **result.experiment.parameters, **figure.point}
    environment = result.experiment.environment or ""
    kept = {name: value for name, value in settings.items() if name not in _OF_THE_DEVICES}
    return point_key({**kept, "environment": environment})


def peer_rates(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> tuple[PeerRates, ...]:
    """The matrices of copies between devices, one for each figure of each experiment."""
    found: list[PeerRates] = []
    for result in results:
        by_role: dict[Role, dict[tuple[int, int], FigureResult]] = {}
        for role in _PEER_ROLES:
            for _, figure in figures_with([result], role):
                source, target = figure.point.get("source"), figure.point.get("target")
                if isinstance(source, int) and isinstance(target, int):
                    by_role.setdefault(role, {})[source, target] = figure
        known = devices_of(machine, result, seen) if by_role else {}
        backend = str(result.experiment.parameters.get("backend", ""))
        is_direct = result.experiment.parameters.get("p2p", "on") == "on"
        for role, figures in by_role.items():
            numbers = sorted({number for pair in figures for number in pair})
            devices = tuple(known.get(n) or DeviceName(backend, n, "", None) for n in numbers)
            place = {number: at for at, number in enumerate(numbers)}
            values = {(place[a], place[b]): figure for (a, b), figure in figures.items()}
            name = next(iter(figures.values())).name
            found.append(PeerRates(name, role, devices, values, result, is_direct))
    return tuple(found)
