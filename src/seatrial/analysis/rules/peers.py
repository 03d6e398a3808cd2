"""Rules about pairs of GPUs: peer access, pairs across NUMA nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from seatrial.analysis.direct_links import connected, direct_links
from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.contradictions import contradicted
from seatrial.analysis.rules.devices import gpus, paths_by_pair, spans
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Machine
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
    direct = direct_links(machine).pairs
    excluded = direct.keys() | contradicted(machine).keys()
    far = dict.fromkeys(pair for pair, found in classes.items() if found == "SYS" and pair not in excluded)
    if not far:
        return
    ends = {end for pair in far for end in pair}
    groups = connected(ids, [pair for pair in classes if pair not in far and classes[pair] is not None])
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


def _of_pairs(number: int, pairs: int) -> str:
    return "The only GPU pair" if number == pairs == 1 else f"{number} of {count(pairs, 'GPU pair')}"
