"""From the JSON object `seatrial.machine/1` to a `Machine`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.errors import UsageError
from seatrial.model.fact import Fact, FactKind, Facts
from seatrial.model.json_check import check_shape
from seatrial.model.limit import Basis, Limit
from seatrial.model.machine import (
    Affinity,
    Device,
    DeviceKind,
    Link,
    Machine,
    Memory,
    NamedLimit,
    OddSlot,
    Path,
    PeerAccess,
    Population,
    SocketMemory,
)
from seatrial.model.machine_document import SCHEMA, MachineJson
from seatrial.model.platform import Platform, Sign
from seatrial.model.units import UNITS, Unit


def machine_from_document(document: Mapping[str, Any]) -> Machine:
    """The machine that such an object describes. Raises UsageError if it is invalid."""
    if document.get("schema") != SCHEMA:
        raise UsageError(f"not a {SCHEMA} object: its schema is {document.get('schema')!r}")
    try:
        check_shape(MachineJson, document)
        return Machine(
            name=_text(document["name"]),
            devices=tuple(_device_in(entry) for entry in document["devices"]),
            facts=_facts_in(document["facts"]),
            links=tuple(_link_in(entry) for entry in document["links"]),
            paths=tuple(Path(p["a"], p["b"], p["class"], p["links"]) for p in document["paths"]),
            affinity=tuple(
                Affinity(
                    a["device"],
                    None if a["cpus"] is None else tuple(a["cpus"]),
                    a["numa"],
                    tuple(a["numa_nodes"]) if "numa_nodes" in a else None,
                )
                for a in document["affinity"]
            ),
            p2p=tuple(PeerAccess(p["a"], p["b"], p["read"], p["write"]) for p in document["p2p"]),
            memory=_memory_in(document["memory"]),
            limits=tuple(NamedLimit(entry["name"], _limit_in(entry)) for entry in document["limits"]),
            platform=_platform_in(document.get("platform")),
            allowed_cpus=tuple(document["allowed_cpus"]),
            sources=tuple(document["sources"]),
            unread=tuple(document["unread"]),
        )
    except ValueError as error:
        raise UsageError(f"invalid {SCHEMA} object: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _facts_in(entries: Mapping[str, Any]) -> Facts:
    return Facts({name: tuple(_fact_in(entry) for entry in statements) for name, statements in entries.items()})


def _fact_in(entry: Mapping[str, Any]) -> Fact:
    value = entry["value"]
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"{value!r} is not the value of a fact")
    return Fact(value, _text(entry["source"]), FactKind(entry["kind"]), _unit(entry["unit"]), bool(entry["volatile"]))


def _unit(value: object) -> Unit | None:
    for unit in UNITS:
        if value == unit:
            return unit
    if value is not None:
        raise ValueError(f"{value!r} is not a unit")
    return None


def _device_in(entry: Mapping[str, Any]) -> Device:
    return Device(
        id=_text(entry["id"]),
        kind=DeviceKind(entry["kind"]),
        name=_text(entry["name"]),
        parent=entry["parent"],
        numa=entry["numa"],
        pci=entry["pci"],
        aliases=tuple(entry["aliases"]),
        facts=_facts_in(entry["facts"]),
    )


def _link_in(entry: Mapping[str, Any]) -> Link:
    return Link(
        a=entry["a"],
        b=entry["b"],
        kind=entry["kind"],
        capable_Bps=entry["capable_Bps"],
        trained_Bps=entry["trained_Bps"],
        source=entry["source"],
        measured_Bps=entry["measured_Bps"],
        count=entry.get("count"),
    )


def _limit_in(entry: Mapping[str, Any]) -> Limit:
    unit = _unit(entry["unit"])
    if unit is None:
        raise ValueError("a limit without a unit")
    return Limit(
        entry["value"], unit, _text(entry["derivation"]), Basis(entry["basis"]), bool(entry.get("confirmed", True))
    )


def _platform_in(entry: Mapping[str, Any] | None) -> Platform:
    """The platform; documents of earlier versions have none."""
    if entry is None:
        return Platform()
    return Platform(*(tuple(Sign(_text(s["kind"]), _text(s["evidence"])) for s in entry[name])
                      for name in ("virtualization", "container")))  # fmt: skip


def _memory_in(entry: Mapping[str, Any]) -> Memory:
    return Memory(
        verdict=Population(entry["verdict"]),
        why=_text(entry["why"]),
        peak=_limit_in(entry["peak"]),
        sockets=tuple(
            SocketMemory(
                channels=socket["channels"],
                populated_channels=socket["populated_channels"],
                dimms=socket["dimms"],
                capacity_bytes=socket["capacity_bytes"],
                configured_MTps=socket["configured_MTps"],
                rated_MTps=socket["rated_MTps"],
            )
            for socket in entry["sockets"]
        ),
        odd_slots=tuple(
            OddSlot(
                slot=_text(odd["slot"]),
                socket=_text(odd["socket"]),
                channel=None if odd["channel"] is None else _text(odd["channel"]),
                device=None if odd["device"] is None else _text(odd["device"]),
                property=_text(odd["property"]),
                own=_text(odd["own"]),
                usual=_text(odd["usual"]),
                others=odd["others"],
            )
            for odd in entry.get("odd_slots", ())
        ),
    )
