"""Rules about distances: GPUs far from each other, adapters far from the GPUs that they serve, or near none of them; a
device at the wrong switch or NUMA node, and a GPU that is missing from a regular board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from seatrial.analysis.device_places import MovedDevice, Spread, cards, gone, moved, short_of_a_board, spreads
from seatrial.analysis.direct_links import connected, direct_links
from seatrial.analysis.rules.devices import (
    CLASSES_BY_DISTANCE,
    coherent_gpus,
    dies_of_modules,
    fabric_adapters,
    fast_adapters,
    gpus,
    of_pairs,
    paths_by_pair,
    spans,
)
from seatrial.analysis.rules.finding import Case, Subject, at_hardware, finding, is_virtual, listed, note, rule
from seatrial.analysis.rules.numa_nodes import contradicted, nodes_of
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.links import links_above
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import count

_FAR = ("NODE", "SYS")
_RANK = {name: rank for rank, name in enumerate(CLASSES_BY_DISTANCE)}
_MEANS = {"NODE": "the path between host bridges of one NUMA node", "SYS": "the link between sockets (or NUMA nodes)"}
Classes = Mapping[str, Mapping[str, str]]
"""GPU -> adapter -> class, for GPUs whose class to every adapter is known."""
_MOST_PATHS = 8


@rule(Subject.DISTANCES)
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
    yield note(
        "gpus-across-numa-nodes",
        devices=(name for name in ids if name in ends),
        observation=f"{of_pairs(len(far), len(classes))} {'is' if len(far) == 1 else 'are'} connected only across "
        "NUMA nodes (SYS).",
        diagnosis="Their copies cross the link between sockets (or between nodes of one socket), which all other "
        "traffic between them shares. Some platforms have no peer access on this path, so copies go through host "
        "memory.",
        remedy=f"{keep}. Measure both kinds of pairs",
        evidence=listed(f"{a} - {b}: SYS" for a, b in far),
    )


@rule(Subject.DISTANCES)
def adapter_far(case: Case) -> Iterator[Finding]:
    """Fires if the nearest adapter of a GPU is of class NODE or SYS; all such GPUs are one finding."""
    classes = _classes(case.machine)
    best = {gpu: min(to.values(), key=_RANK.__getitem__) for gpu, to in classes.items()}
    doubtful = {end for pair in contradicted(case.machine) for end in pair if set(pair) - classes.keys()}
    best = {gpu: found for gpu, found in best.items() if found not in _FAR or gpu not in doubtful}
    far = {gpu: found for gpu, found in best.items() if found in _FAR}
    if not far:
        return
    worst = max(far.values(), key=_RANK.__getitem__)
    by_class = [(found, [gpu for gpu in far if far[gpu] == found]) for found in _FAR if found in far.values()]
    nearest = "; ".join(f"{spans(names)}: {found}" for found, names in by_class)
    near = [gpu for gpu in best if gpu not in far]
    is_of_board = bool(near) and far.keys() <= dies_of_modules(case.machine)
    is_note = worst != "SYS" or is_of_board or is_virtual(case.machine)
    yield finding(
        "adapter-far-from-gpu",
        severity=Severity.INFO if is_note else Severity.WARNING,
        devices=far,
        observation=f"{len(far)} of {count(len(gpus(case.machine)), 'GPU')} "
        f"{'has' if len(far) == 1 else 'have'} no adapter nearer than {worst if len(by_class) == 1 else 'NODE or SYS'}"
        f" ({nearest}).",
        diagnosis=f"Every message of these GPUs takes {' or '.join(_MEANS[found] for found, _ in by_class)}, which "
        "other traffic shares; reads of GPU memory by an adapter (GPUDirect) are slow or disabled on this path."
        + (" The host may be built otherwise than the guest shows." if is_virtual(case.machine) else ""),
        remedy=_bring_near(case.machine, near, far),
        evidence=listed(
            (f"{gpu} - {nic}: {found}" for gpu in far for nic, found in classes[gpu].items()), most=_MOST_PATHS
        ),
    )


def _bring_near(machine: Machine, near: Sequence[str], far: Mapping[str, str]) -> str:
    """What to do about GPUs far from all adapters; only what their classes leave to be done."""
    use = f"Use {spans(near)} for ranks that talk to other nodes" if near else ""
    if dies_of_modules(machine) & far.keys():
        move = "a module of two GPUs has its adapter, if any, at one of them: the board fixes it, so choose by `lstopo`"
    elif is_virtual(machine):
        move = at_hardware(machine, "")
        move = move[0].lower() + move[1:]
    else:
        below = {end for path in machine.paths if path.path_class in ("PIX", "PXB") for end in (path.a, path.b)}
        place = "" if below.isdisjoint(far) else "below the switch of these GPUs"
        if "SYS" in far.values():
            place = f"{place}, or at least at their NUMA node" if place else "at the NUMA node of these GPUs"
        else:
            place = place or "below the host bridge of these GPUs"
        move = f"if the server has a free slot {place}, move an adapter there (see its manual)"
    text = f"{use}; {move}" if use else move
    return text[0].upper() + text[1:]


@rule(Subject.DISTANCES)
def adapter_without_gpu(case: Case) -> Iterator[Finding]:
    """Fires if some adapters are near no GPU, but others are."""
    classes = _classes(case.machine)
    if not classes or len(classes) < len(gpus(case.machine)):
        return
    adapters = list(next(iter(classes.values())))
    best = {nic: min((to[nic] for to in classes.values()), key=_RANK.__getitem__) for nic in adapters}
    lone = [nic for nic in adapters if best[nic] in _FAR]
    if not lone or len(lone) == len(adapters):
        return
    nearest = min((best[nic] for nic in lone), key=_RANK.__getitem__)
    yield note(
        "adapter-near-no-gpu",
        devices=lone,
        observation=f"{len(lone)} of {count(len(adapters), 'adapter')} {'is' if len(lone) == 1 else 'are'} not near "
        f"any GPU: {spans(_named(case.machine, lone))} (at best {nearest}).",
        diagnosis="This is normal for storage or management adapters. GPU traffic takes a longer path through them, "
        "and a library that spreads messages over all adapters may use them.",
        remedy="Select the adapters for GPU traffic: `NCCL_IB_HCA=="
        f"{','.join(_named(case.machine, [nic for nic in adapters if nic not in lone]))}`, and likewise for UCX "
        "(`UCX_NET_DEVICES`)",
        evidence=listed(f"{nic}: nearest GPU is {best[nic]}" for nic in lone),
    )


def _classes(machine: Machine) -> Classes:
    """Only GPUs with a known distance to every adapter: an unreported adapter might be the nearest, and so might one of
    a class that rests on a PCI tree without the GPU's link to the processor (Grace)."""
    adapters = [device.id for device in fabric_adapters(machine)]
    paths, nodes, coherent = paths_by_pair(machine), nodes_of(machine), coherent_gpus(machine)
    found: dict[str, dict[str, str]] = {}
    for gpu in gpus(machine):
        to = {nic: paths[gpu.id, nic].path_class for nic in adapters if (gpu.id, nic) in paths}
        if gpu.id in coherent:
            apart = [nic for nic in to if gpu.id in nodes and nic in nodes and nodes[gpu.id] != nodes[nic]]
            to = {nic: name for nic, name in to.items() if name not in _FAR or nic in apart}
        known = {nic: name for nic, name in to.items() if name in _RANK and name is not None}
        if adapters and len(known) == len(adapters):
            found[gpu.id] = known
    return found


def _named(machine: Machine, ids: Sequence[str]) -> list[str]:
    """The operating system's names if the ids are labels of a matrix (NIC0 is mlx5_1)."""
    devices = [machine.device(name) for name in ids]
    return [
        name if device is None else _system_name(device.name or name, device.aliases)
        for name, device in zip(ids, devices, strict=True)
    ]


def _system_name(name: str, aliases: Sequence[str]) -> str:
    return aliases[0] if aliases and name.upper().startswith("NIC") else name


_NAMES = {DeviceKind.GPU: "GPU", DeviceKind.NIC: "adapter"}
_MOST_PLACES = 8
_FAST_BPS = 3.9e9
"""A network function with such a PCIe link is not a management port."""


@rule(Subject.MISPLACED)
def gpu_missing(case: Case) -> Iterator[Finding]:
    """Fires if one switch or NUMA node has one GPU less than all others, or a board of linked GPUs misses one."""
    machine = case.machine
    linked = direct_links(machine)
    found = next((one for spread in _spreads(machine) if (one := gone(spread)) is not None), short_of_a_board(linked))
    if found is None:
        return
    where = _place(found.spread, found.place) if found.spread is not None and found.place is not None else None
    counted = "" if found.spread is None else f" ({_counts(found.spread, ())})"
    yield finding(
        "gpu-missing",
        severity=Severity.INFO if is_virtual(machine) else Severity.WARNING,
        devices=() if found.spread is None or found.place is None else found.spread.places[found.place],
        observation=f"There are {found.present} GPUs"
        + (f", and {where} has one less than the others{counted}." if where else f" on a board for {found.expected}."),
        diagnosis=f"The {found.expected}th GPU is not in this data: it failed, is not seated or powered, is given to a "
        "virtual machine, or is hidden from the process that wrote it (a container, a batch system). "
        "The data does not show which.",
        remedy="Count them on the bare node: `lspci -d 10de: | grep -ci -e 3d -e vga` (AMD: `lspci -d 1002:`), "
        "and search the kernel's messages: `sudo dmesg | grep -i -e xid -e 'fallen off' -e pcieport`",
        evidence=listed(_listing(found.spread))
        if found.spread is not None
        else f"{count(len(linked.gpus), 'GPU')} with {linked.name}: {spans(linked.gpus)}",
    )


def _out_of_place(machine: Machine, found: MovedDevice) -> Finding:
    spread = found.spread
    kind = _NAMES[spread.what]
    one = len(found.suspects) == 1
    crowded, short = (_place(spread, place, found.suspects) for place in (found.crowded, found.short))
    is_near_none = found.crowded not in spread.places
    where = "is near no GPU" if is_near_none else f"is {'an' if kind[0] in 'a' else 'a'} {kind} too many at {crowded}"
    other = "adapters" if spread.what is DeviceKind.GPU else "GPUs"
    even = f" Each has the same number of {other}." if spread.has_even_others else ""
    costs = (
        "Some GPUs then share an adapter or reach one over a longer path."
        if spread.what is DeviceKind.NIC
        else "A rank that is placed by the pattern runs far from it."
    )
    return finding(
        "device-out-of-place",
        severity=Severity.INFO if is_virtual(machine) else Severity.WARNING,
        devices=found.suspects,
        observation=f"{'' if one else 'One of '}{spans(found.suspects)} {where}, and {short} has one less than the "
        f"others: {_counts(spread, found.suspects)}.{even}",
        diagnosis=f"{'It' if one else 'One of them'} breaks the pattern of the others: "
        + ("the guest is defined so. " if is_virtual(machine) else "it is in another slot than they are, or this data ")
        + ("" if is_virtual(machine) else "attributes it to the wrong switch or node. ")
        + costs,
        remedy=at_hardware(
            machine,
            "Compare with a node of the same model (`lstopo`, `nvidia-smi topo -m`), and check the slot in the "
            "server's manual; if it is right, bind by what is there (see the bindings)",
        ),
        evidence=listed(_listing(spread)),
    )


def _spreads(machine: Machine) -> Iterator[Spread]:
    if coherent_gpus(machine):
        return
    yield from spreads(machine, cards(gpus(machine)), cards(_adapters(machine)))


def _adapters(machine: Machine) -> list[Device]:
    """The adapters that carry messages between nodes; of a list of PCI functions, those with a fast link."""
    named = {device.id for device in fast_adapters(machine)}
    above = links_above(machine)

    def has_fast_link(nic: Device) -> bool:
        if {"state", "rate"} & set(nic.facts):
            return False
        link = above.get(nic.id)
        return link is not None and (link.capable_Bps or link.trained_Bps or 0.0) >= _FAST_BPS

    return [nic for nic in machine.of_kind(DeviceKind.NIC) if nic.id in named or has_fast_link(nic)]


def _place(spread: Spread, place: str, without: Sequence[str] = ()) -> str:
    """Such as: "NUMA node 1", "the switch of GPU0, GPU1"; `without` are devices that may not belong there."""
    if spread.is_node:
        return place
    own, beside = spread.places.get(place, ()), spread.beside.get(place, ())
    first, second = (own, beside) if spread.what is DeviceKind.GPU else (beside, own)
    members = [name for name in first if name not in without] or [name for name in second if name not in without]
    return f"the switch of {spans(members or first or second)}"


def _counts(spread: Spread, suspects: Sequence[str]) -> str:
    """Such as: "3, 1, 2 and 2 adapters at NUMA nodes 0, 1, 2, 3"."""
    numbers = [str(number) for number in spread.counts]
    if all(name.startswith("NUMA node ") for name in spread.places):
        where = f"NUMA nodes {', '.join(name.removeprefix('NUMA node ') for name in spread.places)}"
    else:
        where = "; ".join(_place(spread, name, suspects) for name in list(spread.places)[:_MOST_PLACES])
        where += f" and {len(numbers) - _MOST_PLACES} more" if len(numbers) > _MOST_PLACES else ""
    return f"{', '.join(numbers[:-1])} and {numbers[-1]} {_NAMES[spread.what]}s at {where}"


def _listing(spread: Spread) -> Sequence[str]:
    return [f"{_place(spread, place)}: {spans(ids) or 'none'}" for place, ids in spread.places.items()]


@rule(Subject.MISPLACED)
def device_out_of_place(case: Case) -> Iterator[Finding]:
    """Fires if all switches or NUMA nodes have the same number of GPUs, or of adapters of a model, but for one with one
    more and one with one less."""
    if dies_of_modules(case.machine):  # their place, and that of the adapters at them, is fixed by the board
        return
    for spread in _spreads(case.machine):
        found = moved(spread)
        if found is not None:
            yield _out_of_place(case.machine, found)
            return
