"""Slurm's topology.conf: a tree of switches, or blocks of nodes.

Format: Slurm, topology.conf(5). It is what the administrator states, not what was discovered: links have no rate
(LinkSpeed is in arbitrary units, which Slurm does not use).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from seatrial.errors import ParseError
from seatrial.fabric.parts import DevicePart, FabricDump, PartKind, PortPart, Source, Text
from seatrial.machine.readers.dump import Line, is_fence
from seatrial.model.host_list import MAX_NAMES, expand_hosts

TOOL = "topology.conf"

_PAIR = re.compile(r"(?P<key>[A-Za-z]+)\s*=\s*(?P<value>[^\s=]*)(?=\s|\Z)", re.ASCII)
_FIRST = re.compile(r"(?P<key>SwitchName|BlockName|BlockSizes)\s*=", re.IGNORECASE)
_ALLOWED = {
    "switchname": {"switchname", "switches", "nodes", "linkspeed"},
    "blockname": {"blockname", "nodes"},
    "blocksizes": {"blocksizes"},
}


def read_slurm_topology(texts: Sequence[Text]) -> FabricDump:
    """The switches (or blocks), nodes, and a link for each child. Raises ParseError for damaged text."""
    reader = _Reader()
    for text in texts:
        text.refuse_pick(TOOL)
        for joined, line in _joined_lines(text.lines(TOOL), text.name):
            reader.read(joined, Source.of(TOOL, line, text.name))
    return reader.dump(texts[0].name)


def _joined_lines(lines: Sequence[Line], file: str) -> Iterator[tuple[str, Line]]:
    """Lines without comments; one that ends in a backslash is joined to the next."""
    kept = ""
    first: Line | None = None
    for line in lines:
        text = line.text.partition("#")[0].rstrip()
        first = first or line
        if text.endswith("\\"):
            kept += text[:-1] + " "
            continue
        yield kept + text, first
        kept, first = "", None
    if kept and first is not None:
        raise Source.of(TOOL, first, file).error("the file ends in a line that goes on: was it cut off?")


class _Reader:
    def __init__(self) -> None:
        self.devices: dict[str, DevicePart] = {}
        self.ports: list[PortPart] = []
        self.facts: dict[str, str] = {}
        self._node_of: dict[str, Source] = {}
        self._names = 0
        self._form = ""

    def read(self, text: str, source: Source) -> None:
        first = _FIRST.match(text.strip())
        if first is None or is_fence(text):
            return self._check_unknown(text, source)
        pairs = self._pairs(text, source)
        form = first["key"].lower()
        unknown = sorted(set(pairs) - _ALLOWED[form])
        if unknown:
            raise source.error(f"{unknown[0]} is not a key of {first['key']}")
        if form == "blocksizes":
            self.facts["block_sizes"] = pairs[form]
            return None
        if self._form not in ("", form):
            raise source.error("switches and blocks in one file")
        self._form = form
        self._begin(pairs[form], source)
        for child in self._children(pairs.get("switches", ""), "Switches", source):
            self._link(pairs[form], child, PartKind.SWITCH, source)
        for node in self._children(pairs.get("nodes", ""), "Nodes", source):
            self._link(pairs[form], node, PartKind.NODE, source)
        if len(pairs) == 1:
            raise source.error(f"{pairs[form]} has neither switches nor nodes: was the line cut off?")
        return None

    def _check_unknown(self, text: str, source: Source) -> None:
        """Prose around the file is ignored, a damaged line is not."""
        if re.match(r"\s*[A-Za-z]{2,20}\s*=\s*\S", text) or re.search(r"\b(?:Nodes|Switches)\s*=", text, re.IGNORECASE):
            raise source.error("not a line of topology.conf: it begins with SwitchName=, BlockName= or BlockSizes=")

    def _pairs(self, text: str, source: Source) -> dict[str, str]:
        pairs: dict[str, str] = {}
        at = 0
        text = text.strip()
        while at < len(text):
            match = _PAIR.match(text, at)
            if match is None:
                raise source.error(f"not a Key=value: {text[at : at + 80]!r}")
            key = match["key"].lower()
            if key in pairs:
                raise source.error(f"{match['key']} is given twice")
            if not match["value"]:
                raise source.error(f"{match['key']} has no value: was the line cut off?")
            pairs[key] = match["value"]
            at = match.end()
            at += len(text[at:]) - len(text[at:].lstrip())
        return pairs

    def _begin(self, name: str, source: Source) -> None:
        if name in self.devices:
            raise source.error(f"{name} is also on line {self.devices[name].source.line}")
        self.devices[name] = DevicePart(name, PartKind.SWITCH, name, source)

    def _children(self, text: str, key: str, source: Source) -> tuple[str, ...]:
        try:
            names = expand_hosts(text)
        except ValueError as error:
            raise source.error(f"{key}: {error}") from None
        self._names += len(names)
        if self._names > MAX_NAMES:
            raise source.error(f"more than {MAX_NAMES} names in the file")
        if text.upper() == "ALL":
            raise source.error("Nodes=ALL names no node: the nodes are in slurm.conf")
        return names

    def _link(self, parent: str, child: str, kind: PartKind, source: Source) -> None:
        if kind is PartKind.NODE:
            self._node_of.setdefault(child, source)
        self.ports.append(PortPart(parent, None, source, (child, None)))

    def dump(self, file: str) -> FabricDump:
        if not self.devices:
            raise ParseError(TOOL, None, "", "no SwitchName= or BlockName= in the file", file)
        for port in self.ports:
            child = port.peer[0] if port.peer else ""
            if child not in self.devices and child not in self._node_of:
                raise port.source.error(f"switch {child} has no line of its own: the file is incomplete")
        for name, source in self._node_of.items():
            if name in self.devices:
                raise source.error(f"{name} is a node here and a switch on line {self.devices[name].source.line}")
        nodes = [DevicePart(name, PartKind.NODE, name, source) for name, source in self._node_of.items()]
        return FabricDump(TOOL, [*self.devices.values(), *nodes], self.ports, is_one_sided=True, facts=self.facts)
