"""Rules about how firmware divides the sockets into NUMA nodes: NPS of AMD, sub-NUMA clusters of Intel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.devices import is_virtual
from seatrial.analysis.rules.finding import Subject, note, rule, warning
from seatrial.analysis.rules.words import listed
from seatrial.model.machine.finding import Finding
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.spelling import count, cpu_list

_ON_DIE = ("Haswell", "Broadwell")
"""Intel's processors before sub-NUMA clusters: the setting is Cluster on Die there."""
_NPS = (2, 4)


@rule(Subject.SOCKETS)
def sockets_joined(case: Case) -> Iterator[Finding]:
    """Fires if several sockets with memory controllers of their own appear as one NUMA node."""
    machine = case.machine
    nodes = _nodes_of_sockets(machine)
    if is_virtual(machine) or len(nodes) < 2 or len({frozenset(found) for found in nodes.values()}) != 1:
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


@rule(Subject.SOCKETS)
def sockets_divided(case: Case) -> Iterator[Finding]:
    """Fires if every socket is divided into the same number of NUMA nodes, more than one."""
    machine = case.machine
    nodes = _nodes_of_sockets(machine)
    numbers = {len(found) for found in nodes.values()}
    if is_virtual(machine) or len(numbers) != 1 or numbers == {1}:
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
