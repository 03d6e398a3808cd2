"""One tree of packages, NUMA nodes, caches, cores and PUs from any number of surveys.

The parent of a part is the smallest part that contains all its CPUs. Parts with the same CPUs are ordered as
package > NUMA node > L3 > L2 > L1d > L1i > core > PU (hwloc's order, with NUMA nodes inside the tree as in hwloc 1).
This covers all machines without special cases:

* one NUMA node per package: package > numa > l3 > ... ;
* sub-NUMA clustering, NPS2, NPS4, "L3 as NUMA": package > several numa > l3 ..., or package > l3 > numa where one
  cache spans the clusters (as Skylake's does);
* several packages in one NUMA node (NPS0, NUMA switched off): numa > packages;
* a NUMA node without CPUs (CXL, HBM, a GPU's memory) becomes a sibling of the nearest node with CPUs (by distance), or
  is at the top;
* parts that overlap without nesting (numa=fake, a damaged source): the part that does not fit becomes a leaf, and its
  CPUs are children of the part around it.

The first survey with any part of a kind (for caches: of a level and type) determines all parts of that kind; later
surveys only add facts to them. Therefore two sources never produce the same core twice, even if one of them sees only
the CPUs of a cpuset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.machine.survey import CpuPart, Survey, merge_facts
from seatrial.model.machine.machine import Device, DeviceKind

_RANK = {DeviceKind.PACKAGE: 0, DeviceKind.NUMA: 1, DeviceKind.CACHE: 2, DeviceKind.CORE: 8, DeviceKind.PU: 9}
_CACHE_ORDER = {"": 0, "d": 1, "i": 2}  # within a level: unified, data, instruction


class _Node(Struct):
    part: CpuPart
    parent: _Node | None = None
    children: list[_Node] = []
    is_leaf: bool = False


def build_cpu_tree(surveys: Sequence[Survey]) -> tuple[Device, ...]:
    """The devices in depth-first order; () if no source has CPUs."""
    nodes = _nest(_joined_parts(surveys))
    _place_nodes_without_cpus(nodes)
    walk: list[_Node] = []
    stack = sorted((node for node in nodes if node.parent is None), key=_order, reverse=True)
    while stack:
        walk.append(stack.pop())
        stack += sorted(walk[-1].children, key=_order, reverse=True)
    ids = _ids(walk)
    numa_of = _numa_of_cpu(walk)
    return tuple(_device(node, ids, numa_of) for node in walk)


def _joined_parts(surveys: Sequence[Survey]) -> list[CpuPart]:
    joined: list[CpuPart] = []
    known: set[tuple[DeviceKind, str]] = set()
    for survey in surveys:
        seen = frozenset(cpu for part in survey.cpu_parts for cpu in part.cpus)
        by_key = {_key(part, seen): part for part in survey.cpu_parts}
        joined = [_with_facts(part, by_key.get(_key(part, seen))) for part in joined]
        joined = _with_packages_in_order(joined, survey.cpu_parts)
        new = [part for part in survey.cpu_parts if (part.kind, part.cache) not in known]
        # A part listed twice with the same CPUs in one source (a damaged file) counts once.
        joined += {_key(part, part.cpus): part for part in new}.values()
        known |= {(part.kind, part.cache) for part in survey.cpu_parts}
    return joined


def _key(part: CpuPart, seen: frozenset[int]) -> tuple[object, ...]:
    """Identifies a part in two sources: a NUMA node by its number, others by kind and those CPUs that both sources see.

    Packages listed by firmware, which has no CPU numbers, are identified by their own number.
    """
    if part.kind is DeviceKind.NUMA or not part.cpus:
        return (part.kind, part.os_index)
    return (part.kind, part.cache, part.cpus & seen)


def _with_packages_in_order(joined: list[CpuPart], parts: Sequence[CpuPart]) -> list[CpuPart]:
    """Add the facts of a source without CPU numbers to the packages, in order, if both have the same number of them."""
    known = [part for part in joined if part.kind is DeviceKind.PACKAGE]
    others = [part for part in parts if part.kind is DeviceKind.PACKAGE]
    is_by_number = all(part.cpus for part in known) and not any(part.cpus for part in others)
    if not known or len(known) != len(others) or not is_by_number:
        return joined
    known.sort(key=lambda part: min(part.cpus))
    others.sort(key=lambda part: part.os_index or 0)
    facts = {id(part): other for part, other in zip(known, others, strict=True)}
    return [_with_facts(part, facts.get(id(part))) for part in joined]


def _with_facts(part: CpuPart, other: CpuPart | None) -> CpuPart:
    return part if other is None else replace(part, facts=merge_facts(part.facts, other.facts))


def _inner_order(part: CpuPart) -> tuple[int, int, int, int]:
    suffix = part.cache[-1:] if part.cache[-1:] in ("d", "i") else ""
    return (_RANK[part.kind], -part.level, _CACHE_ORDER[suffix], part.os_index or 0)


def _nest(parts: list[CpuPart]) -> list[_Node]:
    """Nodes with parents, the largest first; linear in the total number of CPUs of all parts."""
    nodes = [_Node(part) for part in sorted(parts, key=lambda p: (-len(p.cpus), *_inner_order(p), sorted(p.cpus)))]
    innermost: dict[int, _Node] = {}
    for node in nodes:
        if not node.part.cpus:
            continue
        around = innermost.get(min(node.part.cpus))
        while around is not None and not node.part.cpus <= around.part.cpus:
            around = around.parent
        node.parent = around
        fits = all(innermost.get(cpu) is around for cpu in node.part.cpus)
        is_node = node.part.kind is DeviceKind.NUMA
        if is_node and around and around.part.kind is DeviceKind.NUMA and node.part.cpus == around.part.cpus:
            node.parent, node.is_leaf = around.parent, True  # HBM and DRAM: two nodes with the same CPUs
        elif fits:
            innermost.update(dict.fromkeys(node.part.cpus, node))
        else:
            node.is_leaf = True
    for node in nodes:
        if node.parent is not None:
            node.parent.children.append(node)
    return nodes


def _place_nodes_without_cpus(nodes: list[_Node]) -> None:
    numbered = {node.part.os_index: node for node in nodes if node.part.kind is DeviceKind.NUMA and node.part.cpus}
    for node in nodes:
        if node.part.kind is not DeviceKind.NUMA or node.part.cpus:
            continue
        distances = _distances(node.part)
        nearest = sorted((distances[number], number) for number in numbered if number in distances)
        tied = len(nearest) > 1 and nearest[0][0] == nearest[1][0]
        if nearest and not tied:
            parent = numbered[nearest[0][1]].parent
            if parent is not None:
                node.parent = parent
                parent.children.append(node)


def _distances(part: CpuPart) -> dict[int | None, int]:
    """The inverse of the fact `distances`: "0:10 1:21"."""
    pairs = (word.partition(":") for word in (part.facts.text("distances") or "").split())
    return {int(number): int(value) for number, _, value in pairs if number.isdecimal() and value.isdecimal()}


def _order(node: _Node) -> tuple[int, int, int]:
    """Children in the order of their first CPU; memory without CPUs after those; then the operating system's number."""
    return (min(node.part.cpus, default=1 << 30), 0 if node.is_leaf else 1, node.part.os_index or 0)


def _ids(walk: list[_Node]) -> dict[int, str]:
    """id(node) -> the device's id. NUMA nodes and PUs keep Linux's numbers, which numactl and taskset use.

    Packages, cores and caches are counted in the order of the walk, because their own numbers are not unique or not
    small on some machines (core_id repeats in each package; Arm packages are numbered by ACPI offsets).
    """
    counters: Counter[str] = Counter()
    ids: dict[int, str] = {}
    for node in walk:
        part = node.part
        prefix = part.cache or str(part.kind)
        has_number = part.kind in (DeviceKind.NUMA, DeviceKind.PU)
        ids[id(node)] = f"{prefix}-{part.os_index if has_number else counters[prefix]}"
        counters[prefix] += 1
    return ids


def _numa_of_cpu(walk: list[_Node]) -> dict[int, int]:
    """CPU -> its NUMA node; of two nodes with the same CPUs (HBM and DRAM), the lower number."""
    numa_of: dict[int, int] = {}
    for node in walk:
        if node.part.kind is DeviceKind.NUMA and node.part.os_index is not None:
            for cpu in node.part.cpus:
                numa_of[cpu] = min(node.part.os_index, numa_of.get(cpu, node.part.os_index))
    return numa_of


def _device(node: _Node, ids: dict[int, str], numa_of: dict[int, int]) -> Device:
    part, device_id = node.part, ids[id(node)]
    if part.kind is DeviceKind.NUMA:
        numa = part.os_index
    else:  # None if a part spans several nodes
        around = {numa_of.get(cpu) for cpu in part.cpus}
        numa = around.pop() if len(around) == 1 else None
    name = part.facts.text("model_name") if part.kind is DeviceKind.PACKAGE else None
    parent = ids[id(node.parent)] if node.parent is not None else None
    return Device(device_id, part.kind, name or device_id, parent, numa, facts=part.facts)
