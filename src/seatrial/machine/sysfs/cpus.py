"""The CPUs: packages, caches, cores, threads, clock settings and idle states, from /sys/devices/system/cpu.

Formats: Linux, Documentation/ABI/stable/sysfs-devices-system-cpu and Documentation/admin-guide/cputopology.rst; clock
settings (in kHz): admin-guide/pm/cpufreq.rst, intel_pstate.rst and amd-pstate.rst; idle states (latencies in
microseconds): admin-guide/pm/cpuidle.rst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.procfs import CpuRecord, read_cpuinfo, vector_isa
from seatrial.machine.readers.scalars import read_cpu_list, read_size, write_cpu_list
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind

CPU_ROOT = "/sys/devices/system/cpu"
_FREQUENCIES = {
    "max_frequency": "cpuinfo_max_freq",
    "min_frequency": "cpuinfo_min_freq",
    "base_frequency": "base_frequency",
    "allowed_max_frequency": "scaling_max_freq",
    "frequency": "scaling_cur_freq",
}
_CACHE_SUFFIX = {"Unified": "", "Data": "d", "Instruction": "i"}


def add_frequency(files: FileTree, cpu: int, book: FactBook) -> None:
    """Add governor, driver and clock range of one CPU; nothing if the machine has no cpufreq (most VMs)."""
    folder = f"{CPU_ROOT}/cpu{cpu}/cpufreq"
    files.say_words(book, folder, governor="scaling_governor", frequency_driver="scaling_driver")
    files.say_words(book, folder, energy_preference="energy_performance_preference")
    for name, file in _FREQUENCIES.items():
        kHz = files.integer(f"{folder}/{file}")
        book.say(name, kHz * 1000 if kHz else None, f"{folder}/{file}", "Hz", volatile=name == "frequency")
    if files.exists(folder):
        files.say_integers(book, f"{CPU_ROOT}/cpu{cpu}", capacity="cpu_capacity")


def add_frequency_settings(files: FileTree, parts: tuple[CpuPart, ...], book: FactBook) -> None:
    """Add the machine's boost setting, and its governor and driver as one text each, even if CPUs differ."""
    no_turbo = f"{CPU_ROOT}/intel_pstate/no_turbo"
    off = files.integer(no_turbo)
    book.say("boost", None if off is None else off == 0, no_turbo)
    boost = f"{CPU_ROOT}/cpufreq/boost"
    on = files.integer(boost)
    book.say("boost", None if on is None else on == 1, boost)
    for name in ("governor", "frequency_driver"):
        counts = Counter(
            text for part in parts if part.kind is DeviceKind.PU and (text := part.facts.text(name)) is not None
        )
        if counts:
            texts = [text if len(counts) == 1 else f"{text} x {count}" for text, count in counts.most_common()]
            book.say(name, ", ".join(texts), f"{CPU_ROOT}/cpu*/cpufreq")


def add_idle_states(files: FileTree, parts: Sequence[CpuPart], book: FactBook) -> None:
    """Add the idle states, those that are off on every CPU, and the longest exit latency (s) of those that are not.

    Names and latencies are those of the first CPU; a state counts as off only if it is off everywhere.
    """
    cpus = sorted(cpu for part in parts if part.kind is DeviceKind.PU for cpu in part.cpus)
    first = next((cpu for cpu in cpus if files.names(f"{CPU_ROOT}/cpu{cpu}/cpuidle")), None)
    if first is None:
        return
    folder = f"{CPU_ROOT}/cpu{first}/cpuidle"
    numbers = sorted(int(name[5:]) for name in files.names(folder) if name[:5] == "state" and name[5:].isdecimal())
    names = {number: (files.word(f"{folder}/state{number}/name") or "").replace(" ", "-") for number in numbers}
    switches = {n: [files.integer(f"{CPU_ROOT}/cpu{cpu}/cpuidle/state{n}/disable") for cpu in cpus] for n in numbers}
    off = {number for number in numbers if not {0, None} & {*switches[number]}}
    latencies = [files.integer(f"{folder}/state{number}/latency") for number in numbers if number not in off]
    longest = max((latency for latency in latencies if latency is not None), default=None)
    source = f"{CPU_ROOT}/cpu*/cpuidle/state*"
    book.say("idle_states", " ".join(names[number] for number in numbers if names[number]), f"{source}/name")
    book.say("idle_states_off", " ".join(names[n] for n in numbers if n in off and names[n]), f"{source}/disable")
    book.say("idle_exit_latency", None if longest is None else longest * 1e-6, f"{source}/latency", "s")


class CpuSurvey(Frozen):
    """The CPU part of a machine, and sentences about what could not be read."""

    parts: tuple[CpuPart, ...]
    records: dict[int, CpuRecord]
    unread: tuple[str, ...]


def survey_cpus(files: FileTree) -> CpuSurvey:
    """All online CPUs, cores, packages and caches. Without sysfs, each CPU of /proc/cpuinfo is a core of one
    package."""
    unread: list[str] = []
    records = _records(files, unread)
    online = _online(files, unread) or tuple(sorted(records))
    packages: dict[int, set[int]] = {}
    cores: dict[frozenset[int], int | None] = {}
    parts: list[CpuPart] = []
    for cpu in online:
        topology = f"{CPU_ROOT}/cpu{cpu}/topology"
        packages.setdefault(files.integer(f"{topology}/physical_package_id") or 0, set()).add(cpu)
        cores.setdefault(_core_cpus(files, topology, cpu) & frozenset(online), files.integer(f"{topology}/core_id"))
        book = FactBook()
        book.say("os_index", cpu, f"{CPU_ROOT}/online")
        add_frequency(files, cpu, book)
        parts.append(CpuPart(DeviceKind.PU, frozenset({cpu}), cpu, facts=book.facts()))
    core_parts = [_core(files, cpus, core_id, records) for cpus, core_id in cores.items()]
    package_parts = [_package(files, frozenset(cpus), index, records) for index, cpus in packages.items()]
    caches = _caches(files, online)
    if online and not caches:
        unread.append(f"caches: {CPU_ROOT}/cpu*/cache is missing; install hwloc, which can query the CPU itself")
    return CpuSurvey((*package_parts, *caches, *core_parts, *parts), records, tuple(unread))


def _records(files: FileTree, unread: list[str]) -> dict[int, CpuRecord]:
    text = files.text("/proc/cpuinfo")
    if text is None:
        unread.append("CPU model: /proc/cpuinfo cannot be read")
        return {}
    try:
        return {record.number: record for record in read_cpuinfo(text)}
    except ParseError as error:
        unread.append(f"CPU model: /proc/cpuinfo is invalid ({error.message})")
        return {}


def _online(files: FileTree, unread: list[str]) -> tuple[int, ...]:
    try:
        return read_cpu_list(files.text(f"{CPU_ROOT}/online") or "")
    except ParseError as error:
        unread.append(f"CPUs online: {CPU_ROOT}/online is invalid ({error.message})")
        return ()


def _core_cpus(files: FileTree, topology: str, cpu: int) -> frozenset[int]:
    # core_cpus_list exists since Linux 5.3; before, it was thread_siblings_list.
    for name in ("core_cpus_list", "thread_siblings_list"):
        siblings = _cpu_list(files, f"{topology}/{name}")
        if cpu in siblings:
            return siblings
    return frozenset({cpu})


def _cpu_list(files: FileTree, path: str) -> frozenset[int]:
    try:
        return frozenset(read_cpu_list(files.text(path) or ""))
    except ParseError:
        return frozenset()


def _core(files: FileTree, cpus: frozenset[int], core_id: int | None, records: dict[int, CpuRecord]) -> CpuPart:
    first = min(cpus)
    topology = f"{CPU_ROOT}/cpu{first}/topology"
    book = FactBook()
    book.say("cpus", write_cpu_list(cpus), f"{topology}/core_cpus_list")
    book.say("core_id", core_id, f"{topology}/core_id")
    files.say_integers(book, topology, die_id="die_id")
    record = records.get(first)
    has_types = len({(each.implementer, each.part) for each in records.values()}) > 1
    if has_types and record is not None and record.part is not None:  # cores of different types in one machine
        book.say("implementer", record.implementer, "/proc/cpuinfo")
        book.say("part", record.part, "/proc/cpuinfo")
    return CpuPart(DeviceKind.CORE, cpus, core_id, facts=book.facts())


def _package(files: FileTree, cpus: frozenset[int], index: int, records: dict[int, CpuRecord]) -> CpuPart:
    source = "/proc/cpuinfo"
    book = FactBook()
    book.say("os_index", index, f"{CPU_ROOT}/cpu{min(cpus)}/topology/physical_package_id")
    mine = [records[cpu] for cpu in sorted(cpus) if cpu in records]
    for name in ("vendor", "model_name", "family", "model", "stepping", "implementer", "part", "microcode"):
        # A fact of the package only if all its CPUs agree: big and little cores differ in `part`.
        values = {getattr(record, name) for record in mine}
        if len(values) == 1:
            book.say(name, values.pop(), source)
    if mine:  # the common features of all its CPUs: a program may run on any of them
        common = frozenset.intersection(*(record.flags for record in mine))
        book.say("isa", " ".join(sorted(common)), source)
        book.say("vector_isa", vector_isa(common), source)
    if not any(record.microcode for record in mine):
        files.say_words(book, f"{CPU_ROOT}/cpu{min(cpus)}/microcode", microcode="version")
    return CpuPart(DeviceKind.PACKAGE, cpus, index, facts=book.facts())


def _caches(files: FileTree, online: Iterable[int]) -> list[CpuPart]:
    online = frozenset(online)
    found: dict[tuple[str, frozenset[int]], CpuPart] = {}
    for cpu in sorted(online):
        folder = f"{CPU_ROOT}/cpu{cpu}/cache"
        for path in (f"{folder}/{name}" for name in files.names(folder) if name.startswith("index")):
            level, kind = files.integer(f"{path}/level"), files.word(f"{path}/type")
            cpus = (_cpu_list(files, f"{path}/shared_cpu_list") or frozenset({cpu})) & online | {cpu}
            name = f"l{level}{_CACHE_SUFFIX.get(kind or '')}"
            if level is None or kind not in _CACHE_SUFFIX or (name, cpus) in found:  # found at another CPU
                continue
            book = FactBook()
            book.say("level", level, f"{path}/level")
            book.say("type", kind.lower(), f"{path}/type")
            with suppress(ParseError):  # it may be empty in a VM: the cache exists, its size is unknown
                book.say("size", read_size(files.text(f"{path}/size") or "") or None, f"{path}/size", "B")
            line, ways = f"{path}/coherency_line_size", f"{path}/ways_of_associativity"
            book.say("line_size", files.integer(line) or None, line, "B")
            book.say("ways", files.integer(ways) or None, ways)
            book.say("cpus", write_cpu_list(cpus), f"{path}/shared_cpu_list")
            found[name, cpus] = CpuPart(DeviceKind.CACHE, cpus, None, level, name, book.facts())
    return list(found.values())
