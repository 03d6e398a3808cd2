"""Machine -> scene: the boxes, their text, and what is attached to what."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine
from seatrial.model.spelling import count, show
from seatrial.report.drawing.attached import MatrixGroups, PciForest, is_only_labelled
from seatrial.report.drawing.cards import ENDPOINTS, CardMaker
from seatrial.report.drawing.geometry import clean
from seatrial.report.drawing.peers import notes_of, peers_of, warnings_of
from seatrial.report.drawing.processors import (
    CPU_KINDS,
    OUTER,
    Processors,
    modules_of,
    package_lines,
    population_line,
    summary,
    title_of,
)
from seatrial.report.drawing.scene import Area, Between, Domain, DrawnPlace, Modules, Note, Scene, Socket, Tone, rate_of

_MANY = 400
"""From this number of GPUs, adapters and disks on, all devices of one kind in a box become one."""
_MOST_SOCKETS = 16
_MOST_DOMAINS = 16


def build_scene(machine: Machine) -> Scene:
    """The content of the drawing of a machine."""
    return _Builder(machine).scene()


class _Builder:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._has_measured = any(link.measured_Bps is not None for link in machine.links)
        ends = [device for device in machine.devices if device.kind in ENDPOINTS]
        self._maker = CardMaker(
            machine.affinity, notes_of(machine), has_measured=self._has_measured, is_crowded=len(ends) > _MANY
        )
        self._peers = peers_of(machine, has_measured=self._has_measured)
        self._has_bank = self._peers is not None and self._peers.bank is not None and self._peers.bank.switches > 0
        self._forest = PciForest(machine, self._maker, has_bank=self._has_bank)
        self._groups = MatrixGroups(machine, self._maker)
        self._processors = Processors(machine)
        self._labelled = [device for device in machine.devices if is_only_labelled(device, machine)]
        self._labelled_of: dict[int, list[Device]] = {}
        self._hosts: dict[str, list[str]] = {}

    def scene(self) -> Scene:
        machine = self._machine
        unplaced = self._match_labelled()
        self._find_hosts()
        sockets = self._sockets()
        if not sockets:
            sockets = self._memory_sockets() + self._matrix_domains(unplaced)
        return Scene(
            clean(machine.name) or "machine",
            self._headline(),
            tuple(sockets),
            self._loose(),
            self._peers,
            self._between(),
            self._has_measured,
        )

    def _headline(self) -> tuple[Note, ...]:
        machine = self._machine
        kinds = ((DeviceKind.PACKAGE, "package"), (DeviceKind.NUMA, "NUMA node"), (DeviceKind.CORE, "core"),
                 (DeviceKind.PU, "hardware thread"), (DeviceKind.GPU, "GPU"), (DeviceKind.NIC, "adapter"))  # fmt: skip
        counts = [count(number, noun) for kind, noun in kinds if (number := len(machine.of_kind(kind)))]
        memory = machine.facts.number("memory_total")
        counts += [f"{show(memory, 'B', binary=True)} memory"] if memory is not None else []
        population = population_line(machine)
        lines = (Note(", ".join(counts), Tone.MUTED) if counts else None, population)
        return (*(line for line in lines if line is not None), *warnings_of(machine))

    def _match_labelled(self) -> list[Device]:
        """Assign rows of a matrix to the NUMA nodes of another source. Returns the rest."""
        nodes = {device.numa for device in self._machine.of_kind(DeviceKind.NUMA) if device.numa is not None}
        rest: list[Device] = []
        for (numa, _), devices in self._groups.by_domain(self._labelled).items():
            if numa is not None and numa in nodes:
                self._labelled_of.setdefault(numa, []).extend(devices)
            else:
                rest += devices
        return rest

    def _find_hosts(self) -> None:
        """Find the processor parts with attached devices, by the package or node that is drawn for them.

        Devices are attached to nodes and packages; a device attached to a core or cache is drawn at its node or
        package.
        """
        io_parents = {device.parent for device in self._machine.devices if device.kind not in CPU_KINDS}
        for device in self._machine.devices:
            if device.id not in io_parents or device.kind not in CPU_KINDS:
                continue
            chain = (device, *self._machine.ancestors(device))
            owner = next((above for above in chain if above.kind in OUTER), None)
            if owner is not None:
                self._hosts.setdefault(owner.id, []).append(device.id)

    def _place(self, *owners: Device) -> DrawnPlace:
        hosts = [host for owner in owners for host in self._hosts.get(owner.id, ())]
        place = self._forest.place(hosts)
        numas = [owner.numa for owner in owners if owner.kind is DeviceKind.NUMA and owner.numa is not None]
        labelled = [device for numa in numas for device in self._labelled_of.pop(numa, [])]
        if not labelled:
            return place
        self._forest.take(labelled)
        groups = self._groups.place(labelled)
        return DrawnPlace(place.cards + groups.cards, place.hubs + groups.hubs)

    def _sockets(self) -> list[Socket]:
        roots = self._processors.roots()
        modules = self._modules([root for root in roots if root.kind is DeviceKind.PACKAGE])
        if not roots:
            if not self._processors.has_bare_cores():
                return []
            return [Socket("", domains=(Domain("processor", self._processors.parts(None)),))]
        sockets = [self._socket(root, modules.get(root.id)) for root in roots[:_MOST_SOCKETS]]
        rest = roots[_MOST_SOCKETS:]
        if rest:
            inside = [inner for root in rest for inner in (root, *self._inner_all(root))]
            noun = "package" if rest[0].kind is DeviceKind.PACKAGE else "NUMA node"
            text = summary(rest, noun)
            sockets.append(Socket("", domains=(Domain(text, place=self._place(*inside), hint=text),)))
        return sockets

    def _inner_all(self, root: Device) -> list[Device]:
        return [device for device in self._processors.below(root) if device.kind in OUTER]

    def _socket(self, root: Device, modules: Modules | None) -> Socket:
        inner = [device for device in self._processors.inner(root) if device.kind is DeviceKind.NUMA]
        if root.kind is DeviceKind.NUMA:
            return Socket("", domains=(self._domain(root, (root, *self._inner_all(root))),))
        hint = ", ".join([title_of(root), *(line.text for line in package_lines(root)), self._processors.cpus(root)])
        ids = (root.id,)
        title, lines = title_of(root), package_lines(root)
        if not inner:
            parts, place = self._processors.parts(root), self._place(root)
            if not parts:
                return Socket(title, lines, modules, (), place, hint, ids)
            return Socket(title, lines, modules, (Domain("", parts, place),), DrawnPlace(), hint, ids)
        own = self._processors.parts(root, inner)
        lines += tuple(Note(line.text, Tone.MUTED) for part in own if part.kind != "memory" for line in part.lines)
        domains = [self._domain(node, (node, *self._inner_all(node))) for node in inner[:_MOST_DOMAINS]]
        rest = inner[_MOST_DOMAINS:]
        if rest:
            text = summary(rest, "NUMA node")
            domains.append(Domain(text, place=self._place(*rest), hint=text))
        return Socket(title, lines, modules, tuple(domains), self._place(root), hint, ids)

    def _domain(self, node: Device, owners: Sequence[Device]) -> Domain:
        parts = self._processors.parts(node)
        cpus = self._processors.cpus(node)
        hint = ", ".join(filter(None, (title_of(node), *(line.text for part in parts for line in part.lines), cpus)))
        title = title_of(node)
        if parts and all(part.kind == "memory" for part in parts):
            title += " (memory only)"
        return Domain(title, parts, self._place(*owners), hint, tuple(owner.id for owner in owners))

    def _matrix_domains(self, devices: Sequence[Device]) -> list[Socket]:
        """NUMA nodes known only from a matrix, by the affinity of its rows."""
        sockets: list[Socket] = []
        groups = list(self._groups.by_domain(devices).items())[:_MOST_SOCKETS]
        for (numa, cpus), members in groups:
            if numa is None and not cpus and len(groups) > 1:
                continue
            title = f"NUMA node {numa}" if numa is not None else cpus or "locality unknown"
            parts = (Area("cores", (Note(cpus),)),) if numa is not None and cpus else ()
            self._forest.take(members)
            place = self._groups.place(members)
            hint = f"{title}: from the affinity in the matrix" if numa is not None or cpus else title
            sockets.append(Socket("", domains=(Domain(title, parts, place, hint, assumed=numa is None and not cpus),)))
        return sockets

    def _memory_sockets(self) -> list[Socket]:
        """Sockets of which only the memory is known."""
        found: list[Socket] = []
        devices = self._machine.memory_modules()
        taken = 0
        for number, memory in enumerate(self._machine.memory.sockets[:_MOST_SOCKETS]):
            modules = modules_of(memory, devices[taken : taken + memory.dimms])
            taken += memory.dimms
            found.append(Socket(f"socket {number}", (), modules, hint=f"socket {number}: only its memory is known"))
        return found

    def _modules(self, packages: Sequence[Device]) -> dict[str, Modules]:
        """Package -> its modules, if there are as many sockets as packages."""
        sockets = self._machine.memory.sockets
        if len(sockets) != len(packages):
            return {}
        devices = self._machine.memory_modules()
        found: dict[str, Modules] = {}
        for package, socket in zip(packages, sockets, strict=True):
            modules = modules_of(socket, [device for device in devices if device.parent == package.id])
            if modules is not None:
                found[package.id] = modules
        return found

    def _loose(self) -> DrawnPlace:
        """The devices of unknown locality."""
        labelled = {device.id for device in self._labelled}
        if self._has_bank:
            self._forest.take(self._machine.of_kind(DeviceKind.SWITCH))
        missed = self._forest.missed()
        in_matrix = [device for device in missed if device.id in labelled]
        known = {device.id for device in self._machine.devices}
        roots = [
            device
            for device in self._machine.devices
            if device.kind in (*ENDPOINTS, DeviceKind.BRIDGE)
            and device.id not in labelled
            and (device.parent is None or device.parent not in known)
        ]
        self._forest.take(in_matrix)
        groups = self._groups.place(in_matrix)
        place = self._forest.loose(roots)
        ring = self._forest.loose(self._forest.missed())
        return DrawnPlace(groups.cards + place.cards + ring.cards, groups.hubs + place.hubs + ring.hubs)

    def _between(self) -> Between | None:
        outer = self._processors.roots()
        if not outer and any(path.path_class == "SYS" for path in self._machine.paths):
            hint = "the link between NUMA nodes (SYS in the matrix)"
            return Between(("SYS",), hint, name="SYS: between NUMA nodes")
        if len(outer) < 2:
            return None
        ids = {device.id for device in self._machine.devices if device.kind in OUTER}
        links: list[Link] = [link for link in self._machine.links if link.a in ids and link.b in ids]
        distances = self._distances(outer)
        rate = rate_of(links[:1], has_measured=self._has_measured)
        texts = [rate.text] if rate.text else [distances] if distances else []
        sockets = any(device.kind is DeviceKind.PACKAGE for device in outer)
        what = ("inter-socket", "inter-socket link") if sockets else ("between NUMA nodes", "link between NUMA nodes")
        hint = "; ".join([what[1], *texts, *([distances] if distances and rate.text else [])])
        return Between((what[0], *texts), hint, rate.grade if rate.text else rate_of((), has_measured=False).grade)

    def _distances(self, outer: Sequence[Device]) -> str:
        """The distances between the first nodes of the sockets, as "distance 21"."""
        first = [device if device.kind is DeviceKind.NUMA else next(iter(self._processors.inner(device)), None)
                 for device in outer]  # fmt: skip
        numbers = [node.numa for node in first if node is not None and node.numa is not None]
        found: set[int] = set()
        for node in first:
            if node is None:
                continue
            for word in (node.facts.text("distances") or "").split():
                number, _, distance = word.partition(":")
                if number.isdecimal() and distance.isdecimal() and int(number) in numbers and int(number) != node.numa:
                    found.add(int(distance))
        if not found:
            return ""
        return f"distance {min(found)}" if len(found) == 1 else f"distance {min(found)}-{max(found)}"
