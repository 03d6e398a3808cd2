"""Made-up nodes with GPUs, adapters, switches and NUMA nodes, for the tests of rules, bindings and layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from seatrial.model.machine.fact import Fact, Facts, FactValue
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Link, Machine, Path

GEN3_X16 = 15.753846e9


def facts(**values: FactValue) -> Facts:
    """Facts of one source."""
    return Facts({name: (Fact(value, "the test"),) for name, value in values.items()})


def cpu_tree(
    nodes: int = 2, cores: int = 4, threads: int = 2, *, packages: int | None = None, interleaved: bool = False
) -> tuple[Device, ...]:
    """`nodes` NUMA nodes of `cores` cores, over `packages` packages; CPUs numbered as Linux does (siblings last), over
    the nodes in turn where `interleaved`."""
    found: list[Device] = []
    packages = packages or nodes
    total = nodes * cores
    for node in range(nodes):
        package = node * packages // nodes
        if f"package-{package}" not in {device.id for device in found}:
            found.append(Device(f"package-{package}", DeviceKind.PACKAGE, "CPU"))
        found.append(Device(f"numa-{node}", DeviceKind.NUMA, f"numa-{node}", f"package-{package}", node))
        for core in range(cores):
            number = node * cores + core
            first = core * nodes + node if interleaved else number
            found.append(Device(f"core-{number}", DeviceKind.CORE, "core", f"numa-{node}", node))
            for cpu in (first + thread * total for thread in range(threads)):
                found.append(
                    Device(f"pu-{cpu}", DeviceKind.PU, "CPU", f"core-{number}", node, facts=facts(os_index=cpu))
                )
    return tuple(found)


def card(kind: DeviceKind, name: str, numa: int | None = None, parent: str | None = None, **told: FactValue) -> Device:
    """A GPU, adapter or disk whose id is `name`."""
    return Device(name, kind, name, parent, numa, facts=facts(**told))


def gpu(name: str, numa: int | None = None, parent: str | None = None, **told: FactValue) -> Device:
    """A GPU."""
    return card(DeviceKind.GPU, name, numa, parent, **told)


def nic(name: str, numa: int | None = None, **told: FactValue) -> Device:
    """An adapter."""
    return card(DeviceKind.NIC, name, numa, **told)


def bridge(address: str, parent: str | None = None, **told: FactValue) -> Device:
    """A host bridge ("0000:00") or a PCI bridge ("0000:00:01.0")."""
    return Device(f"pci-{address}", DeviceKind.BRIDGE, "bridge", parent, pci=address, facts=facts(**told))


def link(
    a: Device | str, b: Device | str, capable: float | None, trained: float | None, measured: float | None = None
) -> Link:
    """A PCIe link."""
    ends = [end if isinstance(end, str) else end.id for end in (a, b)]
    return Link(ends[0], ends[1], "pcie", capable, trained, "the test", measured)


def matrix(names: Sequence[str], classes: Mapping[tuple[str, str], str], other: str = "SYS") -> tuple[Path, ...]:
    """The paths of all pairs: "NV2" is class NV with two links; pairs that `classes` leaves out are `other`."""
    found: list[Path] = []
    for a, b in combinations(names, 2):
        told = classes.get((a, b), other)
        letters = told.rstrip("0123456789")
        found.append(Path(a, b, letters, int(told[len(letters) :]) if told != letters else None))
    return tuple(found)


def switched(gpus: int, uplink: float, own: float = GEN3_X16, switches: int = 1) -> Machine:
    """GPUs spread evenly below switches; every link of the way is described, as sysfs does, also by the ports."""
    devices: list[Device] = []
    links: list[Link] = []
    for number in range(switches):
        host, root = bridge(f"000{number}:00"), bridge(f"000{number}:00:01.0", f"pci-000{number}:00")
        upstream = bridge(f"000{number}:01:00.0", root.id)
        devices += [host, root, upstream]
        links += [link(host, root, own, own), link(root, upstream, uplink, uplink)]
        for place in range(gpus // switches):
            port = bridge(f"000{number}:02:{place:02x}.0", upstream.id)
            name = f"gpu-{number * (gpus // switches) + place}"
            pci = f"000{number}:{place + 3:02x}:00.0"
            below = Device(name, DeviceKind.GPU, name, port.id, pci=pci)
            devices += [port, below]
            links += [link(upstream, port, own, own), link(port, below, own, own)]
    return Machine("m", tuple(devices), links=tuple(links))


def beside(device: str, cpus: Sequence[int] | None, numa: int | None = None) -> Affinity:
    """The CPUs beside a device."""
    return Affinity(device, None if cpus is None else tuple(cpus), numa)
