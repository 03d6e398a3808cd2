"""Slurm's topology.conf: a tree of switches, or blocks of nodes; topology.yaml is in `slurm_topology_yaml`.

Format: Slurm, topology.conf(5). It is what the administrator states, not what was discovered: links have no rate
(LinkSpeed is in arbitrary units, which Slurm does not use). `scontrol show topology` prints the same with levels; there
a switch also lists the nodes of the switches below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from seatrial.fabric.parts import FabricDump, Source, Text
from seatrial.fabric.readers.slurm_topology_yaml import is_topology_yaml, read_topology_yaml
from seatrial.fabric.readers.slurm_tree import Tree
from seatrial.machine.readers.dump import Line, is_fence

TOOL = "topology.conf"

_PAIR = re.compile(r"(?P<key>[A-Za-z]+)\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<value>[^\s=\"]*))(?=\s|\Z)", re.ASCII)
_FIRST = re.compile(r"(?P<key>SwitchName|BlockName|BlockSizes|BlockLevels|AggregatedBlock|RingName)\s*=", re.IGNORECASE)
_SIZES = re.compile(r"\d{1,9}(?:,\d{1,9})*", re.ASCII)
_INCLUDE = re.compile(r"Include\s+(?P<file>\S+)\s*\Z", re.IGNORECASE)
_ALLOWED = {
    "switchname": {"switchname", "switches", "nodes", "linkspeed", "level"},
    "blockname": {"blockname", "nodes", "blockindex", "blocksize"},
    "aggregatedblock": {"aggregatedblock", "nodes", "blockindex", "blocksize"},
    "blocksizes": {"blocksizes"},
    "blocklevels": {"blocklevels"},
}


def read_slurm_topology(texts: Sequence[Text]) -> FabricDump:
    """The switches (or blocks), nodes, and a link for each child. Raises ParseError for damaged text."""
    if any(is_topology_yaml(text) for text in texts):
        return read_topology_yaml(texts)
    reader = _Reader({PurePath(text.name).name for text in texts})
    for text in texts:
        text.refuse_pick(TOOL)
        for joined, line in _joined_lines(text.lines(TOOL), text.name):
            reader.read(joined, Source.of(TOOL, line, text.name))
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
        raise Source.of(TOOL, first, file).error("the file ends in a line that goes on: was it cut off?")


class _Reader:
    def __init__(self, files: set[str]) -> None:
        self.tree = Tree(TOOL)
        self._files = files
        self._form = ""

    def read(self, text: str, source: Source) -> None:
        first = _FIRST.match(text.strip())
        if first is None or is_fence(text):
            return self._check_unknown(text, source)
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
        elif form != "aggregatedblock":  # whose blocks have lines of their own
            if self._form not in ("", form):
                raise source.error("switches and blocks in one file")
            self._form = form
            switches = pairs.get("switches", "")
            is_above = bool(switches) and pairs.get("level", "0") != "0"  # its nodes are those of its switches
            self.tree.add(pairs[form], switches, "" if is_above else pairs.get("nodes", ""), source)
        return None

    def _check_unknown(self, text: str, source: Source) -> None:
        """Prose around the file is ignored, a damaged line is not."""
        if include := _INCLUDE.match(text.strip()):
            if PurePath(include["file"]).name not in self._files:
                raise source.error(
                    f"the file includes {include['file']}: give that too, as another slurm-topology=FILE"
                )
        elif re.match(r"\s*[A-Za-z]{2,20}\s*=\s*\S", text) or re.search(
            r"\b(?:Nodes|Switches)\s*=", text, re.IGNORECASE
        ):
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
            value = match["value"] if match["quoted"] is None else match["quoted"].strip()
            if not value:
                raise source.error(f"{match['key']} has no value: was the line cut off?")
            pairs[key] = value
            at = match.end()
            at += len(text[at:]) - len(text[at:].lstrip())
        return pairs
