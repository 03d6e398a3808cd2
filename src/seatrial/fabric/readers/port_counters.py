"""perfquery and ibqueryerrors (infiniband-diags) as sources of a fabric: the error counters of its ports.

perfquery names a port by its LID only; ibqueryerrors by GUIDs and descriptions, so its switches and adapters have the
same ids as those of ibnetdiscover. Formats: perfquery(8), ibqueryerrors(8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from seatrial.errors import ParseError
from seatrial.fabric.parts import DevicePart, FabricDump, FabricSource, FabricText, PartKind
from seatrial.fabric.readers.infiniband import Adapters, guid
from seatrial.machine.readers.link_counters import QueriedErrors, read_ibqueryerrors, read_perfquery
from seatrial.model.machine.fabric import PortCounters

_ALL_PORTS = 255

T = TypeVar("T")


def read_perfquery_ports(texts: Sequence[FabricText]) -> FabricDump:
    """The counters of the ports in these files. Raises ParseError if there are none, or a port is there twice."""
    counters: list[PortCounters] = []
    for text in texts:
        text.refuse_pick("perfquery")
        for name, values in _in_file(text, read_perfquery).items():
            lid, port = name.split(" port ")
            number = int(port) if int(port) < _ALL_PORTS else None
            if any((one.device, one.port) == (lid, number) for one in counters):
                raise ParseError(
                    "perfquery", None, "", f"{name} is also in another file: give each port once", text.name
                )
            counters.append(PortCounters(lid, number, values))
    return FabricDump("perfquery", (), (), is_partial=True, counters=counters)


def read_queried_errors(texts: Sequence[FabricText]) -> FabricDump:
    """The counters of the ports with errors. Raises ParseError for damaged text."""
    devices: list[DevicePart] = []
    counters: list[PortCounters] = []
    facts: dict[str, str] = {}
    failures = 0
    for text in texts:
        text.refuse_pick("ibqueryerrors")
        found = _in_file(text, read_ibqueryerrors)
        failures += found.failures
        if found.summary:
            facts["checked"] = "; ".join(filter(None, (facts.get("checked", ""), found.summary)))
        own = list(_ports(found, FabricSource("ibqueryerrors", 0, "", text.name)))
        devices += [device for device, _ in own]
        counters += [port for _, port in own]
    missing = f"ibqueryerrors got no answer from {failures} ports: their errors are unknown" if failures else ""
    return FabricDump(
        "ibqueryerrors",
        devices,
        (),
        is_partial=True,
        facts=facts,
        counters=counters,
        notes=(missing,) if missing else (),
    )


def _ports(found: QueriedErrors, source: FabricSource) -> Iterator[tuple[DevicePart, PortCounters]]:
    adapters = Adapters()
    known = {name: found.owners.get(name, (None, "")) for name in found.ports}
    for name, (switch, description) in known.items():
        if switch is None:
            port_guid, number = name.split(" port ")
            adapters.add(guid(port_guid, source), int(number), description)
    for name, (switch, description) in known.items():
        port_guid, number = name.split(" port ")
        if switch is not None:
            device, kind = f"S-{guid(switch, source)}", PartKind.SWITCH
        else:
            device, kind = adapters.of(guid(port_guid, source)), PartKind.ADAPTER
        part = DevicePart(device, kind, description or port_guid, source, is_described=False)
        yield part, PortCounters(device, int(number), found.ports[name])


def _in_file(text: FabricText, read: Callable[[bytes], T]) -> T:
    try:
        return read(text.data)
    except ParseError as error:
        raise error.in_file(text.name) from None
