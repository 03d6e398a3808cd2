"""Rules about memory: populated slots and reported sizes. `memory_speed` has the rule about its speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.roles import Source, figures_with
from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.devices import is_virtual
from seatrial.analysis.rules.late_memory import unmanaged
from seatrial.analysis.rules.memory_slots import devices_of, evidence, first_look, odd_slots, sentences
from seatrial.analysis.rules.words import listed
from seatrial.benchmarks import benchmark_of
from seatrial.model.fact import Fact
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Machine, Population, SocketMemory
from seatrial.model.role import Role
from seatrial.model.spelling import count, show, show_percent, surrounding

_ONE_MODULE = 0.9
"""A gap of this share of the smallest module is a missing module, not what the kernel reserves (about 3 %)."""


def modules_unbalanced(case: Case) -> Iterator[Finding]:
    """Fires if some memory channels are empty or differ; cites a measured triad."""
    memory = case.machine.memory
    if memory.verdict not in (Population.UNBALANCED, Population.NEAR_BALANCED):
        return
    shares = [s.populated_channels / s.channels for s in memory.sockets if s.channels and s.populated_channels]
    loss = 1 - min(shares) if shares and min(shares) < 1 else None
    near = memory.verdict is Population.NEAR_BALANCED
    odd = odd_slots(case.machine)
    seen = f" {sentences(odd)}" if odd else ""
    measured = _triad(case)
    beside = ""
    if measured is not None:
        result, figure = measured
        beside = f" {result.experiment.benchmark} {figure.name} measured {show(figure.median, 'B/s')}."
    yield Finding(
        rule="memory-unbalanced",
        severity=Severity.WARNING,
        devices=devices_of(odd),
        observation=f"The memory is {memory.verdict.value}: {memory.why}.{seen}{beside}",
        diagnosis=_of_population(near, has_empty=loss is not None),
        remedy=first_look(odd)
        + _repopulate(memory.sockets)
        + ("" if measured is not None else f". Measure it: `seatrial run {benchmark_of(Role.MEMORY_BANDWIDTH)}`"),
        evidence="; ".join(filter(None, [_socket_list(memory.sockets) or memory.why, evidence(odd)])),
        loss=loss,
    )


def _of_population(near: bool, *, has_empty: bool) -> str:
    if near:
        lost = "the bandwidth of empty channels is lost" if has_empty else "some channels are busier than others"
        return f"All memory is one interleave set, but not the best one: {lost}."
    if has_empty:
        return (
            "The bandwidth of empty channels is lost. If the others form several interleave sets, bandwidth also "
            "depends on the location of an array."
        )
    return (
        "Addresses are not spread evenly over all channels and sockets, so streaming reaches only part of the "
        "bandwidth of the memory controllers, and the part depends on the location of an array."
    )


def _repopulate(sockets: Sequence[SocketMemory]) -> str:
    """What to change about the modules; it asks for nothing that is already so."""
    empty = [
        f"socket {number}: {s.channels - s.populated_channels} of {s.channels}"
        for number, s in enumerate(sockets)
        if s.channels and s.populated_channels is not None and s.populated_channels < s.channels
    ]
    if empty:
        return (
            f"Fill the empty channels ({listed(empty)}) with modules equal to the others; find the slots with "
            "`sudo dmidecode -t memory`"
        )
    if sockets and all(s.channels and s.channels == s.populated_channels for s in sockets):
        return (
            "Give every channel the same modules: replace those that differ, or remove the second modules of channels "
            "that have more than the others; `sudo dmidecode -t memory` lists them"
        )
    return (
        "Give every channel of every socket the same modules, as the population rules in the server's manual state; "
        "`sudo dmidecode -t memory` lists the slots"
    )


def sockets_differ(case: Case) -> Iterator[Finding]:
    """Fires if sockets have different memory, unless `modules_unbalanced` reports it."""
    machine = case.machine
    sockets = machine.memory.sockets
    unlike = len({(s.dimms, s.capacity_bytes) for s in sockets}) > 1
    if not unlike or machine.memory.verdict is Population.UNBALANCED or is_virtual(machine):
        return
    odd = odd_slots(machine)
    empty = [number for number, socket in enumerate(sockets) if not socket.dimms]
    sizes = listed(
        f"socket {number} has {count(s.dimms, 'module')} with {show(s.capacity_bytes, 'B', binary=True)}"
        for number, s in enumerate(sockets)
    )
    yield Finding(
        rule="memory-sockets-differ",
        severity=Severity.WARNING,
        devices=devices_of(odd),
        observation=f"The sockets have different memory: {sizes}." + (f" {sentences(odd)}" if odd else ""),
        diagnosis="Programs that use all sockets equally are limited by the socket with less memory"
        + (", and every access from a socket without memory crosses the link between sockets." if empty else "."),
        remedy=first_look(odd)
        + "Populate the sockets equally; list their modules with `sudo dmidecode -t memory` and `numactl "
        "--hardware`",
        evidence=_socket_list(sockets),
    )


def _socket_list(sockets: Sequence[SocketMemory]) -> str:
    return listed(
        f"socket {number}: {count(socket.dimms, 'module')} on "
        f"{'?' if socket.populated_channels is None else socket.populated_channels} of "
        f"{'?' if socket.channels is None else socket.channels} channels"
        for number, socket in enumerate(sockets)
    )


def _triad(case: Case) -> Source | None:
    """The highest memory bandwidth among the results, or None."""
    return max(figures_with(case.results, Role.MEMORY_BANDWIDTH), key=lambda source: source[1].median, default=None)


def modules_unknown(case: Case) -> Iterator[Finding]:
    """Fires if the memory modules are unknown, and with them the limit of DRAM bandwidth."""
    machine = case.machine
    if machine.memory.verdict is not Population.UNKNOWN or machine.memory.sockets or machine.memory.peak.value:
        return
    if machine.facts.best("memory_total") is None:  # nothing is known about memory
        return
    hidden = surrounding(machine.facts, "hypervisor") is not None
    listed_modules = machine.memory_modules()
    if hidden:
        remedy = "The hypervisor hides them; ask the host's administrator for the output of `dmidecode -t memory`"
    elif listed_modules:
        remedy = (
            "Look up in the server's manual which slots belong to which processor and channel; compare measured "
            f"bandwidth with other nodes of this kind: `seatrial run {benchmark_of(Role.MEMORY_BANDWIDTH)}`"
        )
    else:
        remedy = "Firmware tables need root: `sudo dmidecode -t memory > FILE`, then `--from dmidecode=FILE`"
    yield Finding(
        rule="memory-modules-unknown",
        severity=Severity.INFO,
        devices=(),
        observation=f"Of {count(len(listed_modules), 'memory module')}, the channels are unknown: {machine.memory.why}."
        if listed_modules
        else f"The memory modules are unknown: {machine.memory.why}.",
        diagnosis="Channels and transfer rate give the physical limit of DRAM bandwidth. Without them, bandwidth can "
        "only be compared with other measurements.",
        remedy=remedy,
        evidence=listed(
            [machine.memory.why, *filter(None, [cite_best(machine.facts, "hypervisor") if hidden else ""])]
        ),
    )


def sizes_disagree(case: Case) -> Iterator[Finding]:
    """Fires if sources report memory sizes that differ by more than the kernel reserves (model/fact.py).

    If the modules are known and the kernel sees less by at least one module, a module is not in use: an error.
    """
    machine = case.machine
    if all(disagreement.name != "memory_total" for disagreement in machine.facts.disagreements()):
        return
    if unmanaged(machine.facts) is not None:  # that rule explains it
        return
    facts = [
        fact
        for fact in machine.facts.get("memory_total", ())
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool) and fact.value > 0
    ]
    sizes = [float(fact.value) for fact in facts]
    reported = [
        f"{show(size, 'B', binary=True)} by {' and by '.join(fact.source for fact in facts if fact.value == size)}"
        for size in dict.fromkeys(sizes)
    ]
    missing = _missing_modules(machine, facts)
    means = (
        f"The modules have {show(missing, 'B', binary=True)} more than any other source reports: one module or more "
        "is not in use. It failed its test at boot, or the firmware uses memory for mirroring or sparing."
        if missing is not None
        else f"The smallest is {show_percent(1 - min(sizes) / max(sizes))} below the largest. Possible causes: a limit "
        "of a container or batch system, memory reserved by the host, a wrong source. A program sized by the largest "
        "may be killed."
    )
    yield Finding(
        rule="memory-sizes-disagree",
        severity=Severity.WARNING if missing is None else Severity.ERROR,
        devices=(),
        observation=f"{len(facts)} sources disagree about the size of the memory: {'; '.join(reported)}.",
        diagnosis=means,
        remedy="Look for the slot in the firmware's event log (`sudo ipmitool sel list`) and in `sudo dmidecode -t "
        "memory`, and at the settings for mirroring and sparing"
        if missing is not None
        else "Size programs by the smallest until this is resolved; compare `free -b`, `lstopo --of console` and "
        "`cat /sys/fs/cgroup/memory.max`",
        evidence="; ".join(f"{fact.source}: {fact.value} B" for fact in facts),
    )


def _missing_modules(machine: Machine, facts: Sequence[Fact]) -> float | None:
    """Bytes of the modules beyond every other source if that is at least one module; else None."""
    modules = [size for device in machine.memory_modules() if (size := device.facts.number("size"))]
    of_modules = sum(modules)
    others = [float(fact.value) for fact in facts if abs(float(fact.value) - of_modules) > 0.01 * of_modules]
    if not modules or not others or len(others) == len(facts) or is_virtual(machine):
        return None
    gap = of_modules - max(others)
    return gap if gap >= _ONE_MODULE * min(modules) else None
