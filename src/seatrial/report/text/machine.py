"""A machine on one screen: what an expert looks for first, as plain text.

Identical parts are collapsed ("12 x L3 32 MiB"); PCI bridges that only pass a link on are left out. The JSON has the
facts of all sources; this shows the most trusted one and lists the disagreements.

Links on one screen: the capable, trained and measured rate of each, side by side, with the kind of source; and
copies between GPUs as a matrix of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from seatrial.analysis.device_copies import PeerRates
from seatrial.model.machine.fact import GROWTH, Disagreement, Fact, FactKind, grows, stated_memory_B
from seatrial.model.machine.links import PCIE
from seatrial.model.machine.machine import DeviceKind, Link, Machine, Memory
from seatrial.model.spelling import (
    count,
    cpu_list,
    display_scale,
    show,
    show_fact,
    show_percent,
    show_transfers,
    surrounding,
)
from seatrial.report.blocks import Detail
from seatrial.report.charts.heat import short
from seatrial.report.folded_tree import Fold, fold, folded_limits, walk
from seatrial.report.text.path_matrix import matrix_text
from seatrial.report.text.terminal import PLAIN, Style, block, clean, joined, sentences

_ASSERTED = ("NCCL", "RCCL")
"""Their topology files may be written by hand; all other sources read the hardware."""
_HEADINGS = ("link", "capable", "trained", "measured", "of capable", "source")
_MOST = 24


def links_text(machine: Machine, style: Style = PLAIN) -> list[str]:
    """A line for each measured link; empty without any. Neighbours with equal rates (eight GPUs) share a line, and so
    do the links from one GPU to switches."""
    measured = _with_bundles(machine, [link for link in machine.links if link.measured_Bps is not None])
    kinds = {device.id: device.kind.value for device in machine.devices}
    alike = groupby(measured, key=lambda link: replace(link, a="", b=kinds.get(link.b, ""), source=_source(link)))
    rows = [_HEADINGS, *(_row(list(group)) for _, group in alike)]
    if len(rows) == 1:
        return []
    more = len(rows) - _MOST
    return [style.table(rows[:_MOST], has_head=True), *([f"  and {more} more: see --format json"] if more > 0 else [])]


def _with_bundles(machine: Machine, links: Iterable[Link]) -> list[Link]:
    """The links; those of a GPU to switches as one, with the sum of their rates and counts."""
    switches = {device.id for device in machine.of_kind(DeviceKind.SWITCH)}
    found: list[Link] = []
    places: dict[str, int] = {}
    for link in links:
        ends = (link.a, link.b) if link.b in switches else (link.b, link.a)
        if not {link.a, link.b} & switches:
            found.append(link)
        elif ends[0] in places:
            bundle = found[places[ends[0]]]
            found[places[ends[0]]] = replace(
                bundle,
                capable_Bps=_sum(bundle.capable_Bps, link.capable_Bps),
                trained_Bps=_sum(bundle.trained_Bps, link.trained_Bps),
                measured_Bps=_sum(bundle.measured_Bps, link.measured_Bps),
                count=(bundle.count or 0) + (link.count or 0) or None,
            )
        else:
            places[ends[0]] = len(found)
            found.append(replace(link, a=ends[0], b="switches"))
    return found


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _row(group: Sequence[Link]) -> tuple[str, ...]:
    first, last = group[0], group[-1]
    ends = _ends(first) + (f" .. {_ends(last)}" if len(group) > 1 else "")
    kind = "pcie, upstream" if first.kind == PCIE else first.kind
    kind += "" if first.count is None else f" x {first.count}"
    share = first.measured_Bps / first.capable_Bps if first.measured_Bps and first.capable_Bps else None
    rates = (show(rate, "B/s") for rate in (first.capable_Bps, first.trained_Bps, first.measured_Bps))
    return clean(f"{ends} ({kind})"), *rates, "unknown" if share is None else show_percent(share), _source(first)


def _ends(link: Link) -> str:
    """Both ends; of PCIe only the lower one, which identifies the link."""
    return link.b if link.kind == PCIE else f"{link.a} - {link.b}"


def _source(link: Link) -> str:
    """The kind of a link's source."""
    return "asserted" if link.source.startswith(_ASSERTED) else "discovered"


def peers_title(rates: PeerRates) -> str:
    """The title of `peers_text`, with the unit."""
    unit = display_scale(_medians(rates), next(iter(rates.values.values())).unit)[1]
    return f"{rates.title}, in {unit}, from row to column{'' if rates.is_direct else ', without peer access'}"


def peers_text(rates: PeerRates) -> list[str]:
    """A row for each source, a column for each target."""
    scale, _ = display_scale(_medians(rates), next(iter(rates.values.values())).unit)
    labels = [clean(device.label) for device in rates.devices]
    cells = {place: short(figure.median / scale) for place, figure in rates.values.items()}
    width = max(map(len, (*cells.values(), *labels)))
    lead = max(map(len, labels))
    rows = [("", labels)]
    rows += [(label, [cells.get((row, k), "-") for k in range(len(labels))]) for row, label in enumerate(labels)]
    return [f"  {label:<{lead}}  {'  '.join(f'{text:>{width}}' for text in texts)}" for label, texts in rows]


def _medians(rates: PeerRates) -> list[float]:
    """Of pairs of two devices, if there are any: copies within one device may be a hundred times as fast."""
    others = [figure.median for (row, column), figure in rates.values.items() if row != column]
    return others or [figure.median for figure in rates.values.values()]


_MOST_PEERS = 14
"""With more devices, a matrix of numbers does not fit a line."""

_SETTINGS = (
    ("kernel parameters", "kernel_parameters"),
    ("mitigations", "mitigations"),
    ("governor", "governor"),
    ("frequency driver", "frequency_driver"),
    ("boost", "boost"),
    ("SMT active", "smt_active"),
    ("transparent huge pages", "thp_enabled"),
    ("huge page defrag", "thp_defrag"),
    ("NUMA balancing", "numa_balancing"),
    ("clock source", "clocksource"),
    ("isolated CPUs", "isolated_cpus"),
    ("offline CPUs", "offline_cpus"),
    ("CPU limit (cgroup)", "cgroup_cpu_limit"),
    ("CPU set (cgroup)", "cgroup_cpus"),
    ("memory limit (cgroup)", "cgroup_memory_limit"),
    ("swap", "swap_total"),
    ("ECC", "ecc_mode"),
    ("ECC of the memory array", "ecc"),
    ("perf_event_paranoid", "perf_event_paranoid"),
    ("privileges", "privileges"),
)


def machine_text(
    machine: Machine, peers: Sequence[PeerRates] = (), style: Style = PLAIN, detail: Detail = Detail.USUAL
) -> str:
    """The machine as text without a trailing newline; in brief, its first lines; in full, also each fact of each
    source. `peers` are the measured copies between its GPUs.

    Text from firmware and drivers is shown without control characters, so that it cannot control the terminal.
    """
    if detail is Detail.BRIEF:
        return _header(machine, style)
    return joined(
        [
            _header(machine, style),
            block("Topology", _tree(fold(machine), style), style),
            block("GPUs and adapters", matrix_text(machine, style).splitlines(), style),
            block("Memory", _memory(machine, style), style),
            block("Limits", _limits(machine, style), style),
            block("Measured", _measured(machine, style), style),
            block("Links measured, per direction", links_text(machine, style), style),
            *(
                block(peers_title(rates), peers_text(rates), style)
                for rates in peers
                if len(rates.devices) <= _MOST_PEERS
            ),
            block("Platform", _platform(machine, style), style),
            block("Settings", _settings(machine, style), style),
            *(_facts(machine, style) if detail is Detail.FULL else ()),
            block("Sources disagree", _disagreements(machine.disagreements()), style, "warning"),
            block("Could not be read", sentences(machine.unread, style), style, "warning"),
            block("Sources", sentences([", ".join(machine.sources)], style), style),
        ]
    )


def _header(machine: Machine, style: Style) -> str:
    facts = machine.facts
    packages = machine.of_kind(DeviceKind.PACKAGE)
    cores, pus = len(machine.of_kind(DeviceKind.CORE)), len(machine.of_kind(DeviceKind.PU))
    counted = ((len(packages), "package"), (cores, "core"), (pus, "hardware thread"))
    what = [count(number, noun) for number, noun in counted if number]
    if not what:  # a topology matrix lists no processors
        ends = ((DeviceKind.GPU, "GPU"), (DeviceKind.NIC, "adapter"))
        what = [count(number, noun) for kind, noun in ends if (number := len(machine.of_kind(kind)))]
    memory = stated_memory_B(facts)
    if memory is not None:
        what.append(f"{show(memory, 'B', binary=True)} memory")
    hypervisor, container = surrounding(facts, "hypervisor"), surrounding(facts, "container")
    system = [
        facts.text("product"),
        f"virtual machine ({hypervisor})" if hypervisor else None,
        f"container ({container})" if container else None,
        f"Linux {facts.text('kernel')} {facts.text('architecture') or ''}".rstrip() if "kernel" in facts else None,
        facts.text("os"),
        facts.text("libc"),
        f"BIOS {facts.text('bios_version')} of {facts.text('bios_date')}" if "bios_version" in facts else None,
    ]
    name = style.paint(clean(machine.name), "heading")
    lines = [f"{name}: {', '.join(part for part in what if part)}".rstrip()]
    lines += style.wrapped(", ".join(clean(part) for part in system if part), "  ")
    return "\n".join(lines)


def _platform(machine: Machine, style: Style) -> list[str]:
    """Hypervisors and containers with their evidence."""
    found = {"hypervisor": machine.platform.virtualization, "container": machine.platform.container}
    return sentences((f"{one.kind} ({what}): {one.evidence}" for what, signs in found.items() for one in signs), style)


def _tree(folds: Sequence[Fold], style: Style) -> list[str]:
    lines = [("  " * depth + clean(_label(part, each)), part, each) for depth, part, each in walk(folds)]
    width = max((len(label) for label, _, _ in lines), default=0)
    shown: list[str] = []
    for label, part, each in lines:
        text = clean(_about(part, each))
        if part.is_warning:
            text = style.paint(text, "warning")
        shown.append(f"  {label:<{width}}  {text}".rstrip())
    return shown


def _label(part: Fold, each: bool) -> str:
    if each:
        return "each"
    return part.first.id if part.number == 1 else f"{part.first.id} .. {part.last.id}"


def _about(part: Fold, each: bool) -> str:
    """The description of a part: "4 cores x 2 threads; L2 1 MiB each; CPUs 0-7"."""
    if part.first.kind is DeviceKind.CORE:
        text = part.about if part.number == 1 else f"{part.number} cores x {part.about} each"
    else:
        about = f" ({part.about})" if part.first.kind is DeviceKind.PACKAGE and part.about else ""
        text = part.what + about if about else ", ".join(filter(None, (part.what, part.about)))
        text = text if part.number == 1 else f"{part.number} x {text}"
    return text if each or not part.cpu_text else f"{text}; {part.cpu_text}"


def _memory(machine: Machine, style: Style) -> list[str]:
    memory = machine.memory
    sizes = [fact for fact in machine.facts.get("memory_total", ()) if fact.unit == "B"]
    lines = [f"  {clean(fact.source)}: {_value('memory_total', fact)}" for fact in sizes]
    if grows(machine.facts) and len({fact.value for fact in sizes}) > 1:
        lines += style.wrapped(f"note: {GROWTH}", "  ")
    available = machine.facts.best("memory_available")
    if available is not None:
        lines.append(f"  available now: {_value('memory_available', available)}")
    lines += [_socket_line(index, memory) for index in range(len(memory.sockets))]
    lines += style.wrapped(f"population: {memory.verdict} ({clean(memory.why)})", "  ")
    return lines


def _socket_line(index: int, memory: Memory) -> str:
    socket = memory.sockets[index]
    channels = "unknown" if socket.channels is None else str(socket.channels)
    populated = "unknown" if socket.populated_channels is None else str(socket.populated_channels)
    speeds = f"{show_transfers(socket.configured_MTps)} configured, {show_transfers(socket.rated_MTps)} rated"
    size = show(socket.capacity_bytes, "B", binary=True)
    modules = count(socket.dimms, "module") if socket.dimms else "no module"
    return f"  socket {index}: {modules}, {size}, channels {channels}, populated {populated}, {speeds}"


def _limits(machine: Machine, style: Style) -> list[str]:
    limits = folded_limits(machine.limits, " .. ")
    return _labelled([(name, show(limit.value, limit.unit), limit.derivation) for name, limit in limits], style)


def _labelled(rows: Sequence[tuple[str, str, str]], style: Style) -> list[str]:
    """A line for each label, its value and a text, which is wrapped."""
    width = max((len(label) for label, _, _ in rows), default=0)
    leads = [(f"  {clean(label):<{width}}  {value:<14} ", text) for label, value, text in rows]
    return [line for lead, text in leads for line in style.wrapped(clean(text), lead)]


def _measured(machine: Machine, style: Style) -> list[str]:
    """Measured facts of the whole machine and of its devices, each with the experiment behind it."""
    owners = [("", machine.facts), *((f"{device.id} ", device.facts) for device in machine.devices)]
    found = [
        (
            f"{owner}{name.removesuffix('_measured').replace('_', ' ')}",
            show(float(fact.value), fact.unit or "1"),
            fact.source,
        )
        for owner, facts in owners
        for name, statements in facts.items()
        for fact in statements
        if fact.kind is FactKind.MEASURED and not isinstance(fact.value, str)
    ]
    return _labelled(found, style)


def _settings(machine: Machine, style: Style) -> list[str]:
    lines: list[str] = []
    width = max(len(label) for label, _ in _SETTINGS)
    isas = dict.fromkeys(filter(None, (p.facts.text("vector_isa") for p in machine.of_kind(DeviceKind.PACKAGE))))
    lines += style.wrapped(clean(" or ".join(isas)), f"  {'vector instructions':<{width}}  ")
    for label, name in (*_SETTINGS, *_huge_page_pools(machine)):
        fact = machine.facts.best(name)
        if fact is not None:
            lines += style.wrapped(_value(name, fact), f"  {label:<{width}}  ")
    allowed, pus = len(machine.allowed_cpus), len(machine.of_kind(DeviceKind.PU))
    if 0 < allowed < pus:
        lines += style.wrapped(
            f"{cpu_list(sorted(machine.allowed_cpus))} ({allowed} of {pus})", f"  {'allowed CPUs':<{width}}  "
        )
    return lines


def _huge_page_pools(machine: Machine) -> list[tuple[str, str]]:
    """The pools that hold pages; empty ones, the default, are left out."""
    names = [name for name in machine.facts if name.startswith("hugetlb_") and name.endswith("_total")]
    held = [name for name in names if machine.facts.number(name)]
    return [(f"{name.removeprefix('hugetlb_').removesuffix('_total')} pages", name) for name in held]


def _facts(machine: Machine, style: Style) -> list[str]:
    """A block for the machine and for each device: its facts, with the source of each."""
    parts = [("Facts", machine.facts), *((f"Facts of {device.id}", device.facts) for device in machine.devices)]
    blocks = []
    for title, facts in parts:
        rows = [(clean(name), _value(name, fact), clean(fact.source)) for name in facts for fact in facts[name]]
        blocks.append(block(clean(title), style.table(rows).splitlines(), style))
    return blocks


def _disagreements(disagreements: Iterable[Disagreement]) -> list[str]:
    lines: list[str] = []
    for disagreement in disagreements:
        lines.append(f"  {clean(disagreement.name)}")
        lines += [f"    {_value(disagreement.name, fact):<16} {clean(fact.source)}" for fact in disagreement.facts]
    return lines


def _value(name: str, fact: Fact) -> str:
    return clean(show_fact(name, fact))
