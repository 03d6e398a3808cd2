"""Machines made up at random, and lspci's two ways to print them: what its readers must give back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

SPEEDS = ("2.5", "5", "8", "16", "32")
WIDTHS = (1, 2, 4, 8, 16)
LEAVES = (
    ("VGA compatible controller", "0300", "NVIDIA Corporation GA102GL [RTX A6000]", "10de:2230", "nvidia"),
    ("3D controller", "0302", "NVIDIA Corporation GA100 [A100 SXM4 80GB]", "10de:20b2", "nvidia"),
    ("Audio device", "0403", "NVIDIA Corporation GA102 High Definition Audio Controller", "10de:1aef", "snd_hda_intel"),
    ("Infiniband controller", "0207", "Mellanox Technologies MT28908 Family [ConnectX-6]", "15b3:101b", "mlx5_core"),
    ("Ethernet controller", "0200", "Intel Corporation Ethernet Controller X710 for 10GbE SFP+", "8086:1572", "i40e"),
    ("Non-Volatile memory controller", "0108", "KIOXIA Corporation NVMe SSD Controller CD7", "1e0f:0013", "nvme"),
    ("System peripheral", "0880", "Intel Corporation Device 0998", "8086:0998", ""),
)  # fmt: skip


@dataclass
class Function:
    """A PCI function; `below` are those behind it where it is a bridge (`first` to `last` are its buses)."""

    domain: int
    bus: int
    device: int
    function: int
    leaf: tuple[str, str, str, str, str]
    port: str
    capable: tuple[str, int] | None = None
    trained: tuple[str, int] | None = None
    numa: int | None = None
    first: int | None = None
    last: int | None = None
    below: list[Function] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.domain:04x}:{self.bus:02x}:{self.device:02x}.{self.function}"


@dataclass
class Machine:
    """Root buses, each with its functions."""

    roots: list[tuple[int, int, list[Function]]]

    def functions(self) -> Iterator[tuple[Function, str]]:
        """Every function with the address of what it hangs on, in the order in which lspci lists them."""
        found: list[tuple[Function, str]] = []
        stack = [(f, f"{domain:04x}:{bus:02x}") for domain, bus, functions in self.roots for f in functions]
        while stack:
            function, parent = stack.pop()
            found.append((function, parent))
            stack += [(below, function.address) for below in function.below]
        yield from sorted(found, key=lambda pair: pair[0].address)

    def parents(self) -> dict[str, str]:
        return {function.address: parent for function, parent in self.functions()}


def random_machine(seed: int) -> Machine:
    """Up to three root buses with ports, switches, endpoints and empty slots."""
    draw = random.Random(seed)
    roots: list[tuple[int, int, list[Function]]] = []
    for number in range(draw.randint(1, 3)):
        domain, bus = (number, 0) if seed % 3 == 0 else (0, number * 0x40)
        counter = [bus]
        host = ("Host bridge", "0600", "Intel Corporation Device 09a2", "8086:09a2", "")
        functions = [Function(domain, bus, 0, 0, host, "", numa=number)]
        for device in sorted(draw.sample(range(1, 31), draw.randint(0, 4))):
            if draw.random() < 0.3:
                functions.append(Function(domain, bus, device, 0, LEAVES[-1], "Root Complex Integrated Endpoint"))
            else:
                functions.append(_bridge(draw, domain, bus, device, "Root Port", counter, number, depth=0))
        roots.append((domain, bus, functions))
    return Machine(roots)


def _bridge(
    draw: random.Random, domain: int, bus: int, device: int, port: str, counter: list[int], numa: int, depth: int
) -> Function:
    leaf = ("PCI bridge", "0604", "Broadcom / LSI PEX890xx PCIe Gen 5 Switch", "1000:c030", "pcieport")
    bridge = Function(domain, bus, device, 0, leaf, port, numa=numa)
    bridge.capable, bridge.trained = _link(draw)
    counter[0] += 1
    bridge.first = counter[0]
    shape = draw.random()
    if port == "Upstream Port":
        devices = sorted(draw.sample(range(32), draw.randint(1, 3)))
        bridge.below = [
            _bridge(draw, domain, bridge.first, d, "Downstream Port", counter, numa, depth + 1) for d in devices
        ]
    elif shape < 0.3 and depth < 4:
        bridge.below = [_bridge(draw, domain, bridge.first, 0, "Upstream Port", counter, numa, depth + 1)]
    elif shape < 0.85:
        numbers = sorted(draw.sample(range(8), draw.randint(1, 3)))
        bridge.below = [_endpoint(draw, domain, bridge.first, number, numa) for number in numbers]
    bridge.last = counter[0]
    return bridge


def _endpoint(draw: random.Random, domain: int, bus: int, function: int, numa: int) -> Function:
    endpoint = Function(domain, bus, 0, function, draw.choice(LEAVES[:-1]), "Endpoint", numa=numa)
    endpoint.capable, endpoint.trained = _link(draw)
    return endpoint


def _link(draw: random.Random) -> tuple[tuple[str, int], tuple[str, int]]:
    speed, width = draw.randrange(len(SPEEDS)), draw.randrange(len(WIDTHS))
    capable = SPEEDS[speed], WIDTHS[width]
    return capable, (SPEEDS[draw.randint(0, speed)], WIDTHS[draw.randint(0, width)])


def render_vv(machine: Machine, *, numbers: bool = False, with_domain: bool | None = None) -> str:
    """As `lspci -vv` (or `-nnvv`) of pciutils 3.9 prints it."""
    if with_domain is None:
        with_domain = any(domain for domain, _, _ in machine.roots)
    return "\n".join(
        "".join(line + "\n" for line in _block(f, numbers, with_domain)) for f, _ in machine.functions()
    )  # fmt: skip


def _block(f: Function, numbers: bool, with_domain: bool) -> Iterator[str]:
    kind, class_id, name, ids, driver = f.leaf
    address = f.address if with_domain else f.address.split(":", 1)[1]
    yield f"{address} {kind} [{class_id}]: {name} [{ids}] (rev a1)" if numbers else f"{address} {kind}: {name} (rev a1)"
    yield "\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+"
    if f.numa is not None:
        yield f"\tNUMA node: {f.numa}"
    if f.first is not None and f.last is not None:
        yield f"\tBus: primary={f.bus:02x}, secondary={f.first:02x}, subordinate={f.last:02x}, sec-latency=0"
    if f.port:
        slot = " (Slot+)" if f.port in ("Root Port", "Downstream Port") else ""
        yield f"\tCapabilities: [78] Express (v2) {f.port}{slot}, MSI 00"
        yield "\t\tDevCap:\tMaxPayload 256 bytes, PhantFunc 0, Latency L0s unlimited, L1 <64us"
    if f.capable and f.trained:
        yield f"\t\tLnkCap:\tPort #0, Speed {f.capable[0]}GT/s, Width x{f.capable[1]}, ASPM not supported"
        is_port = bool(f.port) and f.port.endswith("Port") and f.port != "Upstream Port"
        notes = ["" if is_port or a == b else " (downgraded)" for a, b in zip(f.capable, f.trained, strict=True)]
        yield f"\t\tLnkSta:\tSpeed {f.trained[0]}GT/s{notes[0]}, Width x{f.trained[1]}{notes[1]}"
        yield "\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-"
    if driver:
        yield f"\tKernel driver in use: {driver}"


def render_tree(machine: Machine, *, names: bool = True, numbers: bool = False) -> str:
    """As `lspci -tv` (`-t`, `-tvnn`) prints it."""
    return "\n".join(_roots(machine, names, numbers)) + "\n"


def _roots(machine: Machine, names: bool, numbers: bool) -> list[str]:
    drawn: list[list[str]] = []
    for domain, bus, functions in machine.roots:
        head = f"[{domain:04x}:{bus:02x}]-"
        lines = _bus_lines(functions, names, numbers)
        drawn.append([head + lines[0], *(" " * len(head) + line for line in lines[1:])])
    return _forked("-", drawn) if len(drawn) > 1 else ["-" + drawn[0][0], *(" " + line for line in drawn[0][1:])]


def _bus_lines(functions: list[Function], names: bool, numbers: bool) -> list[str]:
    if not functions:
        return [""]
    drawn = [_function_lines(function, names, numbers) for function in functions]
    if len(drawn) == 1:
        return ["--" + drawn[0][0], *("  " + line for line in drawn[0][1:])]
    return _forked("", drawn)


def _function_lines(f: Function, names: bool, numbers: bool) -> list[str]:
    head = f"{f.device:02x}.{f.function}"
    if f.first is None:
        name = f"  {f.leaf[2]}" + (f" [{f.leaf[3]}]" if numbers else "")
        return [head + (name if names else "")]
    head += f"-[{f.first:02x}]--" if f.first == f.last else f"-[{f.first:02x}-{f.last:02x}]--"
    lines = _bus_lines(f.below, names, numbers)
    return [head + lines[0], *(" " * len(head) + line for line in lines[1:])]


def _forked(before: str, branches: list[list[str]]) -> list[str]:
    """Branches below one another, `before` in front of the first."""
    lines: list[str] = []
    for index, branch in enumerate(branches):
        is_last = index == len(branches) - 1
        lines.append(("\\-" if is_last else "+-") + branch[0])
        lines += [("  " if is_last else "| ") + line for line in branch[1:]]
    return [before + lines[0], *(" " * len(before) + line for line in lines[1:])]
