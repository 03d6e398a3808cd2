"""Clock settings of one CPU from cpufreq, and those of the whole machine (boost).

Format: Linux, Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst and amd-pstate.rst. Files are in kHz.
"""

from __future__ import annotations

from collections import Counter

from seatrial.machine.files import FileTree
from seatrial.machine.survey import CpuPart, FactBook
from seatrial.model.machine import DeviceKind

_CPU_ROOT = "/sys/devices/system/cpu"


def add_frequency(files: FileTree, cpu: int, book: FactBook) -> None:
    """Add governor, driver and clock range of one CPU; nothing if the machine has no cpufreq (most VMs)."""
    folder = f"{_CPU_ROOT}/cpu{cpu}/cpufreq"
    book.say("governor", files.word(f"{folder}/scaling_governor"), f"{folder}/scaling_governor")
    book.say("frequency_driver", files.word(f"{folder}/scaling_driver"), f"{folder}/scaling_driver")
    preference = f"{folder}/energy_performance_preference"
    book.say("energy_preference", files.word(preference), preference)
    for name, file, volatile in (
        ("max_frequency", "cpuinfo_max_freq", False),
        ("min_frequency", "cpuinfo_min_freq", False),
        ("base_frequency", "base_frequency", False),
        ("allowed_max_frequency", "scaling_max_freq", False),
        ("frequency", "scaling_cur_freq", True),
    ):
        kHz = files.integer(f"{folder}/{file}")
        book.say(name, kHz * 1000 if kHz else None, f"{folder}/{file}", "Hz", volatile=volatile)
    capacity = f"{_CPU_ROOT}/cpu{cpu}/cpu_capacity"
    if files.exists(folder):
        book.say("capacity", files.integer(capacity), capacity)


def add_frequency_settings(files: FileTree, parts: tuple[CpuPart, ...], book: FactBook) -> None:
    """Add the machine's boost setting, and its governor and driver as one text each, even if CPUs differ."""
    no_turbo = f"{_CPU_ROOT}/intel_pstate/no_turbo"
    off = files.integer(no_turbo)
    book.say("boost", None if off is None else off == 0, no_turbo)
    boost = f"{_CPU_ROOT}/cpufreq/boost"
    on = files.integer(boost)
    book.say("boost", None if on is None else on == 1, boost)
    for name in ("governor", "frequency_driver"):
        counts = Counter(
            text for part in parts if part.kind is DeviceKind.PU and (text := part.facts.text(name)) is not None
        )
        if counts:
            texts = [text if len(counts) == 1 else f"{text} x {count}" for text, count in counts.most_common()]
            book.say(name, ", ".join(texts), f"{_CPU_ROOT}/cpu*/cpufreq")
