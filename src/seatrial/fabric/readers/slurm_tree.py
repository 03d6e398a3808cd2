"""What Slurm's topology files state: switches with what is below them, or blocks of nodes."""

from __future__ import annotations

from seatrial.errors import ParseError
from seatrial.fabric.parts import DevicePart, FabricDump, PartKind, PortPart, Source
from seatrial.model.machine.host_list import MAX_NAMES, expand_hosts


class Tree:
    """Collects switches (or blocks) in the order of the file. All methods raise ParseError for what is wrong."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self.facts: dict[str, str] = {}
        self._devices: dict[str, DevicePart] = {}
        self._ports: list[PortPart] = []
        self._node_of: dict[str, Source] = {}
        self._names = 0

    def add(self, name: str, switches: str, nodes: str, source: Source) -> None:
        """A switch or block with the lists of its children ("": none)."""
        if name in self._devices:
            raise source.error(f"{name} is also on line {self._devices[name].source.line}")
        if not switches and not nodes:
            raise source.error(f"{name} has neither switches nor nodes: was the line cut off?")
        self._devices[name] = DevicePart(name, PartKind.SWITCH, name, source)
        for child in self._children(switches, "switches", source):
            self._ports.append(PortPart(name, None, source, (child, None)))
        for node in self._children(nodes, "nodes", source):
            self._node_of.setdefault(node, source)
            self._ports.append(PortPart(name, None, source, (node, None)))

    def _children(self, text: str, key: str, source: Source) -> tuple[str, ...]:
        try:
            names = expand_hosts(text)
        except ValueError as error:
            raise source.error(f"{key}: {error}") from None
        self._names += len(names)
        if self._names > MAX_NAMES:
            raise source.error(f"more than {MAX_NAMES} names in the file")
        if text.upper() == "ALL":
            raise source.error("ALL names no node: the nodes are in slurm.conf")
        return tuple(dict.fromkeys(names))

    def dump(self, what: str, file: str) -> FabricDump:
        """The parts. `what` names what the file should have."""
        if not self._devices:
            raise ParseError(self._tool, None, "", f"no {what} in the file", file)
        for port in self._ports:
            child = port.peer[0] if port.peer else ""
            if child not in self._devices and child not in self._node_of:
                raise port.source.error(f"switch {child} has no line of its own: the file is incomplete")
        for name, source in self._node_of.items():
            if name in self._devices:
                line = self._devices[name].source.line
                raise source.error(f"{name} is a node here and a switch on line {line}")
        nodes = [DevicePart(name, PartKind.NODE, name, source) for name, source in self._node_of.items()]
        return FabricDump(
            self._tool, [*self._devices.values(), *nodes], self._ports, is_one_sided=True, facts=self.facts
        )
