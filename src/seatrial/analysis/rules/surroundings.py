"""Rules about limits between this process and the machine: of a container, a CPU mask or a hypervisor."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.finding import Case, Subject, cite_best, listed, note, rule, warning
from seatrial.diagnosis.cpu import steal_words
from seatrial.machine.attachment import ATTACHMENT
from seatrial.model.machine.fact import Finding
from seatrial.model.machine.identity import is_emulated
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.spelling import count, show, show_percent, surrounding
from seatrial.model.study.screen import LEAST_CLOCK_S

_MOST_L3_PER_CORE_B = 64 << 20
"""More L3 cache for a core than any server has: AMD's EPYC 9184X has 48 MiB."""
_STEAL_IS_NOTED = 0.001
_LIMIT_IS_LESS = 0.94
"""A memory limit above this share of the memory does not limit anything: the kernel reserves up to 5 %."""


@rule(Subject.SURROUNDINGS)
def cpu_quota(case: Case) -> Iterator[Finding]:
    """Fires if a control group grants less CPU time than its allowed CPUs could use."""
    machine = case.machine
    quota = machine.facts.number("cgroup_cpu_limit")
    cpus = len(machine.allowed_cpus) or len(machine.of_kind(DeviceKind.PU))
    if quota is None or quota <= 0 or cpus == 0 or quota >= 0.99 * cpus:
        return
    yield warning(
        "cpu-quota",
        observation=f"The control group grants the CPU time of {count(quota, 'CPU')}; {count(cpus, 'CPU')} are "
        "visible.",
        diagnosis="Programs with one thread per CPU are throttled in every period of 100 ms. "
        "Figures of all cores then measure the quota and not the machine, and barriers wait for throttled threads.",
        remedy=f"Measure with at most {count(max(1, int(quota)), 'thread')}, or lift the quota (`docker run --cpus`, "
        "`CPUQuota=` of systemd, the limits of the pod)",
        evidence=cite_best(machine.facts, "cgroup_cpu_limit"),
        loss=1 - quota / cpus,
    )


@rule(Subject.SURROUNDINGS)
def memory_limit(case: Case) -> Iterator[Finding]:
    """Fires if a control group grants less memory than the machine has."""
    facts = case.machine.facts
    limit = facts.number("cgroup_memory_limit")
    totals = [float(fact.value) for fact in facts.get("memory_total", ()) if isinstance(fact.value, int | float)]
    total = max(totals, default=None)
    if limit is None or total is None or limit <= 0 or limit >= _LIMIT_IS_LESS * total:
        return
    yield warning(
        "memory-limit",
        observation=f"The control group grants {show(limit, 'B', binary=True)} of "
        f"{show(total, 'B', binary=True)} of memory.",
        diagnosis="A program sized by the machine's memory is killed when it exceeds this limit.",
        remedy="Size programs by the limit (`cat /sys/fs/cgroup/memory.max`), or raise it when starting the container",
        evidence=(cite_best(facts, "cgroup_memory_limit"), cite_best(facts, "memory_total")),
    )


@rule(Subject.SURROUNDINGS)
def few_cpus_allowed(case: Case) -> Iterator[Finding]:
    """Fires if this process may use only some of the CPUs: figures of "all" cores mean those."""
    allowed, all_cpus = case.machine.allowed_cpus, case.machine.pus
    if not allowed or not all_cpus or len(set(allowed) & set(all_cpus)) >= len(all_cpus):
        return
    yield note(
        "few-cpus-allowed",
        observation=f"This process may use {len(allowed)} of the machine's {count(len(all_cpus), 'CPU')}.",
        diagnosis='Every figure of "all" cores is measured on the allowed CPUs only, and other jobs on the rest share '
        "caches and memory with it.",
        remedy="For the whole machine, request an exclusive node (`srun --exclusive`); `taskset -cp $$` shows the mask "
        "of the shell",
        evidence=f"the affinity mask of this process, {count(len(allowed), 'CPU')}",
    )


@rule(Subject.SURROUNDINGS)
def topology_hidden(case: Case) -> Iterator[Finding]:
    """Fires if a virtual machine shows processors that no real machine has: its topology is not that of the host."""
    machine = case.machine
    if surrounding(machine.facts, "hypervisor") is None and not machine.platform.virtualization:
        return
    cores, packages = machine.of_kind(DeviceKind.CORE), machine.of_kind(DeviceKind.PACKAGE)
    caches = [cache for cache in machine.of_kind(DeviceKind.CACHE) if cache.facts.integer("level") == 3]
    signs = []
    if len(packages) > 1 and len(packages) == len(cores):
        signs.append(f"each of its {len(cores)} cores is its own package")
    if cores and not machine.of_kind(DeviceKind.CACHE):
        signs.append("no caches are shown")
    if len(cores) > 1 and len(caches) >= len(cores):
        signs.append("each core has its own L3 cache")
    size = max((cache.facts.number("size") or 0.0 for cache in caches), default=0.0)
    if cores and size * len(caches) / len(cores) > _MOST_L3_PER_CORE_B:
        text = (
            f"an L3 cache of {show(size, 'B', binary=True)} for {count(len(cores), 'core')} is shared with other guests"
        )
        signs.append(text)
    if not signs:
        return
    yield note(
        "topology-hidden",
        devices=(part.id for part in (*packages, *caches)),
        observation=f"The topology of this virtual machine hides that of its host: {listed(signs)}.",
        diagnosis="Which of its CPUs share a core, a cache or a memory controller is unknown, so binding ranks and "
        "threads by this topology may place them badly, and sizes chosen by its caches may be wrong.",
        remedy="Measure what shares what (`seatrial run`: the times between CPUs), or have the host pin the virtual "
        "CPUs and show their topology (QEMU: `-smp sockets=S,cores=C,threads=T` and `-cpu host,host-cache-info=on`)",
        evidence="; ".join(
            [
                f"{count(len(packages), 'package')}, {count(len(cores), 'core')}, {count(len(caches), 'L3 cache')}",
                *([cite_best(caches[0].facts, "size")] if caches else []),
            ]
        ),
    )


@rule(Subject.SURROUNDINGS)
def emulated_processors(case: Case) -> Iterator[Finding]:
    """Fires if the processors of a virtual machine are emulated."""
    machine = case.machine
    if not is_emulated(machine):
        return
    yield warning(
        "emulated-processors",
        observation="The processors of this virtual machine are emulated (QEMU TCG).",
        diagnosis="Every time that is measured here is that of the emulator. Figures are shown, but compared with "
        "nothing: no limit, reference, scaling, history or screen uses them.",
        remedy="Start the guest with KVM (QEMU: `-accel kvm -cpu host`), or measure on the host",
        evidence=cite_best(machine.facts, "hypervisor"),
    )


@rule(Subject.SURROUNDINGS)
def container(case: Case) -> Iterator[Finding]:
    """Fires if this process runs in a container."""
    names = [sign.kind for sign in case.machine.platform.container]
    if not names:
        return
    kinds = " inside ".join("one of an unknown kind" if name == "other" else name for name in reversed(names))
    yield note(
        "container",
        observation=f"These programs run in a container ({kinds}).",
        diagnosis="They use the libraries of its image, its limits, and what it lets through of the devices and the "
        "network. Ranks in their own user namespaces cannot copy directly from each other's memory.",
        remedy="Compare with the machine outside only where libraries and MPI transport are known on both sides",
        evidence="; ".join(f"{sign.kind}: {sign.evidence}" for sign in case.machine.platform.container),
    )


@rule(Subject.SURROUNDINGS)
def hypervisor(case: Case) -> Iterator[Finding]:
    """Fires if the machine is virtual."""
    machine = case.machine
    names = list(dict.fromkeys(sign.kind for sign in machine.platform.virtualization))
    name = ", ".join(names) or surrounding(machine.facts, "hypervisor")
    if name is None:
        return
    host = ["It can take memory back (balloon). "] if "balloon" in machine.facts else []
    steal = machine.facts.number("steal_share")
    if steal is not None and steal >= _STEAL_IS_NOTED:
        host.append(f"Since the system started, {steal_words(f'{show_percent(steal)} of the CPU time')}. ")
    yield note(
        "virtual-machine",
        devices=(device for device in machine.devices if ATTACHMENT in device.facts),
        observation=f"This is a virtual machine ({name}).{_devices_of_guest(machine)}",
        diagnosis="The host decides which cores its CPUs run on and share with other guests, so figures vary with "
        f"their load. {''.join(host)}"
        "Memory modules, sensors and often the true clock, caches and PCIe tree are hidden.",
        remedy="Compare only ratios within one run; for the limits of the hardware, run `seatrial` on the host",
        evidence="; ".join(
            text
            for text in (
                cite_best(machine.facts, "hypervisor")
                or "; ".join(f"{sign.kind}: {sign.evidence}" for sign in machine.platform.virtualization),
                cite_best(machine.facts, "balloon"),
                cite_best(machine.facts, "steal_share"),
            )
            if text
        ),
    )


def _devices_of_guest(machine: Machine) -> str:
    """How its devices reach it: " Paravirtual: nic-eth0 and block-vda."; "" if none is known."""
    words = ((device.facts.text(ATTACHMENT), device.id) for device in machine.devices)
    by_word = grouped((word, device) for word, device in words if word is not None)
    return "".join(f" {word.capitalize()}: {listed(ids)}." for word, ids in by_word.items())


@rule(Subject.SURROUNDINGS)
def clock_is_off(case: Case) -> Iterator[Finding]:
    """Fires if the clock of a node differs from the one that stamps files in the results folder, beyond the error of
    the most exact reading."""
    off = {host: own for host, own in case.known.clocks.items() if abs(own[1]) - own[0] > LEAST_CLOCK_S}
    if not off:
        return
    which = [
        f"{f'of {host} ' if host else ''}{show(abs(ahead_s), 's')} {'ahead' if ahead_s > 0 else 'behind'} "
        f"(± {show(error_s, 's')})"
        for host, (error_s, ahead_s) in off.items()
    ]
    yield warning(
        "clock-off",
        observation=f"Compared with the file system of the results folder, the clock is off: {listed(which)}.",
        diagnosis="Either it or the clock of the file system's server is wrong. The times of records, logs and files "
        "do not fit together; durations are measured with another clock, and are right.",
        remedy="Compare both with a time server (`chronyc tracking`, `timedatectl`); `seatrial screen` over several "
        "nodes shows which differ from most others",
        evidence="the time stamp of a file that each repeat writes into the results folder",
    )
