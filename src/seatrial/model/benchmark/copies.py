"""Copies of a job that run at once on one node: their number, and the share of the node that each has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.benchmark.program import RANKS
from seatrial.model.machine.fact import Fact, FactKind, Facts
from seatrial.model.machine.machine import DeviceKind, Machine

COPIES = "copies"
"""The parameter with their number."""

COPY_DEVICES, DIVIDED = "copy_devices", "divided"
"""The parameter that says whether copies share the GPUs, and its value if each has its own."""

COPY = "copy"
"""The coordinate of a sample: the copy that it is of, from 0; only where there are several."""

JOBS = "jobs"
"""The series with the time from the common start to the end of the last copy, and the number of jobs done in it."""

JOB = "job"
"""The series with the time of each copy, by our clock."""

SELECTING = {"10de": "CUDA_VISIBLE_DEVICES", "1002": "ROCR_VISIBLE_DEVICES"}
"""Vendor of GPUs (PCI id) -> the variable by which its runtime shows a program only some of them, by their numbers."""

_TOTAL, _LIMIT = "memory_total", "cgroup_memory_limit"
_Item = TypeVar("_Item")


def copies_of(params: Params) -> int:
    """How many copies run at once; 1 for programs without that parameter."""
    return whole(params.get(COPIES, 1))


def one_of(params: Params) -> Params:
    """The parameters of one of the copies, as its own job."""
    return {**params, COPIES: 1} if COPIES in params else params


def all_of(params: Params) -> Params:
    """The parameters of one job on the CPUs of all copies: what limits it limits all of them together."""
    copies = copies_of(params)
    if copies == 1:
        return params
    return {**one_of(params), **({RANKS: copies * whole(params[RANKS])} if RANKS in params else {})}


def shares_of(machine: Machine, copies: int) -> tuple[Machine, ...]:
    """What each copy may use of a machine: equally many cores with all their CPUs, neighbours first, and an equal part
    of the memory; cores that are left over stay idle. A copy is not part of an allocation of several nodes.

    Raises Skip if there are fewer cores than copies.
    """
    first = machine.cpus_one_per_core
    if len(first) < copies:
        raise Skip(f"{copies} copies need {copies} cores; this process may use {len(first)}")
    pus = machine.pus
    cores = sorted(first, key=lambda cpu: pus[cpu].numa or 0 if cpu in pus else 0)
    core_of = {cpu: pus[cpu].parent if cpu in pus else f"cpu-{cpu}" for cpu in machine.allowed_cpus}
    facts = _with_part_of_memory(machine.facts, copies)
    shares = []
    for copy in range(copies):
        own = {core_of[cpu] for cpu in part_of(cores, copy, copies)}
        cpus = tuple(cpu for cpu in machine.allowed_cpus if core_of[cpu] in own)
        shares.append(replace(machine, allowed_cpus=cpus, facts=facts, allocation=None))
    return tuple(shares)


def devices_of(machine: Machine, params: Params) -> tuple[tuple[str, str], ...]:
    """The variable that selects the GPUs of each copy, with its value; empty if copies share the devices.

    Raises Skip if the GPUs cannot be divided.
    """
    copies = copies_of(params)
    if copies == 1 or params.get(COPY_DEVICES) != DIVIDED:
        return ()
    vendors = [device.facts.text("vendor_id") or "" for device in machine.of_kind(DeviceKind.GPU)]
    known = [vendor for vendor in SELECTING if vendor in vendors]
    count = vendors.count(known[0]) if len(known) == 1 else 0
    if not count or count % copies:
        raise Skip(f"{COPY_DEVICES}={DIVIDED}: {count} GPUs of one vendor cannot be divided among {copies} copies")
    numbers = [str(number) for number in range(count)]
    return tuple((SELECTING[known[0]], ",".join(part_of(numbers, copy, copies))) for copy in range(copies))


def part_of(items: Sequence[_Item], copy: int, copies: int) -> tuple[_Item, ...]:
    """The items of one copy, of a list that holds equally many for each, one copy after another; what is left over
    belongs to none."""
    each = len(items) // copies
    return tuple(items[copy * each : (copy + 1) * each])


def _with_part_of_memory(facts: Facts, copies: int) -> Facts:
    """The facts, with a limit on memory that the copies keep together."""
    sizes = [f.value for name in (_TOTAL, _LIMIT) for f in facts.get(name, ()) if isinstance(f.value, int | float)]
    if not sizes:
        return facts
    part = Fact(min(sizes) / copies, f"its part for one of {copies} copies", FactKind.ASSERTED, "B")
    return Facts({**facts, _LIMIT: (part,)})
