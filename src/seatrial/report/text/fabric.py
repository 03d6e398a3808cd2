"""A fabric on one screen: levels, oversubscription, links, findings, and the nodes of each leaf."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from seatrial.model.machine.fabric import AdapterKind, Fabric, LinkEnd, Oversubscription
from seatrial.model.machine.host_list import by_number, fold_hosts, host_spans
from seatrial.model.machine.links import LINK_COUNTERS
from seatrial.model.spelling import count, few_names, show
from seatrial.report.blocks import Detail
from seatrial.report.text.check import finding_text
from seatrial.report.text.terminal import PLAIN, Style, block, clean, joined, sentences

_MOST_LEAVES = 40
"""Leaves with their nodes; `--verbose` and the JSON have all."""
_MOST_NAMES = 12
_LONGEST_NAMES = 80
_KINDS = {
    AdapterKind.UNNAMED: "adapter without a host name",
    AdapterKind.AGGREGATION: "aggregation node (part of a switch)",
    AdapterKind.ROUTER: "router",
}


def fabric_text(fabric: Fabric, style: Style = PLAIN, detail: Detail = Detail.USUAL) -> str:
    """The fabric as text without a trailing newline; in brief, its first line; in full, each leaf and all
    evidence. Names are shown without control characters."""
    if detail is Detail.BRIEF:
        return _header(fabric, style)
    most_leaves = len(fabric.nodes_of_switch) if detail is Detail.FULL else _MOST_LEAVES
    ratios = [(f"level {each.level}", *_ratio(fabric, each)) for each in fabric.oversubscription]
    return joined(
        [
            _header(fabric, style),
            block("Levels", _levels(fabric, style), style),
            block("Oversubscription (links below a level over links above it)", _rows(ratios, style), style),
            block("Links", _links(fabric, style), style),
            block("Ports down", _ports_down(fabric, style), style),
            block("Switches", _hardware(fabric, style), style),
            block("Stated", _stated(fabric, style), style),
            block("Counters of ports", _counters(fabric, style), style),
            *(finding_text(finding, style, detail) for finding in fabric.findings),
            block("Nodes of each leaf", _leaves(fabric, most_leaves, style), style),
            block("Could not be read", sentences(fabric.unread, style), style),
        ]
    )


def counts_of(fabric: Fabric) -> str:
    """How many switches, levels, nodes and links it has; or, of a dump without them, ports or what the tool counts."""
    if not (fabric.switches or fabric.nodes or fabric.links):
        counted = [f"{fabric.facts[name]} {name}" for name in ("adapters", "switches", "links") if name in fabric.facts]
        return ", ".join(counted) or f"counters of {count(len(fabric.port_counters), 'port')}"
    numbers = (fabric.switches, fabric.levels, fabric.nodes, fabric.links)
    switches, *others = map(len, numbers)
    named = [(number, noun) for number, noun in zip(others, ("level", "node", "link"), strict=True)]
    if not fabric.links:
        named = [(number, noun) for number, noun in named if number]
    return ", ".join([count(switches, "switch", "switches"), *(count(number, noun) for number, noun in named)])


def _header(fabric: Fabric, style: Style) -> str:
    made = f", made {clean(fabric.facts['made'])}" if "made" in fabric.facts else ""
    source = clean(", ".join(fabric.sources))
    return f"{style.paint(f'Fabric ({source})', 'heading')}: {counts_of(fabric)}{made}"


def _hardware(fabric: Fabric, style: Style) -> list[str]:
    """Power supplies, fans and temperatures of switches."""
    several = len(fabric.switches) > 1
    rows = [
        (switch.name, name, value) if several else (name, value)
        for switch in fabric.switches
        for name, value in switch.facts.items()
    ]
    return _rows(rows, style)


def _stated(fabric: Fabric, style: Style) -> list[str]:
    """The counts of a tool that lists no links."""
    return [] if fabric.links else _rows([one for one in fabric.facts.items() if one[0] != "made"], style)


def _counters(fabric: Fabric, style: Style) -> list[str]:
    """The error counters of each port that are not 0."""
    lines: list[str] = []
    width = max((len(clean(fabric.port_name(one.device, one.port))) for one in fabric.port_counters), default=0)
    for one in fabric.port_counters:
        counts = ", ".join(f"{name} {one.counters[name]}" for name in LINK_COUNTERS if one.counters.get(name))
        lead = f"  {clean(fabric.port_name(one.device, one.port)):<{width}}  "
        lines += style.wrapped(counts or "no errors", lead)
    return lines


def _levels(fabric: Fabric, style: Style) -> list[str]:
    if not (fabric.links or fabric.nodes or fabric.levels):
        return []
    rows: list[tuple[str, str, str]] = []
    for level in reversed(fabric.levels):
        here = [switch for switch in fabric.switches if switch.level == level]
        on_them = {node for switch in here for node in fabric.nodes_of_switch.get(switch.id, ())}
        nodes = f", {count(len(on_them), 'node')}" if on_them else ""
        names = _short([switch.name for switch in here])
        rows.append((f"level {level}", f"{count(len(here), 'switch', 'switches')}{nodes}", names))
    unknown = [switch.name for switch in fabric.switches if switch.level is None]
    if unknown:
        rows.append(("no level", count(len(unknown), "switch", "switches"), _short(unknown)))
    hosts = sum(adapter.kind is AdapterKind.HOST for adapter in fabric.adapters)
    rows.append(("nodes", str(len(fabric.nodes)), f"with {count(hosts, 'adapter')}" if hosts else ""))
    others = Counter(adapter.kind for adapter in fabric.adapters if adapter.kind in _KINDS)
    rows += [("also", str(number), _KINDS[kind]) for kind, number in others.items()]
    return _rows(rows, style)


def _short(names: list[str]) -> str:
    text = clean(fold_hosts(names))
    if len(text) <= _LONGEST_NAMES:
        return text
    return f"{clean(min(names, key=by_number))} .. {clean(max(names, key=by_number))}"


def _ratio(fabric: Fabric, each: Oversubscription) -> tuple[str, str]:
    if each.ratio is None:
        return "unknown", each.why
    text = f"{show(each.down_Bps, 'B/s')} below, {show(each.up_Bps, 'B/s')} above"
    if each.worst is not None and each.worst_ratio is not None:
        text += f"; at most {each.worst_ratio:.2f} : 1 ({clean(fabric.name(each.worst))})"
    return f"{each.ratio:.2f} : 1", text


def _links(fabric: Fabric, style: Style) -> list[str]:
    groups: Counter[tuple[str, str, str]] = Counter()
    for link in fabric.links:
        where = f"{_end_name(fabric, link.b)} - {_end_name(fabric, link.a)}"
        kind = f"{link.width}x{link.speed}" if link.width is not None and link.speed is not None else "rate unknown"
        rate = show(link.trained_Bps, "B/s") if link.trained_Bps is not None else ""
        groups[where, kind, rate] += 1
    return _rows([(where, str(number), kind, rate) for (where, kind, rate), number in sorted(groups.items())], style)


def _end_name(fabric: Fabric, end: LinkEnd) -> str:
    """The level of a switch, or what else is at the end of a link."""
    level = fabric.level_of(end.device)
    adapter = fabric.adapter_by_id.get(end.device)
    if adapter is not None and adapter.kind is AdapterKind.AGGREGATION:
        return "aggregation nodes"
    return "no level" if level is None else "nodes" if level == 0 else f"level {level}"


def _ports_down(fabric: Fabric, style: Style) -> list[str]:
    states = Counter(f"{port.state}/{port.physical}".rstrip("/") for port in fabric.ports_down)
    on = Counter(port.device for port in fabric.ports_down)
    lines = [", ".join(f"{number} {clean(state)}" for state, number in states.most_common())] if states else []
    most = few_names([f"{clean(fabric.name(device))} {number}" for device, number in on.most_common()], _MOST_NAMES)
    return sentences([*lines, f"by device: {most}"] if lines else [], style)


def _leaves(fabric: Fabric, most: int, style: Style) -> list[str]:
    leaves = sorted(fabric.nodes_of_switch.items(), key=lambda item: by_number(fabric.name(item[0])))
    lines: list[str] = []
    width = max((len(clean(fabric.name(switch))) for switch, _ in leaves[:most]), default=0)
    for switch, nodes in leaves[:most]:
        lines += style.wrapped(
            clean(", ".join(host_spans(nodes))), f"  {clean(fabric.name(switch)):<{width}}  {len(nodes):>3}  "
        )
    if len(leaves) > most:
        lines.append(f"  ... and {len(leaves) - most} more (all of them with --verbose)")
    return lines


def _rows(rows: Sequence[tuple[str, ...]], style: Style) -> list[str]:
    return style.table([[clean(cell) for cell in row] for row in rows]).splitlines() if rows else []
