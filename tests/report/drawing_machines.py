"""Made-up machines for the drawing: the shapes that real ones have, none of them a real one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from seatrial.model.machine.fact import Fact, Facts, FactValue
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import (
    Affinity,
    Device,
    DeviceKind,
    Link,
    Machine,
    Memory,
    Path,
    Population,
    SocketMemory,
)

GEN3_x16, GEN4_x16, GEN5_x16, GEN4_x4 = 15.753846e9, 31.507692e9, 63.015385e9, 7.876923e9
GIB = 1 << 30


def facts(**values: FactValue) -> Facts:
    return Facts({name: (Fact(value, "made up"),) for name, value in values.items()})


class Builder:
    """Collects devices and links; every method returns the id of what it adds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.devices: list[Device] = []
        self.links: list[Link] = []
        self.paths: list[Path] = []
        self.memory = Memory()
        self.bus = 1
        self.counts: dict[DeviceKind, int] = {}

    def machine(self, **more: object) -> Machine:
        total = sum(d.facts.number("memory_total") or 0 for d in self.devices if d.kind is DeviceKind.NUMA)
        about = facts(memory_total=int(total)) if total else Facts()
        return Machine(self.name, tuple(self.devices), about, tuple(self.links), tuple(self.paths),
                       memory=self.memory, sources=("made up",), **more)  # fmt: skip

    def add(self, device: Device) -> str:
        self.devices.append(device)
        return device.id

    def package(self, number: int, model: str, microarchitecture: str = "") -> str:
        about = facts(os_index=number, model_name=model)
        if microarchitecture:
            about = facts(os_index=number, model_name=model, microarchitecture=microarchitecture)
        return self.add(Device(f"package-{number}", DeviceKind.PACKAGE, model, facts=about))

    def node(self, number: int, parent: str | None, cores: int, threads: int = 2, *, memory: int = 256,
             l3: Sequence[int] = (32,), distances: str = "") -> str:  # fmt: skip
        about = {"os_index": number, "memory_total": memory * GIB}
        told = facts(**about, distances=distances) if distances else facts(**about)
        node = self.add(Device(f"numa-{number}", DeviceKind.NUMA, f"numa-{number}", parent, number, facts=told))
        at = [node]
        if l3:
            at = [
                self.add(Device(f"l3-{number}-{n}", DeviceKind.CACHE, "", node, number,
                                facts=facts(level=3, type="unified", size=size << 20)))
                for n, size in enumerate(l3)
            ]  # fmt: skip
        for core in range(cores):
            core_id = self.add(Device(f"core-{number}-{core}", DeviceKind.CORE, "", at[core * len(at) // cores]))
            for thread in range(threads):
                cpu = (number * cores + core) * threads + thread
                self.add(Device(f"pu-{cpu}", DeviceKind.PU, "", core_id, facts=facts(os_index=cpu)))
        return node

    def bridge(
        self, parent: str, rate: float | None = GEN4_x16, *, kind: str = "PCI bridge", **about: FactValue
    ) -> str:
        address = f"0000:{self.bus:02x}" if kind.startswith("host") else f"0000:{self.bus:02x}:00.0"
        self.bus += 1
        bridge = self.add(Device(f"pci-{address}", DeviceKind.BRIDGE, f"{kind} {address}", parent, pci=address,
                                 facts=facts(**about)))  # fmt: skip
        if rate is not None:
            self.link(parent, bridge, rate)
        return bridge

    def host(self, parent: str) -> str:
        return self.bridge(parent, None, kind="host bridge")

    def switch(self, parent: str, ports: int, rate: float = GEN4_x16, **about: FactValue) -> list[str]:
        """A root port, an upstream port and so many downstream ports, which are returned."""
        names = about or {"vendor_id": "10b5", "device_id": "9797"}
        upstream = self.bridge(self.bridge(parent, rate), rate, **names)
        return [self.bridge(upstream, rate, **names) for _ in range(ports)]

    def device(self, kind: DeviceKind, parent: str | None, model: str, *, rate: float | None = GEN4_x16,
               trained: float | None = None, measured: float | None = None, name: str = "", numa: int | None = None,
               aliases: tuple[str, ...] = (), **about: FactValue) -> str:  # fmt: skip
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        stem = {"switch": "nvswitch", "nic": "nic-mlx5_", "nvme": "nvme-nvme", "block": "block-sd"}.get(kind.value)
        device_id = name or (f"{stem}{number}" if kind in (DeviceKind.NIC, DeviceKind.NVME, DeviceKind.BLOCK)
                             else f"{stem or kind.value}-{number}")  # fmt: skip
        address = f"0000:{self.bus:02x}:00.0" if parent is not None else None
        self.bus += 1
        is_named = kind in (DeviceKind.NIC, DeviceKind.NVME, DeviceKind.BLOCK)
        shown = device_id.partition("-")[2] if is_named else model or device_id
        told = facts(model_name=model, **about) if model else facts(**about)
        self.add(Device(device_id, kind, shown, parent, numa, address, aliases, told))
        if parent is not None and rate is not None:
            self.link(parent, device_id, rate, trained, measured)
        return device_id

    def link(self, a: str, b: str, rate: float, trained: float | None = None, measured: float | None = None) -> None:
        self.links.append(Link(a, b, "pcie", rate, rate if trained is None else trained, "made up", measured))

    def nvlink(self, a: str, b: str, count: int, each: float = 25e9, kind: str = "nvlink") -> None:
        self.links.append(Link(a, b, kind, count * each, count * each, "made up", count=count))
        self.paths.append(Path(a, b, "NV" if kind == "nvlink" else "XGMI", count))

    def population(self, sockets: Sequence[SocketMemory], verdict: Population, why: str = "as the rules say") -> None:
        value = sum((s.populated_channels or 0) * 8 * (s.configured_MTps or 0) * 1e6 for s in sockets) or None
        peak = Limit(value, "B/s", "made up", Basis.PHYSICAL) if value else Limit.unknown("B/s", "made up")
        self.memory = Memory(verdict, why, peak, tuple(sockets))
        for number, socket in enumerate(sockets):
            for dimm in range(socket.dimms):
                parent = f"package-{number}" if any(d.id == f"package-{number}" for d in self.devices) else None
                self.add(
                    Device(
                        f"memory-{number}-{dimm}",
                        DeviceKind.MEMORY,
                        f"P{number} DIMM {dimm}",
                        parent,
                        facts=facts(
                            size=socket.capacity_bytes // socket.dimms,
                            memory_type="DDR5" if (socket.rated_MTps or 0) > 3200 else "DDR4",
                        ),
                    )
                )


def socket_memory(
    populated: int, channels: int | None, dimms: int, size_gib: int, speed: float = 4800, rated: float | None = None
) -> SocketMemory:
    filled = populated if channels else None
    return SocketMemory(channels, filled, dimms, dimms * size_gib * GIB, speed, speed if rated is None else rated)


def two_sockets(
    name: str, cores: int = 56, memory: tuple[int, int] = (256, 256), model: str = "Intel(R) Xeon(R) Platinum 8480+"
) -> tuple[Builder, list[str]]:
    """Two packages with their nodes; (builder, nodes)."""
    build = Builder(name)
    nodes = []
    for package, distances in enumerate(("0:10 1:21", "0:21 1:10")):
        at = build.package(package, f"{model} CPU @ 2.00GHz")
        nodes.append(build.node(package, at, cores, l3=(105,), memory=memory[package], distances=distances))
    return build, nodes


def virtual_machine() -> Machine:
    build = Builder("vm-2")
    node = build.node(0, build.package(0, "AMD EPYC 9B14 96-Core Processor", "Zen 4"), 2, 1, memory=13)
    host = build.host(node)
    build.device(DeviceKind.BLOCK, host, "", rate=None, name="block-vda", size=274877906944)
    build.device(DeviceKind.NIC, host, "Virtio 1.0 network device", rate=None, name="nic-eth0")
    return build.machine()


def cpu_server() -> Machine:
    """Two sockets, memory with empty channels on one, adapters and a row of disks, no GPU."""
    build, nodes = two_sockets("login-1", memory=(256, 192))
    build.population(
        [socket_memory(8, 8, 8, 32), socket_memory(6, 8, 6, 32, 4400, 4800)], Population.UNBALANCED, "unequal sockets"
    )
    first = build.host(nodes[0])
    build.device(DeviceKind.NIC, build.bridge(first), "MT28908 Family [ConnectX-6]", aliases=("ib0",), rate=GEN4_x16,
                 trained=GEN4_x4)  # fmt: skip
    for _ in range(8):
        build.device(
            DeviceKind.NVME, build.bridge(first, GEN4_x4), "SAMSUNG MZQL23T8", rate=GEN4_x4, size=3840755982336
        )
    for function in range(2):
        build.device(DeviceKind.NIC, first, "Ethernet Controller X710", rate=None, name=f"nic-eth{function}")
    return build.machine()


def two_gpus() -> Machine:
    """A GPU on each socket, one trained down."""
    build, nodes = two_sockets("viz-3", 32, (512, 512))
    build.population([socket_memory(8, 8, 8, 64)] * 2, Population.BALANCED)
    for number, node in enumerate(nodes):
        host = build.host(node)
        low = 4e9 if number else None
        build.device(DeviceKind.GPU, build.bridge(host), "NVIDIA L40S", trained=low)
        build.device(DeviceKind.NIC, build.bridge(host), "ConnectX-6 Dx", rate=GEN4_x16)
    return build.machine()


def four_behind_a_switch() -> Machine:
    """One socket, four GPUs and an adapter behind one switch, some links measured."""
    build = Builder("gpu-4s")
    node = build.node(0, build.package(0, "AMD EPYC 7543 32-Core Processor", "Zen 3"), 32, memory=512, l3=(32,) * 8)
    build.population([socket_memory(8, 8, 8, 64, 3200)], Population.BALANCED)
    ports = build.switch(build.host(node), 5)
    for port, measured in zip(ports[:4], (26.3e9, 25.9e9, 25e9, 12.1e9), strict=True):
        build.device(DeviceKind.GPU, port, "NVIDIA A100-PCIE-40GB", measured=measured)
    build.device(DeviceKind.NIC, ports[4], "ConnectX-6", aliases=("ib0",), rate=25e9, state="ACTIVE")
    return build.machine()


def four_mesh() -> Machine:
    """Four GPUs joined to each other by four links each."""
    build = Builder("gpu-4m")
    package = build.package(0, "AMD EPYC 7543P 32-Core Processor", "Zen 3")
    gpus = []
    for number in range(4):
        node = build.node(number, package, 8, memory=128, l3=(32, 32))
        gpus.append(build.device(DeviceKind.GPU, build.bridge(build.host(node)), "NVIDIA A100-SXM4-40GB"))
    build.device(DeviceKind.NIC, build.bridge(build.host("numa-0")), "Slingshot Cassini", name="nic-hsn0")
    build.device(DeviceKind.NIC, build.bridge(build.host("numa-3")), "Slingshot Cassini", name="nic-hsn1")
    for a, b in combinations(gpus, 2):
        build.nvlink(a, b, 4)
    return build.machine()


CUBE = ((0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2), (2, 6, 1), (3, 7, 1),
        (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2))  # fmt: skip


def hybrid_cube_mesh() -> Machine:
    """Eight GPUs in two quads, each pair with none, one or two links; a switch for two GPUs and an adapter."""
    build, nodes = two_sockets("cube-8", 20, model="Intel(R) Xeon(R) E5-2698 v4")
    gpus = []
    for node in nodes:
        for _ in range(2):
            ports = build.switch(build.host(node), 3, GEN3_x16)
            gpus += [build.device(DeviceKind.GPU, port, "Tesla V100-SXM2-32GB", rate=GEN3_x16) for port in ports[:2]]
            build.device(DeviceKind.NIC, ports[2], "ConnectX-4", rate=GEN3_x16)
    for a, b, count in CUBE:
        build.nvlink(gpus[a], gpus[b], count)
    return build.machine()


def eight_with_adapters(*, with_switches: bool = True) -> Machine:
    """Eight GPUs, each with an adapter behind a switch of its own, on NVSwitches."""
    build, nodes = two_sockets("train-8", memory=(1024, 1024))
    build.population([socket_memory(8, 8, 16, 64)] * 2, Population.BALANCED)
    gpus = []
    for node in nodes:
        for _ in range(4):
            ports = build.switch(build.host(node), 3, GEN5_x16, vendor_id="1000", device_id="c030")
            gpus.append(build.device(DeviceKind.GPU, ports[0], "NVIDIA H100 80GB HBM3", rate=GEN5_x16))
            build.device(DeviceKind.NIC, ports[1], "MT2910 Family [ConnectX-7]", rate=GEN5_x16)
            build.device(DeviceKind.NVME, ports[2], "KIOXIA CM7", rate=GEN4_x4, size=3840755982336)
    if with_switches:
        switches = [build.device(DeviceKind.SWITCH, None, "", rate=None) for _ in range(4)]
        for gpu in gpus:
            for number, switch in enumerate(switches):
                count = 5 if number in (0, 3) else 4
                build.links.append(Link(gpu, switch, "nvlink", count * 25e9, count * 25e9, "made up", count=count))
    build.paths += [Path(a, b, "NV", 18) for a, b in combinations(gpus, 2)]
    return build.machine()


def sixteen_with_switches() -> Machine:
    """Sixteen GPUs below two levels of switches, twelve NVSwitches."""
    build, nodes = two_sockets("train-16", 24, (768, 768), "Intel(R) Xeon(R) Platinum 8168")
    gpus: list[str] = []
    for node in nodes:
        for board in range(2):
            upper = build.switch(build.host(node), 3 if board else 2, GEN3_x16)
            for port in upper[:2]:
                lower = build.bridge(port, GEN3_x16, vendor_id="10b5", device_id="9781")
                for _ in range(2):
                    at = build.bridge(lower, GEN3_x16, vendor_id="10b5", device_id="9781")
                    gpus.append(build.device(DeviceKind.GPU, at, "Tesla V100-SXM3-32GB", rate=GEN3_x16))
            if board:
                side = build.bridge(upper[2], 3.938e9, vendor_id="10b5", device_id="8725")
                for _ in range(6):
                    build.device(DeviceKind.SWITCH, build.bridge(side, None), "", rate=None)
    switches = [d.id for d in build.devices if d.kind is DeviceKind.SWITCH]
    for number, gpu in enumerate(gpus):
        for switch in switches[:6] if number < 8 else switches[6:]:
            build.links.append(Link(gpu, switch, "nvlink", 25e9, 25e9, "made up", count=1))
    build.paths += [Path(a, b, "NV", 6) for a, b in combinations(gpus, 2)]
    return build.machine()


def matrix_only(*, with_numa: bool = True) -> Machine:
    """Eight GPUs and four adapters as a matrix tells them: labels, classes, affinity, nothing else."""
    gpus = [f"GPU{n}" for n in range(8)]
    nics = [f"NIC{n}" for n in range(4)]
    devices = [Device(name, DeviceKind.GPU, name, numa=(n // 4 if with_numa else None)) for n, name in enumerate(gpus)]
    devices += [
        Device(name, DeviceKind.NIC, name, numa=(n // 2 if with_numa else None), aliases=(f"mlx5_{n}",))
        for n, name in enumerate(nics)
    ]

    def where(name: str) -> tuple[int, int]:
        number = int(name[3:])
        return (number // 4, number // 2) if name.startswith("GPU") else (number // 2, number)

    paths = []
    for a, b in combinations(gpus + nics, 2):
        (socket_a, switch_a), (socket_b, switch_b) = where(a), where(b)
        near = "PIX" if switch_a == switch_b else "NODE" if socket_a == socket_b else "SYS"
        is_nv = a.startswith("GPU") and b.startswith("GPU")
        paths.append(Path(a, b, "NV" if is_nv else near, 12 if is_nv else None))
    cpus = [tuple(range(64 * s, 64 * s + 64)) for s in range(2)]
    affinity = tuple(
        Affinity(device.id, cpus[where(device.id)[0]], where(device.id)[0] if with_numa else None) for device in devices
    )
    return Machine("matrix-8", tuple(devices), paths=tuple(paths), affinity=affinity, sources=("made up",))


def xgmi_mesh() -> Machine:
    """Eight GPUs of which a matrix says that each is joined to each other by XGMI."""
    gpus = [Device(f"GPU{n}", DeviceKind.GPU, f"GPU{n}", numa=n // 4) for n in range(8)]
    paths = tuple(Path(a.id, b.id, "XGMI", 1) for a, b in combinations(gpus, 2))
    return Machine("mesh-8", tuple(gpus), paths=paths, affinity=tuple(Affinity(g.id, None, g.numa) for g in gpus))


def xgmi_uncounted(number: int = 8) -> Machine:
    """GPUs of which a matrix says only that each is joined to each other by XGMI: no links, no NUMA nodes."""
    gpus = [Device(f"GPU{n}", DeviceKind.GPU, f"GPU{n}") for n in range(number)]
    paths = tuple(Path(a.id, b.id, "XGMI", None) for a, b in combinations(gpus, 2))
    return Machine(f"mesh-{number}", tuple(gpus), paths=paths)


def memory_only() -> Machine:
    """Two sockets of which only the modules are known."""
    build = Builder("dimms")
    build.population([socket_memory(4, 6, 8, 32, 2933), socket_memory(6, 6, 6, 32, 2933)], Population.UNBALANCED)
    return build.machine()


def unknown_channels() -> Machine:
    build = Builder("slots")
    build.population([socket_memory(0, None, 24, 16, 2666)] * 2, Population.UNKNOWN, "nobody knows the slots")
    return build.machine()


def only_nodes() -> Machine:
    """Four NUMA nodes without packages, memory on a fifth that has no CPUs."""
    build = Builder("nodes")
    for number in range(4):
        node = build.node(number, None, 16, 1, l3=())
        build.device(DeviceKind.NIC, build.bridge(build.host(node)), "Slingshot", name=f"nic-hsn{number}")
    build.node(4, None, 0, 0, memory=96, l3=())
    return build.machine()


def many_nodes() -> Machine:
    """Two packages of eight nodes each, GPUs on every other node."""
    build = Builder("nodes-16")
    number = 0
    for package in range(2):
        at = build.package(package, "AMD EPYC 9654 96-Core Processor", "Zen 4")
        for _ in range(8):
            node = build.node(number, at, 12, l3=(32, 32))
            if number % 4 == 0:
                build.device(DeviceKind.GPU, build.bridge(build.host(node)), "AMD Instinct MI210")
            number += 1
    return build.machine()


def four_packages() -> Machine:
    build = Builder("fat-4")
    for package in range(4):
        at = build.package(package, "Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", "Cooper Lake")
        node = build.node(package, at, 28, l3=(38,), distances=" ".join(
            f"{n}:{10 if n == package else 20 if abs(n - package) != 2 else 30}" for n in range(4)))  # fmt: skip
        host = build.host(node)
        build.device(DeviceKind.NIC, build.bridge(host), "ConnectX-6")
        build.device(DeviceKind.NVME, build.bridge(host), "PM1733", rate=GEN4_x4, size=1920383410176)
    return build.machine()


def superchip() -> Machine:
    """A GPU on the processor's own link, its memory a node without CPUs."""
    build = Builder("super-1")
    package = build.package(0, "Neoverse-V2")
    node = build.node(0, package, 72, 1, memory=480, l3=(114,))
    build.node(1, package, 0, 0, memory=96, l3=())
    gpu = build.device(DeviceKind.GPU, build.bridge(build.host(node)), "GH200 480GB", rate=GEN4_x16)
    build.links.append(Link("package-0", gpu, "c2c", 450e9, 450e9, "made up", 412e9, 10))
    return build.machine()


def thousand() -> Machine:
    """A thousand virtual functions and disks."""
    build, nodes = two_sockets("crowd")
    for number in range(1000):
        kind = (DeviceKind.NIC, DeviceKind.BLOCK, DeviceKind.GPU, DeviceKind.NVME)[number % 4]
        at = build.bridge(build.host(nodes[number % 2])) if number % 3 else nodes[number % 2]
        build.device(kind, at, f"model {number % 7}", size=number << 30)
    return build.machine()


def hostile() -> Machine:
    evil = '"><script>alert(1)</script>\x1b[2J\x00]]>&\u202e'
    build = Builder(evil)
    node = build.node(0, build.package(0, evil * 30, evil), 4)
    ports = build.switch(build.host(node), 3, pci_name=evil)
    for number, port in enumerate(ports):
        build.device(DeviceKind.GPU, port, evil, name=f"gpu{evil}{number}", aliases=(evil,))
    build.device(DeviceKind.NIC, build.bridge(build.host(node)), "W" * 5000, name="nic-" + "é漢😀" * 40)
    build.devices.append(Device("ring-a", DeviceKind.BRIDGE, "ring", "ring-b"))
    build.devices.append(Device("ring-b", DeviceKind.BRIDGE, "ring", "ring-a"))
    build.devices.append(Device("gpu-in-ring", DeviceKind.GPU, "lost", "ring-b"))
    return build.machine()


def deep() -> Machine:
    """A chain of three thousand bridges, every third with something on it."""
    build = Builder("deep")
    at = build.host(build.node(0, build.package(0, "x"), 2))
    for number in range(3000):
        at = build.bridge(at)
        if number % 3 == 0:
            build.device(DeviceKind.NIC, at, "", name=f"nic-{number}")
    return build.machine()


MACHINES: dict[str, Callable[[], Machine]] = {
    function.__name__: function
    for function in (
        virtual_machine, cpu_server, two_gpus, four_behind_a_switch, four_mesh, hybrid_cube_mesh, eight_with_adapters,
        sixteen_with_switches, matrix_only, xgmi_mesh, xgmi_uncounted, memory_only, unknown_channels, only_nodes,
        many_nodes, four_packages, superchip, thousand, hostile, deep,
    )
}  # fmt: skip
MACHINES["empty"] = lambda: Machine("nothing")
MACHINES["xgmi_uncounted_16"] = lambda: xgmi_uncounted(16)
MACHINES["inferred_switches"] = lambda: eight_with_adapters(with_switches=False)
MACHINES["matrix_without_numa"] = lambda: matrix_only(with_numa=False)
