"""The shape of a record's line, checked before it is used: a right checksum does not make it a record of ours."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from seatrial.model.json_check import ShapeError, check_shape
from seatrial.model.json_shape import Count, Keywords, NonNegative, Text
from seatrial.model.results.outcome import Stage, State
from seatrial.model.strict_json import require_plain

RECORD_VERSION = 1
MOST_SAMPLES = 4 << 20
"""Of one record: more than fit in the largest record of a program."""
_MOST_EQUAL = 10_000
"""Samples with the same index. More are refused: a short line must not stand for millions of samples."""


class NotesJson(TypedDict):
    """Notes of the program that are used elsewhere than on the page; all others are only displayed."""

    mpi_version: NotRequired[str]
    blas_version: NotRequired[str]
    blas_core: NotRequired[str]
    blas_path: NotRequired[str]
    blas_family: NotRequired[str]
    blas_own_core: NotRequired[str]
    blas_better: NotRequired[str]


class SourceJson(TypedDict):
    """The file that a repeat was imported from."""

    sha256: NotRequired[str]
    kind: NotRequired[str]


class UsedJson(TypedDict):
    """What a program used, including the children that it waited for; `leader_...`: its main thread alone."""

    cpu_s: NotRequired[NonNegative]
    minor_faults: NotRequired[NonNegative]
    major_faults: NotRequired[NonNegative]
    voluntary: NotRequired[NonNegative]
    involuntary: NotRequired[NonNegative]
    max_resident_B: NotRequired[NonNegative]
    leader_cpu_s: NotRequired[NonNegative]
    leader_delay_s: NotRequired[NonNegative]


class LinkCounterJson(TypedDict):
    """A counter of a network link that grew during a repeat; `grew_by` is null if its growth is unknown, `host` is its
    node if there were several."""

    host: NotRequired[str]
    port: str
    counter: str
    kind: str
    grew_by: Count | None


class FileSystemJson(TypedDict):
    """A file system, with those of its mount options that make calls wait."""

    type: str
    mount_point: str
    options: list[str]


# `in` is a keyword of Python.
WaitJson = TypedDict(
    "WaitJson",
    {
        "in": str,
        "path": NotRequired[str],
        "wait_s": NonNegative,
        "file_system": NotRequired[FileSystemJson | None],
    },
)


class BoundJson(TypedDict):
    """The threads of a program that may run on the same CPUs ("0-1,3")."""

    cpus: str
    threads: Count
    cpu_s: NonNegative
    delay_s: NonNegative


class LocksJson(TypedDict):
    """The threads that waited for a mutex in `looks`, for `wait_s` together. They were blocked for any reason in
    `blocked_looks`, and for `blocked_s` as the kernel counts; they got a CPU `turns` times."""

    threads: Count
    looks: Count
    wait_s: NonNegative
    blocked_looks: Count
    blocked_s: NonNegative
    turns: NonNegative


class WaitedForJson(TypedDict):
    """A child that processes of a name waited for."""

    name: str
    looks: Count
    wait_s: NonNegative


class ProcessesJson(TypedDict):
    """The processes of a name, as they were last seen, and the children that they waited for."""

    name: str
    processes: Count
    seen_s: NonNegative
    cpu_s: NonNegative
    system_s: NonNegative
    minor_faults: NonNegative
    waits_for: list[WaitedForJson]


class LooksJson(TypedDict):
    """What the threads of a program did while they were looked at (native/task_looks.hpp), or until they ended."""

    threads: NotRequired[Count]
    cpu_s: NotRequired[NonNegative]
    delay_s: NotRequired[NonNegative]
    covered_s: NotRequired[NonNegative]
    program_s: NotRequired[NonNegative]
    program_cpu_s: NotRequired[NonNegative]
    program_system_s: NotRequired[NonNegative]
    runs: NotRequired[Count]
    major_faults: NotRequired[NonNegative]
    minor_faults: NotRequired[NonNegative]
    voluntary: NotRequired[NonNegative]
    max_resident_B: NotRequired[NonNegative]
    looks: NotRequired[Count]
    allowed: NotRequired[str]
    bound: NotRequired[list[BoundJson]]
    sleep_s: NotRequired[NonNegative]
    sleep_looks: NotRequired[Count]
    locks: NotRequired[LocksJson]
    processes: NotRequired[list[ProcessesJson]]
    waits: NotRequired[list[WaitJson]]


class QuotaJson(TypedDict):
    """A CPU quota, in CPUs, and how far it was used up meanwhile."""

    cpus: NonNegative
    file: str
    periods: NotRequired[NonNegative]
    throttled_periods: NotRequired[NonNegative]
    throttled_s: NotRequired[NonNegative]


class IoLimitJson(TypedDict):
    """A limit on I/O, and what was moved under it meanwhile (bytes or operations)."""

    file: str
    device: str
    direction: str
    unit: str
    limit: NonNegative
    moved: NonNegative | None


class MpiRanksJson(TypedDict):
    """Columns of equal length, a value for each rank (`profiler/merge/recorded.py`)."""

    rank: list[Count]
    node: list[Count | None]
    computing_s: list[NonNegative]
    cpu_wall_s: list[NonNegative | None]
    cpu_s: list[NonNegative | None]
    delay_s: list[NonNegative | None]
    throttled_share: list[NonNegative | None]
    throttled_s: list[NonNegative | None]
    quota: list[NonNegative | None]
    mask: list[Count | None]


class MpiNodeJson(TypedDict):
    """CPU time on one node while its ranks ran."""

    host: str
    online: Count
    wall_s: NonNegative
    busy_s: NonNegative
    steal_s: NonNegative
    ranks_s: NonNegative


class MpiJson(TypedDict):
    """The summary of the MPI probe (`profiler/merge/recorded.py`); records of earlier versions end with `calls`."""

    ranks: Count
    tables: Count
    complete: bool
    wall_s: NonNegative
    mpi_s: NonNegative
    calls: list[list[Any]]
    least_s: NotRequired[list[NonNegative]]
    per_rank: NotRequired[MpiRanksJson]
    masks: NotRequired[list[list[Count]]]
    nodes: NotRequired[list[MpiNodeJson]]


class IoJson(TypedDict):
    """The counters of the I/O probe, in bytes."""

    asked_read_B: NonNegative
    asked_written_B: NonNegative
    device_read_B: NonNegative
    device_written_B: NonNegative


class SeenJson(TypedDict):
    """What was observed around a repeat; other keys are only displayed."""

    affinity: NotRequired[list[list[Count]]]
    libs: NotRequired[dict[str, str]]
    added_libs: NotRequired[list[str]]
    hosts: NotRequired[list[str]]
    host: NotRequired[str]
    command: NotRequired[list[str] | str]
    variables: NotRequired[dict[str, str | None]]
    notes: NotRequired[NotesJson]
    source: NotRequired[SourceJson]
    block: NotRequired[str]
    study: NotRequired[str]
    again: NotRequired[str | bool]
    together: NotRequired[Count]
    budget_s: NotRequired[NonNegative]
    outside_s: NotRequired[NonNegative]
    load_1m: NotRequired[float | None]
    steal_s: NotRequired[float | None]
    steal_share: NotRequired[float | None]
    cpu_window_s: NotRequired[NonNegative]
    others_s: NotRequired[NonNegative]
    others_share: NotRequired[NonNegative]
    program_s: NotRequired[float | None]
    launch_s: NotRequired[float | None]
    clock_step_s: NotRequired[NonNegative]
    used: NotRequired[UsedJson]
    looks: NotRequired[LooksJson]
    busy_s: NotRequired[dict[str, NonNegative]]
    pressure: NotRequired[dict[str, NonNegative]]
    links: NotRequired[list[LinkCounterJson]]
    quota: NotRequired[QuotaJson]
    io_limits: NotRequired[list[IoLimitJson]]
    file_system: NotRequired[FileSystemJson]
    mpi: NotRequired[MpiJson | None]
    io: NotRequired[IoJson | None]


Point = dict[str, str | bool | float]


class GroupJson(TypedDict):
    """Samples by column; the cells are checked by `check_cells`."""

    series: str
    point: Point
    rank: int
    n: Count
    i: object
    elapsed_s: object
    work: dict[str, object]
    extra: dict[str, object]


class RecordJson(TypedDict):
    """One line of a record file, without its checksum."""

    v: Literal[1]
    experiment: Text
    repeat: Annotated[int, Keywords(minimum=0, maximum=2**53)]
    order: Annotated[int, Keywords(minimum=0, maximum=2**53)]
    t0: Annotated[float, Keywords(minimum=-1e12, maximum=1e12)]
    wall_s: NonNegative
    outcome: State
    reason: str
    evidence: str
    stage: Stage | Literal[""] | None
    check: str
    seen: SeenJson
    samples: list[GroupJson]
    checks: dict[str, float | None]


def check_record(document: Any) -> None:
    """Raises ValueError for the first part of a parsed line that is not as the shape declares."""
    check_shape(RecordJson, document)
    require_plain(document["seen"])
    _check_profile(document["seen"].get("mpi"))
    left = MOST_SAMPLES
    for number, group in enumerate(document["samples"]):
        try:
            left -= group["n"]
            _check_group(group, left)
        except ShapeError as error:
            raise error.within(f"samples[{number}]") from None


def _check_profile(profile: MpiJson | None) -> None:
    for row in profile["calls"] if profile is not None else ():
        if [type(cell) for cell in row] not in _CALL_ROWS or not all(cell is None or cell >= 0 for cell in row[1:]):
            raise ShapeError("has a call of MPI that is not [name, size or null, count, bytes, seconds]").within("seen")


_CALL_ROWS = [[str, size, int, int, time] for size in (int, type(None)) for time in (float, int)]


def _check_group(group: GroupJson, left: int) -> None:
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
