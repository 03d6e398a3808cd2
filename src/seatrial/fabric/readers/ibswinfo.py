"""ibswinfo (Stanford): power supplies, fans and temperatures of unmanaged InfiniBand switches.

Format: ibswinfo.sh, its three forms: the full output, `-o status` and `-o vitals`. The tool reads registers of the
switch; it states itself that what some bits of the power supplies mean is guessed. Serial numbers are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from seatrial.errors import ParseError
from seatrial.fabric.parts import DevicePart, FabricDump, FabricSource, FabricText, PartKind
from seatrial.fabric.readers.infiniband import guid
from seatrial.machine.readers.dump import Line, without_prefix

TOOL = "ibswinfo"

_ROW = re.compile(r"\s*(?P<key>[A-Za-z][\w./#() :\-]{0,40}?)\s*(?P<mark>[|:])\s(?P<value>\S.*?)\s*\Z", re.ASCII)
_SECTION = re.compile(r"\s*-{20,}\s*\Z")
_RULE = re.compile(r"\s*={20,}\s*\Z")
_SUPPLY = re.compile(r"psu(?P<number>\d)(?:[. ](?P<what>[a-z_ ]+?))?(?: \((?P<unit>\w)\))?\Z", re.ASCII)
_FAN = re.compile(r"fan#(?P<number>\d{1,2})(?:\.speed)? \(rpm\)\Z", re.ASCII)
_STATES = {"OK", "ERROR"}
_HARDWARE = ("PSU", "fan", "temperature")
_SUPPLY_WORDS = {
    **dict.fromkeys(("dc", "dc power"), "DC power"),
    **dict.fromkeys(("fan", "fan status"), "fan status"),
    **dict.fromkeys(("p/n", "part_number"), "part number"),
    "status": "status",
    "power": "power (W)",
}
_PLAIN = {
    "part number": "part number", "part_number": "part number", "product name": "product name",
    "product_name": "product name", "revision": "revision", "ports": "ports", "psid": "PSID",
    "firmware version": "firmware version", "fw_version": "firmware version", "uptime (d-h:m:s)": "uptime (d-h:m:s)",
    "uptime (sec)": "uptime (s)", "temperature (c)": "temperature (C)", "cur.temp (c)": "temperature (C)",
    "max temp (c)": "highest temperature (C)", "max.temp (c)": "highest temperature (C)",
    "warn threshold (c)": "warning threshold (C)", "fan status": "fans", "fans": "fans",
}  # fmt: skip
"""Key of any form, in lower case -> name of the fact."""


class _Switch(Struct):
    line: Line
    name: str = ""
    guid: str = ""
    facts: dict[str, str] = {}
    supply: str = ""


def read_ibswinfo(texts: Sequence[FabricText]) -> FabricDump:
    """The switches in these files; one without a GUID (`-o status`) is named after its file. Raises ParseError."""
    devices: list[DevicePart] = []
    facts: dict[str, Mapping[str, str]] = {}
    for text in texts:
        text.refuse_pick(TOOL)
        found = list(_switches(text.lines(TOOL)))
        if not any(name.startswith(_HARDWARE) for switch in found for name in switch.facts):
            raise ParseError(TOOL, None, "", "no power supply, fan or temperature in the form of ibswinfo", text.name)
        for number, switch in enumerate(found, start=1):
            source = FabricSource.of(TOOL, switch.line, text.name)
            name = switch.name or text.name.rpartition("/")[2] + (f" {number}" if len(found) > 1 else "")
            device = f"S-{guid(switch.guid, source)}" if switch.guid else name
            if device in facts:
                raise source.error(f"{device} is here a second time")
            devices.append(DevicePart(device, PartKind.SWITCH, name, source, is_described=False))
            facts[device] = switch.facts
    return FabricDump(TOOL, devices, (), is_partial=True, switch_facts=facts)


def _switches(lines: Sequence[Line]) -> Iterator[_Switch]:
    open_one: _Switch | None = None
    title: Line | None = None
    for at, line in enumerate(lines):
        text = without_prefix(line.text)
        is_title = at > 0 and _RULE.match(without_prefix(lines[at - 1].text)) and not _RULE.match(text)
        after = without_prefix(lines[at + 1].text) if at + 1 < len(lines) else ""
        if is_title and _RULE.match(after):
            if open_one is not None and open_one.facts:
                yield open_one
            title, open_one = line, _Switch(line, text.strip()[:80])
        elif _SECTION.match(text) and open_one is not None:
            open_one.supply = ""
        elif (match := _ROW.match(text)) and (fact := _fact(match, open_one)) is not None:
            open_one = open_one or _Switch(line)
            _say(open_one, line, *fact)
    if open_one is not None and (open_one.facts or title is not None):
        yield open_one


def _fact(match: re.Match[str], switch: _Switch | None) -> tuple[str, str] | None:
    """(name, value) of a row; None if it is not one that is read."""
    key, value = match["key"].lower(), match["value"]
    if key == "guid":
        return "GUID", value
    supply, fan = _SUPPLY.match(key), _FAN.match(key)
    if supply is not None:
        word = _SUPPLY_WORDS.get(supply["what"] or "")
        return None if word is None else (f"PSU{supply['number']} {word}", value)
    if fan is not None:
        return f"fan {fan['number']} (rpm)", value
    if match["mark"] == "|" and switch is not None and switch.supply:
        word = _SUPPLY_WORDS.get(key.partition(" (")[0])
        return None if word is None else (f"{switch.supply} {word}", value)
    return (_PLAIN[key], value) if key in _PLAIN else None


def _say(switch: _Switch, line: Line, name: str, value: str) -> None:
    if name == "GUID":
        switch.guid = value
        return
    if name.startswith("PSU"):
        switch.supply = name.partition(" ")[0]
    if name.endswith(("status", "DC power")) or name == "fans":
        if value not in _STATES:
            raise line.error(TOOL, f"{name} is {value[:40]!r}, neither OK nor ERROR: was the line cut off?")
    elif not line.is_ended:
        return  # a number at the end of a file may have been cut off
    if switch.facts.setdefault(name, value[:80]) != value[:80]:
        raise line.error(TOOL, f"{name} is given twice: are these two switches?")
