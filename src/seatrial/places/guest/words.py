"""The command that starts a guest: a topology as QEMU's arguments.

Every device has its own port: a root port of the host bridge of its NUMA node, or a port of a switch. The host
bridges (pxb-pcie, for CXL pxb-cxl) tell Linux their node.
QEMU, docs/pcie.txt, docs/pci_expander_bridge.rst, docs/system/devices/cxl.rst, docs/pcie_sriov.txt.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import GuestDevice, GuestPart, GuestTopology
from seatrial.places.guest.kernel import Kernel
from seatrial.places.guest.session import PORTS, port_path

CONSOLE = "console"
INITRAMFS = "initramfs"
_FIRST_BUS, _BUSES_EACH = 0x20, 0x18
_CXL_FIRST_BUS = 0xE0
"""The bus numbers of host bridges: with eight nodes, each has room for 23 ports and what is behind them."""
_MiB = 1 << 20
_CXL_LABELS_B = _MiB
_ROOM_MiB = 4 << 10
"""Addresses that CXL memory can have."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
_KERNEL_WORDS = "console=ttyS0 earlyprintk=ttyS0 panic=-1 rdinit=/init random.trust_cpu=on"


class BackingFile(Frozen):
    """A file of the guest's folder that a drive or memory is in."""

    name: str
    size_B: int


class GuestWords(Frozen):
    """The command, and the files that must be there before it runs."""

    words: tuple[str, ...]
    files: tuple[BackingFile, ...]


def guest_words(topology: GuestTopology, folder: Path, emulator: str, accelerator: str, kernel: Kernel) -> GuestWords:
    """The command that starts a guest whose files are in `folder`."""
    made = _Words(topology, folder)
    has_cxl = topology.has(GuestPart.CXL_MEMORY)
    made.add("-machine", f"q35,cxl={'on' if has_cxl else 'off'},hmat=off")
    made.add("-accel", "tcg,thread=multi" if accelerator == "tcg" else accelerator)
    made.add("-cpu", "max" if accelerator == "tcg" else "host")
    made.processors_and_memory()
    made.add("-kernel", str(kernel.image), "-initrd", str(folder / INITRAMFS), "-append", _KERNEL_WORDS)
    made.add("-chardev", f"file,id=console,path={_quoted(folder / CONSOLE)}", "-serial", "chardev:console")
    made.add("-device", f"virtio-serial-pci,id=channel,max_ports={PORTS + 1}")
    for number in range(PORTS):
        path = _quoted(port_path(folder, number))
        made.add("-chardev", f"socket,id=port{number},path={path},server=on,wait=off")
        made.add("-device", f"virtserialport,chardev=port{number},name=seatrial.{number}")
    for device in topology.devices:
        made.device(device)
    made.cxl_window()
    start = (emulator, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-sandbox", _SANDBOX)
    return GuestWords((*start, *made.words), tuple(made.files))


def _quoted(path: Path) -> str:
    """In QEMU's options a comma is written twice."""
    return str(path).replace(",", ",,")


class _Words(Struct):
    topology: GuestTopology
    folder: Path
    words: list[str] = []
    files: list[BackingFile] = []
    bridges: dict[int, str] = {}
    cxl_bridges: dict[int, str] = {}
    ports: int = 0
    count: int = 0
    cxl_B: int = 0

    def add(self, *words: str) -> None:
        self.words += words

    def processors_and_memory(self) -> None:
        topology = self.topology
        each = topology.nodes[0].cpus
        sockets = sum(1 for node in topology.nodes if node.cpus)
        cores = each // topology.threads
        self.add("-smp", f"{topology.cpus},sockets={sockets},cores={cores},threads={topology.threads}")
        extra = ""
        if topology.has(GuestPart.CXL_MEMORY):
            extra = f",slots=1,maxmem={topology.memory_B // _MiB + _ROOM_MiB}M"
        self.add("-m", f"{topology.memory_B // _MiB}M{extra}")
        first = 0
        for number, node in enumerate(topology.nodes):
            self.add("-object", f"memory-backend-ram,id=memory{number},size={node.memory_B}")
            cpus = f",cpus={first}-{first + node.cpus - 1}" if node.cpus else ""
            self.add("-numa", f"node,nodeid={number},memdev=memory{number}{cpus}")
            first += node.cpus
        for i, row in enumerate(topology.distances or ()):
            for j, distance in enumerate(row):
                self.add("-numa", f"dist,src={i},dst={j},val={distance}")

    def device(self, device: GuestDevice) -> None:
        if device.kind is GuestPart.CXL_MEMORY:
            return self.cxl_memory(device)
        port = self.port("pcie-root-port", self.bridge(device.node))
        if device.kind is not GuestPart.SWITCH:
            return self.end(device, port)
        switch = self.name("switch")
        self.add("-device", f"x3130-upstream,id={switch},bus={port}")
        for below in device.below:
            self.end(below, self.port("xio3130-downstream", switch))
        return None

    def end(self, device: GuestDevice, port: str) -> None:
        """A device other than a switch."""
        if device.kind is GuestPart.NVME:
            self.nvme(device, port)
        elif device.kind is GuestPart.NETWORK:
            name = self.name("net")
            self.add("-netdev", f"user,id={name},restrict=on")
            self.add("-device", f"virtio-net-pci,netdev={name},bus={port},romfile=")
        else:
            name = self.name("shared")
            file = self.file(name, device.size_B or 0)
            self.add("-object", f"memory-backend-file,id={name},share=on,mem-path={file},size={device.size_B}")
            self.add("-device", f"ivshmem-plain,memdev={name},bus={port}")

    def nvme(self, device: GuestDevice, port: str) -> None:
        """A drive. With virtual functions it is a controller of a subsystem, and has interrupts and queues to give."""
        name = self.name("nvme")
        file = self.file(name, device.size_B or 0)
        self.add("-drive", f"file={file},id={name},if=none,format=raw,cache=unsafe")
        if not device.functions:
            self.add("-device", f"nvme,drive={name},serial={name},bus={port}")
            return
        count = device.functions
        self.add("-device", f"nvme-subsys,id={name}-all")
        self.add(
            "-device",
            f"nvme,id={name}-controller,serial={name},bus={port},subsys={name}-all,sriov_max_vfs={count},"
            f"sriov_vq_flexible={2 * count},sriov_vi_flexible={count},max_ioqpairs={2 * count + 2},"
            f"msix_qsize={count + 2}",
        )
        self.add("-device", f"nvme-ns,drive={name},bus={name}-controller,nsid=1")

    def cxl_memory(self, device: GuestDevice) -> None:
        """Persistent memory: QEMU 7.2 has no other."""
        port = self.port("cxl-rp", self.cxl_bridge(device.node))
        name = self.name("cxl")
        size_B = device.size_B or 0
        for part, part_B in ((name, size_B), (f"{name}-labels", _CXL_LABELS_B)):
            place = f"share=on,mem-path={self.file(part, part_B)}"
            self.add("-object", f"memory-backend-file,id={part},{place},size={part_B}")
        self.add("-device", f"cxl-type3,id={name}-device,bus={port},memdev={name},lsa={name}-labels")
        self.cxl_B += size_B

    def cxl_window(self) -> None:
        if self.cxl_bridges:
            window_B = -(-self.cxl_B // (256 * _MiB * len(self.cxl_bridges))) * 256 * _MiB * len(self.cxl_bridges)
            targets = [f"cxl-fmw.0.targets.{k}={name}" for k, name in enumerate(self.cxl_bridges.values())]
            self.add("-M", ",".join([*targets, f"cxl-fmw.0.size={window_B // _MiB}M"]))

    def bridge(self, node: int) -> str:
        """The host bridge of a node: QEMU's own is on no node, so it serves a guest with one node only."""
        if len(self.topology.nodes) == 1:
            return "pcie.0"
        return self._bridge_of(self.bridges, f"node{node}", "pxb-pcie", _FIRST_BUS + _BUSES_EACH * node, node)

    def cxl_bridge(self, node: int) -> str:
        return self._bridge_of(self.cxl_bridges, f"cxl-node{node}", "pxb-cxl", _CXL_FIRST_BUS + 4 * node, node)

    def _bridge_of(self, known: dict[int, str], name: str, model: str, bus: int, node: int) -> str:
        if node not in known:
            known[node] = name
            self.add("-device", f"{model},id={name},bus=pcie.0,bus_nr={bus},numa_node={node}")
        return name

    def port(self, model: str, bus: str) -> str:
        self.ports += 1
        name = f"port-{self.ports}"
        kind = "port=" + str(self.ports) + "," if model == "cxl-rp" else ""
        self.add("-device", f"{model},{kind}id={name},bus={bus},chassis={self.ports},slot={self.ports}")
        return name

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def file(self, name: str, size_B: int) -> str:
        self.files.append(BackingFile(name, size_B))
        return _quoted(self.folder / name)
