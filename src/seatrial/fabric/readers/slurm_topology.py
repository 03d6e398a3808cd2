"""Slurm's topology.conf(5), a tree of switches or blocks of nodes, and topology.yaml(5), which has several of them.

It is what the administrator states, not what was discovered: links have no rate (LinkSpeed is in arbitrary units, which
Slurm does not use). `scontrol show topology` prints the same with levels; there a switch also lists the nodes of the
switches below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from seatrial.errors import ParseError, UsageError
from seatrial.fabric.parts import DevicePart, FabricDump, FabricSource, FabricText, PartKind, PortPart
from seatrial.machine.readers.dump import Line, choose, is_fence
from seatrial.model.machine.host_list import MAX_NAMES, expand_hosts
from seatrial.plan.files import YamlNode, read_yaml


class TopologyTree:
    """Collects switches (or blocks) in the order of the file. All methods raise ParseError for what is wrong."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self.facts: dict[str, str] = {}
        self._devices: dict[str, DevicePart] = {}
        self._ports: list[PortPart] = []
        self._node_of: dict[str, FabricSource] = {}
        self._names = 0

    def add(self, name: str, switches: str, nodes: str, source: FabricSource) -> None:
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

    def _children(self, text: str, key: str, source: FabricSource) -> tuple[str, ...]:
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
                raise port.source.error(f"switch {child} has no line in the file: the file is incomplete")
        for name, source in self._node_of.items():
            if name in self._devices:
                line = self._devices[name].source.line
                raise source.error(f"{name} is a node here and a switch on line {line}")
        nodes = [DevicePart(name, PartKind.NODE, name, source) for name, source in self._node_of.items()]
        return FabricDump(
            self._tool, [*self._devices.values(), *nodes], self._ports, is_one_sided=True, facts=self.facts
        )


TOOL_YAML = "topology.yaml"

_BEGIN = re.compile(r"^(?:- +)?topology[ \t]*:", re.MULTILINE)
_CONF = re.compile(r"^[ \t]*(?:Switch|Block)Name[ \t]*=", re.MULTILINE | re.IGNORECASE)
_NOT_READ = ("flat", "ring", "torus3d")


def _read_yaml(texts: Sequence[FabricText], contents: Sequence[str]) -> FabricDump:
    """The only topology of a file, or the chosen one."""
    if len(texts) > 1:
        raise UsageError(f"{TOOL_YAML} is one file, not {len(texts)}", "give one file")
    text = texts[0]
    root = read_yaml(contents[0].encode("utf-8", "replace"), text.name).root
    topology = choose(root.items or [root], lambda node: node.line, text.pick, TOOL_YAML, "topology")
    reader = _YamlReader(text.name)
    reader.read(topology)
    return reader.tree.dump("switch or block", text.name)


class _YamlReader:
    def __init__(self, file: str) -> None:
        self.tree = TopologyTree(TOOL_YAML)
        self._file = file

    def read(self, topology: YamlNode) -> None:
        given = self._entries(topology, "a topology", {"topology", "cluster_default", "tree", "block", *_NOT_READ})
        kinds = [kind for kind in ("tree", "block", *_NOT_READ) if kind in given and given[kind].value is not False]
        if len(kinds) != 1:
            has = " and ".join(kinds) or "none"
            raise self._at(topology).error(f"a topology has one of tree and block, this one has {has}")
        kind = kinds[0]
        if kind in _NOT_READ:
            raise self._at(given[kind]).error(f"{kind} is not read: only tree and block are")
        if "topology" in given:
            self.tree.facts["topology"] = self._text(given["topology"], "topology")
        if kind == "tree":
            tree = self._entries(given["tree"], "tree", {"switches"})
            self._read_all(tree.get("switches", given["tree"]), "switches", "switch", {"switch", "children", "nodes"})
            return
        block = self._entries(given["block"], "block", {"block_sizes", "blocks"})
        if "block_sizes" in block:
            sizes = block["block_sizes"].items or [block["block_sizes"]]
            self.tree.facts["block_sizes"] = ",".join(self._text(size, "block_sizes") for size in sizes)
        self._read_all(block.get("blocks", given["block"]), "blocks", "block", {"block", "nodes"})

    def _read_all(self, node: YamlNode, what: str, name: str, allowed: set[str]) -> None:
        if not node.items and name not in node.entries:
            raise self._at(node).error(f"{what} is not a list of entries with a key {name}")
        for entry in node.items or [node]:
            given = self._entries(entry, what, allowed)
            if name not in given:
                raise self._at(entry).error(f"an entry of {what} has no key {name}")
            texts = {key: self._text(value, key) for key, value in given.items()}
            self.tree.add(texts[name], texts.get("children", ""), texts.get("nodes", ""), self._at(entry))

    def _entries(self, node: YamlNode, what: str, allowed: set[str]) -> Mapping[str, YamlNode]:
        if not isinstance(node.value, dict):
            raise self._at(node).error(f"{what} is {node.shown()}, not keys with values")
        for key, value in node.entries.items():
            if key not in allowed:
                raise self._at(value).error(f"{key[:60]!r} is not a key of {what}: {', '.join(sorted(allowed))}")
        return node.entries

    def _text(self, node: YamlNode, key: str) -> str:
        if not node.is_scalar or not node.written.strip():
            raise self._at(node).error(f"{key} is {node.shown()}, not text")
        return node.written.strip()

    def _at(self, node: YamlNode) -> FabricSource:
        return FabricSource(TOOL_YAML, node.line, "", self._file)


TOOL = "topology.conf"

_PAIR = re.compile(r"(?P<key>[A-Za-z]+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<value>[^\s=\"]*))(?=\s|\Z)", re.ASCII)
_FIRST = re.compile(r"(?P<key>SwitchName|BlockName|BlockSizes|BlockLevels|AggregatedBlock|RingName)\s*=", re.IGNORECASE)
_SIZES = re.compile(r"\d{1,9}(?:,\d{1,9})*", re.ASCII)
_DAMAGED = re.compile(r"\A\s*[A-Za-z]{2,20}\s*=\s*\S|(?i:\b(?:Nodes|Switches)\s*=)")
_INCLUDE = re.compile(r"Include\s+(?P<file>\S+)\s*\Z", re.IGNORECASE)
_ALLOWED = {
    "switchname": {"switchname", "switches", "nodes", "linkspeed", "level"},
    "blockname": {"blockname", "nodes", "blockindex", "blocksize"},
    "aggregatedblock": {"aggregatedblock", "nodes", "blockindex", "blocksize"},
    "blocksizes": {"blocksizes"},
    "blocklevels": {"blocklevels"},
}


def read_slurm_topology(texts: Sequence[FabricText]) -> FabricDump:
    """The switches (or blocks), nodes, and a link for each child. Raises ParseError for damaged text, UsageError for
    several topologies in a topology.yaml without a choice."""
    contents = ["".join(f"{line.text}\n" for line in text.lines(TOOL)) for text in texts]
    if any(_BEGIN.search(content) and not _CONF.search(content) for content in contents):
        return _read_yaml(texts, contents)
    reader = _Reader({PurePath(text.name).name for text in texts})
    for text in texts:
        text.refuse_pick(TOOL)
        for joined, line in _joined_lines(text.lines(TOOL), text.name):
            reader.read(joined, FabricSource.of(TOOL, line, text.name))
    return reader.tree.dump("SwitchName= or BlockName=", texts[0].name)


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
        raise FabricSource.of(TOOL, first, file).error("the file ends in a line that goes on: was it cut off?")


class _Reader:
    def __init__(self, files: set[str]) -> None:
        self.tree = TopologyTree(TOOL)
        self._files = files
        self._form = ""

    def read(self, text: str, source: FabricSource) -> None:
        first = _FIRST.match(text.strip())
        if first is None or is_fence(text):
            self._check_unknown(text, source)
            return
        form = first["key"].lower()
        if form == "ringname":
            raise source.error("rings (topology/ring) are not read: only trees and blocks are")
        pairs = self._pairs(text, source)
        unknown = sorted(set(pairs) - _ALLOWED[form])
        if unknown:
            raise source.error(f"{unknown[0]} is not a key of {first['key']}")
        if form in ("blocksizes", "blocklevels"):
            if _SIZES.fullmatch(pairs[form]) is None:
                raise source.error(f"{first['key']} is a list of numbers of nodes, such as 18,36")
            self.tree.facts["block_sizes"] = pairs[form]
        elif form != "aggregatedblock":  # whose blocks have their own lines
            if self._form not in ("", form):
                raise source.error("switches and blocks in one file")
            self._form = form
            switches = pairs.get("switches", "")
            is_above = bool(switches) and pairs.get("level", "0") != "0"  # its nodes are those of its switches
            self.tree.add(pairs[form], switches, "" if is_above else pairs.get("nodes", ""), source)

    def _check_unknown(self, text: str, source: FabricSource) -> None:
        """Prose around the file is ignored, a damaged line is not."""
        if include := _INCLUDE.match(text.strip()):
            if PurePath(include["file"]).name not in self._files:
                why = f"the file includes {include['file']}: give that too, as another slurm-topology=FILE"
                raise source.error(why)
        elif _DAMAGED.search(text):
            raise source.error("not a line of topology.conf: it begins with SwitchName=, BlockName= or BlockSizes=")

    def _pairs(self, text: str, source: FabricSource) -> dict[str, str]:
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
            value = match["value"] if match["quoted"] is None else match["quoted"].strip()
            if not value:
                raise source.error(f"{match['key']} has no value: was the line cut off?")
            pairs[key] = value
            at = match.end()
            at += len(text[at:]) - len(text[at:].lstrip())
        return pairs
