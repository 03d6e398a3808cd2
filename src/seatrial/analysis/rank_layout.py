"""A layout of n ranks: GPU, adapter, NUMA node and CPUs of each, with the commands that bind them.

Each rank gets whole cores, with all their hardware threads; no core is shared. With GPUs, each rank is on the NUMA node
of its GPU, and the cores of a node are split between the ranks whose GPUs are there. Without GPUs, ranks are spread
over the NUMA nodes.

CPUs and memory next to each GPU and adapter, as options of numactl, Open MPI, Slurm and MPICH.

CPU numbers are those of the operating system. Open MPI's own options (`--cpu-set`, rankfiles) count cores in
the order of hwloc instead, over the CPUs that the job may use (mpirun(1) of Open MPI 4.1: "logical cpus"). With SMT or
a reduced CPU set, the same number is then another core, so mpirun leaves ranks unbound and numactl binds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.devices import (
    CLASSES_BY_DISTANCE,
    affinities,
    fabric_adapters,
    gpus,
    node_cpus,
    numa_of,
    paths_by_pair,
)
from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Hidden, Key, Keywords, Later, OneOrMore, Text, key, published, when
from seatrial.model.machine.machine import Affinity, Device, DeviceKind, Machine
from seatrial.model.spelling import count, cpu_list

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
    allowed = tuple(sorted(set(cpus or ()) & set(machine.allowed_cpus) if machine.allowed_cpus else set(cpus or ())))
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


PROGRAM = "PROGRAM"
"""Placeholder in the commands for the program to run."""


class Core(Frozen):
    """The usable CPUs of a core. `index` is its number in hwloc's order, None if the source has no cores."""

    index: int | None
    cpus: tuple[int, ...]
    numa: int | None
    package: str | None


@published("Place")
class RankPlace(Frozen):
    """Where one rank runs.

    GPU, adapter and NUMA node are None if there is none or it is unknown.
    """

    rank: Count
    cores: Hidden[tuple[Core, ...]]
    numa: Count | None
    gpu: Annotated[str | None, Key("device")] = None
    adapter: str | None = None

    @property
    @key
    def cpus(self) -> Annotated[tuple[Count, ...], Keywords(minItems=1, uniqueItems=True)]:
        """All CPUs of its cores, sorted."""
        return tuple(sorted(cpu for core in self.cores for cpu in core.cpus))


@published("Layout")
class RankLayout(Frozen):
    """Where all ranks run, and the commands that place them there.

    `how` they were chosen; `rankfile` is None if Open MPI's core numbers are uncertain, `srun` if no mask can be
    written.
    """

    places: Annotated[tuple[RankPlace, ...], Keywords(minItems=1)]
    how: str
    mpirun: str
    srun: Text | None
    mpich: str
    rankfile: str | None

    @property
    @key
    def ranks(self) -> OneOrMore:
        """Their number."""
        return len(self.places)


def rank_layout(machine: Machine, n: int) -> RankLayout:
    """CPUs for `n` ranks on one node. Raises UsageError if they do not fit, or the CPUs are unknown."""
    cores = usable_cores(machine)
    if not cores:
        raise UsageError(
            "ranks cannot be placed: the CPUs of this machine are unknown",
            "add --live on the machine itself, or --from hwloc-xml=FILE",
        )
    if n < 1:
        raise UsageError(f"{n} ranks cannot be placed", "give at least 1 rank")
    if n > len(cores):
        raise UsageError(
            f"{n} ranks do not fit: {count(len(cores), 'core')} may be used, and each rank gets whole cores",
            f"ask for at most {len(cores)}",
        )
    by_gpu = _beside_gpus(machine, cores, n)
    if by_gpu is not None:
        places, how = by_gpu, "each rank on the NUMA node of its GPU, whose cores are split between its ranks"
    else:
        places, how = _spread(cores, n), "ranks spread over the NUMA nodes, whole cores side by side"
        if gpus(machine):
            how += "; the CPUs next to the GPUs are unknown, so no GPU is assigned"
    places = _with_adapters(machine, places)
    return RankLayout(
        places, how, _mpirun(machine, places), _srun(places), _mpich(places), _rankfile(machine, places)
    )  # fmt: skip


def usable_cores(machine: Machine) -> tuple[Core, ...]:
    """The cores with a CPU that may be used, in the order of the tree; if cores are unknown, each CPU is one."""
    numbers = {core.id: number for number, core in enumerate(machine.of_kind(DeviceKind.CORE))}
    allowed = set(machine.allowed_cpus) or set(machine.pus)
    cpus: dict[str, list[int]] = {}
    for cpu, pu in machine.pus.items():
        if cpu in allowed:
            core = next((above.id for above in machine.ancestors(pu) if above.id in numbers), pu.id)
            cpus.setdefault(core, []).append(cpu)
    order = {device.id: place for place, device in enumerate(machine.devices)}
    return tuple(_core(machine, numbers.get(name), sorted(cpus[name])) for name in sorted(cpus, key=order.__getitem__))


def _core(machine: Machine, index: int | None, cpus: Sequence[int]) -> Core:
    package = machine.package_of(cpus[0])
    return Core(index, tuple(cpus), machine.pus[cpus[0]].numa, package.id if package is not None else None)


def _beside_gpus(machine: Machine, cores: Sequence[Core], n: int) -> tuple[RankPlace, ...] | None:
    """CPUs next to GPUs, those of one node in sequence; None if there is no GPU, or the CPUs next to a used one are
    unknown. More ranks than GPUs share them evenly."""
    near = {binding.device: binding for binding in bindings(machine)}
    cards = sorted(gpus(machine), key=lambda gpu: _or_last(numa_of(machine, gpu)))
    used = [cards[rank * len(cards) // n] if n > len(cards) else cards[rank] for rank in range(n)] if cards else []
    pools: list[frozenset[int]] = []
    for gpu in used:
        cpus = set(near[gpu.id].cpus or ())
        pools.append(frozenset(place for place, core in enumerate(cores) if cpus & set(core.cpus)))
    if not used or not all(pools):
        return None
    joined_pools = _joined(pools)
    places: dict[int, RankPlace] = {}
    for pool in joined_pools:
        ranks = [rank for rank in range(n) if pools[rank] <= pool]
        if len(ranks) > len(pool):
            raise UsageError(
                f"{n} ranks do not fit next to the GPUs: {len(ranks)} of them have GPUs next to the same "
                f"{count(len(pool), 'core')}",
                f"ask for fewer ranks: at most {len(pool)} next to these GPUs",
            )
        parts = _split([cores[place] for place in sorted(pool)], len(ranks))
        for rank, part in zip(ranks, parts, strict=True):
            places[rank] = RankPlace(rank, part, _one_numa(part), used[rank].id)
    return tuple(places[rank] for rank in range(n))


def _or_last(number: int | None) -> int:
    return 1 << 30 if number is None else number


def _joined(pools: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """The pools, with overlapping ones merged, so no core is used twice."""
    found: list[frozenset[int]] = []
    for pool in pools:
        disjoint = [other for other in found if not other & pool]
        found = [*disjoint, frozenset(pool.union(*(other for other in found if other & pool)))]
    return found


def _split(cores: Sequence[Core], parts: int) -> list[tuple[Core, ...]]:
    """Contiguous parts whose sizes differ by at most one."""
    ends = [len(cores) * part // parts for part in range(parts + 1)]
    return [tuple(cores[start:end]) for start, end in pairwise(ends)]


def _one_numa(cores: Sequence[Core]) -> int | None:
    nodes = {core.numa for core in cores}
    return nodes.pop() if len(nodes) == 1 else None


def _spread(cores: Sequence[Core], n: int) -> tuple[RankPlace, ...]:
    """CPUs over the NUMA nodes (else packages) by their cores: no rank spans two nodes if there are enough ranks,
    else each rank gets whole nodes; if neither works out, all cores are split evenly."""
    domains = _domains(cores)
    ordered = [core for domain in domains for core in domain]
    parts: list[tuple[Core, ...]] = []
    if n >= len(domains):
        given = before = 0
        for domain in domains:
            before += len(domain)
            share = (2 * n * before + len(cores)) // (2 * len(cores)) - given  # rounded sums: the shares add up to n
            given += share
            parts += _split(domain, share) if share else [()]
    else:
        rows: list[list[Core]] = [[] for _ in range(n)]
        before = 0
        for domain in domains:
            rows[n * (2 * before + len(domain)) // (2 * len(cores))] += domain
            before += len(domain)
        parts = [tuple(row) for row in rows]
    if len(parts) != n or not all(parts):
        parts = _split(ordered, n)
    return tuple(RankPlace(rank, part, _one_numa(part)) for rank, part in enumerate(parts))


def _domains(cores: Sequence[Core]) -> list[list[Core]]:
    by_numa = all(core.numa is not None for core in cores)
    return list(grouped((core.numa if by_numa else core.package, core) for core in cores).values())


def _with_adapters(machine: Machine, places: Sequence[RankPlace]) -> tuple[RankPlace, ...]:
    """Each rank with its nearest adapter by class, else one of its NUMA node; of several, the least used."""
    adapters, paths = fabric_adapters(machine), paths_by_pair(machine)
    rank_of = {name: rank for rank, name in enumerate(CLASSES_BY_DISTANCE)}
    used: dict[str, int] = {}
    found: list[RankPlace] = []
    for place in places:
        classes = {
            nic.id: rank_of[path.path_class]
            for nic in adapters
            if place.gpu is not None
            and (path := paths.get((place.gpu, nic.id))) is not None
            and path.path_class in rank_of
        }
        near = [nic for nic, distance in classes.items() if distance == min(classes.values())] or [
            nic.id for nic in adapters if place.numa is not None and numa_of(machine, nic) == place.numa
        ]
        chosen = min(near, key=lambda nic: used.get(nic, 0), default=None)
        if chosen is not None:
            used[chosen] = used.get(chosen, 0) + 1
        found.append(replace(place, adapter=chosen))
    return tuple(found)


def _mpirun(machine: Machine, places: Sequence[RankPlace]) -> str:
    """One application context for each rank (mpirun(1), "MPMD"), bound by numactl; see `bindings` for why."""
    nodes = node_cpus(machine)
    each = [f"-n 1 numactl {numactl_options(place.cpus, place.numa, nodes)} {PROGRAM}" for place in places]
    return f"mpirun --bind-to none {' : '.join(each)}"


def _srun(places: Sequence[RankPlace]) -> str | None:
    masks = [cpu_mask(place.cpus) for place in places]
    if None in masks:
        return None
    masks_text = ",".join(mask for mask in masks if mask is not None)
    # Masks are only supported if the job has the whole node: srun(1), --cpu-bind.
    return f"srun -N 1 -n {len(places)} --exclusive --cpu-bind=mask_cpu:{masks_text} --mem-bind=local {PROGRAM}"


def _mpich(places: Sequence[RankPlace]) -> str:
    return f"mpiexec -n {len(places)} -bind-to user:{','.join(joined(place.cpus) for place in places)} {PROGRAM}"


def _rankfile(machine: Machine, places: Sequence[RankPlace]) -> str | None:
    """A rankfile of Open MPI, whose slots are cores in hwloc's order; None if cores are hidden from this process,
    because Open MPI then numbers only the visible ones."""
    if machine.allowed_cpus and set(machine.pus) - set(machine.allowed_cpus):
        return None
    lines = [f"# mpirun -n {len(places)} --rankfile FILE {PROGRAM} (slots are cores as hwloc counts them)"]
    for place in places:
        indexes = [core.index for core in place.cores if core.index is not None]
        if len(indexes) != len(place.cores):
            return None
        lines.append(f"rank {place.rank}=localhost slot={cpu_list(sorted(indexes))}")
    return "\n".join(lines) + "\n"
