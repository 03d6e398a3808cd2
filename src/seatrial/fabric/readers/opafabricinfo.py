"""opafabricinfo (Omni-Path FastFabric): the subnet managers of a fabric, and its numbers of adapters, switches, links.

Format: opafabricinfo(8), IbPrint/stl_sa.c (PrintStlFabricInfoRecord). Newer releases (Cornelis) write NIC for HFI and
Slow for Degraded. A link is internal if it is inside a chassis.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.errors import UsageError
from seatrial.fabric.parts import FabricDump, FabricText
from seatrial.machine.readers.dump import Line, choose, without_prefix

TOOL = "opafabricinfo"

_BEGIN = re.compile(r"\s*Fabric (?P<port>\d{1,2}:\d{1,2}) Information:\s*\Z", re.ASCII)
_MANAGER = re.compile(
    r"\s*SM: (?P<name>\S.{0,100}?) Guid: 0x[0-9A-Fa-f]{1,16} State: (?P<state>[A-Za-z ]{3,20}?)\s*\Z", re.ASCII
)
_COUNT = re.compile(
    r"\s*Number of (?P<what>[A-Za-z ]{3,20}?): (?P<number>\d{1,7})\s*"
    r"(?:\((?P<first>[A-Za-z ]{3,12}): (?P<a>\d{1,7})\s+(?P<second>[A-Za-z ]{3,12}): (?P<b>\d{1,7})\))?\s*\Z",
    re.ASCII,
)
_NAMES = {
    **dict.fromkeys(("HFIs", "NICs", "FIs"), "adapters"),
    "Switches": "switches",
    "Links": "links",
    **dict.fromkeys(("HFI Links", "NIC Links", "FI Links"), "adapter links"),
    **dict.fromkeys(("ISLs", "ISLs Links"), "inter-switch links"),
    **dict.fromkeys(("Degraded Links", "Slow Links"), "degraded links"),
    "Omitted Links": "omitted links",
}
"""As the tool counts them -> the name of the fact."""


def read_opafabricinfo(texts: Sequence[FabricText]) -> FabricDump:
    """The counts of a fabric, as facts. Raises ParseError for damaged or incomplete text; UsageError for several
    fabrics without `pick`."""
    if len(texts) != 1:
        raise UsageError(f"{TOOL}: {len(texts)} files: each is a fabric", "give one of them")
    (text,) = texts
    lines = text.lines(TOOL)
    begins = [line for line in lines if _BEGIN.match(without_prefix(line.text))]
    begin = choose(begins, lambda line: line.number, text.pick, TOOL, "fabric (Fabric 0:0 Information:)")
    end = min((line.number for line in begins if line.number > begin.number), default=1 << 40)
    facts: dict[str, str] = {}
    managers: list[str] = []
    parts: dict[str, tuple[Line, int, int]] = {}
    for line in lines:
        if not begin.number < line.number < end:
            continue
        content = without_prefix(line.text)
        if manager := _MANAGER.match(content):
            managers.append(f"{manager['name']} ({manager['state']})")
        elif count := _COUNT.match(content):
            name = _NAMES.get(count["what"])
            if name is None or not line.is_ended:
                continue
            if facts.setdefault(name, count["number"]) != count["number"]:
                raise line.error(TOOL, f"{count['what']} is given twice")
            if count["a"] is not None:
                parts[name] = (line, int(count["a"]), int(count["b"]))
    _check(begin, facts, parts)
    facts["subnet managers"] = ", ".join(managers)
    return FabricDump(TOOL, (), (), is_partial=True, facts=facts)


def _check(begin: Line, facts: dict[str, str], parts: dict[str, tuple[Line, int, int]]) -> None:
    """Raise ParseError if a count is missing, or does not agree with its parts."""
    for name in dict.fromkeys(_NAMES.values()):
        if name not in facts:
            raise begin.error(TOOL, f"the number of {name} is missing: was the dump cut off?")
    for name, (line, a, b) in parts.items():
        if int(facts[name]) != a + b:
            raise line.error(TOOL, f"{facts[name]} are not {a} and {b}")
    if int(facts["links"]) != int(facts["adapter links"]) + int(facts["inter-switch links"]):
        raise begin.error(TOOL, "the links are not as many as those of adapters and between switches together")
