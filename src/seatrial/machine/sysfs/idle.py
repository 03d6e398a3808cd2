"""Idle states (C-states) of the CPUs from /sys/devices/system/cpu/cpu*/cpuidle.

Format: Linux, Documentation/admin-guide/pm/cpuidle.rst. Latencies are in microseconds there.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.machine.files import FileTree
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.model.machine import DeviceKind

_CPU_ROOT = "/sys/devices/system/cpu"


def add_idle_states(files: FileTree, parts: Sequence[CpuPart], book: FactBook) -> None:
    """Add the idle states, those that are off on every CPU, and the longest exit latency (s) of those that are not.

    Names and latencies are those of the first CPU; a state counts as off only if it is off everywhere.
    """
    cpus = sorted(cpu for part in parts if part.kind is DeviceKind.PU for cpu in part.cpus)
    first = next((cpu for cpu in cpus if files.names(f"{_CPU_ROOT}/cpu{cpu}/cpuidle")), None)
    if first is None:
        return
    folder = f"{_CPU_ROOT}/cpu{first}/cpuidle"
    numbers = sorted(int(name[5:]) for name in files.names(folder) if name[:5] == "state" and name[5:].isdecimal())
    names = {number: (files.word(f"{folder}/state{number}/name") or "").replace(" ", "-") for number in numbers}
    off = {number for number in numbers if _is_off(files, cpus, number)}
    latencies = [
        latency
        for number in numbers
        if number not in off and (latency := files.integer(f"{folder}/state{number}/latency")) is not None
    ]
    source = f"{_CPU_ROOT}/cpu*/cpuidle/state*"
    book.say("idle_states", " ".join(names[number] for number in numbers if names[number]), f"{source}/name")
    book.say("idle_states_off", " ".join(names[n] for n in numbers if n in off and names[n]), f"{source}/disable")
    book.say("idle_exit_latency", max(latencies) * 1e-6 if latencies else None, f"{source}/latency", "s")


def _is_off(files: FileTree, cpus: Sequence[int], state: int) -> bool:
    """Whether the state is disabled on every CPU."""
    return all(files.integer(f"{_CPU_ROOT}/cpu{cpu}/cpuidle/state{state}/disable") not in (0, None) for cpu in cpus)
