"""Load, CPU time and pressure around one repeat, its file systems and environment.

The clock frequency is not read: between repeats cpufreq reports that of idle CPUs, and reading it takes milliseconds
for each CPU on older kernels. Programs measure it themselves.

* Pressure stall information: how long tasks of this machine waited for CPUs, memory or I/O (Linux 4.20,
  Documentation/accounting/psi.rst).
* File systems that a program uses: paths are compared with the list of mounts; the files themselves are not touched,
  because a network file system may hang.
* Environment variables that affect performance: an allowlist, so that records contain no secrets. A name that suggests
  a secret is left out even if its prefix is allowed.

What the control groups of this process, and so of the programs that it starts, limit: CPU time and I/O, and how far
the limits were used.

Formats: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max, cpu.stat, io.max, io.stat), scheduler/sched-bwc.rst
(cpu.cfs_quota_us) and admin-guide/cgroup-v1/blkio-controller.rst (blkio.throttle.*).
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from seatrial.errors import ParseError
from seatrial.machine.readers.procfs import (
    MountLine,
    cpu_quota,
    own_groups,
    read_cgroup_membership,
    read_cgroup_mounts,
    read_mounts,
)
from seatrial.model.frozen import Frozen
from seatrial.model.secrets import sounds_like_a_secret

_MOST_BYTES = 1 << 16


def kernel_text(path: str | os.PathLike[str]) -> str:
    """The text of such a file; "" if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _MOST_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


_FOLDER = Path("/proc/pressure")
_KINDS = ("cpu", "io", "memory")
_TOTAL = "total="


def read_pressure(folder: Path = _FOLDER) -> dict[str, int]:
    """Microseconds since the machine started: `io_some` of at least one task waiting, `io_full` of all tasks that could
    run; likewise cpu and memory. Empty if the kernel does not count; never fails."""
    totals: dict[str, int] = {}
    for kind in _KINDS:
        for line in kernel_text(f"{folder}/{kind}").splitlines():
            words = line.split()
            if words and words[-1].startswith(_TOTAL) and words[-1][len(_TOTAL) :].isdecimal():
                totals[f"{kind}_{words[0]}"] = int(words[-1][len(_TOTAL) :])
    return totals


def pressure_between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Seconds of each in between."""
    return {f"{kind}_s": max(0, total - before[kind]) / 1e6 for kind, total in after.items() if kind in before}


_RESET_ON_FORK = 0x40000000  # SCHED_RESET_ON_FORK, sched(7)
_BUSY_FIELDS = (1, 2, 3, 6, 7)
_MOST_CPUS = 64  # Of more CPUs, only the sum is recorded: records stay short.
_STEAL_FIELD = 8  # /proc/stat, "cpuN user nice system idle iowait irq softirq steal ..." (proc(5))


class Snapshot(Frozen):
    """The state at one moment. `busy_ticks` and `steal_ticks` are sums over the CPUs, None if the kernel does not
    report them; `own_s` is the CPU time of this process and of the children that it has waited for. `busy_of` are the
    busy ticks of each CPU; `started` are the threads and processes that were started since the machine was."""

    at_s: float
    load_1m: float | None
    busy_ticks: int | None
    steal_ticks: int | None
    own_s: float
    busy_of: Mapping[int, int] = {}
    started: int | None = None


def snapshot(cpus: Sequence[int]) -> Snapshot:
    """The current state. Never fails: values that cannot be read are None."""
    busy_of, steal, started = _ticks(cpus)
    own = os.times()
    own_s = own.user + own.system + own.children_user + own.children_system
    busy = None if busy_of is None else sum(busy_of.values())
    return Snapshot(time.monotonic(), _load(), busy, steal, own_s, busy_of or {}, started)


def seen_between(
    before: Snapshot, after: Snapshot, cpus: Sequence[int], programs_s: float | None = 0.0
) -> dict[str, Any]:
    """The load before; and of the time of these CPUs in between (`cpu_window_s`), what the hypervisor took (`steal_s`)
    and what other processes used (`others_s`), also as shares. The kernel counts in steps of 10 ms. `busy_s` is the
    time that each CPU was busy, with the program's own; left out on large machines. `started_tasks`: the threads and
    processes that were started on this machine.
    `programs_s` is the CPU time of programs that other processes of ours waited for; None if it is unknown."""
    seen: dict[str, Any] = {"load_1m": before.load_1m}
    window_s = (after.at_s - before.at_s) * len(cpus)
    if window_s <= 0:
        return seen
    seen["cpu_window_s"] = window_s
    per_s = os.sysconf("SC_CLK_TCK")
    if before.steal_ticks is not None and after.steal_ticks is not None:
        steal_s = (after.steal_ticks - before.steal_ticks) / per_s
        seen["steal_s"] = steal_s
        seen["steal_share"] = min(1.0, steal_s / window_s)
    if before.busy_ticks is not None and after.busy_ticks is not None and programs_s is not None:
        busy_s = (after.busy_ticks - before.busy_ticks) / per_s
        others_s = max(0.0, busy_s - (after.own_s - before.own_s) - programs_s)
        seen["others_s"] = others_s
        seen["others_share"] = min(1.0, others_s / window_s)
    if before.busy_of and len(cpus) <= _MOST_CPUS:
        seen["busy_s"] = {
            str(cpu): (ticks - before.busy_of[cpu]) / per_s
            for cpu, ticks in after.busy_of.items()
            if cpu in before.busy_of
        }
    if before.started is not None and after.started is not None:
        seen["started_tasks"] = max(0, after.started - before.started)
    return seen


_POLICIES = {
    getattr(os, f"SCHED_{name}"): name.lower()
    for name in ("OTHER", "BATCH", "IDLE", "FIFO", "RR")
    if hasattr(os, f"SCHED_{name}")
}


def scheduling() -> dict[str, Any]:
    """What the programs of this process inherit: `nice`, the scheduling class (`policy`: "other", "batch", ...), and
    the limits of the stack and of locked memory (`stack_B`, `locked_B`, None: unlimited). What cannot be read is
    missing."""
    found: dict[str, Any] = {}
    with suppress(OSError):
        found["nice"] = os.getpriority(os.PRIO_PROCESS, 0)
        policy = os.sched_getscheduler(0) & ~_RESET_ON_FORK
        found["policy"] = _POLICIES.get(policy, str(policy))
    for name, limit in (("stack_B", resource.RLIMIT_STACK), ("locked_B", resource.RLIMIT_MEMLOCK)):
        with suppress(OSError, ValueError):
            soft, _ = resource.getrlimit(limit)
            found[name] = None if soft == resource.RLIM_INFINITY else soft
    return found


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _ticks(cpus: Sequence[int]) -> tuple[dict[int, int] | None, int | None, int | None]:
    """The busy ticks of each of these CPUs, the stolen ticks of all, and the threads and processes started so far."""
    wanted = {f"cpu{cpu}": cpu for cpu in cpus}
    busy: dict[int, int] = {}
    steal, started = 0, None
    try:
        with Path("/proc/stat").open(encoding="ascii") as stream:
            for line in stream:
                name, _, rest = line.partition(" ")
                if name in wanted:
                    fields = line.split()
                    busy[wanted[name]] = sum(int(fields[place]) for place in _BUSY_FIELDS)
                    steal += int(fields[_STEAL_FIELD])
                elif name == "processes":  # kernel/fork.c, total_forks: threads, too
                    started = int(rest)
    except (OSError, IndexError, ValueError):
        return None, None, None
    return busy, steal, started


_MOUNTS = Path("/proc/self/mountinfo")
_SLOW_OPTIONS = frozenset({"sync", "dirsync", "noac", "actimeo=0", "data=journal", "lookupcache=none", "directio"})
"""Mount options that make calls wait (mount(8), nfs(5), ext4(5))."""
_OPTION_PLACE = 5


def file_system_of(path: str, mounts: Path = _MOUNTS) -> dict[str, Any] | None:
    """`type`, `mount_point` and the slow `options` of the file system of an absolute path; None if it is unknown."""
    try:
        text = mounts.read_bytes()
    except OSError:
        return None
    path = os.path.normpath(path)
    for mount, options in _by_length(text):
        point = mount.point.rstrip("/")
        if path == point or path.startswith(f"{point}/"):
            return {"type": mount.kind, "mount_point": mount.point, "options": sorted(options & _SLOW_OPTIONS)}
    return None


@lru_cache(maxsize=4)
def _by_length(text: bytes) -> tuple[tuple[MountLine, frozenset[str]], ...]:
    """Mounts with all their options, the longest mount point first, of equal ones the last (it hides the others)."""
    lines = text.decode("utf-8", "surrogateescape").splitlines()
    found = []
    for line in lines:
        for mount in read_mounts(line):
            own = line.split(" ")[_OPTION_PLACE]
            found.append((mount, frozenset(own.split(",")) | frozenset(mount.options.split(","))))
    found.reverse()
    found.sort(key=lambda one: -len(one[0].point))
    return tuple(found)


_NAMES = frozenset(
    {
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES", "CXX", "OPAL_PREFIX", "TMPDIR"),
        *("SLURM_JOB_ID", "SLURM_JOB_PARTITION", "SLURM_MPI_TYPE", "SLURM_CPU_BIND"),
    }
)
_OF_LIBRARIES = ("OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTOBLAS_", "MKL_", "BLIS_", "NVPL_", "MALLOC_ARENA", "NUMA_")
_OF_MPI = (
    *("OMPI_", "PMIX_MCA_", "PRTE_MCA_", "MPIR_", "MPICH_", "HYDRA_", "I_MPI_", "MV2_", "MVP_"),
    *("PSM2_", "PSM3_", "FI_", "UCX_", "UCC_", "HCOLL_", "SHARP_"),
)
"""Open MPI with its run-time systems, MPICH and its launcher, Intel MPI, MVAPICH, and their communication libraries."""
_PREFIXES = (*_OF_LIBRARIES, *_OF_MPI)
_PER_RUN = (
    *("OMPI_COMM_", "OMPI_MCA_orte_", "OMPI_MCA_ess_", "OMPI_UNIVERSE"),
    *("OMPI_FILE_LOCATION", "OMPI_ARGV", "OMPI_COMMAND", "OMPI_APP_CTX"),
)
"""Variables that a launcher sets for its ranks: they are not settings, even if seatrial runs under a launcher."""


def starts_of_performance_variables() -> tuple[str, ...]:
    """What the lines of `env` that may have such a variable start with: letters, digits, `_` and `=`."""
    return (*(f"{name}=" for name in sorted(_NAMES)), *_PREFIXES)


def performance_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables kept in records, by name."""
    return {name: value for name, value in sorted(environment.items()) if _is_kept(name)}


def _is_kept(name: str) -> bool:
    return name in _NAMES or (
        name.startswith(_PREFIXES) and not name.startswith(_PER_RUN) and not sounds_like_a_secret(name)
    )


_LIMITED = (("read", "B/s"), ("write", "B/s"), ("read", "op/s"), ("write", "op/s"))
_V1_LIMITS = {
    f"blkio.throttle.{direction}_{'bps' if unit == 'B/s' else 'iops'}_device": (direction, unit)
    for direction, unit in _LIMITED
}
_V2_LIMITS = dict(zip(("rbps", "wbps", "riops", "wiops"), _LIMITED, strict=True))
_V2_COUNTERS = dict(zip(("rbytes", "wbytes", "rios", "wios"), _LIMITED, strict=True))
_V1_COUNTERS = {"blkio.throttle.io_service_bytes_recursive": "B/s", "blkio.throttle.io_serviced_recursive": "op/s"}
_MOST_LIMITS = 16


class Quota(Frozen):
    """A CPU quota: the CPUs that it allows, the file that sets it, and what cpu.stat counted so far. `throttled_s` is
    the sum over the CPUs."""

    cpus: float
    file: str
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_s: float | None = None


_COUNTED = ("periods", "throttled_periods", "throttled_s")


class IoLimit(Frozen):
    """A limit of a device ("8:0") in one direction, in its unit (B/s or op/s), the file that sets it, and what the
    group has moved so far (bytes or operations)."""

    file: str
    device: str
    direction: str
    unit: str
    limit: float
    moved: int | None = None


class GroupLimits(Frozen):
    """The smallest quota between the root and the group of this process, and all limits on I/O there."""

    quota: Quota | None = None
    io: tuple[IoLimit, ...] = ()


def read_limits(root: Path = Path("/")) -> GroupLimits:
    """The limits and counters now. Never fails: what cannot be read is missing. `root` has the files of a machine."""
    membership = kernel_text(f"{root}/proc/self/cgroup")
    io = (_of_v2(folder) if is_v2 else _of_v1(folder) for folder, is_v2 in _groups(membership, root, "blkio", "io"))
    return GroupLimits(
        _smallest_quota(_groups(membership, root, "cpu")), tuple(islice(chain.from_iterable(io), _MOST_LIMITS))
    )


def limits_between(before: GroupLimits, after: GroupLimits) -> dict[str, Any]:
    """`quota` and `io_limits` for a repeat's record; empty if nothing is limited."""
    seen: dict[str, Any] = {}
    if after.quota is not None:
        was = before.quota if before.quota is not None and before.quota.file == after.quota.file else None
        counts = ((name, getattr(was, name, None), getattr(after.quota, name)) for name in _COUNTED)
        grown = {name: max(0, last - first) for name, first, last in counts if None not in (first, last)}
        seen["quota"] = {"cpus": after.quota.cpus, "file": after.quota.file, **grown}
    was_moved = {(one.file, one.device, one.direction, one.unit): one.moved for one in before.io}
    limits = []
    for one in after.io:
        earlier = was_moved.get((one.file, one.device, one.direction, one.unit))
        moved = None if one.moved is None or earlier is None else max(0, one.moved - earlier)
        limits.append({**asdict(one), "moved": moved})
    if limits:
        seen["io_limits"] = limits
    return seen


@lru_cache(maxsize=16)
def _groups(membership: str, root: Path, *controllers: str) -> tuple[tuple[Path, bool], ...]:
    """The groups of this process with one of these controllers, from the root down; whether they are of version 2."""
    try:
        paths = read_cgroup_membership(membership)
        text = (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        mounts = read_cgroup_mounts(text)
    except (ParseError, OSError):
        return ()
    return tuple(
        (root / folder.lstrip("/"), mount.controllers is None)
        for mount in mounts
        for folder in own_groups(mount, paths, *controllers)
    )


def _smallest_quota(groups: Sequence[tuple[Path, bool]]) -> Quota | None:
    quotas = ((cpu_quota(kernel_text, str(folder), is_v2), folder, is_v2) for folder, is_v2 in groups)
    found = [(*quota, folder, is_v2) for quota, folder, is_v2 in quotas if quota is not None]
    if not found:
        return None
    cpus, file, folder, is_v2 = min(found, key=lambda one: one[0])
    counted = _numbers(kernel_text(folder / "cpu.stat"))
    throttled = counted.get("throttled_usec" if is_v2 else "throttled_time")
    throttled_s = None if throttled is None else throttled / (1e6 if is_v2 else 1e9)
    return Quota(cpus, file, counted.get("nr_periods"), counted.get("nr_throttled"), throttled_s)


def _numbers(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _of_v1(folder: Path) -> Iterator[IoLimit]:
    limits = {name: _numbers(kernel_text(folder / name)) for name in _V1_LIMITS}
    counters = _v1_counters(folder) if any(any(of_devices.values()) for of_devices in limits.values()) else {}
    for name, (direction, unit) in _V1_LIMITS.items():
        for device, limit in limits[name].items():
            if limit > 0:
                moved = counters.get((device, direction, unit), 0)
                yield IoLimit(str(folder / name), device, direction, unit, float(limit), moved)


def _v1_counters(folder: Path) -> dict[tuple[str, str, str], int]:
    """The lines `8:0 Write 4096` of the group and those below it; a device without I/O has none."""
    found: dict[tuple[str, str, str], int] = {}
    for name, unit in _V1_COUNTERS.items():
        for line in kernel_text(folder / name).splitlines():
            words = line.split()
            if len(words) == 3 and words[2].isdecimal():
                found[words[0], words[1].lower(), unit] = int(words[2])
    return found


def _of_v2(folder: Path) -> Iterator[IoLimit]:
    """The lines `8:16 rbps=2097152 wbps=max riops=max wiops=120`."""
    file = folder / "io.max"
    text = kernel_text(file)
    if not text:
        return
    counters = {
        (device, *_V2_COUNTERS[key]): value
        for device, key, value in _pairs(kernel_text(folder / "io.stat"))
        if key in _V2_COUNTERS
    }
    for device, key, value in _pairs(text):
        if key in _V2_LIMITS and value > 0:
            direction, unit = _V2_LIMITS[key]
            moved = counters.get((device, direction, unit), 0)
            yield IoLimit(str(file), device, direction, unit, float(value), moved)


def _pairs(text: str) -> Iterator[tuple[str, str, int]]:
    for line in text.splitlines():
        device, *rest = line.split() or [""]
        for word in rest:
            key, _, value = word.partition("=")
            if value.isdecimal():
                yield device, key, int(value)
