"""Kernel settings that affect performance: version, parameters, mitigations, clock source, NUMA balancing, SMT."""

from __future__ import annotations

from contextlib import suppress

from seatrial.machine.files import FileTree
from seatrial.machine.readers.command_line import read_command_line
from seatrial.machine.readers.process_status import read_process_status
from seatrial.machine.survey import FactBook

_CPU_ROOT = "/sys/devices/system/cpu"
_CLOCK = "/sys/devices/system/clocksource/clocksource0"


def add_settings(files: FileTree, book: FactBook) -> None:
    """Add the kernel version and settings."""
    book.say("kernel", files.word("/proc/sys/kernel/osrelease"), "/proc/sys/kernel/osrelease")
    book.say("architecture", files.word("/proc/sys/kernel/arch"), "/proc/sys/kernel/arch")
    book.say("kernel_build", files.word("/proc/sys/kernel/version"), "/proc/sys/kernel/version")
    book.say("kernel_parameters", read_command_line(files.text("/proc/cmdline") or ""), "/proc/cmdline")
    book.say("mitigations", _mitigations(files), f"{_CPU_ROOT}/vulnerabilities")
    book.say("clocksource", files.word(f"{_CLOCK}/current_clocksource"), f"{_CLOCK}/current_clocksource")
    active = files.integer(f"{_CPU_ROOT}/smt/active")
    book.say("smt_active", None if active is None else active == 1, f"{_CPU_ROOT}/smt/active")
    book.say("smt_control", files.word(f"{_CPU_ROOT}/smt/control"), f"{_CPU_ROOT}/smt/control")
    for name, file in (
        ("numa_balancing", "kernel/numa_balancing"),
        ("perf_event_paranoid", "kernel/perf_event_paranoid"),
        ("zone_reclaim_mode", "vm/zone_reclaim_mode"),
        ("swappiness", "vm/swappiness"),
    ):
        book.say(name, files.integer(f"/proc/sys/{file}"), f"/proc/sys/{file}")
    for name, file in (("isolated_cpus", "isolated"), ("nohz_full_cpus", "nohz_full"), ("offline_cpus", "offline")):
        word = files.word(f"{_CPU_ROOT}/{file}")
        book.say(name, None if word == "(null)" else word, f"{_CPU_ROOT}/{file}")
    idle = f"{_CPU_ROOT}/cpuidle/current_driver"
    book.say("idle_driver", files.word(idle), idle)
    load = (files.text("/proc/loadavg") or "").split(" ")[0]
    with suppress(ValueError):  # empty if /proc/loadavg is hidden
        book.say("load", float(load), "/proc/loadavg", "1", volatile=True)
    user = read_process_status(files.text("/proc/self/status") or "").effective_user
    if user is not None:
        book.say("privileges", "root" if user == 0 else "user", "/proc/self/status")


def _mitigations(files: FileTree) -> str | None:
    """The vulnerabilities and mitigations of the CPU as one text: the first clause of each relevant file.

    Format: Linux, Documentation/ABI/testing/sysfs-devices-system-cpu, "vulnerabilities".
    """
    folder = f"{_CPU_ROOT}/vulnerabilities"
    states = {name: files.word(f"{folder}/{name}") for name in files.names(folder)}
    clauses = [
        f"{name}: {state.split(';')[0].strip()}"
        for name, state in states.items()
        if state is not None and state.startswith(("Vulnerable", "Mitigation", "KVM", "Processor vulnerable"))
    ]
    if clauses:
        return "; ".join(clauses)
    return "not affected" if any(states.values()) else None
