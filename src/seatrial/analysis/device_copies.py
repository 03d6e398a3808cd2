"""Measured copies between the host and devices, and between devices, by the devices of the machine's graph.

Each backend numbers devices in its own order; the notes of records contain the PCI address of each.

Measured rates of links, from copies over them.

A link carries a copy in one direction at a time, so only figures of one direction count, the better of the two:

* the link of a GPU: its best copy to or from the host, alone or not;
* an uplink of several GPUs: the sum of simultaneous copies, or the best of one GPU alone, whichever is higher (not for
  a single GPU, whose own link has the same rate);
* a direct link between two GPUs: the best copy from one to the other with peer access; for links from a GPU to
  switches, its best copy to any other GPU, divided in proportion to their capabilities.

A machine with measured values for display: facts of kind `measured`, each with its experiment.

The discovered machine is never changed; this makes a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.direct_links import DIRECT_KINDS
from seatrial.analysis.grouped import grouped
from seatrial.analysis.roles import figures_with, role_of
from seatrial.model.benchmark.benchmark import Better, Direction, HostCopies, Role
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Fact, FactKind, Facts
from seatrial.model.machine.links import PCIE, direct_links, faces_down, gpu_at, pci_address
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.sample import point_key
from seatrial.model.spelling import settings
from seatrial.model.units import si_unit

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

    @property
    def id(self) -> str | None:
        """The device in the machine's graph; None if it is not in it, or this is a sum."""
        return None if self.device is None else self.device.id


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
                found.append(HostCopy(device, role.direction, at_once, figure, result, _settings(result, figure)))
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


_THE_DEVICE = frozenset({"backend", "device", "devices", "mode", "optimised", "largest_B", "numa_node"})
"""Settings omitted from the source of a fact about one device."""
_ONE_WAY = (Direction.HOST_TO_DEVICE, Direction.DEVICE_TO_HOST)


def with_link_rates(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> Machine:
    """A copy of the machine with measured rates on its links, or the machine itself if there are none."""
    copies = [copy for copy in host_copies(machine, results, seen) if copy.direction in _ONE_WAY]
    peers = [rates for rates in peer_rates(machine, results, seen) if rates.role is Role.PEER_COPY and rates.is_direct]
    if not copies and not peers:
        return machine
    of_devices = grouped((copy.id, copy.figure.median) for copy in copies)
    alone = {device: max(rates) for device, rates in of_devices.items() if device is not None}
    known = _Rates(alone, sums_at_once(copies), _best_of_pairs(peers))
    rates = ((link, known.of(machine, link)) for link in machine.links)
    links = tuple(link if rate is None else replace(link, measured_Bps=rate) for link, rate in rates)
    return replace(machine, links=links)


class _Rates(Frozen):
    """The best of each device alone, the rates of devices at once, and the best between two devices."""

    alone: Mapping[str, float]
    sums: Sequence[Mapping[str, float]]
    by_pair: Mapping[frozenset[str], float]

    def of(self, machine: Machine, link: Link) -> float | None:
        """The rate of a link."""
        if link.kind == PCIE:
            return self._to_host(machine, link)
        return self._direct(machine, link) if link.kind.lower() in DIRECT_KINDS else None

    def _to_host(self, machine: Machine, link: Link) -> float | None:
        device = machine.device(link.b)
        if device is None:
            return None
        if device.kind is DeviceKind.GPU:
            # Copies of a device with direct links to the processor use those.
            return None if direct_links(machine, device) else self.alone.get(device.id)
        if faces_down(machine, device):  # the device below has the same link
            return None
        gpus = [gpu for name in self.alone if (gpu := machine.device(name)) is not None]
        below = [gpu.id for gpu in gpus if any(above.id == link.b for above in machine.ancestors(gpu))]
        if len(below) < 2:
            return None
        together = (sum(group.get(gpu, 0.0) for gpu in below) for group in self.sums)
        return max(max(together, default=0.0), *(self.alone[gpu] for gpu in below))

    def _direct(self, machine: Machine, link: Link) -> float | None:
        ends = [machine.device(end) for end in (link.a, link.b)]
        gpus = [end.id for end in ends if end is not None and end.kind is DeviceKind.GPU]
        if len(gpus) == 2:
            return self.by_pair.get(frozenset(gpus))
        if len(gpus) != 1:
            return None
        (gpu,) = gpus
        if not any(end is not None and end.kind is DeviceKind.SWITCH for end in ends):
            return self.alone.get(gpu)
        best = max((rate for pair, rate in self.by_pair.items() if gpu in pair), default=None)
        share = _share_of_links(machine, link, gpu)
        return None if best is None or share is None else best * share


def copy_facts(machine: Machine, results: Sequence[ExperimentResult], seen: Seen) -> Mapping[str, Mapping[str, Fact]]:
    """GPU -> its best copies to and from the host, and both ways at once, as facts."""
    copies = [copy for copy in host_copies(machine, results, seen) if not copy.at_once]
    alone = grouped(((copy.id, copy.direction), copy) for copy in copies)
    found: dict[str, dict[str, Fact]] = {}
    for direction in Direction:
        name = f"{WORDS[direction].replace(' ', '_')}_measured"
        for (device, own), each in alone.items():
            if device is not None and own == direction:
                best = max(each, key=lambda copy: copy.figure.median)
                found.setdefault(device, {})[name] = measured_fact(best.figure, best.result, _THE_DEVICE)
    return found


def measured_fact(figure: FigureResult, result: ExperimentResult, without: frozenset[str] = frozenset()) -> Fact:
    """A figure as a fact, with the experiment behind it; `without` are settings to omit from its source."""
    parameters: Mapping[str, Value] = {**result.experiment.parameters, **figure.point}
    shown = settings({name: value for name, value in parameters.items() if name not in without}, ", ")
    source = f"{result.experiment.benchmark} {figure.name} ({shown}): median of {figure.n_repeats} repeats"
    return Fact(figure.median, source, FactKind.MEASURED, si_unit(figure.unit), volatile=True)


def sums_at_once(copies: Sequence[HostCopy]) -> list[Mapping[str, float]]:
    """Device -> its rate, for each direction and setting at which several devices copied at once."""
    groups = grouped(((copy.result.id, copy.direction, copy.settings), copy) for copy in copies if copy.at_once)
    rates = [{copy.id: copy.figure.median for copy in own if copy.id is not None} for own in groups.values()]
    return [own for own in rates if len(own) > 1]


def _best_of_pairs(peers: Sequence[PeerRates]) -> Mapping[frozenset[str], float]:
    pairs = (
        (rates.devices[a].id, rates.devices[b].id, figure)
        for rates in peers
        for (a, b), figure in rates.values.items()
        if a != b
    )
    known = grouped((frozenset((a, b)), figure.median) for a, b, figure in pairs if a is not None and b is not None)
    return {pair: max(rates) for pair, rates in known.items()}


def _share_of_links(machine: Machine, link: Link, gpu: str) -> float | None:
    """The share of a GPU's links to switches that one link has."""
    switches = {device.id for device in machine.of_kind(DeviceKind.SWITCH)}
    own = [other for other in machine.links if gpu in (other.a, other.b) and {other.a, other.b} & switches]
    rates = [other.capable_Bps or other.trained_Bps or 0.0 for other in own]
    mine = link.capable_Bps or link.trained_Bps
    if mine and all(rates):
        return mine / sum(rates)
    return 1.0 if len(own) == 1 else None


class _Shown(Frozen):
    """Role of the figure whose best value is shown as `fact`; `precision` is required if given."""

    fact: str
    role: Role
    precision: str | None = None


_SHOWN = (
    _Shown("memory_bandwidth_measured", Role.MEMORY_BANDWIDTH),
    _Shown("fp64_rate_measured", Role.FMA_RATE, "fp64"),
    _Shown("fp32_rate_measured", Role.FMA_RATE, "fp32"),
    _Shown("dgemm_measured", Role.MATRIX_PRODUCT, "fp64"),
    _Shown("sgemm_measured", Role.MATRIX_PRODUCT, "fp32"),
    _Shown("line_bounce_measured", Role.LINE_BOUNCE),
)


def with_measured(machine: Machine, results: Sequence[ExperimentResult], seen: Seen | None = None) -> Machine:
    """The machine with the best measured rates among its facts; those of a NUMA node or GPU at that device, and those
    of copies at their links. `seen` identifies the devices of GPU figures (see `Trial.seen`).
    """
    machine = with_link_rates(machine, results, seen or {})
    copies = copy_facts(machine, results, seen or {})
    found = [(shown.fact, node, fact) for shown in _SHOWN for node, fact in _best_by_node(shown, results)]
    whole = {name: fact for name, node, fact in found if node is None}
    by_node = {(name, node): fact for name, node, fact in found if node is not None}
    devices = tuple(_shown_device(device, by_node, copies.get(device.id, {})) for device in machine.devices)
    return replace(machine, devices=devices, facts=_with(machine.facts, whole))


def _shown_device(device: Device, by_node: dict[tuple[str, int], Fact], copies: Mapping[str, Fact]) -> Device:
    own = dict(copies)
    if device.kind is DeviceKind.NUMA:
        own |= {name: fact for (name, node), fact in by_node.items() if node == device.numa}
    return replace(device, facts=_with(device.facts, own)) if own else device


def _with(facts: Facts, more: dict[str, Fact]) -> Facts:
    return Facts({**facts.by_name, **{name: (fact,) for name, fact in more.items()}})


def _best_by_node(shown: _Shown, results: Sequence[ExperimentResult]) -> Iterator[tuple[int | None, Fact]]:
    best: dict[int | None, tuple[FigureResult, ExperimentResult]] = {}
    for result, figure in figures_with(results, shown.role):
        parameters = {**result.experiment.parameters, **figure.point}
        if shown.precision not in (None, parameters.get("precision")):
            continue
        number = parameters.get("node")
        node = number if isinstance(number, int) else None
        if node not in best or _is_better(figure, best[node][0]):
            best[node] = (figure, result)
    for node, (figure, result) in best.items():
        yield node, measured_fact(figure, result)


def _is_better(figure: FigureResult, other: FigureResult) -> bool:
    return figure.median > other.median if figure.better is Better.HIGHER else figure.median < other.median
