"""CPUs and memory next to each GPU and adapter, as options of numactl, Open MPI, Slurm and MPICH.

CPU numbers are those of the operating system. Open MPI's own options (`--cpu-set`, rankfiles) count cores in
the order of hwloc instead, over the CPUs that the job may use (mpirun(1) of Open MPI 4.1: "logical cpus"). With SMT or
a reduced CPU set, the same number is then another core, so mpirun leaves ranks unbound and numactl binds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from seatrial.analysis.rules.devices import affinities, node_cpus
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Keywords, Later, Text, published, when
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine
from seatrial.model.spelling import cpu_list

_BOUND_KINDS = (DeviceKind.GPU, DeviceKind.NIC)
_MOST_MASK_BITS = 1 << 16
"""A CPU number beyond this is invalid, and its mask would fill the screen."""


_NULL = {"type": "null"}


@published(keywords=when("cpus", None, dict.fromkeys(("numactl", "mpirun", "srun", "mpich"), _NULL)))
class Binding(Frozen):
    """The CPUs next to a device, and the command prefixes that bind a program to them.

    `cpus` is sorted and contains only CPUs that this process may use, if that is known. None is unknown.
    """

    device: str
    cpus: Annotated[tuple[Count, ...], Keywords(minItems=1, uniqueItems=True)] | None
    numa: Count | None
    numactl: Text | None = None
    mpirun: Text | None = None
    srun: Later[Text | None] = None
    mpich: Later[Text | None] = None


def bindings(machine: Machine) -> tuple[Binding, ...]:
    """One for each GPU and adapter, in the order of the machine."""
    affinity, nodes = affinities(machine), node_cpus(machine)
    devices = [device for device in machine.devices if device.kind in _BOUND_KINDS]
    return tuple(_binding(machine, device, affinity.get(device.id), nodes) for device in devices)


def _binding(
    machine: Machine, device: Device, affinity: Affinity | None, nodes: Mapping[int, tuple[int, ...]]
) -> Binding:
    numa = device.numa if device.numa is not None else affinity.numa if affinity is not None else None
    cpus = affinity.cpus if affinity is not None else None
    if cpus is None and numa is not None:
        cpus = nodes.get(numa)
    allowed = tuple(sorted(_allowed(machine, cpus or ())))
    if not allowed:
        return Binding(device.id, None, numa)
    numactl = f"numactl {numactl_options(allowed, numa, nodes)}"
    mask = cpu_mask(allowed)
    return Binding(
        device.id,
        allowed,
        numa,
        numactl,
        f"mpirun --bind-to none {numactl}",
        None if mask is None else f"srun --cpu-bind=mask_cpu:{mask} --mem-bind=local",
        f"mpiexec -n 1 -bind-to user:{joined(allowed)}",
    )


def _allowed(machine: Machine, cpus: Iterable[int]) -> set[int]:
    return set(cpus) & set(machine.allowed_cpus) if machine.allowed_cpus else set(cpus)


def numactl_options(cpus: Sequence[int], numa: int | None, nodes: Mapping[int, tuple[int, ...]]) -> str:
    """The options that bind to these CPUs, and memory to the node if it is known: "--cpunodebind=1 --membind=1".

    CPUs are given by their node only if they are all of its CPUs. numactl(8).
    """
    if numa is not None and tuple(sorted(cpus)) == nodes.get(numa):
        return f"--cpunodebind={numa} --membind={numa}"
    memory = "" if numa is None else f" --membind={numa}"
    return f"--physcpubind={cpu_list(cpus)}{memory}"


def cpu_mask(cpus: Iterable[int]) -> str | None:
    """The CPUs as a mask for `srun --cpu-bind=mask_cpu:` ("0xff00"); None if a number is invalid."""
    mask = 0
    for cpu in cpus:
        if not 0 <= cpu < _MOST_MASK_BITS:
            return None
        mask |= 1 << cpu
    return hex(mask)


def joined(cpus: Iterable[int]) -> str:
    """The CPUs of one rank for MPICH's `-bind-to user:` ("0+1+2"), which does not support ranges."""
    return "+".join(str(cpu) for cpu in cpus)
