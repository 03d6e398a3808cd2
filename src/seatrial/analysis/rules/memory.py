"""Rules about memory: how the slots are filled, how fast they run, and who says how much there is."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.rules.case import Case, cite_best
from seatrial.analysis.rules.words import listed
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Population
from seatrial.model.spelling import count, show, show_percent, show_transfers, surrounding


def modules_unbalanced(case: Case) -> Iterator[Finding]:
    """Fires where slots are filled so that some channels stay empty or differ."""
    memory = case.machine.memory
    if memory.verdict not in (Population.UNBALANCED, Population.NEAR_BALANCED):
        return
    shares = [s.populated_channels / s.channels for s in memory.sockets if s.channels and s.populated_channels]
    loss = 1 - min(shares) if shares and min(shares) < 1 else None
    sockets = listed(
        f"socket {number}: {count(socket.dimms, 'module')} on "
        f"{'?' if socket.populated_channels is None else socket.populated_channels} of "
        f"{'?' if socket.channels is None else socket.channels} channels"
        for number, socket in enumerate(memory.sockets)
    )
    yield Finding(
        rule="memory-unbalanced",
        severity=Severity.WARNING,
        devices=(),
        observation=f"The memory is {memory.verdict.value}: {memory.why}.",
        diagnosis="Addresses are not spread over all channels alike, so streaming reaches only a part of what the "
        "processor's memory controllers can do.",
        remedy="Fill every channel of every socket with equal modules; see which slots are empty with "
        "`sudo dmidecode -t memory`",
        evidence=sockets or memory.why,
        loss=loss,
    )


def modules_below_rating(case: Case) -> Iterator[Finding]:
    """Fires where modules run slower than they are rated."""
    slow = [
        (number, socket.configured_MTps, socket.rated_MTps)
        for number, socket in enumerate(case.machine.memory.sockets)
        if socket.configured_MTps and socket.rated_MTps and socket.configured_MTps < 0.99 * socket.rated_MTps
    ]
    if not slow:
        return
    _, configured, rated = min(slow, key=lambda entry: entry[1] / entry[2])
    yield Finding(
        rule="memory-below-rating",
        severity=Severity.WARNING,
        devices=(),
        observation=f"Memory runs at {show_transfers(configured)} and is rated for {show_transfers(rated)}.",
        diagnosis="Two modules on a channel, a slower processor or a setting of the firmware holds it back. Bandwidth "
        "falls by the same share.",
        remedy="Compare the firmware's memory setting and the vendor's table for this number of modules per channel; "
        "`sudo dmidecode -t memory` shows both speeds",
        evidence=listed(f"socket {n}: configured {show_transfers(c)}, rated {show_transfers(r)}" for n, c, r in slow),
        loss=1 - configured / rated,
    )


def modules_unknown(case: Case) -> Iterator[Finding]:
    """Says why there is no limit for DRAM: without modules there is no limit to hold a bandwidth against."""
    machine = case.machine
    if machine.memory.verdict is not Population.UNKNOWN or machine.memory.sockets or machine.memory.peak.value:
        return
    if machine.facts.best("memory_total") is None:  # nothing at all is known about memory: nothing to explain
        return
    hidden = surrounding(machine.facts, "hypervisor") is not None
    yield Finding(
        rule="memory-modules-unknown",
        severity=Severity.INFO,
        devices=(),
        observation=f"The memory modules are unknown: {machine.memory.why}.",
        diagnosis="Channels and transfer rate give the physical limit of DRAM bandwidth. Without them bandwidth can "
        "only be held against other measurements.",
        remedy="The hypervisor does not pass them on; ask whoever runs the host for the output of `dmidecode -t memory`"
        if hidden
        else "Firmware tables need root: `sudo dmidecode -t memory`",
        evidence=listed(
            [machine.memory.why, *filter(None, [cite_best(machine.facts, "hypervisor") if hidden else ""])]
        ),
    )


def sizes_disagree(case: Case) -> Iterator[Finding]:
    """Fires where sources give memory sizes further apart than what the kernel keeps for itself (model/fact.py)."""
    if all(disagreement.name != "memory_total" for disagreement in case.machine.facts.disagreements()):
        return
    facts = [
        fact
        for fact in case.machine.facts.get("memory_total", ())
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool) and fact.value > 0
    ]
    sizes = [float(fact.value) for fact in facts]
    said = [
        f"{show(size, 'B', binary=True)} by {' and by '.join(fact.source for fact in facts if fact.value == size)}"
        for size in dict.fromkeys(sizes)
    ]
    yield Finding(
        rule="memory-sizes-disagree",
        severity=Severity.WARNING,
        devices=(),
        observation=f"{len(facts)} sources disagree about the size of the memory: {'; '.join(said)}.",
        diagnosis=f"The least is {show_percent(1 - min(sizes) / max(sizes))} below the most. A limit of a container or "
        "a batch system, memory held back by the host, or a wrong source: a program sized by the most may be killed.",
        remedy="Size programs by the smallest until it is clear; compare `free -b`, `lstopo --of console` and "
        "`cat /sys/fs/cgroup/memory.max`",
        evidence="; ".join(f"{fact.source}: {fact.value} B" for fact in facts),
    )
