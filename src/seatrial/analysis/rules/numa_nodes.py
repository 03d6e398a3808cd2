"""Rules about NUMA nodes and their devices: nodes without devices, paths of a matrix that contradict the nodes of their
ends, CPU lists reduced by a control group; and how firmware divides the sockets into nodes: NPS of AMD, sub-NUMA
clusters of Intel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.analysis.rules.devices import coherent_gpus, fabric_adapters, gpus, node_cpus, numa_of, spans
from seatrial.analysis.rules.finding import Case, Subject, cite_best, finding, listed, note, rule, warning
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine
from seatrial.model.spelling import count, cpu_list

_NAMED_BY_KIND = tuple(f"{kind}-" for kind in DeviceKind)
"""How the ids of devices begin, unless they are labels of a matrix."""
_FEW = 0.5
"""A smaller share of a node's CPUs is not explained by offline cores."""
Ends = tuple[str, str]
"""The ids of the two devices of a path."""
_WITHIN_A_NODE = frozenset({"PIX", "PXB", "PHB", "NODE"})
_BELOW_ONE_HOST_BRIDGE = frozenset({"PIX", "PXB", "PHB"})


@rule(Subject.PLACES)
def node_without_devices(case: Case) -> Iterator[Finding]:
    """Fires if some NUMA nodes with CPUs have no GPU, or no adapter, but others do."""
    machine = case.machine
    nodes = list(node_cpus(machine))
    if len(nodes) < 2:
        return
    bare = [
        (what, found) for what, devices in (("GPU", gpus(machine)), ("adapter", fabric_adapters(machine)))
        if (found := _bare_nodes(machine, nodes, devices))
    ]  # fmt: skip
    if not bare:
        return
    without = "; ".join(f"no {what} at {_nodes(found)}" for what, found in bare)
    affected = sorted({node for _, found in bare for node in found})
    yield note(
        "numa-node-without-devices",
        devices=(f"numa-{node}" for node in affected),
        observation=f"Some of the {len(nodes)} NUMA nodes with CPUs have no device of a kind that others have: "
        f"{without}.",
        diagnosis="A rank on such a node reaches the device over the link between nodes: higher latency, and bandwidth "
        "shared with all other traffic on that link.",
        remedy="Place ranks that use these devices on the nodes that have them (see the bindings), and ranks that only "
        "compute on the others",
        evidence=listed(
            f"{device.id} at node {numa_of(machine, device)}" for device in (*gpus(machine), *fabric_adapters(machine))
        ),
    )


def _bare_nodes(machine: Machine, nodes: Sequence[int], devices: Sequence[Device]) -> list[int]:
    """The nodes without one of these devices; empty if the node of a device is unknown."""
    at = [numa_of(machine, device) for device in devices]
    if not at or None in at:
        return []
    bare = [node for node in nodes if node not in at]
    return bare if len(bare) < len(nodes) else []


def _nodes(numbers: Sequence[int]) -> str:
    return f"{'node' if len(numbers) == 1 else 'nodes'} {cpu_list(numbers)}"


@rule(Subject.PLACES)
def paths_contradict_nodes(case: Case) -> Iterator[Finding]:
    """Fires if a path class puts two devices on one NUMA node and their affinity on different ones, or the reverse."""
    machine = case.machine
    pairs = contradicted(machine)
    if not pairs:
        return
    nodes = nodes_of(machine)
    has_one_node = len(machine.of_kind(DeviceKind.NUMA)) == 1
    apart = [(pair, found) for pair, found in pairs.items() if found == "SYS"]
    together = [(pair, found) for pair, found in pairs.items() if found != "SYS"]
    said = []
    if apart:
        where = "the machine has only one NUMA node" if has_one_node else "the same NUMA node by their affinity"
        said.append(f"{_pairs(apart)} the path class SYS (between NUMA nodes), but {where}")
    if together:
        said.append(f"{_pairs(together)} a path within one NUMA node, but different nodes by their affinity")
    ends = tuple(dict.fromkeys(end for pair in pairs for end in pair))
    odd = [end for end in ends if all(end in pair for pair in pairs)] if len(pairs) > 1 else []
    also = f" All of them include {odd[0]}." if odd else ""
    yield finding(
        "paths-contradict-numa",
        severity=Severity.WARNING if odd else Severity.INFO,
        devices=tuple(odd) or ends,
        observation=f"{'; '.join(said)}: {spans(ends)}.{also}",
        diagnosis=("The paths or the node of this device are wrong" if odd else "One of the two is wrong")
        + "; these sources do not show which. Possible causes: a virtual machine or "
        "container with an incomplete PCI tree, firmware that assigns a wrong node. Libraries choose paths by such "
        "data, and a binding to a wrong node is slow.",
        remedy="Compare them with `grep . /sys/bus/pci/devices/*/numa_node` and `lstopo` on the host, and measure "
        "which node is near: copies of one device, bound to each node in turn",
        evidence=listed(f"{a} - {b}: {found}, {_where(nodes, a, b)}" for (a, b), found in pairs.items()),
    )


def contradicted(machine: Machine) -> Mapping[Ends, str]:
    """Pair, in the order of the machine's paths -> its class, if that contradicts the NUMA nodes of its ends."""
    nodes = nodes_of(machine)
    has_one_node = len(machine.of_kind(DeviceKind.NUMA)) == 1
    coherent = coherent_gpus(machine)
    found: dict[Ends, str] = {}
    for path in machine.paths:
        a, b, name = nodes.get(path.a), nodes.get(path.b), path.path_class
        if coherent & {path.a, path.b} or name is None:
            continue
        is_known = a is not None and b is not None
        is_same = has_one_node or (is_known and a == b)
        if (name == "SYS" and is_same) or (name in _WITHIN_A_NODE and is_known and a != b):
            found[(path.a, path.b)] = name
    return found


def nodes_of(machine: Machine) -> Mapping[str, int]:
    """Device -> its NUMA node: as reported, else that of a device below the same host bridge, if all of these agree."""
    devices = (*gpus(machine), *fabric_adapters(machine))
    reported = {device.id: node for device in devices if (node := numa_of(machine, device)) is not None}
    beside: dict[str, set[int]] = {}
    for path in machine.paths:
        if path.path_class in _BELOW_ONE_HOST_BRIDGE:
            for end, other in ((path.a, path.b), (path.b, path.a)):
                if end not in reported and other in reported:
                    beside.setdefault(end, set()).add(reported[other])
    return {**reported, **{end: nodes.pop() for end, nodes in beside.items() if len(nodes) == 1}}


def _pairs(pairs: Sequence[tuple[Ends, str]]) -> str:
    return f"{count(len(pairs), 'pair')} of devices {'has' if len(pairs) == 1 else 'have'}"


def _where(nodes: Mapping[str, int], a: str, b: str) -> str:
    if a not in nodes or b not in nodes:
        return "one node in all"
    return f"both at node {nodes[a]}" if nodes[a] == nodes[b] else f"nodes {nodes[a]} and {nodes[b]}"


@rule(Subject.PLACES)
def affinity_cut(case: Case) -> Iterator[Finding]:
    """Fires if a source lists far fewer local CPUs for a device than its NUMA node has: the source ran in a control
    group. If the CPUs of nodes are unknown, lists that are empty for some GPUs only indicate the same."""
    machine = case.machine
    cpus = node_cpus(machine)
    cut = [
        (affinity, len(cpus[node]))
        for affinity in machine.affinity
        if affinity.cpus and (node := affinity.numa) is not None and node in cpus
        and not affinity.device.startswith(_NAMED_BY_KIND)  # few CPUs if the device is near only those
        and set(affinity.cpus) < set(cpus[node]) and len(affinity.cpus) < _FEW * len(cpus[node])
    ]  # fmt: skip
    empty = [] if cpus else _empty_beside_others(machine)
    if not cut and not empty:
        return
    if cut:
        first, number = cut[0]
        seen = (
            f"The CPU list of {spans(affinity.device for affinity, _ in cut)} is incomplete: only "
            f"{cpu_list(first.cpus or ())} of the {count(number, 'CPU')} of NUMA node {first.numa}."
        )
    else:
        seen = f"No local CPUs are listed for {spans(a.device for a in empty)}, but for other GPUs of this machine."
    yield note(
        "affinity-cut",
        devices=(affinity.device for affinity in [*(affinity for affinity, _ in cut), *empty]),
        observation=seen,
        diagnosis="The tool that wrote the list saw only the CPUs that its job or container may use. Programs that "
        "bind by this list (such as NCCL) overload those CPUs, or run far from the device.",
        remedy="Request CPUs next to each GPU (`srun --gpus-per-task=1 --cpus-per-gpu=N --gpu-bind=closest`), or "
        "read the list again outside the job",
        evidence=listed(
            f"{a.device}: CPUs {cpu_list(a.cpus) if a.cpus else 'none'}, NUMA node "
            f"{'unknown' if a.numa is None else a.numa}"
            for a in machine.affinity
            if (device := machine.device(a.device)) is not None and device.kind is DeviceKind.GPU
        ),
    )


def _empty_beside_others(machine: Machine) -> list[Affinity]:
    """GPUs of a known node without local CPUs, if other GPUs have some."""
    cards = {gpu.id for gpu in gpus(machine)}
    listed_gpus = [affinity for affinity in machine.affinity if affinity.device in cards]
    empty = [affinity for affinity in listed_gpus if not affinity.cpus and affinity.numa is not None]
    return empty if any(affinity.cpus for affinity in listed_gpus) else []


_ON_DIE = ("Haswell", "Broadwell")
"""Intel's processors before sub-NUMA clusters: the setting is Cluster on Die there."""
_NPS = (2, 4)


@rule(Subject.SOCKETS, of_hardware=True)
def sockets_joined(case: Case) -> Iterator[Finding]:
    """Fires if several sockets with their own memory controllers appear as one NUMA node."""
    machine = case.machine
    nodes = _nodes_of_sockets(machine)
    if len(nodes) < 2 or len({frozenset(found) for found in nodes.values()}) != 1:
        return
    if any(len(found) != 1 for found in nodes.values()) or not all(
        "microarchitecture" in package.facts for package in _packages(machine)
    ):
        return  # before these processors, sockets had one memory controller in the chipset
    words = (machine.facts.text("kernel_parameters") or "").split()
    is_off = "numa=off" in words
    why = (
        "The kernel runs with `numa=off`"
        if is_off
        else "The firmware interleaves memory over the sockets (NPS0, node interleaving) or does not describe its nodes"
    )
    evidence = [listed(f"{package}: node {cpu_list(sorted(found))}" for package, found in nodes.items())]
    yield warning(
        "sockets-one-numa-node",
        devices=nodes,
        observation=f"{count(len(nodes), 'socket')} are one NUMA node.",
        diagnosis=f"{why}, so memory cannot be placed near a rank: about {len(nodes) - 1} of {len(nodes)} accesses go "
        "to another socket.",
        remedy="Boot without `numa=off`" if is_off else "Turn off node interleaving in the firmware (AMD: NPS1)",
        evidence="; ".join([*evidence, *([cite_best(machine.facts, "kernel_parameters")] if is_off else [])]),
    )


def _packages(machine: Machine) -> Sequence[Device]:
    return machine.of_kind(DeviceKind.PACKAGE)


def _nodes_of_sockets(machine: Machine) -> Mapping[str, set[int]]:
    """Package -> the NUMA nodes of its CPUs; empty if the package or node of a CPU is unknown."""
    found: dict[str, set[int]] = {}
    for pu in machine.pus.values():
        package = next((a for a in machine.ancestors(pu) if a.kind is DeviceKind.PACKAGE), None)
        if package is None or pu.numa is None:
            return {}
        found.setdefault(package.id, set()).add(pu.numa)
    return found


def _name(machine: Machine, number: int) -> str:
    """The vendor's name of the setting, or ""."""
    packages = _packages(machine)
    vendors = {(p.facts.text("vendor") or p.facts.text("model_name") or p.name).lower() for p in packages}
    if all("amd" in vendor for vendor in vendors):
        if not all(_is_zen(package) for package in packages):  # an Opteron may have two dies, each a node
            return ""
        caches = sum(cache.name.lower() == "l3" for cache in machine.of_kind(DeviceKind.CACHE))
        if number not in _NPS or (caches == number * len(packages) and number > max(_NPS)):
            return "a node for each L3 cache" if caches == number * len(packages) else ""
        return f"NPS{number}"
    if all("intel" in vendor for vendor in vendors):
        families = [p.facts.text("microarchitecture") or "" for p in packages]
        return "Cluster on Die" if any(f.startswith(_ON_DIE) for f in families) else f"SNC{number}"
    return ""


def _is_zen(package: Device) -> bool:
    names = (package.facts.text("microarchitecture") or "", package.facts.text("model_name") or package.name)
    return names[0].startswith("Zen") or "EPYC" in names[1] or "Threadripper" in names[1]


def _undivided(name: str) -> str:
    if name.startswith("NPS"):
        return "NPS1"
    if name.startswith("SNC") or name == "Cluster on Die":
        return f"{name} turned off"
    return "one node per socket"


@rule(Subject.SOCKETS, of_hardware=True)
def sockets_divided(case: Case) -> Iterator[Finding]:
    """Fires if every socket is divided into the same number of NUMA nodes, more than one."""
    machine = case.machine
    nodes = _nodes_of_sockets(machine)
    numbers = {len(found) for found in nodes.values()}
    if len(numbers) != 1 or numbers == {1}:
        return
    number = numbers.pop()
    name = _name(machine, number)
    sockets = f"Each of {len(nodes)} sockets" if len(nodes) > 1 else "The socket"
    yield note(
        "sockets-divided",
        devices=nodes,
        observation=f"{sockets} is divided into {number} NUMA nodes" + (f" ({name})." if name else "."),
        diagnosis=("A setting of the firmware" if name else "A property of the processor or a setting of the firmware")
        + ", good for programs that place ranks and memory by node. A process whose "
        f"memory is on one node has only 1/{number} of the memory channels of its socket, and a device is near one "
        "node only.",
        remedy="Place one or more ranks on each node: `mpirun --map-by numa --bind-to numa`. For programs that span a "
        "socket without placing memory: `numactl --interleave=NODES`"
        + (f", or {_undivided(name)} in the firmware" if name else ""),
        evidence=listed(f"{package}: nodes {cpu_list(sorted(found))}" for package, found in nodes.items()),
    )
