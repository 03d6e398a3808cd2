"""The shape of a record's line, checked before it is used: a right checksum does not make it a record of ours."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal

from seatrial.model.json_check import Check, ShapeError, check_of, check_of_keys, list_of, or_null, require_plain
from seatrial.model.json_shape import Count, Keywords, NonNegative, Text
from seatrial.model.results.sample import Stage, State

RECORD_VERSION = 1
MOST_SAMPLES = 4 << 20
"""Of one record: more than fit in the largest record of a program."""
_MOST_EQUAL = 10_000
"""Samples with the same index. More are refused: a short line must not stand for millions of samples."""


def _amounts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, NonNegative)


_NOTES = ("mpi_version", "blas_version", "blas_core", "blas_path", "blas_family", "blas_own_core", "blas_better")
"""Notes of the program that are used elsewhere than on the page; all others are only displayed."""

_SOURCE = check_of_keys({}, {"sha256": str, "kind": str})
"""The file that a repeat was imported from."""

_FAULTS = ("minor_faults", "major_faults", "voluntary", "max_resident_B")
_CALLS = ("read_calls", "write_calls", "read_B", "written_B")
_USED = check_of_keys({}, _amounts("cpu_s", "involuntary", *_FAULTS, "leader_cpu_s", "leader_delay_s", *_CALLS))
"""What a program used, including the children that it waited for; `leader_...`: its main thread alone. `..._calls`:
reads and writes of any descriptor."""

_LINK_COUNTER = check_of_keys({"port": str, "counter": str, "kind": str, "grew_by": or_null(Count)}, {"host": str})
"""A counter of a network link that grew during a repeat; `grew_by` is null if its growth is unknown, `host` is its
node if there were several."""

_FILE_SYSTEM = check_of_keys({"type": str, "mount_point": str, "options": list[str]})
"""A file system, with those of its mount options that make calls wait."""

_WAIT = check_of_keys({"in": str, "wait_s": NonNegative}, {"path": str, "file_system": or_null(_FILE_SYSTEM)})

_BOUND = check_of_keys({"cpus": str, "threads": Count, **_amounts("cpu_s", "delay_s")})
"""The threads of a program that may run on the same CPUs ("0-1,3")."""

_LOCKS = check_of_keys(
    {**dict.fromkeys(("threads", "looks", "blocked_looks"), Count), **_amounts("wait_s", "blocked_s", "turns")}
)
"""The threads that waited for a mutex in `looks`, for `wait_s` together. They were blocked for any reason in
`blocked_looks`, and for `blocked_s` as the kernel counts; they got a CPU `turns` times."""

_WAITED_FOR = check_of_keys({"name": str, "looks": Count, "wait_s": NonNegative})
"""A child that processes of a name waited for."""

_WAITED_ON = check_of_keys(
    {"in": str, "name": str, "looks": Count, "ran": Count, "wait_s": NonNegative}, {"path": str, "is_child": bool}
)
"""Another process that processes of a name waited for: `in` a "pipe" without data, a "full pipe", for a "file lock" or
a "socket". It ran in `ran` of these looks."""

_PROCESSES = check_of_keys(
    {
        "name": str,
        "processes": Count,
        **_amounts("seen_s", "cpu_s", "system_s", "minor_faults"),
        "waits_for": list_of(_WAITED_FOR),
    },
    {"waits_on": list_of(_WAITED_ON)},
)
"""The processes of a name, as they were last seen, the children that they waited for, and other processes."""

_SPOT = check_of_keys({"file": str, "offset": Count, "samples": Count, "code": str})
"""An address in user code, as its file and the offset there ("": in none), and the code around it in hexadecimal
digits, from 64 bytes before it on."""

_CODE = check_of_keys({"samples": Count, "period_s": NonNegative, "spots": list_of(_SPOT), "returns": list_of(_SPOT)})
"""Where threads executed in user code, each `period_s` of their CPU time: those seen most often, and those behind
system calls."""

_LOOKS = check_of_keys(
    {},
    {
        **dict.fromkeys(("threads", "runs", "looks", "sleep_looks"), Count),
        **dict.fromkeys(("most_threads", "most_processes", "thread_waits", "openings"), Count),
        "thread_cpu_s": list[NonNegative],
        "opened": str,
        "catches_faults": bool,
        **_amounts("cpu_s", "delay_s", "covered_s", "program_s", "program_cpu_s", "program_system_s", "sleep_s"),
        **_amounts("thread_wait_s"),
        **_amounts(*_FAULTS),
        "allowed": str,
        "bound": list_of(_BOUND),
        "locks": _LOCKS,
        "processes": list_of(_PROCESSES),
        "waits": list_of(_WAIT),
        "code": _CODE,
    },
)
"""What the threads of a program did while they were looked at (native/task_looks.hpp), or until they ended. `most_...`:
at one look. `thread_cpu_s`: of the busiest threads. `thread_waits`: of threads for others that ran. `openings`: looks
with a file that was open neither before nor after, `opened` the last such file. `catches_faults`: a process had a
handler for SIGSEGV."""

_QUOTA = check_of_keys({"cpus": NonNegative, "file": str}, _amounts("periods", "throttled_periods", "throttled_s"))
"""A CPU quota, in CPUs, and how far it was used up meanwhile."""

_IO_LIMIT = check_of_keys(
    {**dict.fromkeys(("file", "device", "direction", "unit"), str), "limit": NonNegative, "moved": or_null(NonNegative)}
)
"""A limit on I/O, and what was moved under it meanwhile (bytes or operations)."""

_AMOUNTS_OF_RANKS = ("cpu_wall_s", "cpu_s", "delay_s", "throttled_share", "throttled_s", "quota")
_MPI_RANKS = check_of_keys(
    {
        "rank": list[Count],
        "computing_s": list[NonNegative],
        **dict.fromkeys(("node", "mask"), list[Count | None]),
        **dict.fromkeys(_AMOUNTS_OF_RANKS, list[NonNegative | None]),
    }
)
"""Columns of equal length, a value for each rank (`profiler/merge/recorded.py`)."""

_MPI_NODE = check_of_keys(
    {"host": str, "online": Count, **_amounts("wall_s", "busy_s", "steal_s", "ranks_s")}, _amounts("children_s")
)
"""CPU time on one node while its ranks ran."""

_MPI = check_of_keys(
    {"ranks": Count, "tables": Count, "complete": bool, **_amounts("wall_s", "mpi_s"), "calls": list[list[Any]]},
    {"least_s": list[NonNegative], "per_rank": _MPI_RANKS, "masks": list[list[Count]], "nodes": list_of(_MPI_NODE)},
)
"""The summary of the MPI probe (`profiler/merge/recorded.py`); records of earlier versions end with `calls`."""

_IO = check_of_keys(_amounts("asked_read_B", "asked_written_B", "device_read_B", "device_written_B"))
"""The counters of the I/O probe, in bytes."""

_FOLDER = check_of_keys({}, {"type": str, "clock_s": float, **_amounts("claim_s", "write_s", "clock_error_s")})
"""What the results folder did when the repeat was claimed (`store/claim.py`): the time to make its folder and to write
a small file, and by how much the clock of the node is ahead of the one that stamped that file; `type` is that of its
file system on this node."""

_SEEN: Mapping[str, Any] = {
    **dict.fromkeys(("host", "block", "study"), str),
    **dict.fromkeys(("added_libs", "hosts"), list[str]),
    **dict.fromkeys(("load_1m", "steal_s", "steal_share", "program_s", "launch_s"), float | None),
    **_amounts("started_tasks", "budget_s", "outside_s", "cpu_window_s", "others_s", "others_share", "clock_step_s"),
    **dict.fromkeys(("busy_s", "pressure"), dict[str, NonNegative]),
    "affinity": list[list[Count]],
    "shared_cpus": list[list[str]],
    "libs": dict[str, str],
    "command": list[str] | str,
    "variables": dict[str, str | None],
    "again": str | bool,
    "scheduling": dict[str, str | int | None],
    "together": Count,
    "notes": check_of_keys({}, dict.fromkeys(_NOTES, str)),
    "source": _SOURCE,
    "used": _USED,
    "looks": _LOOKS,
    "links": list_of(_LINK_COUNTER),
    "quota": _QUOTA,
    "io_limits": list_of(_IO_LIMIT),
    "file_system": _FILE_SYSTEM,
    "folder": _FOLDER,
    "mpi": or_null(_MPI),
    "io": or_null(_IO),
}
SEEN: Mapping[str, Check] = {name: check_of(kind) for name, kind in _SEEN.items()}
"""What was observed around a repeat: the checks of its values; other keys are only displayed."""

_GROUP = check_of_keys(
    {
        "series": str,
        "point": dict[str, str | bool | float],
        "rank": int,
        "n": Count,
        **dict.fromkeys(("i", "elapsed_s"), object),
        **dict.fromkeys(("work", "extra"), dict[str, object]),
    }
)
"""Samples by column; the cells are checked by `_check_cells`."""

_NUMBER_OF_REPEAT = Annotated[int, Keywords(minimum=0, maximum=2**53)]
_RECORD: Check = check_of_keys(
    {
        "v": Literal[1],
        "experiment": Text,
        "repeat": _NUMBER_OF_REPEAT,
        "order": _NUMBER_OF_REPEAT,
        "t0": Annotated[float, Keywords(minimum=-1e12, maximum=1e12)],
        "wall_s": NonNegative,
        "outcome": State,
        "reason": str,
        "evidence": str,
        "stage": Stage | Literal[""] | None,
        "check": str,
        "seen": check_of_keys({}, SEEN),
        "samples": list_of(_GROUP),
        "checks": dict[str, float | None],
    }
)
"""One line of a record file, without its checksum."""


def check_record(document: Any) -> None:
    """Raises ValueError for the first part of a parsed line that is not as the shape declares."""
    _RECORD(document)
    require_plain(document["seen"])
    _check_profile(document["seen"].get("mpi"))
    left = MOST_SAMPLES
    for number, group in enumerate(document["samples"]):
        try:
            left -= group["n"]
            _check_group(group, left)
        except ShapeError as error:
            raise error.within(f"samples[{number}]") from None


def _check_profile(profile: Mapping[str, Any] | None) -> None:
    for row in profile["calls"] if profile is not None else ():
        if [type(cell) for cell in row] not in _CALL_ROWS or not all(cell is None or cell >= 0 for cell in row[1:]):
            raise ShapeError("has a call of MPI that is not [name, size or null, count, bytes, seconds]").within("seen")


_CALL_ROWS = [[str, size, int, int, time] for size in (int, type(None)) for time in (float, int)]


def _check_group(group: Mapping[str, Any], left: int) -> None:
    n = group["n"]
    if left < 0 or (n > _MOST_EQUAL and type(group["i"]) is dict):
        raise ShapeError(f"claims {n} samples")
    _check_cells(group["i"], n, "i", _WHOLE)
    _check_cells(group["elapsed_s"], n, "elapsed_s", _NUMBER_OR_NULL)
    for name, column in group["work"].items():
        _check_cells(column, n, name, _NUMBER_OR_NULL)
    for name, column in group["extra"].items():
        _check_cells(column, n, name, None)


_WHOLE: frozenset[type] = frozenset({int})
_NUMBER_OR_NULL: frozenset[type] = frozenset({int, float, type(None)})
_REAL = {float}


def _check_cells(column: Any, n: int, name: str, kinds: frozenset[type] | None) -> None:
    """`kinds`: the types of the cells; None: any, each as it would be in `seen`."""
    if type(column) is dict and "all" in column:
        cells = [column["all"]]
    elif type(column) is list and len(column) == n:
        cells = column
    else:
        raise ShapeError(f"has no column {name[:60]!r} of {n} cells")
    found = set(map(type, cells))
    if kinds is not None and not found <= kinds:
        raise ShapeError(f"has a cell in {name[:60]!r} that is not {'an integer' if kinds is _WHOLE else 'a number'}")
    if found == _REAL and isfinite(sum(cells)):  # the sum of finite numbers may be infinite, but not the reverse
        return
    if found:
        require_plain(cells)
