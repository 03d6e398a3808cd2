"""The placement of the two ranks of a pair: their distance from each other, and from the network adapter of the node.

With 2n ranks, rank p and rank p + n form a pair. On several nodes these two are on different nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.nodes import on_each_node
from seatrial.benchmarks.placement import numa_node, spread
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, whole
from seatrial.model.machine.machine import Device, DeviceKind, Machine

PLACEMENT = Parameter.choice(
    "placement",
    "auto",
    "where the ranks of a pair are; cores: as close as possible in one package; sockets: in two packages; near: on the "
    "NUMA node of the fastest adapter; far: on a NUMA node without adapters; auto: cores if a package has enough",
    ("auto", "cores", "sockets", "near", "far"),
)


def resolved_placement(machine: Machine, params: Params) -> Params:
    """The parameters with the placement that `auto` stands for, after `resolved_ranks`. It stays `auto`, which is a
    core after the other, where no package has a core for each rank, and where ranks share CPUs.

    Raises Skip where this machine has no such pairs.
    """
    placement = params["placement"]
    if params["oversubscribe"]:
        if placement != "auto":
            raise Skip(f"placement={placement}: ranks that share CPUs are not bound")
        return params
    if whole(params["nodes"]) > 1:
        if placement in ("cores", "sockets"):
            raise Skip(f"placement={placement}: the ranks of a pair are on different nodes (nodes={params['nodes']})")
        pair_cpus(machine, params)
        return params
    if placement == "auto":
        fits = any(len(cores) >= whole(params["ranks"]) for cores in _packages(machine))
        return {**params, "placement": "cores" if fits else "auto"}
    pair_cpus(machine, params)
    return params


def pair_cpus(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPU of each rank; none where ranks share what there is. Raises Skip where this machine has no such pairs."""
    ranks = whole(params["ranks"])
    if params["oversubscribe"]:
        return ()
    if whole(params["nodes"]) > 1:
        cpus = {"near": _near, "far": _far}.get(str(params["placement"]), spread)
        return on_each_node(machine, params["nodes"], ranks, cpus)
    match params["placement"]:
        case "cores":
            return _neighbours(_nearest(machine, _packages(machine), ranks, "package"))
        case "sockets":
            return _across(machine, ranks // 2)
        case "near":
            return _neighbours(_near(machine, ranks))
        case "far":
            return _neighbours(_far(machine, ranks))
        case _:
            return spread(machine, ranks)


def _near(machine: Machine, ranks: int) -> tuple[int, ...]:
    return _nearest(machine, [_cores_near(machine)], ranks, "NUMA node of the adapter")


def _far(machine: Machine, ranks: int) -> tuple[int, ...]:
    return _nearest(machine, _cores_far(machine), ranks, "NUMA node without an adapter")


def _neighbours(cpus: Sequence[int]) -> tuple[int, ...]:
    """CPUs in such an order that each pair of ranks has two neighbours."""
    return (*cpus[0::2], *cpus[1::2])


def _across(machine: Machine, pairs: int) -> tuple[int, ...]:
    """The first ranks of all pairs in one package, the second ones in another."""
    packages = _packages(machine)
    if len(packages) < 2:
        raise Skip("placement=sockets needs two packages; this process may use CPUs of one")
    first, second = sorted(packages, key=len, reverse=True)[:2]
    if len(second) < pairs:
        raise Skip(f"placement=sockets needs {pairs} cores in each of two packages; the second has {len(second)}")
    both = [cores for cores in packages if cores is first or cores is second]
    return (*both[0][:pairs], *both[1][:pairs])


def _nearest(machine: Machine, groups: Sequence[Sequence[int]], count: int, what: str) -> tuple[int, ...]:
    """So many cores of one of the groups: those below the least part of the machine (a cache, say) that has them."""
    most = max((len(cores) for cores in groups), default=0)
    if most < count:
        raise Skip(f"{count} ranks need {count} cores in one {what}; this process may use {most}")
    best: Sequence[int] = max(groups, key=len)
    for cores in groups:
        for held in (cores, *_below_each_part(machine, cores)):
            if count <= len(held) < len(best):
                best = held
    return tuple(best[:count])


def _below_each_part(machine: Machine, cpus: Sequence[int]) -> list[list[int]]:
    """Those of the CPUs that each part above them holds."""
    held: dict[str, list[int]] = {}
    pus = machine.pus
    for cpu in cpus:
        for part in machine.ancestors(pus[cpu]) if cpu in pus else ():
            held.setdefault(part.id, []).append(cpu)
    return list(held.values())


def _packages(machine: Machine) -> list[list[int]]:
    """The cores (the first CPU of each) of every package, packages in the order of their first core. Cores whose
    unknown package count as one."""
    found: dict[str, list[int]] = {}
    for cpu in machine.cpus_one_per_core:
        package = machine.package_of(cpu)
        found.setdefault("" if package is None else package.id, []).append(cpu)
    return list(found.values())


def _adapters(machine: Machine) -> list[Device]:
    """The network adapters whose NUMA node is known and that are not down, the fastest first."""
    known = [
        device
        for device in machine.of_kind(DeviceKind.NIC)
        if _node_of(machine, device) is not None and (device.facts.text("state") or "").lower() != "down"
    ]
    return sorted(
        known, key=lambda device: ("link_layer" in device.facts, device.facts.number("rate") or 0.0), reverse=True
    )


def _node_of(machine: Machine, device: Device) -> int | None:
    if device.numa is not None:
        return device.numa
    return next((affinity.numa for affinity in machine.affinity if affinity.device == device.id), None)


def _cores_near(machine: Machine) -> list[int]:
    adapters = _adapters(machine)
    if not adapters:
        raise Skip("placement=near: the NUMA nodes of this machine's adapters are unknown")
    node = _node_of(machine, adapters[0])
    return [cpu for cpu in machine.cpus_one_per_core if numa_node(machine, cpu) == node]


def _cores_far(machine: Machine) -> list[list[int]]:
    """The cores of each NUMA node without an adapter: those of other packages than the fastest adapter's, where there
    are any."""
    adapters = _adapters(machine)
    if not adapters:
        raise Skip("placement=far: the NUMA nodes of this machine's adapters are unknown")
    taken = {_node_of(machine, adapter) for adapter in adapters}
    nodes: dict[int, list[int]] = {}
    beside = set()
    for cpu in machine.cpus_one_per_core:
        node, package = numa_node(machine, cpu), machine.package_of(cpu)
        if node == _node_of(machine, adapters[0]) and package is not None:
            beside.add(package.id)
        if node is not None and node not in taken:
            nodes.setdefault(node, []).append(cpu)
    elsewhere = [
        cores
        for cores in nodes.values()
        if (package := machine.package_of(cores[0])) is not None and package.id not in beside
    ]
    if not nodes:
        raise Skip("placement=far: every NUMA node that this process may use has an adapter")
    return elsewhere or list(nodes.values())
