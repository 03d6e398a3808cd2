"""The facts about a machine from one source, before the sources are joined.

Every reader of a topology (sysfs, hwloc, lspci, NCCL, ...) produces a `Survey`: flat lists of parts with the source's
own identifiers. `seatrial.machine.assemble` builds one tree from any number of surveys, so that hwloc and sysfs cannot
produce different shapes of one machine.
"""

from __future__ import annotations

import math

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Fact, FactKind, Facts, FactValue
from seatrial.model.machine.machine import DeviceKind, Path, PeerAccess, Platform
from seatrial.model.units import SIUnit


class FactBook:
    """Collects facts. Missing values are skipped, so that readers need no `if` around each."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[Fact]] = {}

    def say(
        self,
        name: str,
        value: FactValue | None,
        source: str,
        unit: SIUnit | None = None,
        *,
        kind: FactKind = FactKind.DISCOVERED,
        volatile: bool = False,
    ) -> None:
        """Add one fact; None, empty text and numbers that are not finite are skipped."""
        if value is None or value == "" or (isinstance(value, float) and not math.isfinite(value)):
            return
        self._by_name.setdefault(name, []).append(Fact(value, source, kind, unit, volatile))

    def facts(self) -> Facts:
        """All facts; those of one name in the order in which they were added."""
        return Facts({name: tuple(facts) for name, facts in self._by_name.items()})


def one_fact(name: str, value: FactValue | None, source: str, unit: SIUnit | None = None) -> Facts:
    """A single discovered fact, or none if the value is missing."""
    book = FactBook()
    book.say(name, value, source, unit)
    return book.facts()


def merge_facts(*several: Facts) -> Facts:
    """The facts of several sources, in their order; exact duplicates are dropped."""
    merged: dict[str, list[Fact]] = {}
    for facts in several:
        for name, several_facts in facts.items():
            known = merged.setdefault(name, [])
            known += [fact for fact in several_facts if fact not in known]
    return Facts({name: tuple(known) for name, known in merged.items()})


class CpuPart(Frozen):
    """A package, NUMA node, cache, core or PU, identified by its CPUs (numbers of the operating system).

    `cpus` of a NUMA node are its local CPUs; a node without CPUs (CXL, HBM, a GPU's memory) has none. `cache` is the
    usual short name of a cache ("l1d", "l2"), else "".
    """

    kind: DeviceKind
    cpus: frozenset[int]
    os_index: int | None = None
    level: int = 0
    cache: str = ""
    facts: Facts = field(default_factory=Facts)


class SurveyLinkRate(Frozen):
    """Speed of one end of a PCIe link: GT/s per lane, and number of lanes."""

    GTps: float
    lanes: int


class PciPart(Frozen):
    """A PCI function, or a host bridge (whose `address` is "domain:bus" and whose `class_id` is "").

    `class_id` has four hex digits ("0302"); "0000", which no device since PCI 2.0 has, if it is unknown. `parent` is
    the address of the bridge above. `capable` and `trained` describe the link towards that bridge as this function
    reports it; `trained_Bps` is set by sources that state only a rate. `kind` is set if the source states what the
    function is. `is_condensed` marks sources in which a bridge is a whole switch and `capable` is what both ends of the
    link support (NCCL); other sources show each port.
    """

    address: str
    class_id: str
    parent: str | None = None
    numa: int | None = None
    cpus: frozenset[int] | None = None
    capable: SurveyLinkRate | None = None
    trained: SurveyLinkRate | None = None
    trained_Bps: float | None = None
    kind: DeviceKind | None = None
    source: str = ""
    facts: Facts = field(default_factory=Facts)
    is_condensed: bool = False

    @property
    def is_bridge(self) -> bool:
        """Whether other functions hang below it."""
        return self.class_id in ("", "0604")


class NamedPart(Frozen):
    """A device named by the operating system or a tool: eth0, mlx5_0, nvme0n1, vda, nvml0, GPU0.

    `is_label` marks the row of a matrix: `name` is then that matrix's own label, which becomes the device's id, and
    `aliases` its other name (NIC0, of the legend's mlx5_1). `numa_nodes` are its NUMA nodes if the source lists several
    (a Grace CPU and the memories of its GPUs). `index` is a GPU's number in the vendor's tool (3 of GPU3,
    of nvml3, of NCCL's dev="3"), which joins sources without PCI addresses to those with them. `cpus` are its local
    CPUs if the source lists them.
    """

    kind: DeviceKind
    name: str
    pci: str | None = None
    numa: int | None = None
    aliases: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)
    cpus: frozenset[int] | None = None
    index: int | None = None
    is_label: bool = False
    numa_nodes: tuple[int, ...] | None = None


class PeerLink(Frozen):
    """Direct links between two processors, or a processor and a switch: NVLink, XGMI, C2C.

    An end is the name of a NamedPart of the same survey, or a PCI address. `count` is the number of links, the rates
    are of all of them together, in B/s per direction. `kind` is "nvlink", "xgmi" or "c2c".
    """

    a: str
    b: str
    kind: str
    count: int | None = None
    capable_Bps: float | None = None
    trained_Bps: float | None = None
    source: str = ""


class MemoryModule(Frozen):
    """One memory slot; `size_bytes` is 0 if it is known to be empty. Rates in MT/s. None is unknown.

    `buffering` is "RDIMM", "LRDIMM" or "UDIMM", `data_bits` the width of its data bus without the bits for ECC,
    `total_bits` with them.
    """

    locator: str
    bank: str
    size_bytes: int | None
    memory_type: str | None = None
    rated_MTps: float | None = None
    configured_MTps: float | None = None
    rank: int | None = None
    manufacturer: str | None = None
    part_number: str | None = None
    socket: int | None = None
    channel: str | None = None
    source: str = ""
    buffering: str | None = None
    data_bits: int | None = None
    total_bits: int | None = None


class Survey(Frozen):
    """All facts from one source. `memory_slots` is the number of slots that it declares, even if it does not describe
    each; `why_no_modules` is the reason if a source that should describe the memory modules does not."""

    source: str
    name: str | None = None
    facts: Facts = field(default_factory=Facts)
    cpu_parts: tuple[CpuPart, ...] = ()
    pci_parts: tuple[PciPart, ...] = ()
    named_parts: tuple[NamedPart, ...] = ()
    modules: tuple[MemoryModule, ...] = ()
    memory_slots: int | None = None
    why_no_modules: str | None = None
    allowed_cpus: tuple[int, ...] = ()
    unread: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    """Path classes of a matrix; ends as in PeerLink. SOC becomes SYS, NV12 becomes class NV with 12 links."""
    p2p: tuple[PeerAccess, ...] = ()
    peer_links: tuple[PeerLink, ...] = ()
    knows_peer_links: bool = False
    """Whether the source lists all direct links between processors, so that other pairs have none."""
    platform: Platform = field(default_factory=Platform)
    """Hypervisors and containers, in addition to the fact `hypervisor`."""
