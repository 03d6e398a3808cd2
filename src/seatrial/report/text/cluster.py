"""The cluster on this machine as text."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.spelling import count, cpu_list, show, show_percent
from seatrial.report.documents.cluster import ClusterJson, ClusterLinkJson
from seatrial.report.text.terminal import Style
from seatrial.report.units import NO_VALUE


def cluster_text(document: ClusterJson, style: Style) -> str:
    """What it is, its nodes and uplinks with what was asked and obtained, and what has ended."""
    return "\n".join(_parts(document, style))


def _parts(document: ClusterJson, style: Style) -> Iterator[str]:
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


def _link(link: ClusterLinkJson) -> tuple[str, str, str, str]:
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
