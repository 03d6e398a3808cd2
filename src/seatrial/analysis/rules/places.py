"""Rules about NUMA nodes and their devices: nodes without devices, CPU lists reduced by a control group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.devices import fabric_adapters, gpus, node_cpus, numa_of, spans
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Affinity, Device, DeviceKind, Machine
from seatrial.model.spelling import count, cpu_list

_NAMED_BY_KIND = tuple(f"{kind}-" for kind in DeviceKind)
"""How the ids of devices begin, unless they are labels of a matrix."""

_FEW = 0.5
"""A smaller share of a node's CPUs is not explained by offline cores."""


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
    yield Finding(
        rule="numa-node-without-devices",
        severity=Severity.INFO,
        devices=tuple(f"numa-{node}" for node in affected),
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


def affinity_cut(case: Case) -> Iterator[Finding]:
    """Fires if a source lists far fewer local CPUs for a device than its NUMA node has: the source ran in a control
    group. If the CPUs of nodes are unknown, lists that are empty for some GPUs only indicate the same."""
    machine = case.machine
    cpus = node_cpus(machine)
    cut = [
        (affinity, len(cpus[node]))
        for affinity in machine.affinity
        if affinity.cpus and (node := affinity.numa) is not None and node in cpus and _is_label(affinity.device)
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
    yield Finding(
        rule="affinity-cut",
        severity=Severity.INFO,
        devices=tuple(affinity.device for affinity in [*(affinity for affinity, _ in cut), *empty]),
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


def _is_label(device_id: str) -> bool:
    """Whether a device is the row of a matrix: hwloc and the kernel list few CPUs if the device is near only those."""
    return not device_id.startswith(_NAMED_BY_KIND)


def _empty_beside_others(machine: Machine) -> list[Affinity]:
    """GPUs of a known node without local CPUs, if other GPUs have some."""
    cards = {gpu.id for gpu in gpus(machine)}
    listed_gpus = [affinity for affinity in machine.affinity if affinity.device in cards]
    empty = [affinity for affinity in listed_gpus if not affinity.cpus and affinity.numa is not None]
    return empty if any(affinity.cpus for affinity in listed_gpus) else []
