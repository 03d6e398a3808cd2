"""What the sensors of a Redfish service measure: a node, an enclosure of nodes, or a part, by types and names.

Schemas: Chassis.ChassisType, Chassis.Links, Sensor.PhysicalContext (DMTF DSP8010). Where a service has the type of a
server for each of its boards, as OpenBMC has, the names and links of the others decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.model.machine.power import Scope
from seatrial.probes.power.redfish_found import Json, at, listed

_NODES = frozenset({"", "rackmount", "sled", "blade", "standalone", "cartridge", "node"})
"""Types of chassis that are a node."""
_ENCLOSURES = frozenset(
    {"enclosure", "rack", "sidecar", "row", "pod", "zone", "shelf", "multinodechassis", "rackgroup"}
)
_PARTS = frozenset({"module", "component", "card", "storageenclosure", "expansion", "drawer", "powerstrip"})
_NODE_NAME = re.compile(r"(?i)node[ _-]?\d+")
_WORDS = (
    (Scope.PART, ("processormodule", "processor_module", "superchip")),
    (Scope.DEVICE, ("gpu", "accelerator", "fpga", "dpu")),
    (Scope.PACKAGE, ("cpu", "processor")),
    (Scope.MEMORY, ("memory", "dimm", "dram", "mem power")),
    (
        Scope.PART,
        ("fan", "supply", "psu", "storage", "drive", "disk", "pcie", "i/o", "cooling", "board", "network", "nvswitch"),
    ),
)
_WHOLE_CONTEXTS = frozenset({"", "chassis", "system", "systemboard", "intake", "powersupply"})
_WHOLE_NAME = re.compile(
    r"(?:sys|system|total|server|node|chassis|power)?(?:board)?(?:input)?(?:power|pwr|pw)(?:consumption|usage|input|in)?"
)
"""Names of sensors of the whole chassis, without blanks, in small letters: "System Board Pwr Consumption" (Dell),
"Sys Power" (Lenovo), "power_total_power" (OpenBMC)."""
_IN_REPORTS = (
    (r"(?:system|chassis|total|node)?(?:input)?power(?:consumption|consumed|reading)?", Scope.NODE),
    (r"(?:total)?(?:cpu|processor)power(?:consumption)?", Scope.PACKAGE),
    (r"(?:total)?(?:memory|dram|dimm)power(?:consumption)?", Scope.MEMORY),
    (r"(?:total)?(?:gpu|accelerator)power(?:consumption)?", Scope.DEVICE),
    (r"(?:total)?(?:fan|storage|pcie|fpga|nic)power(?:consumption)?", Scope.PART),
)
"""Names of metrics in telemetry reports, and what they measure."""


def scopes_of_chassis(chassis: Sequence[tuple[str, Json]]) -> list[Scope]:
    """What each chassis is, by URI and object."""
    found = [_by_type(one) for _, one in chassis]
    nodes = [position for position, scope in enumerate(found) if scope is Scope.NODE]
    if len(nodes) < 2:
        return found
    named = {position: by_words(_id(chassis[position][1])) for position in nodes}
    linked = {position for position in nodes if listed(at(chassis[position][1], ("Links",)), "ComputerSystems")}
    whole = {uri for position, (uri, _) in enumerate(chassis) if position in nodes}
    for position in nodes:
        inside = str(at(chassis[position][1], ("Links", "ContainedBy", "@odata.id")) or "").rstrip("/")
        is_part = inside in whole or (bool(linked) and position not in linked)
        scope = named[position]
        if (scope is not None and len(set(named.values())) > 1) or is_part:
            found[position] = scope or Scope.PART
    return found


def _by_type(chassis: Json) -> Scope:
    kind = str(chassis.get("ChassisType") or "").lower()
    if kind in _ENCLOSURES:
        return Scope.ENCLOSURE
    if kind in _NODES or _NODE_NAME.fullmatch(_id(chassis)):
        return Scope.NODE
    has_system = bool(listed(at(chassis, ("Links",)), "ComputerSystems"))
    if has_system and kind not in _PARTS:
        return Scope.NODE
    return by_words(_id(chassis)) or Scope.PART


def member_scope(member: Json, whole: Scope) -> Scope:
    """What a member of PowerControl measures, in a chassis that is `whole`."""
    context, name = str(member.get("PhysicalContext") or ""), str(member.get("Name") or "")
    if context.lower() in _WHOLE_CONTEXTS:
        found = by_words(name) if not context else None
        return whole if found is None else found
    return by_words(context) or Scope.PART


def sensor_scope(sensor: Json, uri: str, whole: Scope) -> Scope:
    """What a Sensor object measures, in a chassis that is `whole`."""
    context = str(sensor.get("PhysicalContext") or "").lower()
    names = (str(sensor.get("Name") or ""), str(sensor.get("Id") or uri.rpartition("/")[2]))
    if context == "chassis":
        return whole
    if context in _WHOLE_CONTEXTS and any(_WHOLE_NAME.fullmatch(_letters(name)) for name in names):
        return whole
    return by_words(f"{context} {' '.join(names)}") or Scope.PART


def metric_scope(metric: str) -> Scope | None:
    """What a metric of a telemetry report measures; None for all but known names."""
    name = metric.lower().removesuffix("watts")
    return next((scope for pattern, scope in _IN_REPORTS if re.fullmatch(pattern, name)), None)


def processor_scope(processor: Json) -> Scope:
    """A processor is a package, a GPU or the like a device."""
    return Scope.PACKAGE if processor.get("ProcessorType") in (None, "CPU") else Scope.DEVICE


def by_words(text: str) -> Scope | None:
    """What a name says; None if it says nothing."""
    return next((scope for scope, words in _WORDS if any(word in text.lower() for word in words)), None)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _id(chassis: Json) -> str:
    return str(chassis.get("Id") or chassis.get("Name") or "")
