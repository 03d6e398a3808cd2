"""What the control groups of this process, and so of the programs that it starts, limit: CPU time and I/O, and how far
the limits were used.

Formats: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max, cpu.stat, io.max, io.stat), scheduler/sched-bwc.rst
(cpu.cfs_quota_us) and admin-guide/cgroup-v1/blkio-controller.rst (blkio.throttle.*).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from seatrial.errors import ParseError
from seatrial.machine.readers.procfs import cpu_quota, own_groups, read_cgroup_membership, read_cgroup_mounts
from seatrial.model.frozen import Frozen
from seatrial.probes.system import kernel_text

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
