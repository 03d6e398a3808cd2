"""A made-up GPU server as other tools print it, and its memory slots: what faults are planted into.

The server has two sockets and four PCIe switches, two GPUs and two adapters below each. Everything is written here from
the formats' descriptions; nothing is taken from a real machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

LANE_GBps = {8.0: 0.9846, 16.0: 1.969, 2.5: 0.25}
"""GT/s -> GB/s of one lane, after encoding."""
GPU, NIC = "gpu", "nic"


@dataclass(frozen=True)
class Card:
    """A GPU or adapter; `slot_lanes` is what its port offers."""

    kind: str
    number: int
    lanes: int = 16
    slot_lanes: int = 16
    GTps: float = 16.0
    nvlinks: int = 18

    @property
    def name(self) -> str:
        """The label in a matrix."""
        return f"GPU{self.number}" if self.kind == GPU else f"mlx5_{self.number}"


@dataclass(frozen=True)
class Switch:
    """A PCIe switch at a NUMA node, with the cards below it."""

    number: int
    node: int
    cards: tuple[Card, ...]
    lanes: int = 16


@dataclass(frozen=True)
class Server:
    """`nodes` are stated affinities that differ from the place of the card's switch, `fewer` pairs of GPUs with other
    numbers of NVLinks."""

    switches: tuple[Switch, ...]
    nodes: dict[str, int] = field(default_factory=dict)
    fewer: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def cards(self) -> list[tuple[Card, Switch]]:
        """All cards in the order of a matrix: the GPUs, then the adapters."""
        found = [(card, switch) for switch in self.switches for card in switch.cards]
        return sorted(found, key=lambda one: (one[0].kind != GPU, one[0].number))

    def node(self, card: Card, switch: Switch) -> int:
        """The NUMA node that is stated for a card."""
        return self.nodes.get(card.name, switch.node)


def server(gpus: int = 2, adapters: int = 2, switches: int = 4) -> Server:
    """The healthy server."""
    return Server(
        tuple(
            Switch(
                number,
                2 * number // switches,
                (
                    *(Card(GPU, gpus * number + k) for k in range(gpus)),
                    *(Card(NIC, adapters * number + k) for k in range(adapters)),
                ),
            )
            for number in range(switches)
        )
    )


def changed(whole: Server, name: str, **values: object) -> Server:
    """The server with another state of one card."""
    return replace(
        whole,
        switches=tuple(
            replace(s, cards=tuple(replace(c, **values) if c.name == name else c for c in s.cards))
            for s in whole.switches
        ),
    )


def without(whole: Server, name: str) -> Server:
    """The server without a card; the GPUs after it are numbered anew, as tools do."""
    switches = [replace(s, cards=tuple(card for card in s.cards if card.name != name)) for s in whole.switches]
    numbers = sorted(card.number for s in switches for card in s.cards if card.kind == GPU)

    def renumbered(card: Card) -> Card:
        return replace(card, number=numbers.index(card.number)) if card.kind == GPU else card

    return replace(whole, switches=tuple(replace(s, cards=tuple(map(renumbered, s.cards))) for s in switches))


def moved(whole: Server, name: str, to: int) -> Server:
    """The server with a card below another switch."""
    card = next(card for s in whole.switches for card in s.cards if card.name == name)
    left = [replace(s, cards=tuple(c for c in s.cards if c.name != name)) for s in whole.switches]
    left[to] = replace(left[to], cards=(*left[to].cards, card))
    return replace(whole, switches=tuple(left))


def narrow_uplink(whole: Server, number: int, lanes: int) -> Server:
    """The server with fewer lanes between a switch and the processor."""
    return replace(whole, switches=tuple(replace(s, lanes=lanes) if s.number == number else s for s in whole.switches))


def address(card: Card) -> str:
    """The PCI address of a card: it moves with the card, as in a swap of slots that firmware numbers."""
    return f"0000:{(0x80 if card.kind == GPU else 0xC0) + card.number:02x}:00.0"


def nccl_xml(whole: Server) -> str:
    """As NCCL_TOPO_DUMP_FILE writes it: a switch is one element, speeds are what both ends of a link support."""
    lines = ['<system version="1">']
    for node in sorted({switch.node for switch in whole.switches}):
        lines.append(f'  <cpu numaid="{node}" affinity="0000{"00ff" if node == 0 else "ff00"}" arch="x86_64">')
        for switch in (s for s in whole.switches if s.node == node):
            lines.append(
                f'    <pci busid="0000:{0x10 * (switch.number + 1):02x}:00.0" class="0x060400" '
                f'link_speed="16.0 GT/s PCIe" link_width="{switch.lanes}">'
            )
            lines += [line for card in switch.cards for line in _nccl_card(card)]
            lines.append("    </pci>")
        lines.append("  </cpu>")
    return "\n".join([*lines, "</system>", ""])


def _nccl_card(card: Card) -> Iterator[str]:
    width = min(card.lanes, card.slot_lanes)
    vendor = ('vendor="0x10de" device="0x2330"', 'vendor="0x15b3" device="0x1021"')[card.kind != GPU]
    class_id = "0x030200" if card.kind == GPU else "0x020700"
    yield (
        f'      <pci busid="{address(card)}" class="{class_id}" {vendor} link_speed="{card.GTps:.1f} GT/s PCIe" '
        f'link_width="{width}">'
    )
    if card.kind == GPU:
        yield f'        <gpu dev="{card.number}" sm="90" gdr="1"/>'
    else:
        yield f'        <nic><net name="{card.name}" dev="{card.number}" speed="400000" port="1" gdr="1"/></nic>'
    yield "      </pci>"


def hwloc_xml(whole: Server) -> str:
    """As `lstopo --of xml` writes it: the present rates of links, in GB/s."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE topology SYSTEM "hwloc2.dtd">']
    lines += ['<topology version="2.0">', '  <object type="Machine" os_index="0" cpuset="0x0000000f">']
    for node in (0, 1):
        cpus = (0x3, 0xC)[node]
        lines.append(f'    <object type="Package" os_index="{node}" cpuset="{cpus:#010x}">')
        lines.append(
            f'      <object type="NUMANode" os_index="{node}" cpuset="{cpus:#010x}" nodeset="{1 << node:#010x}" '
            'local_memory="17179869184"/>'
        )
        for cpu in (2 * node, 2 * node + 1):
            lines.append(f'      <object type="Core" os_index="{cpu}" cpuset="{1 << cpu:#010x}">')
            lines.append(f'        <object type="PU" os_index="{cpu}" cpuset="{1 << cpu:#010x}"/></object>')
        for switch in (s for s in whole.switches if s.node == node):
            lines += _hwloc_switch(switch)
        lines.append("    </object>")
    return "\n".join([*lines, "  </object>", "</topology>", ""])


def _hwloc_switch(switch: Switch) -> Iterator[str]:
    base = 0x10 * (switch.number + 1)
    domain = switch.number  # buses of cards are those of their own domain, so that they can be anywhere
    uplink = switch.lanes * LANE_GBps[16.0]
    yield f'      <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="{domain:04x}:[{base:02x}-ff]">'
    yield (
        f'        <object type="Bridge" bridge_type="1-1" depth="1" bridge_pci="{domain:04x}:[{base + 1:02x}-ff]" '
        f'pci_busid="{domain:04x}:{base:02x}:01.0" pci_type="0604 [8086:352a] [0000:0000] 00" '
        f'pci_link_speed="{uplink:.6f}">'
    )
    yield (
        f'          <object type="Bridge" bridge_type="1-1" depth="2" bridge_pci="{domain:04x}:[{base + 2:02x}-ff]" '
        f'pci_busid="{domain:04x}:{base + 1:02x}:00.0" pci_type="0604 [1000:c030] [0000:0000] 00" '
        f'pci_link_speed="{uplink:.6f}">'
    )
    for place, card in enumerate(switch.cards):
        own = min(card.lanes, card.slot_lanes) * LANE_GBps[card.GTps]
        bus = address(card).split(":")[1]
        class_id, ids = ("0302", "10de:2330") if card.kind == GPU else ("0207", "15b3:1021")
        yield (
            f'            <object type="Bridge" bridge_type="1-1" depth="3" bridge_pci="{domain:04x}:[{bus}-{bus}]" '
            f'pci_busid="{domain:04x}:{base + 2:02x}:{place:02x}.0" pci_type="0604 [1000:c030] [0000:0000] 00" '
            f'pci_link_speed="{own:.6f}">'
        )
        yield (
            f'              <object type="PCIDev" pci_busid="{domain:04x}:{bus}:00.0" '
            f'pci_type="{class_id} [{ids}] [0000:0000] 00" pci_link_speed="{own:.6f}">'
        )
        kind = (f'name="nvml{card.number}" osdev_type="1"', f'name="{card.name}" osdev_type="3"')[card.kind != GPU]
        yield f'                <object type="OSDev" {kind}/></object></object>'
    yield "          </object></object></object>"


def lspci_vv(whole: Server) -> str:
    """As `lspci -vv` prints it: what each end supports, and the present state."""
    lines: list[str] = []
    for card, switch in whole.cards:
        domain, bus, place = switch.number, address(card).split(":")[1], switch.cards.index(card)
        port = f"{domain:04x}:10:{place:02x}.0"
        lines += [
            f"{port} PCI bridge: Intel Corporation Device 352a (rev 30) (prog-if 00 [Normal decode])",
            "\tControl: I/O- Mem+ BusMaster+ SpecCycle-",
            f"\tNUMA node: {switch.node}",
            f"\tBus: primary=10, secondary={bus}, subordinate={bus}, sec-latency=0",
            "\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00",
            *_lspci_link(card.slot_lanes, 16.0, min(card.lanes, card.slot_lanes), card.GTps, card.slot_lanes),
            "",
            f"{domain:04x}:{bus}:00.0 "
            + (
                "3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)"
                if card.kind == GPU
                else "Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]"
            ),
            "\tControl: I/O- Mem+ BusMaster+ SpecCycle-",
            f"\tNUMA node: {switch.node}",
            "\tCapabilities: [78] Express (v2) Endpoint, MSI 00",
            *_lspci_link(16, 16.0, min(card.lanes, card.slot_lanes), card.GTps, card.slot_lanes),
            "",
        ]
    return "\n".join(lines) + "\n"


def _lspci_link(lanes: int, speed: float, trained: int, trained_speed: float, offered: int) -> Iterator[str]:
    is_less = "" if trained == lanes else " (downgraded)"
    is_slow = "" if trained_speed == speed else " (downgraded)"
    yield f"\t\tLnkCap:\tPort #0, Speed {speed:g}GT/s, Width x{lanes}, ASPM not supported"
    yield f"\t\tLnkSta:\tSpeed {trained_speed:g}GT/s{is_slow}, Width x{trained}{is_less}"
    yield "\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-"


def smi_matrix(whole: Server) -> str:
    """As `nvidia-smi topo -m` prints it."""
    cards = whole.cards
    lines = ["\t" + "\t".join([*(card.name for card, _ in cards), "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for card, switch in cards:
        cells = [_class(whole, card, switch, other, beside) for other, beside in cards]
        if card.kind == GPU:
            node = whole.node(card, switch)
            cells += [f"{8 * node}-{8 * node + 7}", str(node), "N/A"]
        lines.append("\t".join([card.name, *cells]))
    return "\n".join([*lines, "", "Legend:", "", "  X    = Self", ""])


def _class(whole: Server, card: Card, switch: Switch, other: Card, beside: Switch) -> str:
    if card.name == other.name:
        return " X "
    if card.kind == other.kind == GPU:
        pair = whole.fewer.get((card.name, other.name), whole.fewer.get((other.name, card.name)))
        number = min(card.nvlinks, other.nvlinks) if pair is None else pair
        return f"NV{number}" if number else "SYS"
    if switch.number == beside.number:
        return "PIX"
    return "NODE" if switch.node == beside.node else "SYS"


@dataclass(frozen=True)
class Slot:
    """A memory slot as dmidecode prints it; an empty one has no size."""

    locator: str
    GiB: int = 32
    MTps: int = 2933
    rank: int = 2
    total_bits: int = 72
    part: str = "M393A4K40DB3-CWE"


def slots(per_socket: int = 12, filled: int = 6) -> list[Slot]:
    """Two sockets with Dell's slot names, those of the first channels filled."""
    return [Slot(f"{letter}{n}", 32 if n <= filled else 0) for letter in "AB" for n in range(1, per_socket + 1)]


def dmidecode(all_slots: list[Slot]) -> str:
    """As `dmidecode` prints it: the product, two processors of six channels, the slots."""
    parts = ["# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.2.1 present.\n"]
    parts.append(
        "Handle 0x0100, DMI type 1, 27 bytes\nSystem Information\n\tManufacturer: Dell Inc.\n"
        "\tProduct Name: PowerEdge R740\n"
    )
    for number in (1, 2):
        parts.append(
            f"Handle 0x040{number}, DMI type 4, 48 bytes\nProcessor Information\n\tSocket Designation: CPU{number}\n"
            "\tType: Central Processor\n\tManufacturer: Intel\n\tSignature: Type 0, Family 6, Model 85, Stepping 7\n"
            "\tVersion: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz\n\tStatus: Populated, Enabled\n"
        )
    parts.append(
        "Handle 0x1000, DMI type 16, 23 bytes\nPhysical Memory Array\n\tLocation: System Board Or Motherboard\n"
        "\tUse: System Memory\n\tError Correction Type: Multi-bit ECC\n\tMaximum Capacity: 3 TB\n"
        f"\tError Information Handle: Not Provided\n\tNumber Of Devices: {len(all_slots)}\n"
    )
    parts += [_slot(number, slot) for number, slot in enumerate(all_slots)]
    return "\n".join(parts) + "\n"


def _slot(number: int, slot: Slot) -> str:
    lines = [f"Handle 0x{0x1100 + number:04X}, DMI type 17, 84 bytes", "Memory Device", "\tArray Handle: 0x1000"]
    lines += ["\tError Information Handle: Not Provided", f"\tTotal Width: {slot.total_bits} bits"]
    lines += ["\tData Width: 64 bits", f"\tSize: {f'{slot.GiB} GB' if slot.GiB else 'No Module Installed'}"]
    lines += ["\tForm Factor: DIMM", "\tSet: None", f"\tLocator: {slot.locator}", "\tBank Locator: Not Specified"]
    if not slot.GiB:
        return "\n".join([*lines, "\tType: Unknown", "\tType Detail: Unknown", ""])
    lines += ["\tType: DDR4", "\tType Detail: Synchronous Registered (Buffered)", f"\tSpeed: {slot.MTps} MT/s"]
    lines += ["\tManufacturer: Samsung", f"\tPart Number: {slot.part}", f"\tRank: {slot.rank}"]
    return "\n".join([*lines, f"\tConfigured Memory Speed: {slot.MTps} MT/s", "\tMemory Technology: DRAM", ""])
