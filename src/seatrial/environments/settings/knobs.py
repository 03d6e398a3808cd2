"""The settings that an experiment can ask for, as files that are written, in order.

Linux: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst, amd-pstate.rst, intel_uncore_frequency_scaling.rst;
Documentation/power/powercap/powercap.rst and pm_qos_interface.rst. Nothing beyond what the machine states as allowed is
written: a clock within its range, a governor of its list, a power limit up to its largest. GPUs: gpus.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from seatrial.environments.settings.gpus import GPU_SETTING, Gpu, gpus_here
from seatrial.environments.settings.guard import LATENCY
from seatrial.errors import UsageError
from seatrial.machine.files import FileTree
from seatrial.model.benchmark.parameter import Value
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS, TRUTH, WORD
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import OrNull, Text, published
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
    rf"|{GPU_SETTING.pattern}"
)
"""What seatrial writes: a journal that names another file is not replayed."""

Write = tuple[str, str]


class NotAllowedError(UsageError):
    """The setting does not exist on this machine, cannot have the value, or may not be changed. `need` is a word for
    what is missing; "": that setting."""

    def __init__(self, message: str, todo: str, need: str = "") -> None:
        super().__init__(message, todo)
        self.need = need


class MissingError(NotAllowedError):
    """The machine has no such setting."""


def _rounded(value: Value, scale: float) -> int:
    """A quantity in the unit of a file. Raises NotAllowedError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotAllowedError(f"{value!r} is not a quantity", "write a number with its unit")
    return round(value * scale)


def _policies(tree: FileTree) -> list[str]:
    found = [f"{_CPUFREQ}/{name}" for name in tree.names(_CPUFREQ) if _POLICY.fullmatch(name)]
    if not found:
        raise MissingError(f"this machine has no {_CPUFREQ}/policy*", "as most guests, it shows no clocks of CPUs")
    return found


def _turbo(tree: FileTree, value: Value) -> list[Write]:
    if tree.exists(_INTEL_TURBO):
        return [(_INTEL_TURBO, "0" if value else "1")]
    if tree.exists(_BOOST):
        return [(_BOOST, "1" if value else "0")]
    files = [f"{_CPUFREQ}/{name}/boost" for name in tree.names(_CPUFREQ) if _POLICY.fullmatch(name)]
    if not files or not all(map(tree.exists, files)):
        missing = f"{_INTEL_TURBO}, {_BOOST} or {_CPUFREQ}/policy*/boost"
        raise MissingError(f"this machine has no {missing}", "set turbo in the firmware, and label the results")
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
        raise MissingError(f"this machine has no {_UNCORE}/package_*", "it needs intel_uncore_frequency")
    now, limits = ("min_freq_khz", "max_freq_khz"), ("initial_min_freq_khz", "initial_max_freq_khz")
    return [write for one in folders for write in _range(one, now, limits, _rounded(value, 1e-3), tree)]


def _power_limit(tree: FileTree, value: Value) -> list[Write]:
    folders = [f"{_POWERCAP}/{name}" for name in tree.names(_POWERCAP) if _PACKAGE.fullmatch(name)]
    packages = [one for one in folders if (tree.word(f"{one}/name") or "").startswith("package-")]
    if not packages:
        raise MissingError(f"this machine has no {_POWERCAP}/intel-rapl:* of a package", "set it in the firmware")
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
        raise MissingError(f"this machine has no {LATENCY}", "its kernel has no limit of wake-up times")
    latency_us = _rounded(value, 1e6)
    if not 0 <= latency_us <= _LONGEST_LATENCY_US:
        raise NotAllowedError(f"{show(latency_us / 1e6, 's')} is not a wake-up time", "such as 0s or 10us")
    return [(LATENCY, str(latency_us))]


def _gpus() -> list[Gpu]:
    found = gpus_here(os.environ)
    if isinstance(found, str):
        raise MissingError(f"this machine has no GPU whose clocks can be set: {found}", "it needs nvidia-smi")
    return found


def _gpu_clock(tree: FileTree, value: Value) -> list[Write]:
    MHz, found = _rounded(value, 1e-6), list[Write]()
    for gpu in _gpus():
        if gpu.most_MHz is None or not 0 < MHz <= gpu.most_MHz:
            allowed = (
                "its range is unknown" if gpu.most_MHz is None else f"it has up to {show(gpu.most_MHz * 1e6, 'Hz')}"
            )
            raise NotAllowedError(f"{show(MHz * 1e6, 'Hz')} is not a clock of {gpu.name}", allowed)
        found.append((gpu.setting("clock"), str(MHz)))
    return found


def _gpu_power_limit(tree: FileTree, value: Value) -> list[Write]:
    limit_W, found = _rounded(value, 1.0), list[Write]()
    for gpu in _gpus():
        if gpu.least_W is None or gpu.most_W is None or not gpu.least_W <= limit_W <= gpu.most_W:
            is_known = gpu.least_W is not None and gpu.most_W is not None
            allowed = f"it takes {gpu.least_W:g} to {gpu.most_W:g} W" if is_known else "its range is unknown"
            raise NotAllowedError(f"{limit_W} W is not a limit of {gpu.name}", allowed)
        found.append((gpu.setting("power_limit"), f"{limit_W:.2f}"))
    return found


KNOBS: Mapping[str, Callable[[FileTree, Value], list[Write]]] = {
    "turbo": _turbo,
    "governor": _of_list("scaling_governor", "scaling_available_governors", "governor"),
    "cpu_frequency": _cpu_frequency,
    "energy_preference": _of_list(
        "energy_performance_preference", "energy_performance_available_preferences", "preference"
    ),
    "uncore_frequency": _uncore_frequency,
    "power_limit": _power_limit,
    "cpu_idle": _cpu_idle,
    "gpu_clock": _gpu_clock,
    "gpu_power_limit": _gpu_power_limit,
}
"""Name (of `MACHINE_SETTINGS`) -> the writes that give it a value. They raise NotAllowedError."""


def writes_of(wanted: Mapping[str, Value], root: Path) -> list[Write]:
    """The writes that give settings their values, in an order in which none resets another. Raises NotAllowedError for
    all that this machine does not have or allow, with the first as its need."""
    tree, found, refused = FileTree(root), list[Write](), dict[str, NotAllowedError]()
    for name in KNOBS:
        try:
            found += KNOBS[name](tree, wanted[name]) if name in wanted else ()
        except NotAllowedError as error:
            refused[name] = error
    if refused:
        need, first = next(iter(refused.items()))
        others = [f"{name}: {error.message}" for name, error in refused.items() if error.message != first.message]
        raise NotAllowedError("; ".join((first.message, *others)), first.todo, need)
    return found


def refuse_forbidden(writes: Iterable[Write], root: Path) -> None:
    """Raise NotAllowedError for the first file that this user may not write, or that nobody may (as in a container)."""
    for path, _ in writes:
        is_file = not GPU_SETTING.fullmatch(path)
        if os.access(root / path.lstrip("/"), os.W_OK) if is_file else os.geteuid() == 0:
            continue
        if os.geteuid() != 0:
            raise NotAllowedError(f"only root can set {path}", "run seatrial as root", "root")
        raise NotAllowedError(
            f"{path} cannot be written", "it may be mounted read-only, as in a container", "permission"
        )


_State = Literal["ready", "unverified", "unsupported"]


@published("MachineSetting")
class OfferedSetting(Frozen):
    """A setting of the machine that repeats can have: the axis `environment.NAME`."""

    name: Annotated[Text, "without `environment.`"]
    accepts: str
    state: Annotated[_State, "unverified: it was changed on made-up machines only"]
    need: Annotated[OrNull[str], "Why it cannot be changed here"] = ""


def offered_settings(root: Path) -> list[OfferedSetting]:
    """All settings, with those that this machine and user can change."""
    found = []
    for name, one in MACHINE_SETTINGS.items():
        need = "" if os.geteuid() == 0 else "root"
        any_value: Value = "" if one.takes == WORD else True if one.takes == TRUTH else 0.0
        try:
            KNOBS[name](FileTree(root), any_value)
        except MissingError as error:
            need = error.message
        except NotAllowedError:
            pass  # this value; it has others
        state: _State = "unsupported" if need else "ready" if one.is_verified else "unverified"
        found.append(OfferedSetting(name, one.accepts, state, need))
    return found
