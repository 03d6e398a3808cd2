"""The I/O parts of all surveys, each once, with the rules for identifying a device in several sources.

* PCI functions are identified by address.
* Named devices of one kind are the same if they share a name or an alias (NIC0 of a matrix's legend is mlx5_1).
* GPUs that a tool only numbers (GPU3 of nvidia-smi) are joined to PCI functions by the driver's number (nvml3), or
  else by the order of addresses, which nvidia-smi uses, if the number of GPUs is the same. Otherwise both are kept and
  the mismatch is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.machine.survey import NamedPart, PciPart, Survey, merge_facts
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind

_UNKNOWN_CLASS = "0000"
_DRIVER_NUMBERS = ("nvml", "rsmi")  # hwloc's names of GPUs, by the number of the vendor's management library


_OF_FIRST = ("parent", "cpus", "capable", "trained", "trained_Bps")  # What the first source with it states.


class IoParts(Frozen):
    """Every PCI part by address, every named part once (in the order of first mention), and the mismatches."""

    pci: Mapping[str, PciPart]
    named: tuple[NamedPart, ...]
    unread: tuple[str, ...] = ()


def join_io_parts(surveys: Sequence[Survey]) -> IoParts:
    """Join the parts of any number of surveys, the most trusted first."""
    pci = _joined_pci(surveys)
    drivers = _addresses_by_driver_number(surveys)
    named = _Named()
    unread: list[str] = []
    for survey in surveys:
        parts, problem = _with_addresses(survey, pci, drivers)
        unread += [problem] if problem else []
        for part in parts:
            named.add(part)
    return IoParts(pci, tuple(named.parts), tuple(unread))


def _joined_pci(surveys: Sequence[Survey]) -> dict[str, PciPart]:
    joined: dict[str, PciPart] = {}
    parents: dict[str, list[str]] = {}
    for survey in surveys:
        for part in survey.pci_parts:
            if part.parent is not None:
                parents.setdefault(part.address, []).append(part.parent)
            known = joined.get(part.address)
            joined[part.address] = part if known is None else _join_pci(known, part)
    return {
        address: replace(part, parent=_nearest(parents.get(address, ()), joined)) for address, part in joined.items()
    }


def _join_pci(known: PciPart, part: PciPart) -> PciPart:
    has_class = known.class_id != _UNKNOWN_CLASS
    first = {name: getattr(known, name) or getattr(part, name) for name in _OF_FIRST}
    return replace(
        known,
        **first,
        class_id=known.class_id if has_class else part.class_id,
        numa=known.numa if known.numa is not None else part.numa,
        is_condensed=known.is_condensed and part.is_condensed,
        kind=(known.kind or part.kind) if has_class or part.class_id == _UNKNOWN_CLASS else part.kind,
        facts=merge_facts(known.facts, part.facts),
    )


def _nearest(parents: Sequence[str], pci: Mapping[str, PciPart]) -> str | None:
    """The innermost of the parents in all sources: NCCL omits bridges that other sources show."""
    innermost = (parent for parent in parents if set(parents) - {parent} <= _above(parent, pci))
    return next(innermost, parents[0] if parents else None)


def _above(address: str, pci: Mapping[str, PciPart]) -> set[str]:
    above: set[str] = set()
    at = pci[address].parent if address in pci else None
    while at is not None and at not in above:
        above.add(at)
        at = pci[at].parent if at in pci else None
    return above


def _addresses_by_driver_number(surveys: Sequence[Survey]) -> dict[int, str]:
    """GPU number of the vendor's library -> PCI address, from hwloc's names, if all sources agree."""
    numbers: dict[int, set[str]] = {}
    for survey in surveys:
        for part in survey.named_parts:
            is_driver = part.name.rstrip("0123456789") in _DRIVER_NUMBERS
            if part.kind is DeviceKind.GPU and is_driver and part.index is not None and part.pci is not None:
                numbers.setdefault(part.index, set()).add(part.pci)
    return {number: addresses.pop() for number, addresses in numbers.items() if len(addresses) == 1}


def _with_addresses(
    survey: Survey, pci: Mapping[str, PciPart], drivers: Mapping[int, str]
) -> tuple[list[NamedPart], str | None]:
    """The survey's named parts; its numbered GPUs get their addresses from other sources."""
    numbered = [p for p in survey.named_parts if p.kind is DeviceKind.GPU and p.pci is None and p.index is not None]
    if not numbered or not pci:
        return list(survey.named_parts), None
    vendors = {part.facts.text("vendor_id") for part in numbered}
    gpus = sorted(
        p.address
        for p in pci.values()
        if kind_of(p) is DeviceKind.GPU and (p.facts.text("vendor_id") or "") in (*vendors, "")
    )
    ordered = sorted(numbered, key=lambda part: part.index or 0)
    addresses: dict[str, str] = {}
    problem = None
    if all(part.index in drivers for part in numbered):
        addresses = {part.name: drivers[part.index or 0] for part in numbered}
    elif len(gpus) == len(numbered):
        addresses = {part.name: address for part, address in zip(ordered, gpus, strict=True)}
    elif gpus:
        problem = (
            f"{survey.source}: its {len(numbered)} GPUs were not matched with the {len(gpus)} that other sources find "
            "on PCI: the counts differ, and nothing else identifies them"
        )
    return [replace(part, pci=addresses.get(part.name, part.pci)) for part in survey.named_parts], problem


_NO_GPU_VENDORS = frozenset({"1a03", "102b", "126f", "18ca", "1234", "1013", "1af4", "15ad", "80ee", "1b36", "1414"})
"""Display controllers of management boards (ASPEED, Matrox, Silicon Motion, XGI) and of virtual machines (QEMU, Cirrus,
virtio, VMware, VirtualBox, Red Hat, Hyper-V): the PCI ID database, vendors."""

_MANAGEMENT_DISPLAYS = frozenset({("1002", "515e"), ("1002", "5969"), ("19e5", "1711")})
"""ATI ES1000, on server boards until about 2012; Huawei's iBMC."""
_IVSHMEM = ("1af4", "1110")
"""Memory that QEMU shares between guests, or with the host (docs/specs/ivshmem-spec.rst)."""
_NVIDIA = "10de"


def kind_of(part: PciPart) -> DeviceKind | None:
    """The kind of a PCI function, as its source states, else by class and vendor; None for functions not shown."""
    vendor = part.facts.text("vendor_id")
    if part.kind is not None:
        return part.kind
    if part.is_bridge:
        return DeviceKind.BRIDGE
    is_management = vendor in _NO_GPU_VENDORS or (vendor, part.facts.text("device_id")) in _MANAGEMENT_DISPLAYS
    if part.class_id[:2] in ("03", "12") and not is_management:  # display controller; processing accelerator
        return DeviceKind.GPU
    if part.class_id == "0502" or (vendor, part.facts.text("device_id")) == _IVSHMEM:  # CXL memory
        return DeviceKind.MEMORY
    if part.class_id == "0680" and vendor == _NVIDIA:  # the class of an NVSwitch is "bridge, other"
        return DeviceKind.SWITCH
    return None


class _Named:
    """Named parts, each once: parts of one kind are joined by a common name, GPUs also by a common address."""

    def __init__(self) -> None:
        self.parts: list[NamedPart] = []
        self._positions: dict[tuple[DeviceKind, str], int] = {}

    def add(self, part: NamedPart) -> None:
        """Add a part, or join it to the same part from another source."""
        position = next((self._positions[key] for key in _keys(part) if key in self._positions), None)
        if position is None:
            position = len(self.parts)
            self.parts.append(part)
        else:
            self.parts[position] = _join(self.parts[position], part)
        for key in _keys(self.parts[position]):
            self._positions.setdefault(key, position)


def _keys(part: NamedPart) -> list[tuple[DeviceKind, str]]:
    names = [name for name in (part.name, *part.aliases) if name]
    if part.pci is not None and (part.kind is DeviceKind.GPU or not names):
        names.append(f"@{part.pci}")
    return [(part.kind, name) for name in names]


def _join(known: NamedPart, part: NamedPart) -> NamedPart:
    """Both as one part. The label of a matrix becomes the name, other names become aliases."""
    name = part.name if part.is_label and not known.is_label else known.name or part.name
    names = dict.fromkeys((known.name, *known.aliases, part.name, *part.aliases))
    first, second = (part, known) if part.is_label and not known.is_label else (known, part)
    places = {
        field: getattr(second if getattr(first, field) is None else first, field)
        for field in ("numa", "cpus", "numa_nodes")
    }
    return replace(
        known,
        **places,
        name=name,
        pci=known.pci or part.pci,
        index=known.index if known.index is not None else part.index,
        is_label=known.is_label or part.is_label,
        aliases=tuple(other for other in names if other and other != name),
        facts=merge_facts(known.facts, part.facts),
    )
