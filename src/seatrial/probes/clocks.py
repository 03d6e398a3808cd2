"""The clocks of CPUs and GPUs while a program runs, looked at a few times.

The kernel's figure for a busy CPU is from the processor's counters (APERF and MPERF on x86: Linux,
Documentation/admin-guide/pm/cpufreq.rst, scaling_cur_freq; cpuinfo_avg_freq is the same by its name). Reading it costs
some microseconds for each CPU, so that a few CPUs are read, ever less often.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from seatrial.machine.files import FileTree
from seatrial.model.frozen import Frozen

_POLICIES = "/sys/devices/system/cpu/cpufreq"
_FILES = ("cpuinfo_avg_freq", "scaling_cur_freq")
_FIRST_S, _LONGEST_S, _GROWTH = 0.02, 2.0, 1.5
_MOST_CPUS = 8
_LEAST_LOOKS = 3
"""With fewer, all may be of the time before the program computes."""


class SeenClocks(Frozen):
    """Clocks in Hz, each the median over looks of the fastest CPU or busy GPU; None: not seen often enough."""

    cpu_Hz: float | None = None
    gpu_Hz: float | None = None


class ClockLooks:
    """What was seen so far, in Hz; and the governors of the CPUs."""

    def __init__(self) -> None:
        self.cpus: list[float] = []
        self.gpus: list[float] = []
        self.governors: set[str] = set()

    def seen(self) -> SeenClocks:
        """The clocks."""
        return SeenClocks(*(median(own) if len(own) >= _LEAST_LOOKS else None for own in (self.cpus, self.gpus)))


@contextmanager
def clocks_within(cpus: Sequence[int], root: Path, gpus: Callable[[], Sequence[float]] | None) -> Iterator[ClockLooks]:
    """Look at the clocks of these CPUs within the block; `gpus` returns those of busy GPUs, and raises OSError if it
    cannot."""
    looks, stop = ClockLooks(), threading.Event()
    tree = FileTree(root)
    files = clock_files(tree, cpus)
    governors = [f"{file.rpartition('/')[0]}/scaling_governor" for file in files]

    def watch() -> None:
        wait_s = _FIRST_S
        while not stop.wait(wait_s):
            if clocks := [kHz * 1e3 for file in files if (kHz := tree.integer(file)) is not None]:
                looks.cpus.append(max(clocks))
                looks.governors.update(word.split()[0] for file in governors if (word := tree.word(file)))
            with suppress(OSError):
                if gpus is not None and (busy := gpus()):
                    looks.gpus.append(max(busy))
            wait_s = min(wait_s * _GROWTH, _LONGEST_S)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield looks
    finally:
        stop.set()
        watcher.join()


def clock_files(tree: FileTree, cpus: Sequence[int]) -> list[str]:
    """The files with the clocks of these CPUs, of a few of many."""
    found = []
    for name in tree.names(_POLICIES):
        number = name.removeprefix("policy")
        if not number.isdecimal():
            continue
        listed = tree.text(f"{_POLICIES}/{name}/related_cpus")
        own = {int(number)} if listed is None else {int(one) for one in listed.split() if one.isdecimal()}
        if not own.isdisjoint(cpus):
            found += [f"{_POLICIES}/{name}/{file}" for file in _FILES if tree.exists(f"{_POLICIES}/{name}/{file}")][:1]
    return found[:: -(-len(found) // _MOST_CPUS) or 1]


def nominal_clock_Hz(tree: FileTree) -> float | None:
    """The highest clock without turbo that the kernel states; None: it does not."""
    stated = (tree.integer(f"{_POLICIES}/{name}/base_frequency") for name in tree.names(_POLICIES))
    return max((kHz * 1e3 for kHz in stated if kHz is not None), default=None)
