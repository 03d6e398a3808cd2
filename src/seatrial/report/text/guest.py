"""The guest on this machine as text."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.spelling import count, show
from seatrial.report.documents.guest import GuestDeviceJson, GuestJson
from seatrial.report.text.terminal import Style
from seatrial.report.units import NO_VALUE


def guest_text(document: GuestJson, style: Style) -> str:
    """What it is, its nodes and devices, and whether its processors are emulated."""
    return "\n".join(_parts(document, style))


def _parts(document: GuestJson, style: Style) -> Iterator[str]:
    if document["state"] == "down":
        yield "no guest is up"
        return
    if document["state"] == "incomplete":
        began = "a guest began to start" if document["accelerator"] is None else "a guest has ended"
        yield f"{began} in {document['folder']}; seatrial vm down removes it"
        if document["console"]:
            yield document["console"]
        return
    cpus = sum(node["cpus"] for node in document["nodes"])
    nodes = f"{count(cpus, 'CPU')} in {count(len(document['nodes']), 'NUMA node')}"
    yield style.paint(f"{nodes}, Linux {document['kernel']}, in {document['folder']}", "heading")
    if document["accelerator"] == "tcg":
        yield f"processors are emulated ({document['why_emulated']}): no time measured in it means anything"
    rows = [("node", "CPUs", "memory")]
    for number, node in enumerate(document["nodes"]):
        rows.append((str(number), str(node["cpus"]), show(node["memory_B"], "B", binary=True)))
    yield style.table(rows, indent="", has_head=True)
    if document["devices"]:
        yield ""
        head = ("device", "node", "size", "virtual functions")
        yield style.table([head, *map(_device, document["devices"])], indent="", has_head=True)


def _device(device: GuestDeviceJson) -> tuple[str, str, str, str]:
    name = device["kind"] if device["behind_switch"] is None else f"  {device['kind']}"
    size = NO_VALUE if device["size_B"] is None else show(device["size_B"], "B", binary=True)
    return name, str(device["node"]), size, str(device["functions"] or NO_VALUE)
