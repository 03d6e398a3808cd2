"""Slurm's topology.yaml: several topologies, each a tree of switches or blocks of nodes.

Format: Slurm, topology.yaml(5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from seatrial.errors import UsageError
from seatrial.fabric.parts import FabricDump, Source, Text
from seatrial.fabric.readers.slurm_tree import Tree
from seatrial.machine.readers.dump import choose
from seatrial.plan.files import Node, read_yaml

TOOL = "topology.yaml"

_BEGIN = re.compile(rb"^(?:- +)?topology[ \t]*:", re.MULTILINE)
_CONF = re.compile(rb"^[ \t]*(?:Switch|Block)Name[ \t]*=", re.MULTILINE | re.IGNORECASE)
_NOT_READ = ("flat", "ring", "torus3d")


def is_topology_yaml(text: Text) -> bool:
    """Whether a file is a topology.yaml, and not a topology.conf."""
    return _BEGIN.search(text.data) is not None and _CONF.search(text.data) is None


def read_topology_yaml(texts: Sequence[Text]) -> FabricDump:
    """The only topology of a file, or the chosen one. Raises ParseError for damaged text, UsageError for several
    topologies without a choice."""
    if len(texts) > 1:
        raise UsageError(f"{TOOL} is one file, not {len(texts)}", "give one file")
    text = texts[0]
    root = read_yaml(text.data, text.name).root
    topology = choose(root.items or [root], lambda node: node.line, text.pick, TOOL, "topology")
    reader = _Reader(text.name)
    reader.read(topology)
    return reader.tree.dump("switch or block", text.name)


class _Reader:
    def __init__(self, file: str) -> None:
        self.tree = Tree(TOOL)
        self._file = file

    def read(self, topology: Node) -> None:
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

    def _read_all(self, node: Node, what: str, name: str, allowed: set[str]) -> None:
        if not node.items and name not in node.entries:
            raise self._at(node).error(f"{what} is not a list of entries with a key {name}")
        for entry in node.items or [node]:
            given = self._entries(entry, what, allowed)
            if name not in given:
                raise self._at(entry).error(f"an entry of {what} has no key {name}")
            texts = {key: self._text(value, key) for key, value in given.items()}
            self.tree.add(texts[name], texts.get("children", ""), texts.get("nodes", ""), self._at(entry))

    def _entries(self, node: Node, what: str, allowed: set[str]) -> Mapping[str, Node]:
        if not isinstance(node.value, dict):
            raise self._at(node).error(f"{what} is {node.shown()}, not keys with values")
        for key, value in node.entries.items():
            if key not in allowed:
                raise self._at(value).error(f"{key[:60]!r} is not a key of {what}: {', '.join(sorted(allowed))}")
        return node.entries

    def _text(self, node: Node, key: str) -> str:
        if not node.is_scalar or not node.written.strip():
            raise self._at(node).error(f"{key} is {node.shown()}, not text")
        return node.written.strip()

    def _at(self, node: Node) -> Source:
        return Source(TOOL, node.line, "", self._file)
