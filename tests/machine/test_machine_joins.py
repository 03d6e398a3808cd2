"""Several sources make one machine: what is the same device, what two of them say, and what must not be joined."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seatrial.machine.assemble import assemble
from seatrial.machine.survey import CpuPart, FactBook, NamedPart, PciPart, PeerLink, Survey, SurveyLinkRate
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.machine import Device, DeviceKind, Machine, Path, PeerAccess


def said(**facts: str) -> Facts:
    book = FactBook()
    for name, value in facts.items():
        book.say(name, value, "test")
    return book.facts()


NVIDIA = said(vendor_id="10de")


def matrix(gpus: int = 2, nics: tuple[str, ...] = (), **named: str) -> Survey:
    """A matrix whose GPUs are NV4 to each other and SYS to adapters; `named` are the legend's other names."""
    labels = [f"GPU{n}" for n in range(gpus)]
    parts = [
        NamedPart(DeviceKind.GPU, label, index=n, is_label=True, facts=NVIDIA, numa=n % 2, cpus=frozenset({n, n + 8}))
        for n, label in enumerate(labels)
    ]
    parts += [
        NamedPart(DeviceKind.NIC, nic, is_label=True, aliases=(named[nic],) if nic in named else ()) for nic in nics
    ]
    ends = [*labels, *nics]
    paths = [
        Path(a, b, *(("NV", 4) if b.startswith("GPU") else ("SYS", None)))
        for i, a in enumerate(ends)
        for b in ends[i + 1 :]
    ]
    return Survey("nvidia-smi topo -m", named_parts=tuple(parts), paths=tuple(paths))


def bus(*gpus: str, nics: tuple[tuple[str, str], ...] = (), index: dict[str, int] | None = None) -> Survey:
    """A PCI tree with one host bridge, a port above each function, and the operating system's names of adapters."""
    parts = [PciPart("0000:00", "")]
    named = [NamedPart(DeviceKind.NIC, name, pci=address) for address, name in nics]
    for number, address in enumerate((*gpus, *(address for address, _ in nics))):
        port = f"0000:00:{number + 1:02x}.0"
        parts.append(PciPart(port, "0604", "0000:00"))
        is_gpu = address in gpus
        parts.append(
            PciPart(address, "0302" if is_gpu else "0207", port, facts=NVIDIA if is_gpu else said(vendor_id="15b3"))
        )
    for address, number in (index or {}).items():
        named.append(NamedPart(DeviceKind.GPU, f"nvml{number}", pci=address, index=number))
    return Survey("hwloc", pci_parts=tuple(parts), named_parts=tuple(named))


def shown(machine: Machine) -> list[tuple[str, str | None]]:
    return [(d.id, d.pci) for d in machine.devices if d.kind in (DeviceKind.GPU, DeviceKind.NIC)]


def classes(machine: Machine) -> dict[tuple[str, str], tuple[str | None, int | None]]:
    return {(path.a, path.b): (path.path_class, path.links) for path in machine.paths}


def device(machine: Machine, device_id: str) -> Device:
    found = machine.device(device_id)
    assert found is not None
    return found


def test_a_matrix_alone_keeps_its_order_labels_and_places() -> None:
    machine = assemble([matrix(12, ("NIC0", "mlx5_7"), NIC0="mlx5_1")])
    assert [d.id for d in machine.devices] == [*(f"GPU{n}" for n in range(12)), "NIC0", "mlx5_7"]
    assert device(machine, "NIC0").aliases == ("mlx5_1",)
    assert len(machine.paths) == 14 * 13 // 2
    assert classes(machine)["GPU2", "GPU10"] == ("NV", 4)
    places = {a.device: (a.cpus, a.numa) for a in machine.affinity}
    assert places["GPU3"] == ((3, 11), 1)
    assert places["NIC0"] == (None, None)


def test_numbered_gpus_take_the_addresses_in_order() -> None:
    machine = assemble([bus("0000:41:00.0", "0000:0a:00.0"), matrix(2)])
    assert sorted(shown(machine)) == [("GPU0", "0000:0a:00.0"), ("GPU1", "0000:41:00.0")]
    assert classes(machine) == {("GPU1", "GPU0"): ("NV", 4)}  # in the order of the devices: that of the tree
    assert {a.device: a.cpus for a in machine.affinity} == {"GPU0": (0, 8), "GPU1": (1, 9)}


def test_the_drivers_own_numbers_go_before_the_order_of_addresses() -> None:
    addresses = {"0000:0a:00.0": 1, "0000:41:00.0": 0}
    machine = assemble([bus(*addresses, index=addresses), matrix(2)])
    assert sorted(shown(machine)) == [("GPU0", "0000:41:00.0"), ("GPU1", "0000:0a:00.0")]
    assert device(machine, "GPU0").aliases == ("nvml0",)


def test_gpus_of_another_number_are_not_joined_but_reported() -> None:
    machine = assemble([bus("0000:0a:00.0", "0000:41:00.0", "0000:81:00.0"), matrix(2)])
    assert len(shown(machine)) == 5
    assert any("were not matched" in sentence for sentence in machine.unread)


def test_an_adapter_is_joined_by_the_legend() -> None:
    machine = assemble([bus("0000:0a:00.0", nics=(("0000:41:00.0", "mlx5_1"),)), matrix(1, ("NIC0",), NIC0="mlx5_1")])
    assert sorted(shown(machine)) == [("GPU0", "0000:0a:00.0"), ("NIC0", "0000:41:00.0")]
    assert device(machine, "NIC0").aliases == ("mlx5_1",)
    assert classes(machine) == {("GPU0", "NIC0"): ("SYS", None)}


def test_an_adapter_is_joined_by_its_name_and_keeps_the_label() -> None:
    machine = assemble([bus(nics=(("0000:41:00.0", "mlx5_1"),)), matrix(1, ("mlx5_1",))])
    assert dict(shown(machine))["mlx5_1"] == "0000:41:00.0"


def test_permission_to_read_and_to_write_come_together() -> None:
    read = Survey("r", p2p=(PeerAccess("GPU1", "GPU0", "OK", None),))
    write = Survey("w", p2p=(PeerAccess("GPU0", "GPU1", None, "CNS"),))
    machine = assemble([matrix(2), read, write])
    assert machine.p2p == (PeerAccess("GPU0", "GPU1", "OK", "CNS"),)


def nvlinks(*links: tuple[str, str, int], knows: bool = True) -> Survey:
    peers = tuple(PeerLink(a, b, "nvlink", count, count * 25e9) for a, b, count in links)
    return Survey("nccl", peer_links=peers, knows_peer_links=knows)


A, B, C = "0000:0a:00.0", "0000:41:00.0", "0000:81:00.0"


def test_direct_links_class_their_pairs_and_the_rest_falls_to_the_bus() -> None:
    machine = assemble([bus(A, B, C), nvlinks((A, B, 2))])
    assert classes(machine) == {
        ("gpu-0", "gpu-1"): ("NV", 2),
        ("gpu-0", "gpu-2"): ("PHB", None),
        ("gpu-1", "gpu-2"): ("PHB", None),
    }
    link = next(link for link in machine.links if link.kind == "nvlink")
    assert (link.a, link.b, link.count, link.capable_Bps) == ("gpu-0", "gpu-1", 2, 50e9)


def test_a_source_that_does_not_know_all_links_leaves_the_rest_open() -> None:
    machine = assemble([bus(A, B, C), nvlinks((A, B, 2), knows=False)])
    assert classes(machine)["gpu-0", "gpu-2"] == (None, None)


def test_links_over_a_switch_join_what_hangs_on_it() -> None:
    switch = Survey("nccl", pci_parts=(PciPart("0000:c1:00.0", "0680", facts=NVIDIA),))
    machine = assemble([bus(A, B, C), switch, nvlinks((A, "0000:c1:00.0", 12), (B, "0000:c1:00.0", 6))])
    assert classes(machine)["gpu-0", "gpu-1"] == ("NV", 6)
    assert classes(machine)["gpu-0", "gpu-2"] == ("PHB", None)


def test_the_fuller_tree_gives_the_parent() -> None:
    """NCCL shows a switch as one bridge; the port between stays where another source shows it."""
    flat = Survey("nccl", pci_parts=(PciPart("0000:01:00.0", "0604"), PciPart(A, "0302", "0000:01:00.0", facts=NVIDIA)))
    full = Survey(
        "lspci",
        pci_parts=(
            PciPart("0000:00", ""),
            PciPart("0000:01:00.0", "0604", "0000:00"),
            PciPart("0000:02:00.0", "0604", "0000:01:00.0"),
            PciPart(A, "0302", "0000:02:00.0", facts=NVIDIA),
        ),
    )
    for surveys in ([flat, full], [full, flat]):
        machine = assemble(surveys)
        assert device(machine, "gpu-0").parent == "pci-0000:02:00.0"


def test_a_class_that_one_source_does_not_tell_comes_from_the_other() -> None:
    untold = Survey("lspci -t", pci_parts=(PciPart(A, "0000"),))
    told = Survey("lspci -vv", pci_parts=(PciPart(A, "0302", facts=NVIDIA, capable=SurveyLinkRate(16.0, 16)),))
    assert shown(assemble([untold, told])) == [("gpu-0", A)]


def test_an_adapter_without_a_name_is_shown_once() -> None:
    listing = Survey("lspci", pci_parts=(PciPart(B, "0207", kind=DeviceKind.NIC),))
    assert shown(assemble([listing])) == [(f"nic-{B}", B)]
    assert shown(assemble([bus(nics=((B, "mlx5_0"),)), listing])) == [("nic-mlx5_0", B)]


def test_packages_of_firmware_are_those_of_the_kernel_in_order() -> None:
    kernel = Survey("sysfs", cpu_parts=tuple(CpuPart(DeviceKind.PACKAGE, frozenset({n}), n) for n in range(2)))
    firmware = Survey(
        "dmidecode",
        cpu_parts=tuple(
            CpuPart(DeviceKind.PACKAGE, frozenset(), n, facts=said(board_socket=f"P{n}")) for n in range(2)
        ),
    )
    for surveys, expected in (([kernel, firmware], ["P0", "P1"]), ([firmware], ["P0", "P1"])):
        packages = assemble(surveys).of_kind(DeviceKind.PACKAGE)
        assert [package.facts.text("board_socket") for package in packages] == expected


@pytest.mark.parametrize("order", [1, -1])
def test_a_ring_of_bridges_ends(order: int) -> None:
    ring = [PciPart("0000:01:00.0", "0604", "0000:02:00.0"), PciPart("0000:02:00.0", "0604", "0000:01:00.0")]
    survey = Survey("damaged", pci_parts=(*ring[::order], PciPart(A, "0302", "0000:02:00.0", facts=NVIDIA)))
    assemble([survey, survey])


def test_nodes_that_only_a_listing_of_the_bus_names_are_there() -> None:
    listing = Survey("lspci", pci_parts=(PciPart(A, "0302", numa=1, facts=NVIDIA), PciPart(B, "0302", facts=NVIDIA)))
    machine = assemble([listing])
    assert [d.id for d in machine.of_kind(DeviceKind.NUMA)] == ["numa-1"]
    assert device(machine, "gpu-0").parent == "numa-1"
    kernel = Survey("sysfs", cpu_parts=(CpuPart(DeviceKind.NUMA, frozenset({0}), 0),))
    assert [d.id for d in assemble([kernel, listing]).of_kind(DeviceKind.NUMA)] == ["numa-0"]


@pytest.mark.parametrize(("numa", "expected"), [(0, None), (1, "SYS"), (None, None)])
def test_without_the_bridges_above_the_class_is_unknown(numa: int | None, expected: str | None) -> None:
    """`lspci -vv -s` of a GPU and an adapter, with their `NUMA node` lines: PIX, PXB, PHB and NODE are all possible."""
    gpu = PciPart(A, "0302", numa=0, facts=NVIDIA)
    adapter = PciPart(B, "0200", numa=numa, kind=DeviceKind.NIC)
    (path,) = assemble([Survey("lspci", pci_parts=(gpu, adapter))]).paths
    assert path.path_class == expected


def test_two_host_bridges_of_a_node_are_node_and_those_of_nccl_phb() -> None:
    hosts = tuple(PciPart(bus, "", numa=0) for bus in (A[:7], B[:7]))
    gpu = PciPart(A, "0302", parent=A[:7], numa=0, facts=NVIDIA)
    adapter = PciPart(B, "0200", parent=B[:7], numa=0, kind=DeviceKind.NIC)
    (path,) = assemble([Survey("lspci", pci_parts=(*hosts, gpu, adapter))]).paths
    assert path.path_class == "NODE"
    condensed = [replace(part, parent=None, is_condensed=True) for part in (gpu, adapter)]
    (path,) = assemble([Survey("NCCL", pci_parts=tuple(condensed))]).paths
    assert path.path_class == "PHB"


def test_one_node_of_a_listing_is_not_the_only_one() -> None:
    """Only some functions have a `NUMA node` line: the others may be on another node."""
    listing = Survey("lspci", pci_parts=(PciPart(A, "0302", numa=1, facts=NVIDIA), PciPart(B, "0302", facts=NVIDIA)))
    assert [gpu.numa for gpu in assemble([listing]).of_kind(DeviceKind.GPU)] == [1, None]
