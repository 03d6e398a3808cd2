"""Rules about pairs of GPUs: peer access, pairs across NUMA nodes, uneven direct links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.contradictions import contradicted
from seatrial.analysis.rules.devices import (
    DIRECT_CLASSES,
    DIRECT_KINDS,
    Pair,
    gpus,
    paths_by_pair,
    spans,
)
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.spelling import count

_NO_ACCESS = {
    "CNS": (
        "the chipset does not support it",
        "GPUs below one PCIe switch may have it; in a virtual machine, its host decides",
    ),
    "GNS": ("these GPUs do not support it", "no setting changes this: it depends on the product"),
    "TNS": ("the topology does not support it", "place GPUs that exchange data below one switch or on one socket"),
    "NS": ("it is not supported here", "check the driver version and the data sheet of the product"),
    "DR": ("it is disabled by a driver registry key", "remove the key from the options of the nvidia module"),
}
"""Status -> (meaning, remedy). Legend of `nvidia-smi topo -p2p`; OK and U (unknown) are not problems."""


def no_peer_access(case: Case) -> Iterator[Finding]:
    """Fires if the driver reports that GPUs cannot read or write each other's memory; all pairs are one finding."""
    pairs = case.machine.p2p
    refused = [
        (pair, status)
        for pair in pairs
        if (status := next((s for s in (pair.read, pair.write) if s in _NO_ACCESS), None)) is not None
    ]
    if not refused:
        return
    statuses = Counter(status for _, status in refused if status is not None)
    means = "; ".join(f"{status}: {_NO_ACCESS[status][0]}" for status in statuses)
    todo = "; ".join(f"{status}: {_NO_ACCESS[status][1]}" for status in statuses)
    counts = listed(f"{status}: {number}" for status, number in statuses.items())
    one_way = [pair for pair, _ in refused if "OK" in (pair.read, pair.write)]
    yield Finding(
        rule="gpus-without-peer-access",
        severity=Severity.WARNING,
        devices=tuple(dict.fromkeys(end for pair, _ in refused for end in (pair.a, pair.b))),
        observation=f"{_of_pairs(len(refused), len(pairs))} {'has' if len(refused) == 1 else 'have'} no peer access "
        f"({counts})." + (f" {count(len(one_way), 'pair')} can only read or only write." if one_way else ""),
        diagnosis=f"{means}. Copies between these GPUs go through host memory: two crossings of PCIe instead of one, "
        "and CPU memory bandwidth as well. Collectives fall back to shared memory.",
        remedy=f"{todo}. See all pairs with {_commands(case.machine)}",
        evidence=listed(f"{p.a} - {p.b}: read {p.read or 'unknown'}, write {p.write or 'unknown'}" for p, _ in refused),
    )


def _commands(machine: Machine) -> str:
    """The commands that list peer access."""
    if all(gpu.facts.text("vendor_id") == "1002" for gpu in gpus(machine)):
        return "`amd-smi topology --access`"
    return "`nvidia-smi topo -p2p r` and `nvidia-smi topo -p2p w`"


def gpus_across_nodes(case: Case) -> Iterator[Finding]:
    """Fires if pairs of GPUs reach each other only over the link between NUMA nodes (class SYS)."""
    machine = case.machine
    ids = [gpu.id for gpu in gpus(machine)]
    paths = paths_by_pair(machine)
    classes = {pair: paths[pair].path_class for pair in combinations(ids, 2) if pair in paths}
    direct = _direct_links(machine)
    excluded = direct.keys() | contradicted(machine).keys()
    far = dict.fromkeys(pair for pair, found in classes.items() if found == "SYS" and pair not in excluded)
    if not far:
        return
    ends = {end for pair in far for end in pair}
    groups = _components(ids, [pair for pair in classes if pair not in far and classes[pair] is not None])
    together = [spans(group) for group in groups if len(group) > 1]
    keep = (
        f"Keep GPUs that exchange data within one of these groups if they fit: {'; '.join(together)}"
        if len(groups) > 1 and together
        else "Exchange data between pairs with direct links, and route other traffic through them"
        if direct
        else "Exchange data in few, large messages, and bind each process to the CPUs next to its GPU (see the "
        "bindings)"
    )
    yield Finding(
        rule="gpus-across-numa-nodes",
        severity=Severity.INFO,
        devices=tuple(name for name in ids if name in ends),
        observation=f"{_of_pairs(len(far), len(classes))} {'is' if len(far) == 1 else 'are'} connected only across "
        "NUMA nodes (SYS).",
        diagnosis="Their copies cross the link between sockets (or between nodes of one socket), which all other "
        "traffic between them shares. Some platforms have no peer access on this path, so copies go through host "
        "memory.",
        remedy=f"{keep}. Measure both kinds of pairs",
        evidence=listed(f"{a} - {b}: SYS" for a, b in far),
    )


def uneven_direct_links(case: Case) -> Iterator[Finding]:
    """Fires if pairs of GPUs with NVLink or XGMI have different numbers of links.

    That is normal for boards without a switch (DGX-1: a hybrid cube mesh): a note. A GPU with fewer links in total than
    comparable GPUs is a warning: a link may be down.
    """
    machine = case.machine
    ids = [gpu.id for gpu in gpus(machine)]
    direct = _direct_links(machine)
    totals = _totals(machine, direct)
    linked = [gpu for gpu in ids if gpu in totals or any(gpu in pair for pair in direct)]
    if len(linked) < 2:
        return
    usual = Counter(totals.values()).most_common(1)[0][0] if totals else None
    short = {gpu: n for gpu, n in totals.items() if usual is not None and n < usual and _is_usual(usual, totals)}
    if short:
        yield _link_missing(short, usual or 0, totals)
    if _through_switches(machine):  # any GPU reaches any other at its own total
        return
    counts = Counter(direct.get(pair, 0) for pair in combinations(ids, 2))
    if len(counts) < 2 or not direct:
        return
    unlinked = [gpu for gpu in ids if gpu not in linked]
    counted = listed(f"{number} with {_links(links)}" for links, number in sorted(counts.items(), key=_most_links))
    yield Finding(
        rule="gpu-links-uneven",
        severity=Severity.INFO,
        devices=tuple(ids),
        observation=f"GPU pairs have different numbers of direct links: of {count(sum(counts.values()), 'pair')}, "
        f"{counted}."
        + (f" {spans(unlinked)} {'has' if len(unlinked) == 1 else 'have'} no direct link." if unlinked else ""),
        diagnosis="The rate between two GPUs depends on the pair; pairs without a direct link communicate over PCIe, "
        "or through a third GPU if the links can forward (XGMI). "
        "This is normal for boards without a switch between the GPUs.",
        remedy="Choose GPUs by their links: "
        + (f"for two, {_best_pair(direct)}; " if any(direct.values()) else "")
        + "place ranks that communicate most on linked GPUs (see `--ranks`), and view the matrix with "
        "`nvidia-smi topo -m` or `rocm-smi --showtopo`",
        evidence=listed((f"{a} - {b}: {_links(links)}" for (a, b), links in direct.items()), most=12),
    )


def _link_missing(short: Mapping[str, int], usual: int, totals: Mapping[str, int]) -> Finding:
    least = min(short.values())
    return Finding(
        rule="gpu-link-missing",
        severity=Severity.WARNING,
        devices=tuple(short),
        observation=f"{spans(short)} {'has' if len(short) == 1 else 'have'} {count(least, 'direct link')}; the "
        f"other GPUs have {usual}.",
        diagnosis="A link may be down or disabled. It is not a fault if the GPU at its other end is hidden from this "
        "process (a container, a batch system) or the board has bridges between some GPUs only.",
        remedy="Check each link's state with `nvidia-smi nvlink -s` and its errors with `nvidia-smi nvlink -e` (AMD: "
        "`rocm-smi --showxgmierr`); reset the GPU or reseat the bridge",
        evidence=listed((f"{gpu}: {count(number, 'link')}" for gpu, number in totals.items()), most=16),
    )


def _direct_links(machine: Machine) -> dict[Pair, int]:
    """Pair of GPUs (in the order of the machine) -> number of links between them, 1 if only their kind is reported."""
    ids = [gpu.id for gpu in gpus(machine)]
    order = {name: place for place, name in enumerate(ids)}
    found: dict[Pair, int] = {}
    reported = [(p.a, p.b, p.links) for p in machine.paths if p.path_class in DIRECT_CLASSES]
    if not reported:
        reported = [(link.a, link.b, link.count) for link in machine.links if link.kind.lower() in DIRECT_KINDS]
    for a, b, links in reported:
        if a in order and b in order and a != b:
            pair = (a, b) if order[a] < order[b] else (b, a)
            found[pair] = max(found.get(pair, 0), links or 1)
    return found


def _totals(machine: Machine, direct: Mapping[Pair, int]) -> dict[str, int]:
    """GPU -> its number of links, if all counts are reported; GPUs without links are omitted.

    Behind switches, each pair lists the links of a GPU to the switches.
    """
    counted = {(p.a, p.b) for p in machine.paths if p.path_class in DIRECT_CLASSES and p.links}
    counted |= {(link.a, link.b) for link in machine.links if link.kind.lower() in DIRECT_KINDS and link.count}
    if not all(pair in counted or pair[::-1] in counted for pair in direct):
        return {}
    totals: dict[str, int] = {}
    if direct and _through_switches(machine):
        for gpu in dict.fromkeys(end for pair in direct for end in pair):
            totals[gpu] = max(links for pair, links in direct.items() if gpu in pair)
        return totals
    for (a, b), links in direct.items():
        totals[a] = totals.get(a, 0) + links
        totals[b] = totals.get(b, 0) + links
    return {gpu.id: totals[gpu.id] for gpu in gpus(machine) if gpu.id in totals}


def _through_switches(machine: Machine) -> bool:
    """Whether direct links go through switches: either listed as devices, or implied by more links than a GPU has."""
    if machine.of_kind(DeviceKind.SWITCH):
        return True
    ids = [gpu.id for gpu in gpus(machine)]
    direct = _direct_links(machine)
    every_pair = len(direct) == len(ids) * (len(ids) - 1) // 2
    return len(ids) > 2 and every_pair and min(direct.values()) * (len(ids) - 1) > _MOST_LINKS


_MOST_LINKS = 18
"""No GPU has more links (NVLink 4 and 5), so more can only be links to switches, reported for each pair."""


def _is_usual(usual: int, totals: Mapping[str, int]) -> bool:
    """Whether most GPUs have this number, so that a different one is an exception."""
    return 2 * sum(number == usual for number in totals.values()) > len(totals) > 2


def _components(ids: Iterable[str], near: Iterable[Pair]) -> list[list[str]]:
    """Groups of GPUs that are connected by `near` pairs, in order."""
    group_of = {name: [name] for name in ids}
    for a, b in near:
        if group_of[a] is not group_of[b]:
            joined = group_of[a] + group_of[b]
            group_of |= dict.fromkeys(joined, joined)
    order = list(group_of)
    return [sorted(group, key=order.index) for group in {id(group): group for group in group_of.values()}.values()]


def _of_pairs(number: int, pairs: int) -> str:
    return "The only GPU pair" if number == pairs == 1 else f"{number} of {count(pairs, 'GPU pair')}"


def _links(number: int) -> str:
    return count(number, "direct link") if number else "none"


def _most_links(entry: tuple[int, int]) -> int:
    return -entry[0]


def _best_pair(direct: Mapping[Pair, int]) -> str:
    a, b = max(direct, key=lambda pair: direct[pair])
    return f"{a} and {b}"
