"""RAPL's counters through perf: the events of /sys/bus/event_source/devices/power, of Intel and AMD.

arch/x86/events/rapl.c of Linux: `energy-pkg`, `-ram`, `-cores`, `-gpu`, `-psys`, each with `.scale` (to J) and `.unit`;
`cpumask` has one CPU of each package. They are the counters of powercap, and the kernel counts over their wraps. An
event of a CPU needs CAP_PERFMON (before Linux 5.8 CAP_SYS_ADMIN), or kernel.perf_event_paranoid of 0 or less
(perf_event_open(2)).
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping

from seatrial.errors import ParseError
from seatrial.machine.files import FileTree
from seatrial.machine.readers.scalars import read_cpu_list
from seatrial.probes.power.source import Reading, number, timed

_FOLDER, _CPUS = "/sys/bus/event_source/devices/power", "/sys/devices/system/cpu"
_DOMAINS = {"energy-pkg": "", "energy-ram": "dram", "energy-cores": "core", "energy-gpu": "uncore"}
"""Events, and the names of the same domains in powercap, within their package."""
_CONFIG = re.compile(r"event=(0x[0-9a-f]+|\d+)")
_SYSTEM_CALL = {"x86_64": 298, "aarch64": 241, "ppc64le": 319, "riscv64": 241, "s390x": 331}
_CLOSE_ON_EXEC = 8
_ALL_PROCESSES = -1
_RIGHTS = "needs CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less"
Open = Callable[[int, int, int], int]
"""Opens an event: type, config, CPU -> file descriptor. Raises OSError."""


def perf_event_open(kind: int, config: int, cpu: int) -> int:
    """The file descriptor of an event of a CPU, which counts from now on. Raises OSError."""
    number = _SYSTEM_CALL.get(platform.machine())
    if number is None:
        raise OSError(0, f"the system call is not known for {platform.machine()}")
    wanted = struct.pack("<IIQ", kind, 64, config).ljust(64, b"\0")  # struct perf_event_attr, PERF_ATTR_SIZE_VER0
    call = ctypes.CDLL(None, use_errno=True).syscall
    found = int(call(number, ctypes.c_char_p(wanted), _ALL_PROCESSES, cpu, -1, ctypes.c_ulong(_CLOSE_ON_EXEC)))
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return found


class Event:
    """An event, opened when it is first read: it counts from then on."""

    def __init__(self, kind: int, config: int, cpu: int, joules: float, opening: Open) -> None:
        self._ask, self._scale, self._open = (kind, config, cpu), joules, opening
        self._file: int | None = None

    def read(self) -> Reading:
        """The energy since the first reading."""
        try:
            with timed() as request:
                if self._file is None:
                    self._file = self._open(*self._ask)
                    weakref.finalize(self, os.close, self._file)
                data = os.read(self._file, 8)
        except PermissionError:
            return request.reading(fault=f"perf {_RIGHTS}")
        except OSError as error:
            return request.reading(fault=f"perf: {error.strerror or error}")
        if len(data) < 8:
            return request.reading(fault="perf reports no value")
        return request.reading(joules=int.from_bytes(data, "little") * self._scale)


def events(tree: FileTree, opening: Open | None = None) -> Mapping[str, Event]:
    """The events by the names that powercap has for the same counters, such as `package-0/dram`. A tree that was
    recorded has none: there is nothing to open."""
    if opening is None:
        if not tree.is_live:
            return {}
        opening = perf_event_open
    kind, packages = tree.integer(f"{_FOLDER}/type"), _packages(tree)
    if kind is None:
        return {}
    found = {}
    for event in tree.names(f"{_FOLDER}/events"):
        config = _CONFIG.fullmatch(tree.word(f"{_FOLDER}/events/{event}") or "")
        scale = number(tree.word(f"{_FOLDER}/events/{event}.scale"))
        in_joules = tree.word(f"{_FOLDER}/events/{event}.unit") == "Joules"
        if config is None or not scale or not in_joules:
            continue
        for package, cpu in packages.items():
            name = "psys" if event == "energy-psys" else _name(package, event)
            if name and name not in found:
                found[name] = Event(kind, int(config[1], 0), cpu, scale, opening)
    return found


def _name(package: str, event: str) -> str:
    domain = _DOMAINS.get(event)
    return "" if domain is None else f"{package}/{domain}".rstrip("/")


def _packages(tree: FileTree) -> dict[str, int]:
    """The packages, as powercap names them, with the CPU that their events are opened on."""
    try:
        cpus = read_cpu_list(tree.word(f"{_FOLDER}/cpumask") or "")
    except ParseError:
        return {}
    dies = defaultdict[int, dict[int, int]](dict)
    for cpu in cpus:
        package = tree.integer(f"{_CPUS}/cpu{cpu}/topology/physical_package_id")
        die = tree.integer(f"{_CPUS}/cpu{cpu}/topology/die_id")
        dies[package or 0].setdefault(die or 0, cpu)
    return {
        f"package-{package}" if len(of) == 1 else f"package-{package}-die-{die}": cpu
        for package, of in dies.items()
        for die, cpu in of.items()
    }
