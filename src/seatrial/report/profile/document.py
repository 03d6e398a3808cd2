"""`seatrial.profile/1`: a profile as one JSON object.

The matrix may have millions of rows of integers, which are formatted by arithmetic on whole columns, not row by row.
Numbers are right-aligned in fields of equal width: JSON ignores blanks between tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from seatrial.model.json_object import filled
from seatrial.model.json_shape import FLAT, GIVEN, Count, From, Json, Keywords, NonNegative, Text, shape, view
from seatrial.profiler.cause import Caller, CallSite, Diagnosis, Frame
from seatrial.profiler.profile import CallTotals, PairTable, Profile, SizeTotals
from seatrial.profiler.profile_io import NodeIo, ProfileIo, RankIo
from seatrial.profiler.regions import Operation, ParallelPlace
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.trace_export import TraceExport
from seatrial.report.profile.words import headline

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ROWS_AT_ONCE = 1 << 16


def number_rows(columns: Mapping[str, npt.NDArray[np.uint64]]) -> Iterator[str]:
    """The objects of an array, `{"name": 1, ...}, {...}`, without its brackets, in pieces. Names need no escapes."""
    length = len(next(iter(columns.values())))
    for begin in range(0, length, _ROWS_AT_ONCE):
        piece = {name: column[begin : begin + _ROWS_AT_ONCE] for name, column in columns.items()}
        yield (",\n" if begin else "") + _piece(piece)


def _piece(columns: Mapping[str, npt.NDArray[np.uint64]]) -> str:
    import numpy as np

    rows = len(next(iter(columns.values())))
    parts = []
    for place, (name, column) in enumerate(columns.items()):
        parts.append(_constant(f'{"," if place else "{"}"{name}":', rows))
        parts.append(_digits(column))
    parts.append(_constant("},\n", rows))
    return np.concatenate(parts, axis=1).tobytes()[:-2].decode("ascii")


def _constant(text: str, rows: int) -> npt.NDArray[np.uint8]:
    import numpy as np

    return np.broadcast_to(np.frombuffer(text.encode("ascii"), np.uint8), (rows, len(text)))


def _digits(column: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Shape (rows, digits of the largest number): each number in ASCII, padded with blanks on the left."""
    import numpy as np

    largest = int(column.max())
    left: npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
    left = column.astype(np.uint32) if largest < 1 << 32 else column
    width = len(str(largest))
    characters = np.empty((len(column), width), np.uint8)
    for place in range(width - 1, -1, -1):
        rest = left // 10
        digit = (left - rest * 10).astype(np.uint8) + 48
        characters[:, place] = digit if place == width - 1 else np.where(left > 0, digit, 32)
        left = rest
    return characters


_Series = list[NonNegative]


@shape(RankIo)
class RankIoJson(TypedDict):
    """From MPI_Init to MPI_Finalize; bytes and calls asked for, and what block devices moved; null: not known."""

    rank: Count
    host: str
    read_bytes: Annotated[Count | None, From("totals.read_B")]
    written_bytes: Annotated[Count | None, From("totals.written_B")]
    read_calls: Annotated[Count | None, From("totals.read_calls")]
    write_calls: Annotated[Count | None, From("totals.write_calls")]
    device_read_bytes: Annotated[Count | None, From("totals.device_read_B")]
    device_written_bytes: Annotated[Count | None, From("totals.device_written_B")]
    cancelled_bytes: Annotated[Count | None, From("totals.cancelled_B"), "were to be written and never were"]
    start_read_bytes: Annotated[
        Count | None, From("totals.start_read_B"), "before MPI_Init returned, in no other field"
    ]
    start_written_bytes: Annotated[
        Count | None, From("totals.start_written_B"), "before MPI_Init returned, in no other field"
    ]
    to_end: Annotated[bool | None, From("totals.is_to_end"), "false: to the last sample, MPI_Finalize was not reached"]
    error: Annotated[str | None, From(lambda one: one.error or None)]


@shape(ProfileIo)
class IoOverTimeJson(TypedDict):
    """Bytes in bins of equal width, sums over ranks."""

    width_s: NonNegative
    read_bytes: Annotated[_Series, From(lambda io: io.over_time("read_B"))]
    written_bytes: Annotated[_Series, From(lambda io: io.over_time("written_B"))]
    device_read_bytes: Annotated[_Series, From(lambda io: io.over_time("device_read_B"))]
    device_written_bytes: Annotated[_Series, From(lambda io: io.over_time("device_written_B"))]


@shape(NodeIo)
class NodeIoJson(TypedDict):
    """Whole nodes, whoever used them, in the bins of over_time; null: there is no such thing."""

    host: str
    disk_read_bytes: Annotated[_Series | None, From("disk_read_B")]
    disk_written_bytes: Annotated[_Series | None, From("disk_written_B")]
    nfs_read_bytes: Annotated[_Series | None, From("nfs_read_B")]
    nfs_written_bytes: Annotated[_Series | None, From("nfs_written_B")]


@shape(ProfileIo)
class IoJson(TypedDict):
    """What the ranks and nodes read and wrote; sizes are bytes, times seconds."""

    per_rank: Annotated[list[RankIoJson], From("ranks")]
    over_time: Annotated[IoOverTimeJson | None, From(lambda io: io if io.bins else None)]
    nodes: list[NodeIoJson]


_HERE = "the pairs of ranks"


@shape(CallTotals)
class WaitingJson(TypedDict):
    """Calls that had a barrier of the profiler before them, over all ranks."""

    sampled: Annotated[Count, From("measured.calls")]
    of: Annotated[Count, From("count"), "all calls of this kind"]
    waited_s: Annotated[NonNegative, From("measured.waited_s"), "of the sampled ones, until all ranks had come"]
    transferred_s: Annotated[NonNegative, From("measured.transferred_s"), "of the sampled ones, what they took then"]
    share: Annotated[float, Keywords(minimum=0, maximum=1), From("measured.share")]


Waiting = Annotated[WaitingJson | None, From(lambda one: None if one.measured is None else one)]


@view(CallTotals)
class CallJson(TypedDict):
    """One MPI function over all ranks."""

    waiting: NotRequired[Waiting]


@view(SizeTotals)
class SizeJson(TypedDict):
    """The calls of one function whose size falls into one bin."""

    waiting: NotRequired[Waiting]


def _innermost(site: CallSite | Caller) -> Frame:
    return site.frames[0] if site.frames else Frame("")


class _PlaceJson(TypedDict):
    module: Annotated[str | None, From(lambda one: one.module or None)]
    offset: Annotated[
        int | None, From(lambda one: one.offset if one.module else None), "of the return address in the file"
    ]
    function: Annotated[str | None, From(lambda one: one.frames[0].function if one.frames else None)]
    file: Annotated[str | None, From(lambda one: _innermost(one).file or None)]
    line: Annotated[int | None, From(lambda one: _innermost(one).line or None)]


@shape(Caller)
class CallerJson(_PlaceJson):
    """One call on the way to a call of MPI; a line of Python has no module."""

    inlined_in: Annotated[list[str], From(lambda one: [frame.function for frame in one.frames[1:]])]


@view(CallSite, without=("frames",))
class CallSiteJson(CallerJson):
    """One call site of one MPI function; of a diagnosis also one that begins a parallel region of OpenMP."""

    path: NotRequired[Annotated[list[CallerJson], "the calls that led here, innermost first; empty if not recorded"]]


@view(Diagnosis)
class DiagnosisJson(TypedDict):
    """A cause of lost time and its evidence."""

    site: Annotated[CallSiteJson | None, "with most of the time: of these calls, or where ranks wait"]
    late_at: NotRequired[Annotated[CallSiteJson | None, "the calls that are late, or that the late rank is in"]]
    then: NotRequired[Annotated[CallSiteJson | None, "where others wait as a consequence, for `then_rank`"]]
    said: Annotated[Text, From(sentence)]
    remedy: Annotated[Text, From(remedy)]


@view(ParallelPlace, without=("site",))
class ParallelJson(TypedDict):
    """The parallel regions that begin at one call site, over all ranks."""

    site: Annotated[_PlaceJson, FLAT]


@view(Operation, without=("site",))
class OperationJson(TypedDict):
    """Reduction operations with one function of the program, over all ranks; of several if all of it is null."""

    site: Annotated[_PlaceJson, FLAT]


@shape()
class OutcomeJson(TypedDict):
    """What the command came to."""

    state: Literal["ok", "unsupported", "failed"]
    reason: str


@shape(TraceExport)
class TraceJson(TypedDict):
    """What was traced: what it holds, its files, what replays it."""

    summary: list[str]
    files: Annotated[list[str], From(lambda exported: [str(path) for path in exported.files])]
    command: list[str] | None
    cpu_share: NotRequired[
        Annotated[
            float | None, Keywords(minimum=0), From("load.cpu_share"), "CPUs that a rank had on average; null: unknown"
        ]
    ]
    delay_share: NotRequired[
        Annotated[
            float | None,
            Keywords(minimum=0, maximum=1),
            From("load.delay_share"),
            "largest share of a rank's time in which it was ready to run without a CPU; null: unknown",
        ]
    ]
    disturbed: NotRequired[
        Annotated[bool, From("load.is_disturbed"), "more than a tenth: what ranks waited for a CPU was estimated"]
    ]


@view(Profile)
class ProfileJson(TypedDict):
    """What the ranks of an MPI program spent their time on; sums go over ranks."""

    schema: Literal["seatrial.profile/1"]
    headline: NotRequired[Annotated[Text, From(headline)]]
    diagnoses: NotRequired[Annotated[list[DiagnosisJson], "missing CPUs first, then the largest share first"]]
    calls: list[CallJson]
    sizes: list[SizeJson]
    callsites: list[CallSiteJson]
    parallel: NotRequired[Annotated[list[ParallelJson], "OpenMP; the call site with most lost time first"]]
    operations: NotRequired[Annotated[list[OperationJson], "of the program (MPI_Op_create); longest first"]]
    io: NotRequired[IoJson | None]
    overflow: Annotated[
        Count, From("trust.overflow"), "calls of which not everything is known, because the table was full"
    ]
    complete: Annotated[bool, From("trust.is_complete")]
    other_programs: NotRequired[Annotated[Count, From("others")]]
    exit_status: Annotated[int | None, GIVEN]
    folder: NotRequired[Annotated[str | None, GIVEN, "where the profile and its tables lie"]]
    command: NotRequired[Annotated[list[str], GIVEN]]
    started_s: NotRequired[Annotated[float, GIVEN, "since the epoch"]]
    command_wall_s: NotRequired[Annotated[NonNegative, GIVEN, "of the whole command, its launcher included"]]
    outcome: NotRequired[Annotated[OutcomeJson, GIVEN]]
    trace: NotRequired[Annotated[TraceJson | None, GIVEN, "where --trace asked for one; null where there is none"]]
    others: NotRequired[Annotated[list[ProfileJson], GIVEN, "the further MPI programs of the command"]]


def profile_document(profile: Profile, exit_status: int | None, more: Mapping[str, Any] | None = None) -> Json:
    """The document; times in seconds and sizes in bytes, summed over ranks. `exit_status` is that of the command, null
    if unknown; `more` are the keys that the profile does not contain."""
    return filled(ProfileJson, profile, exit_status=exit_status, **(more or {}))


def profile_json(profile: Profile, exit_status: int | None, more: Mapping[str, Any] | None = None) -> Iterator[str]:
    """The document as text, in pieces: the matrix of thousands of ranks has millions of rows."""
    text = _text(profile_document(profile, exit_status, {**(more or {}), "matrix": [_HERE]}))
    before, after = text.rsplit(f'"{_HERE}"', 1)
    yield before
    if len(profile.matrix):
        yield from number_rows(_columns(profile.matrix))
    yield after


def _text(document: Mapping[str, Any]) -> str:
    """One line for each value and for each row of a table; the encoder's `indent` is many times slower."""
    encode = json.JSONEncoder(allow_nan=False).encode

    def value(of: Any) -> str:
        if not isinstance(of, list) or not of or not isinstance(of[0], dict):
            return encode(of)
        rows = ",\n  ".join(map(encode, of))
        return f"[\n  {rows}\n ]"

    lines = ",\n ".join(f"{encode(name)}: {value(of)}" for name, of in document.items())
    return f"{{\n {lines}\n}}"


def _columns(pairs: PairTable) -> dict[str, Any]:
    import numpy as np

    narrow = {name: np.frombuffer(getattr(pairs, name), np.uintc).astype(np.uint64) for name in ("src", "dst")}
    return {**narrow, **{name: np.frombuffer(getattr(pairs, name), np.uint64) for name in ("count", "bytes")}}
