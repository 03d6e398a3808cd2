"""The settings that an experiment can ask for, as files that are written, in order.

Linux: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, amd-pstate.rst, intel_uncore_frequency_scaling.rst;
Documentation/power/powercap/powercap.rst and pm_qos_interface.rst. Nothing beyond what the machine states as allowed is
written: a clock within its range, a governor of its list, a power limit up to its largest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from seatrial.environments.settings.guard import LATENCY
from seatrial.errors import UsageError
from seatrial.machine.files import FileTree
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import show

_CPUFREQ = "/sys/devices/system/cpu/cpufreq"
_INTEL_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"
_BOOST = f"{_CPUFREQ}/boost"
_UNCORE = "/sys/devices/system/cpu/intel_uncore_frequency"
_POWERCAP = "/sys/class/powercap"
_POLICY = re.compile(r"policy\d+")
_DIE = re.compile(r"package_\d+_die_\d+|uncore\d+")
_PACKAGE = re.compile(r"intel-rapl:\d+")
_LONGEST_LATENCY_US = 2_000_000_000
WRITTEN = re.compile(
    rf"{_CPUFREQ}/(?:policy\d+/(?:scaling_(?:governor|min_freq|max_freq)|energy_performance_preference|boost)|boost)"
    rf"|{_INTEL_TURBO}|{_UNCORE}/[a-z0-9_]+/(?:min|max)_freq_khz|{_POWERCAP}/intel-rapl:\d+/constraint_0_power_limit_uw"
)
"""The files that seatrial writes: a journal that names another one is not replayed."""

Write = tuple[str, str]


class NotAllowedError(UsageError):
    """The setting does not exist on this machine, or cannot have the value."""


class Knob(Frozen):
    """A setting: the writes that give it a value. They raise NotAllowedError."""

    name: str
    about: str
    writes: Callable[[FileTree, Value], list[Write]]


def _rounded(value: Value, scale: float) -> int:
    """A quantity in the unit of a file. Raises NotAllowedError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotAllowedError(f"{value!r} is not a quantity", "write a number with its unit")
    return round(value * scale)


def _policies(tree: FileTree) -> list[str]:
    found = [f"{_CPUFREQ}/{name}" for name in tree.names(_CPUFREQ) if _POLICY.fullmatch(name)]
    if not found:
        raise NotAllowedError("this machine shows no clocks of CPUs", f"{_CPUFREQ} has no policy, as in most guests")
    return found


def _turbo(tree: FileTree, value: Value) -> list[Write]:
    if tree.exists(_INTEL_TURBO):
        return [(_INTEL_TURBO, "0" if value else "1")]
    if tree.exists(_BOOST):
        return [(_BOOST, "1" if value else "0")]
    files = [f"{policy}/boost" for policy in _policies(tree)]
    if not all(map(tree.exists, files)):
        raise NotAllowedError("this machine has no switch for turbo", "set it in the firmware, and label the results")
    return [(file, "1" if value else "0") for file in files]


def _of_list(name: str, listed: str, what: str) -> Callable[[FileTree, Value], list[Write]]:
    def writes(tree: FileTree, value: Value) -> list[Write]:
        found = []
        for policy in _policies(tree):
            allowed = (tree.text(f"{policy}/{listed}") or "").split()
            if str(value) not in allowed:
                todo = f"it has {', '.join(allowed)}" if allowed else "its driver has none"
                raise NotAllowedError(f"{value} is not a {what} of this machine", todo)
            found.append((f"{policy}/{name}", str(value)))
        return found

    return writes


def _range(folder: str, now: tuple[str, str], limits: tuple[str, str], kHz: int, tree: FileTree) -> Iterator[Write]:
    """Both ends at one clock, in the order that keeps the lower one below the upper one."""
    low, high = (tree.integer(f"{folder}/{name}") for name in limits)
    if low is None or high is None or not low <= kHz <= high:
        allowed = "its range is unknown" if low is None or high is None else f"it has {_GHz(low)} to {_GHz(high)}"
        raise NotAllowedError(f"{_GHz(kHz)} is not a clock of this machine", allowed)
    lower, upper = (f"{folder}/{name}" for name in now)
    writes = [(lower, str(kHz)), (upper, str(kHz))]
    yield from writes if kHz <= (tree.integer(upper) or 0) else reversed(writes)


def _GHz(kHz: int) -> str:
    return show(kHz * 1e3, "Hz")


def _cpu_frequency(tree: FileTree, value: Value) -> list[Write]:
    kHz, found = _rounded(value, 1e-3), list[Write]()
    for policy in _policies(tree):
        listed = [int(one) for one in (tree.text(f"{policy}/scaling_available_frequencies") or "").split()]
        if listed and kHz not in listed:
            raise NotAllowedError(
                f"{_GHz(kHz)} is not a clock of this machine", f"it has {', '.join(map(_GHz, listed))}"
            )
        now, limits = ("scaling_min_freq", "scaling_max_freq"), ("cpuinfo_min_freq", "cpuinfo_max_freq")
        found += _range(policy, now, limits, kHz, tree)
    return found


def _uncore_frequency(tree: FileTree, value: Value) -> list[Write]:
    folders = [f"{_UNCORE}/{name}" for name in tree.names(_UNCORE) if _DIE.fullmatch(name)]
    if not folders:
        raise NotAllowedError("this machine shows no clock of its uncore", "it needs intel_uncore_frequency")
    now, limits = ("min_freq_khz", "max_freq_khz"), ("initial_min_freq_khz", "initial_max_freq_khz")
    return [write for one in folders for write in _range(one, now, limits, _rounded(value, 1e-3), tree)]


def _power_limit(tree: FileTree, value: Value) -> list[Write]:
    folders = [f"{_POWERCAP}/{name}" for name in tree.names(_POWERCAP) if _PACKAGE.fullmatch(name)]
    packages = [one for one in folders if (tree.word(f"{one}/name") or "").startswith("package-")]
    if not packages:
        raise NotAllowedError("this machine shows no power limit of packages (powercap)", "set it in the firmware")
    found = []
    for folder in packages:
        limit_uW = _rounded(value, 1e6)
        largest = tree.integer(f"{folder}/constraint_0_max_power_uw") or tree.integer(
            f"{folder}/constraint_0_power_limit_uw"
        )
        if not largest or not 0 < limit_uW <= largest:
            todo = f"its largest is {show(largest / 1e6, 'W')}" if largest else "its largest is unknown"
            raise NotAllowedError(f"{show(limit_uW / 1e6, 'W')} is not a limit of this machine", todo)
        found.append((f"{folder}/constraint_0_power_limit_uw", str(limit_uW)))
    return found


def _cpu_idle(tree: FileTree, value: Value) -> list[Write]:
    if not tree.exists(LATENCY):
        raise NotAllowedError(f"this machine has no {LATENCY}", "its kernel has no limit of wake-up times")
    latency_us = _rounded(value, 1e6)
    if not 0 <= latency_us <= _LONGEST_LATENCY_US:
        raise NotAllowedError(f"{show(latency_us / 1e6, 's')} is not a wake-up time", "such as 0s or 10us")
    return [(LATENCY, str(latency_us))]


KNOBS = {
    knob.name: knob
    for knob in (
        Knob("turbo", "clocks above the nominal one: true or false", _turbo),
        Knob(
            "governor",
            "how the kernel chooses clocks, such as performance",
            _of_list("scaling_governor", "scaling_available_governors", "governor"),
        ),
        Knob("cpu_frequency", "the clock of all CPUs, such as 2.5GHz", _cpu_frequency),
        Knob(
            "energy_preference",
            "speed against energy, such as balance_performance",
            _of_list("energy_performance_preference", "energy_performance_available_preferences", "preference"),
        ),
        Knob("uncore_frequency", "the clock of the uncore, such as 1.8GHz", _uncore_frequency),
        Knob("power_limit", "the power of each package, such as 200W", _power_limit),
        Knob("cpu_idle", "the longest wake-up time of idle states, such as 10us; 0s: none", _cpu_idle),
    )
}
