"""A cluster of this machine, a guest and an image as text."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.json_shape import Json
from seatrial.model.spelling import NO_VALUE, count, cpu_list, show, show_percent
from seatrial.report.text.terminal import Detail, Style, clean


def cluster_text(document: Json, style: Style) -> str:
    """What it is, its nodes and uplinks with what was asked and obtained, and what has ended."""
    return "\n".join(_parts(document, style))


def _parts(document: Json, style: Style) -> Iterator[str]:
    head = document["head"]
    if head is None:
        yield (
            "no cluster is up"
            if document["state"] == "down"
            else (
                f"a cluster began to come up in {document['folder']} and did not finish; seatrial cluster down ends it"
            )
        )
        return
    ratio = document["oversubscription"]
    tree = "" if ratio is None else f", leaf switches {ratio:g}:1 oversubscribed"
    yield style.paint(f"{count(len(document['nodes']), 'node')}{tree}, in {document['folder']}", "heading")
    rows = [("node", "Slurm", "CPUs", "quota", "memory", "switch", "link", "obtained out", "in", "round trip")]
    for node in document["nodes"]:
        quota = NO_VALUE if node["quota"] is None else show_percent(node["quota"])
        memory = NO_VALUE if node["memory_B"] is None else show(node["memory_B"], "B", binary=True)
        facts = (node["name"], node["slurm"] or "unknown", cpu_list(node["cpus"]), quota, memory, node["switch"])
        rows.append((*facts, *_link(node["link"])))
    yield style.table(rows, indent="", has_head=True)
    uplinks = [(one["name"], one["above"] or "", one["uplink"]) for one in document["switches"] if one["uplink"]]
    if uplinks:
        yield ""
        head_row = ("switch", "above", "uplink", "obtained out", "in", "round trip")
        body = [(name, above, *_link(link)) for name, above, link in uplinks if link is not None]
        yield style.table([head_row, *body], indent="", has_head=True)
    for one in (head, *document["nodes"]):
        ended = [process["role"] for process in one["processes"] if not process["running"]]
        if ended:
            yield f"{one['name']}: {', '.join(ended)} ended; seatrial cluster down, then up"


def _link(link: Json) -> tuple[str, str, str, str]:
    delay = f", {show(link['asked_delay_s'], 's')}" if link["asked_delay_s"] else ""
    asked = f"{bit_rate(link['asked_Bps'])}{delay}"
    round_trip = NO_VALUE if link["round_trip_s"] is None else show(link["round_trip_s"], "s")
    return asked, bit_rate(link["out_Bps"]), bit_rate(link["in_Bps"]), round_trip


def bit_rate(rate_Bps: float | None) -> str:
    """As networks state it: 10 Gbit/s."""
    if rate_Bps is None:
        return NO_VALUE
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if rate_Bps * 8 >= scale:
            return f"{rate_Bps * 8 / scale:.3g} {prefix}bit/s"
    return f"{rate_Bps * 8 / 1e3:.3g} kbit/s"


def guest_text(document: Json, style: Style) -> str:
    """What it is, its nodes and devices, and whether its processors are emulated."""
    return "\n".join(_guest_parts(document, style))


def _guest_parts(document: Json, style: Style) -> Iterator[str]:
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


def _device(device: Json) -> tuple[str, str, str, str]:
    name = device["kind"] if device["behind_switch"] is None else f"  {device['kind']}"
    size = NO_VALUE if device["size_B"] is None else show(device["size_B"], "B", binary=True)
    return name, str(device["node"]), size, str(device["functions"] or NO_VALUE)


def image_text(document: Json, style: Style, detail: Detail) -> str:
    """Its path in brief; usually what it is, too; in full also every package."""
    if detail is Detail.BRIEF:
        return clean(document["path"])
    return "\n".join(_image_parts(document, style, detail))


def _image_parts(document: Json, style: Style, detail: Detail) -> Iterator[str]:
    size = show(document["size_B"], "B", binary=True)
    yield style.paint(clean(document["path"]), "heading")
    rows = [
        ("format", f"{document['format']}, {size}, {count(document['files'], 'file')}"),
        ("base", f"{clean(document['base'])}, {document['architecture']}"),
        ("digest", document["digest"]),
        ("content", document["content"]),
        ("packages", _packages(document)),
    ]
    rows += [("variable", clean(f"{name}={value}")) for name, value in document["variables"].items()]
    rows += [
        ("program", clean(f"{one['path']} ({one['benchmark']}, {one['compiler']}, {one['march']})"))
        for one in document["programs"]
    ]
    if document["dropped_setuid"]:
        rows.append(("dropped", f"setuid and setgid bits of {count(document['dropped_setuid'], 'file')} of the base"))
    yield style.table(rows)
    if detail is Detail.FULL and document["packages"]:
        packages = [
            (clean(one["name"]), clean(one["version"]), clean(one["architecture"])) for one in document["packages"]
        ]
        yield style.table(packages)


def _packages(document: Json) -> str:
    packages = document["packages"]
    return "unknown: a package manager other than dpkg" if packages is None else count(len(packages), "package")
