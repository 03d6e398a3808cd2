"""A cluster of this machine, a guest and an image as text."""

from __future__ import annotations

from seatrial.model.json_shape import Json
from seatrial.model.spelling import NO_VALUE, count, cpu_list, show, show_percent
from seatrial.report.blocks import Detail
from seatrial.report.text.terminal import Style, clean


def cluster_text(document: Json, style: Style) -> str:
    """What it is, its nodes and uplinks with what was asked and obtained, and what has ended."""
    head = document["head"]
    if head is None:
        began = f"a cluster began to come up in {document['folder']} and did not finish; seatrial cluster down ends it"
        return "no cluster is up" if document["state"] == "down" else began
    ratio = document["oversubscription"]
    tree = "" if ratio is None else f", leaf switches {ratio:g}:1 oversubscribed"
    lines = [style.paint(f"{count(len(document['nodes']), 'node')}{tree}, in {document['folder']}", "heading")]
    rows = [("node", "Slurm", "CPUs", "quota", "memory", "switch", "link", "obtained out", "in", "round trip")]
    for node in document["nodes"]:
        quota = NO_VALUE if node["quota"] is None else show_percent(node["quota"])
        facts = (node["name"], node["slurm"] or "unknown", cpu_list(node["cpus"]), quota, _size(node["memory_B"]))
        asked, *obtained = _link(node["link"])
        lost = [("loss", "arriving"), ("loss_out", "sent")]
        loses = "".join(f", loses {show_percent(node[key])} {what}" for key, what in lost if node[key] is not None)
        planted = [("clock_s", "clock ", "s"), ("drift", "drift ", "s/s"), ("files_s", "files +", "s")]
        loses += "".join(f", {what}{node[key]:g} {unit}" for key, what, unit in planted if node[key] is not None)
        rows.append((*facts, node["switch"], asked + loses, *obtained))
    lines.append(style.table(rows, indent="", has_head=True))
    uplinks = [
        (one["name"], one["above"] or "", *_link(one["uplink"])) for one in document["switches"] if one["uplink"]
    ]
    if uplinks:
        head_row = ("switch", "above", "uplink", "obtained out", "in", "round trip")
        lines += ["", style.table([head_row, *uplinks], indent="", has_head=True)]
    for one in (head, *document["nodes"]):
        ended = [process["role"] for process in one["processes"] if not process["running"]]
        lines += [f"{one['name']}: {', '.join(ended)} ended; seatrial cluster down, then up"] if ended else []
    return "\n".join(lines)


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
    if document["state"] == "down":
        return "no guest is up"
    if document["state"] == "incomplete":
        began = "a guest began to start" if document["accelerator"] is None else "a guest has ended"
        text = f"{began} in {document['folder']}; seatrial vm down removes it"
        return "\n".join(filter(None, (text, document["console"])))
    cpus = sum(node["cpus"] for node in document["nodes"])
    nodes = f"{count(cpus, 'CPU')} in {count(len(document['nodes']), 'NUMA node')}"
    lines = [style.paint(f"{nodes}, Linux {document['kernel']}, in {document['folder']}", "heading")]
    if document["accelerator"] == "tcg":
        why = document["why_emulated"]
        lines.append(f"processors are emulated ({why}): no time measured in it means anything")
    rows = [("node", "CPUs", "memory")]
    rows += [(str(n), str(node["cpus"]), _size(node["memory_B"])) for n, node in enumerate(document["nodes"])]
    lines.append(style.table(rows, indent="", has_head=True))
    if document["devices"]:
        head = ("device", "node", "size", "virtual functions")
        lines += ["", style.table([head, *map(_device, document["devices"])], indent="", has_head=True)]
    return "\n".join(lines)


def _device(device: Json) -> tuple[str, str, str, str]:
    name = device["kind"] if device["behind_switch"] is None else f"  {device['kind']}"
    return name, str(device["node"]), _size(device["size_B"]), str(device["functions"] or NO_VALUE)


def _size(size_B: int | None) -> str:
    return NO_VALUE if size_B is None else show(size_B, "B", binary=True)


def image_text(document: Json, style: Style, detail: Detail) -> str:
    """Its path in brief; usually what it is, too; in full also every package."""
    if detail is Detail.BRIEF:
        return clean(document["path"])
    packages = document["packages"]
    unknown = "unknown: a package manager other than dpkg"
    rows = [
        ("format", f"{document['format']}, {_size(document['size_B'])}, {count(document['files'], 'file')}"),
        ("base", f"{clean(document['base'])}, {document['architecture']}"),
        ("digest", document["digest"]),
        ("content", document["content"]),
        ("packages", unknown if packages is None else count(len(packages), "package")),
    ]
    rows += [("variable", clean(f"{name}={value}")) for name, value in document["variables"].items()]
    rows += [
        ("program", clean(f"{one['path']} ({one['benchmark']}, {one['compiler']}, {one['march']})"))
        for one in document["programs"]
    ]
    if document["dropped_setuid"]:
        rows.append(("dropped", f"setuid and setgid bits of {count(document['dropped_setuid'], 'file')} of the base"))
    lines = [style.paint(clean(document["path"]), "heading"), style.table(rows)]
    if detail is Detail.FULL and packages:
        keys = ("name", "version", "architecture")
        lines.append(style.table([[clean(one[key]) for key in keys] for one in packages]))
    return "\n".join(lines)
