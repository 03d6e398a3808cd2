"""Nodes whose clock is off, or that use the results folder slowly: by what was seen when repeats were claimed.

A file on a server is stamped by the server's clock, which is the same for all nodes. So what each node's clock shows
when it writes one, less the stamp, compares the clocks of all nodes, with an error of half the time that writing took.
A file system whose files are stamped by the node itself (Lustre) shows no difference, whatever the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median, quantiles

from seatrial.diagnosis.disturbance.diagnose import is_slow
from seatrial.model.frozen import Frozen
from seatrial.model.study.screen import LEAST_CLOCK_S, ClockReading, FolderUse

_LEAST_DRIFT = 2e-4
"""Quartz is right to 1e-4, and its drift is corrected."""
_FEWEST_NODES, _FEWEST_REPEATS, _FEWEST_THAT_AGREE = 3, 5, 2
_TIMES_SLOWER, _LEAST_SLOWER_S = 3.0, 2e-3
_RARE = 0.1


class ClockOff(Frozen):
    """By how much a clock is ahead of the others (s, or s/s if it drifts), and the error of that."""

    node: str
    value: float
    error: float
    readings: int


def clocks_off(used: Mapping[str, FolderUse]) -> Iterator[ClockOff]:
    """The nodes whose clocks differ from most others."""
    best = {node: min(own.clock, key=lambda one: (one.error_s, -one.at_s)) for node, own in used.items() if own.clock}
    yield from _off({node: (own.ahead_s, own.error_s) for node, own in best.items()}, LEAST_CLOCK_S, used)


def clocks_that_drift(used: Mapping[str, FolderUse]) -> Iterator[ClockOff]:
    """The nodes whose clocks run faster or slower than most others, s/s."""
    drifts = {node: drift for node, own in used.items() if (drift := _drift(own.clock)) is not None}
    yield from _off(drifts, _LEAST_DRIFT, used)


def _off(values: Mapping[str, tuple[float, float]], least: float, used: Mapping[str, FolderUse]) -> Iterator[ClockOff]:
    """Those that differ by more than `least` and the errors from the most that agree, the clock that stamps the files
    among them; nobody where no two agree."""
    clocks = [(0.0, 0.0), *values.values()]

    def agreeing(clock: tuple[float, float]) -> list[tuple[float, float]]:
        return [other for other in clocks if abs(other[0] - clock[0]) <= least + other[1] + clock[1]]

    most = max(map(agreeing, clocks), key=len)  # of equally many, those that agree with the stamps
    if len(most) < _FEWEST_THAT_AGREE:
        return
    usual, usual_error = sorted(most)[(len(most) - 1) // 2]
    for node, (value, error) in values.items():
        if abs(value - usual) - error - usual_error > least:
            yield ClockOff(node, value - usual, error + usual_error, len(used[node].clock))


def _drift(readings: Sequence[ClockReading]) -> tuple[float, float] | None:
    """From the most exact readings of the first and the last third; None if there are too few."""
    if len(readings) < _FEWEST_REPEATS:
        return None
    ordered, third = sorted(readings, key=lambda one: one.at_s), len(readings) // 3
    first, last = (min(part, key=lambda one: one.error_s) for part in (ordered[:third], ordered[-third:]))
    between_s = last.at_s - first.at_s
    if between_s <= 0:
        return None
    return (last.ahead_s - first.ahead_s) / between_s, (last.error_s + first.error_s) / between_s


_LOOK = {
    "nfs": "the way to its server (nfsstat -c, ip -s link)",
    "nfs4": "the way to its server (nfsstat -c, ip -s link)",
    "cifs": "the way to its server (/proc/fs/cifs/Stats, ip -s link)",
    "smb3": "the way to its server (/proc/fs/cifs/Stats, ip -s link)",
    "lustre": "its servers (lfs check servers, lctl get_param osc.*.import, ip -s link)",
    "gpfs": "what it waits for (mmdiag --waiters, mmdiag --network)",
    "beegfs": "its servers (beegfs-ctl --listnodes --nodetype=storage --reachable, ip -s link)",
    "ceph": "its servers (ceph -s, ip -s link)",
    "9p": "the host, which serves it",
    "virtiofs": "the host, which serves it",
}
"""What to look at where a file system is slow on one node."""


def folder_remedy(node: str, kind: str) -> str:
    """What to look at on a node that uses the results folder slowly, by the type of its file system there."""
    if not kind:
        return f"see on which file system the results folder is on {node} (findmnt -T FOLDER), and look at its server"
    look = _LOOK.get(kind, "its device (iostat -x 1, dmesg)")
    if kind == "fuse" or kind.startswith("fuse."):
        look = "the process that serves it (findmnt -T FOLDER, top, its log), and the way to a server if it has one"
    elif kind not in _LOOK and is_slow(kind):
        look = "the way to its servers (ip -s link)"
    return f"the results folder is on {kind} on {node}: look at {look}"


class SlowFolder(Frozen):
    """A node that uses the folder slowly: the median of what it took, and of what the others' medians are."""

    node: str
    what: str
    median_s: float
    usual_s: float
    repeats: int


def slow_folders(used: Mapping[str, FolderUse]) -> Iterator[SlowFolder]:
    """The nodes that make folders or write small files far more slowly than the others: three times the median of
    the others, and in three quarters of their repeats slower than three quarters of those of the others."""
    for what, name in (("write_s", "writing a small file"), ("claim_s", "making a folder")):
        values = {node: getattr(own, what) for node, own in used.items()}
        values = {node: own for node, own in values.items() if len(own) >= _FEWEST_REPEATS}
        if len(values) < _FEWEST_NODES:
            continue
        medians = {node: median(own) for node, own in values.items()}
        found = []
        for node, own in values.items():
            usual_s = median(value for other, value in medians.items() if other != node)
            others = [value for other, each in values.items() if other != node for value in each]
            is_far = medians[node] > max(_TIMES_SLOWER * usual_s, usual_s + _LEAST_SLOWER_S)
            if is_far and quantiles(own, n=4)[0] > quantiles(others, n=4)[2]:
                found.append(SlowFolder(node, name, medians[node], usual_s, len(own)))
        if len(found) <= max(1, int(_RARE * len(values))):
            yield from found
