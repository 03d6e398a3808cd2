"""The screen of a cluster: all figures of nodes, devices, links and switches; the facts on which nodes differ, from
their machine documents, and the nodes that have less of something than the others; links that counted errors while the
cluster was measured: damaged data, or a link that failed."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.analysis.screening.links import link_name, screen_halves, screen_pairs
from seatrial.analysis.screening.losses import losing_nodes
from seatrial.analysis.screening.nodes import Share, confirmed, over_nodes, screen_figure
from seatrial.analysis.screening.shared_folder import clocks_off, clocks_that_drift, folder_remedy, slow_folders
from seatrial.analysis.screening.silent import SilentNode, silent_nodes
from seatrial.benchmarks import benchmark_of
from seatrial.model.benchmark.benchmark import Better, Role
from seatrial.model.machine.fact import SOFTWARE, FactValue
from seatrial.model.machine.links import LATE_BURSTS, LINK_COUNTERS, CounterKind
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.spelling import count, show
from seatrial.model.study.screen import (
    FALSE_ALARM_RATE,
    FINGERPRINT,
    MARGIN,
    CountsOfNodes,
    FactThatDiffers,
    FigureOverNodes,
    Fingerprints,
    FolderUse,
    Item,
    LinkCount,
    NodeClasses,
    NoResult,
    NotSeenAgain,
    Odd,
    OddKind,
    PairFigure,
    Screen,
    ScreenInput,
    ValueOfFact,
)
from seatrial.model.units import Unit

_RARE = 0.1
"""Up to this share of the nodes, a value is rare, and those who have it are odd; of few nodes, a single one is."""

CAPACITIES: Mapping[str, Unit] = {
    "memory": "B",
    "packages": "1",
    "cores": "1",
    "CPUs": "1",
    "NUMA nodes": "1",
    "memory modules": "1",
    "GPUs": "1",
    "network adapters": "1",
    "disks": "1",
}
"""Facts that state how much a node has: less than the others is a fault."""

_RATES = (" link rate", " link width", " link speed")
"""The ends of the names of facts of a link of a device: less than the others is a fault of that device."""

_LEAST_MEMORY = 0.02
"""Sizes of memory within this share are equal: firmware and the kernel keep parts that differ between boots."""


def facts_that_differ(facts: Mapping[str, Mapping[str, FactValue]]) -> tuple[FactThatDiffers, ...]:
    """The facts on which nodes differ, in the order of their names. A node without a fact has the value None."""
    found = []
    for name in sorted({name for own in facts.values() for name in own}):
        by_value = grouped((own.get(name), node) for node, own in facts.items())
        ordered = sorted(by_value.items(), key=lambda item: -len(item[1]))
        if name == "memory":  # sizes that are nearly equal are one: the most frequent of them
            merged: dict[FactValue | None, list[str]] = {}
            for value, nodes in ordered:
                alike = next((one for one in merged if _are_alike(one, value)), value)
                merged.setdefault(alike, []).extend(nodes)
            ordered = list(merged.items())
        if len(ordered) > 1:
            ordered.sort(key=lambda item: (-len(item[1]), str(item[0])))
            values = tuple(ValueOfFact(value, tuple(nodes)) for value, nodes in ordered)
            found.append(FactThatDiffers(name, values, _odd_nodes(values, len(facts))))
    return tuple(found)


def _are_alike(a: FactValue | None, b: FactValue | None) -> bool:
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return False
    return abs(a - b) <= _LEAST_MEMORY * max(a, b)


def unit_of_fact(fact: str) -> Unit:
    """The unit of the numbers of a fact."""
    return CAPACITIES.get(fact, "B/s" if fact.endswith(" link rate") else "1")


def _odd_nodes(values: Sequence[ValueOfFact], n: int) -> tuple[str, ...]:
    """The nodes with rare values, if most nodes share one value."""
    if n < 3 or 2 * len(values[0].nodes) <= n:
        return ()
    most = max(1, int(_RARE * n))
    return tuple(node for value in values[1:] if len(value.nodes) <= most for node in value.nodes)


def nodes_with_less(differ: Sequence[FactThatDiffers], n: int) -> tuple[Odd, ...]:
    """The nodes that have less than the others, by facts that state how much: memory, CPUs, links of devices."""
    found = []
    for one in differ:
        usual = _number(one.values[0].value)
        if usual is None or not usual > 0 or not (one.fact.endswith(_RATES) or one.fact in CAPACITIES):
            continue
        for value in one.values[1:]:
            own = _number(value.value)
            if own is not None and own < usual:
                found += [_less(one.fact, node, own, usual, n) for node in value.nodes if node in one.odd]
    return tuple(found)


def nodes_without_results(
    tried: Sequence[NoResult], results: Mapping[str, frozenset[str]], nodes: Sequence[str]
) -> Iterator[Odd]:
    """The nodes on which benchmarks gave no result that most nodes have, as where memory is too small."""
    have = Counter(benchmark for own in results.values() for benchmark in own)
    missing: dict[str, dict[str, str]] = {}
    for one in tried:
        is_usual = len(nodes) >= 3 and 2 * have[one.benchmark] > len(nodes)
        if is_usual and one.benchmark not in results.get(one.node, ()):
            missing.setdefault(one.node, {})[one.benchmark] = one.why
    if len(missing) > max(1, int(_RARE * len(nodes))):
        return
    for node, own in missing.items():
        there = len(results.get(node, ()))
        values = (float(there), float(there + len(own)), there / (there + len(own)))
        why = "; ".join(dict.fromkeys(own.values()))
        remedy = (
            f"compare what is free on {node} (memory, limits, disk, libraries) with the others, then measure it again"
        )
        yield _read(OddKind.NODE, node, node, WITH_RESULT, values, remedy, len(nodes), why)


def _number(value: FactValue | None) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _less(fact: str, node: str, own: float, usual: float, n: int) -> Odd:
    kind, what = OddKind.NODE, node
    if fact.endswith(_RATES):
        kind, what = OddKind.DEVICE, f"{fact.rsplit(' link ', 1)[0]} of {node}"
        remedy = f"reseat the device or its riser in {node} and read the link again with lspci -vv"
    elif fact in ("memory", "memory modules"):
        where = "dmidecode -t memory, the BMC's log"
        limits = (
            "compare limits on its memory (control groups) with those of the others, then " if fact == "memory" else ""
        )
        remedy = f"{limits}look for a memory module of {node} that is missing or switched off: {where}"
    else:
        seen = f"what firmware and kernel of {node} see of its {fact}"
        remedy = f"check {seen}, and limits that are set on it"
    return _read(kind, what, node, fact, (own, usual, own / usual), remedy, n, "read on the node, not measured")


def _read(
    kind: OddKind,
    what: str,
    node: str,
    fact: str,
    values: tuple[float, float, float],
    remedy: str,
    n: int,
    why: str,
    unit: Unit | None = None,
) -> Odd:
    """One that needs no statistics. `values`: its own, the usual one, and the ratio."""
    return Odd(kind, what, (node,), "", fact, unit or unit_of_fact(fact), *values, None, 1.0, 0.0, remedy, n, why)


_OF_THE_NODE = (
    *("product", "bios_version", "kernel", "kernel_build", "kernel_parameters", "mitigations", "os", "libc"),
    *("governor", "frequency_driver", "boost", "smt_active", "idle_driver", "clocksource", "hypervisor"),
    *("thp_enabled", "thp_defrag", "numa_balancing", "page_size", "swap_total", "ecc_mode"),
)
_OF_CPUS = ("model_name", "microcode", "stepping")
_COUNTED = {
    "package": "packages",
    "core": "cores",
    "pu": "CPUs",
    "numa": "NUMA nodes",
    "gpu": "GPUs",
    "nic": "network adapters",
    "nvme": "disks",
    "memory": "memory modules",
}
_OF_DEVICES = {
    "gpu": ("driver", "driver_version", "ecc_mode", "pci_name"),
    "nic": ("driver", "firmware", "mtu", "speed", "state", "pci_name"),
    "nvme": ("firmware_rev", "model"),
    "block": ("scheduler", "write_cache"),
}
_WITH_LINKS = ("gpu", "nic", "nvme")
_WITH_STEADY_LINKS = ("nic", "nvme")
"""GPUs lower the speed of their links when they are idle, not the width."""
_SIZES = ("memory_present", "memory_online", "memory_total")
"""Names of the size of memory, the best first."""


def facts_of_node(machine: Mapping[str, Any]) -> dict[str, FactValue]:
    """Name -> value. What varies without a change of the node (load, free memory) is left out."""
    found: dict[str, FactValue] = {}
    facts = machine["facts"]
    for name in _OF_THE_NODE:
        _keep(found, name.replace("_", " "), facts, name)
    for name in facts:
        if name.startswith(SOFTWARE):
            kind = next(one for one in SOFTWARE if name.startswith(one))
            _keep(found, name.replace(kind, kind.replace("_", " "), 1), facts, name)
    limits = [value for value in (_value(facts, "cgroup_memory_limit"),) if isinstance(value, int | float)]
    sizes = [value for value in (_value(facts, name) for name in _SIZES) if isinstance(value, int | float)]
    if sizes:
        found["memory"] = min([sizes[0], *limits])
    counts: dict[str, int] = {}
    for device in machine["devices"]:
        kind = device["kind"]
        if kind in _COUNTED:
            counts[_COUNTED[kind]] = counts.get(_COUNTED[kind], 0) + 1
        if kind == "package":
            for name in _OF_CPUS:
                _keep(found, f"CPU {name.replace('_', ' ').removesuffix(' name')}", device["facts"], name)
        lanes = next((entry["value"] for entry in device["facts"].get("pcie_lanes", ())), None)
        if kind in _WITH_LINKS and isinstance(lanes, int):
            found[f"{device['id']} link width"] = lanes
        for name in _OF_DEVICES.get(kind, ()):
            _keep(found, f"{device['id']} {name.replace('_', ' ')}", device["facts"], name)
    allowed = machine.get("allowed_cpus")
    found |= counts
    quota = _value(facts, "cgroup_cpu_limit")
    usable = [len(allowed)] if isinstance(allowed, list) and allowed else []
    if usable or "CPUs" in counts:
        most: float = usable[0] if usable else counts["CPUs"]
        found["CPUs"] = min(most, quota) if isinstance(quota, int | float) else most
    ends = {device["id"] for device in machine["devices"] if device["kind"] in _WITH_STEADY_LINKS}
    for link in machine["links"]:
        if link["trained_Bps"] is not None and link["b"] in ends:
            found[f"{link['b']} link rate"] = link["trained_Bps"]
    return found


def _value(facts: Mapping[str, Any], name: str) -> FactValue | None:
    own = facts.get(name)
    if not own or own[0].get("volatile"):
        return None
    value = own[0]["value"]
    return value if isinstance(value, str | int | float) else None


def _keep(found: dict[str, FactValue], shown: str, facts: Mapping[str, Any], name: str) -> None:
    value = _value(facts, name)
    if value is not None:
        found[shown] = value


_FAILURES = frozenset(
    {"link_downed", "link_error_recovery", "local_link_integrity_errors", "excessive_buffer_overrun_errors"}
)
"""Each of these is a failure of the link; of damaged data, a sound link may count some."""
_LEAST_DAMAGED = 10
WITH_RESULT = "benchmarks with a result"
COUNTED = "counted while it was measured"


def links_with_errors(counts: Sequence[LinkCount], nodes: int, switch_of: Mapping[str, str]) -> tuple[Odd, ...]:
    """The links that counted errors where those of most nodes did not. Discards and congestion name nobody: both are
    normal under load."""
    errors = (one for one in counts if LINK_COUNTERS[one.counter].kind is CounterKind.ERROR)
    enough = (one for one in errors if one.grew_by >= (1 if one.counter in _FAILURES else _LEAST_DAMAGED))
    by_counter = grouped((one.counter, one) for one in enough)
    found = []
    for counter, own in by_counter.items():
        if len({one.node for one in own}) > max(1, int(_RARE * nodes)):
            continue
        named = {(one.node, one.port) for one in own}
        others = [one.grew_by for one in counts if one.counter == counter and (one.node, one.port) not in named]
        usual = median([*others, *[0] * max(1, nodes - len(others))])
        for one in own:
            what = link_name(one.node, switch_of)
            values = (float(one.grew_by), usual, one.grew_by / max(1.0, usual))
            port = f"{one.port} of {one.node}"
            remedy = f"clean or exchange the cable at {port}, and read the counters of both ends again"
            why = f"{COUNTED}: {LINK_COUNTERS[counter].meaning}"
            found.append(_read(OddKind.LINK, what, one.node, f"{one.port} {counter}", values, remedy, nodes, why))
    return tuple(found)


_LOST = {
    "TcpExtTCPOFOQueue": "packets to {node} were lost or overtaken (the others lost {others} segments)",
    "TcpRetransSegs": "packets from {node} were lost; segments that were sent again needlessly do not count",
    LATE_BURSTS: "bursts of messages with {node} took 0.1 s longer than usual",
}


def links_that_lose(repeats: Sequence[CountsOfNodes], nodes: int, switch_of: Mapping[str, str]) -> Iterator[Odd]:
    """The links on whose way packets are lost, or messages are late, in most repeats."""
    for one in losing_nodes(repeats):
        what, node = link_name(one.node, switch_of), one.node
        said = _LOST[one.counter].format(node=node, others=one.others)
        why = f"{COUNTED}: {said}, in {one.seen_in} of {count(one.repeats, 'repeat')}"
        port = "messages" if one.counter == LATE_BURSTS else "TCP"
        values = (float(one.total), one.usual, one.total / max(1.0, one.usual))
        remedy = (
            f"look where packets of {node} are dropped (ip -s link, ethtool -S, nstat; the counters of its switch "
            "port); check cable, port and adapter"
        )
        yield _read(OddKind.LINK, what, node, f"{port} {one.counter}", values, remedy, nodes, why)


NO_RESULT, CLOCK, DRIFT = "no messages", "clock", "clock drift"
"""Instead of figures: the number of pairs without a result; how far a clock is ahead, and how much faster it runs. What
is said of them is in `why`: the values of the others say nothing."""
STATED = (NO_RESULT, CLOCK, DRIFT)


def _silent_link(one: SilentNode, nodes: int, switch_of: Mapping[str, str]) -> Odd:
    which = f"{one.node} - {one.partners[0]} {one.why}"
    why = (
        f"{benchmark_of(Role.RANK_PAIRS)} on two nodes at a time had no result on any of "
        f"{count(len(one.partners), 'pair')} with {one.node} ({which}), and had one on "
        f"{count(one.others, 'pair')} without it"
    )
    values = (float(len(one.partners)), 0.0, float(len(one.partners)))
    remedy = (
        f"try messages to and from {one.node} (ping, iperf3), and read ip -s link, nstat and the counters of its "
        "switch port; check its firewall, cable and port"
    )
    return _read(OddKind.LINK, link_name(one.node, switch_of), one.node, NO_RESULT, values, remedy, nodes, why)


def _unlike_in_the_folder(used: Mapping[str, FolderUse], nodes: int, no_cpu: Sequence[NoCpu]) -> Iterator[Odd]:
    """Nodes whose clock is off or drifts, or that use the results folder slowly."""
    by = "by the times that the file system of the results folder stamped on"
    for one in clocks_off(used):
        ahead = "ahead of" if one.value > 0 else "behind"
        why = (
            f"its clock is {show(abs(one.value), 's')} {ahead} most others (± {show(one.error, 's')}, {by} "
            f"{count(one.readings, 'file')})"
        )
        remedy = f"synchronise the clock of {one.node}: chronyc tracking, timedatectl"
        values = (one.value, 0.0, 1.0)
        yield _read(OddKind.NODE, one.node, one.node, CLOCK, values, remedy, nodes, why, "s")
    for one in clocks_that_drift(used):
        what = "gains" if one.value > 0 else "loses"
        why = (
            f"its clock {what} {show(abs(one.value), 's')} a second against most others (± {show(one.error, 's')}, "
            f"{by} {count(one.readings, 'file')})"
        )
        remedy = f"check the clock source of {one.node} (/sys/devices/system/clocksource, dmesg) and chronyc tracking"
        yield _read(OddKind.NODE, one.node, one.node, DRIFT, (one.value, 0.0, 1.0), remedy, nodes, why)
    busy = {one.who for one in no_cpu}
    for slow in slow_folders(used):
        why = f"the median of {count(slow.repeats, 'repeat')}"
        if slow.node in busy:
            why += "; its programs had no CPU for part of the time, which may be why"
        remedy = folder_remedy(slow.node, used[slow.node].file_system)
        values = (slow.median_s, slow.usual_s, slow.median_s / slow.usual_s)
        figure = f"{slow.what} in the results folder"
        yield _read(OddKind.NODE, slow.node, slow.node, figure, values, remedy, nodes, why, "s")


_FEWEST_FINGERPRINTS = 3
"""Of two nodes with other bits, either may be wrong."""


def _other_bits(same: Fingerprints) -> Iterator[Odd]:
    """The nodes on which a deterministic run gave other bits than on most, if most agree."""
    each = Counter(bits for own in same.of_node.values() for bits in set(own))
    usual, nodes_with = each.most_common(1)[0]
    others = {node: own for node, own in same.of_node.items() if set(own) != {usual}}
    if len(same.of_node) < _FEWEST_FINGERPRINTS or 2 * nodes_with <= len(same.of_node):
        return
    for node, own in others.items():
        wrong = sum(bits != usual for bits in own)
        why = (
            f"a deterministic run of {same.benchmark} gave other bits in {wrong} of {count(len(own), 'repeat')}; "
            f"{nodes_with} nodes with the same processor and library agree"
        )
        remedy = (
            f"repeat it on {node}; if the bits differ again, take {node} out of use and run the maker's diagnostics"
        )
        values = (float(wrong), 0.0, float(wrong))
        yield _read(OddKind.NODE, node, node, FINGERPRINT, values, remedy, len(same.of_node), why, "1")


_RANK_OF_KIND = {OddKind.SWITCH: 0, OddKind.NODE: 1, OddKind.LINK: 2, OddKind.DEVICE: 3}


def screen_cluster(given: ScreenInput, margin: float = MARGIN) -> Screen:
    """The odd ones, most certain first, and what else a reader must know.

    The false alarm rate is divided equally among all figures (Bonferroni), so it holds for the whole screen.
    """
    given = replace(given, pairs=tuple(filter(None, (_apart(one, given.not_apart) for one in given.pairs))))
    tests = len(given.figures) + len(given.pairs) + len(given.halves)
    share = Share(FALSE_ALARM_RATE / max(1, tests), margin)
    odd: list[Odd] = []
    classes: list[NodeClasses] = []
    figures: list[FigureOverNodes] = []
    not_seen_again: list[NotSeenAgain] = []
    not_screened = list(given.failed)
    for figure in given.figures:
        found, of_classes, why = screen_figure(figure, given.facts, share, _named_node)
        found, passed = confirmed(figure, found, share, _named_node)
        odd += found
        not_seen_again += passed
        classes += of_classes
        kind = OddKind.DEVICE if any(item.device for item in figure.items) else OddKind.NODE
        figures.append(over_nodes(kind, figure))
        if why:
            not_screened.append(f"{figure.benchmark} {figure.figure}: {why}")
    links = [screen_pairs(pairs, given.switch_of, share, given.oversubscription) for pairs in given.pairs]
    odd += [one for answer in links for one in answer.odd]
    # As pairs of nodes showed it.
    rates = [one.median for answer in links for one in answer.figures if one.better is Better.HIGHER]
    usual_link = max(rates, default=None)
    links += [screen_halves(half, given.switch_of, usual_link, given.oversubscription, share) for half in given.halves]
    odd += [one for answer in links[len(given.pairs) :] for one in answer.odd]
    figures += [one for answer in links for one in answer.figures]
    not_screened += [text for answer in links for text in answer.not_screened]
    differ = facts_that_differ(given.facts)
    odd += nodes_with_less(differ, len(given.facts))
    odd += nodes_without_results(given.no_results, given.results, given.nodes)
    odd += links_with_errors(given.link_counts, len(given.nodes), given.switch_of)
    odd += links_that_lose(given.counts_of_repeats, len(given.nodes), given.switch_of)
    odd += _unlike_in_the_folder(given.folder_use, len(given.nodes), given.no_cpu)
    odd += [one for same in given.fingerprints for one in _other_bits(same)]
    silent, in_common = silent_nodes(given.tried_pairs)
    odd += [_silent_link(one, len(given.nodes), given.switch_of) for one in silent]
    not_screened += [f"{benchmark_of(Role.RANK_PAIRS)}: {in_common}"] if in_common else []
    return Screen(
        nodes=given.nodes,
        switch_of=given.switch_of,
        odd=tuple(sorted(_links_of_slow_nodes(odd), key=_order)),
        facts_that_differ=differ,
        classes=tuple(classes),
        figures=tuple(figures),
        pairs=given.pairs,
        not_screened=tuple(dict.fromkeys(not_screened)),
        false_alarm_rate=FALSE_ALARM_RATE,
        margin=margin,
        no_cpu=given.no_cpu,
        link_counts=given.link_counts,
        not_seen_again=tuple(not_seen_again),
    )


def _apart(figure: PairFigure, not_apart: frozenset[tuple[str, str]]) -> PairFigure | None:
    """The figure without pairs of nodes that share CPUs; None if there are no others."""
    kept = [k for k, (a, b) in enumerate(figure.pairs) if (a, b) not in not_apart and (b, a) not in not_apart]
    if not kept:
        return None
    return replace(figure, pairs=tuple(figure.pairs[k] for k in kept), values=tuple(figure.values[k] for k in kept))


def _named_node(item: Item) -> tuple[OddKind, str, str]:
    kind = OddKind.DEVICE if item.device else OddKind.NODE
    return kind, item.name, drain(item.node, f"{item.name} differs from the others")


def drain(node: str, reason: str) -> str:
    """The command that takes a node out of service in Slurm; seatrial never runs it."""
    quoted = shlex.quote(f"seatrial: {reason}")
    return f"scontrol update nodename={shlex.quote(node)} state=drain reason={quoted}"


def _order(one: Odd) -> tuple[float, float, int, str]:
    far = max(one.ratio, 1.0 / one.ratio) if one.ratio > 0 else float("inf")
    if one.figure == CLOCK:  # other figures of the node may follow from it
        far = float("inf")
    elif one.why.startswith(COUNTED) or one.figure in STATED:  # a number is not a ratio
        far = 1.0
    return (-round(one.sureness, 6), -far, _RANK_OF_KIND[one.kind], one.what)


def _links_of_slow_nodes(odd: Sequence[Odd]) -> list[Odd]:
    """Without links that are slow because their node is: by less than half as much again as the node itself."""
    nodes = {one.nodes[0]: one for one in odd if one.kind is OddKind.NODE and one.benchmark}
    found = list(odd)
    for one in odd:
        node = nodes.get(one.nodes[0]) if one.kind is OddKind.LINK and len(one.nodes) == 1 else None
        if node is None or abs(math.log(one.ratio)) > 1.5 * abs(math.log(node.ratio)):
            continue
        found.remove(one)
        place = found.index(node)
        link = f"its link is slow, too ({one.figure} {one.ratio:.2f} x), which may follow"
        found[place] = replace(node, why="; ".join(filter(None, (node.why, link))))
        nodes[one.nodes[0]] = found[place]
    return found
