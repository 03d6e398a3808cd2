"""`seatrial.profile/1`: a profile as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from seatrial.model.json_shape import (
    GIVEN,
    Count,
    Finite,
    From,
    Keywords,
    NonNegative,
    Probability,
    Text,
    filled,
    shape,
)
from seatrial.profiler.call_site import Caller, CallSite, Frame
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.profile import (
    Bound,
    CallTotals,
    CpuSpread,
    OverTime,
    Pair,
    PairTable,
    Profile,
    RankCpu,
    RankState,
    RankTotals,
    SizeTotals,
    Trust,
)
from seatrial.profiler.profile_io import SystemCall, SystemUse
from seatrial.report.documents.number_rows import number_rows
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.io_document import IoJson
from seatrial.report.profile.node_document import (
    CountersJson,
    NodeLimitsJson,
    ParallelJson,
    RankOpenMpJson,
    RegionFaultsJson,
    RegionJson,
)
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.trace_export import TraceExport
from seatrial.report.profile.words import headline

_HERE = "the pairs of ranks"

Function = Annotated[str, Keywords(pattern="^MPIX?_")]


@shape(CallTotals)
class WaitingJson(TypedDict):
    """Calls that had a barrier of the profiler before them, over all ranks."""

    sampled: Annotated[Count, From("measured.calls")]
    of: Annotated[Count, From("count"), "all calls of this kind"]
    waited_s: Annotated[NonNegative, From("measured.waited_s"), "of the sampled ones, until all ranks had come"]
    transferred_s: Annotated[NonNegative, From("measured.transferred_s"), "of the sampled ones, what they took then"]
    share: Annotated[float, Keywords(minimum=0, maximum=1), From("measured.share")]


Waiting = Annotated[WaitingJson | None, From(lambda one: None if one.measured is None else one)]


@shape(CallTotals)
class CallJson(TypedDict):
    """One MPI function over all ranks."""

    call: Function
    count: Count
    time_s: NonNegative
    bytes: Count
    waiting_s: Annotated[
        NonNegative,
        "the share of `waiting` in all of the time; where that is null an estimate: beyond the same calls at their "
        "best",
    ]
    bound: Bound
    least_rank_s: NonNegative
    most_rank_s: NonNegative
    waiting: NotRequired[Waiting]


@shape(SizeTotals)
class SizeJson(TypedDict):
    """The calls of one function whose size falls into one bin."""

    call: Function
    size_bin: Annotated[Count, From("size_B"), "the least number of bytes in this bin"]
    largest: Annotated[Count, From("largest_B"), "the largest number of bytes in this bin"]
    count: Count
    bytes: Count
    time_s: NonNegative
    best_s: Annotated[NonNegative, "of one call: the median over ranks of the shortest"]
    waiting_s: NonNegative
    bound: Bound
    waiting: NotRequired[Waiting]


@shape(Pair)
class PairJson(TypedDict):
    """Point-to-point messages from rank `src` to rank `dst` of MPI_COMM_WORLD."""

    src: Count
    dst: Count
    count: Count
    bytes: Count


@shape(RankCpu)
class RankCpuJson(TypedDict):
    """CPU time of a rank, from the end of MPI_Init to the end of MPI; null: not reported by the kernel."""

    wall_s: NonNegative
    cpu_s: NonNegative | None
    system_s: NotRequired[Annotated[NonNegative | None, "the part of `cpu_s` in the kernel"]]
    run_delay_s: Annotated[NonNegative | None, From("delay_s"), "its threads were ready to run, but did not"]
    voluntary_switches: Annotated[Count | None, From("voluntary")]
    involuntary_switches: Annotated[Count | None, From("involuntary")]
    minor_faults: Count | None
    major_faults: Count | None
    most_resident_bytes: Annotated[Count | None, From("most_resident_B")]
    throttled_s: Annotated[NonNegative | None, "of the control group with the smallest CPU quota"]
    throttled_share: Annotated[float | None, Keywords(minimum=0, maximum=1), "of the quota's periods"]
    cpus: Annotated[list[Count], From("mask"), "affinity"]
    quota: Annotated[NonNegative | None, "CPUs that the control groups allow"]


@shape(SystemUse)
class SystemUseJson(TypedDict):
    """Calls of one kind that enter the kernel, outside MPI, by threads that call MPI."""

    kind: SystemCall
    calls: Count
    time_s: NonNegative
    bytes: Count


@shape(CpuSpread)
class CpuSpreadJson(TypedDict):
    """How much of a CPU the ranks had, from the end of MPI_Init on."""

    ranks: Annotated[Count, "that it is known of"]
    least_cpus: Annotated[NonNegative, "CPUs that a rank used"]
    most_cpus: NonNegative
    most_delay: Annotated[Probability, "largest share of its time that a rank waited for a CPU"]


@shape(RankTotals)
class RankJson(TypedDict):
    """One rank."""

    rank: Count
    host: str
    wall_s: NonNegative
    mpi_s: Annotated[NonNegative, "all its threads together"]
    calls: Count
    sent_bytes: Annotated[Count, From("sent_B"), "point to point"]
    recv_bytes: Annotated[Count, From("received_B"), "point to point"]
    collective_bytes: Annotated[Count, From("collective_B"), "given to collectives"]
    threads: Count
    state: RankState
    cpu: NotRequired[RankCpuJson | None]
    system: NotRequired[Annotated[list[SystemUseJson] | None, "since MPI_Init; null: not timed"]]
    counters: NotRequired[Annotated[CountersJson | None, "null: not requested"]]
    openmp: NotRequired[Annotated[RankOpenMpJson | None, "null: not requested"]]


def _innermost(site: CallSite | Caller) -> Frame:
    return site.frames[0] if site.frames else Frame("")


@shape(Caller)
class CallerJson(TypedDict):
    """One call on the way to a call of MPI; a line of Python has no module."""

    module: Annotated[str | None, From(lambda one: one.module or None)]
    offset: Annotated[
        int | None, From(lambda one: one.offset if one.module else None), "of the return address in the file"
    ]
    function: Annotated[str | None, From(lambda one: one.frames[0].function if one.frames else None)]
    file: Annotated[str | None, From(lambda one: _innermost(one).file or None)]
    line: Annotated[int | None, From(lambda one: _innermost(one).line or None)]
    inlined_in: Annotated[list[str], From(lambda one: [frame.function for frame in one.frames[1:]])]


@shape(CallSite)
class CallSiteJson(TypedDict):
    """One place that calls one MPI function; of a diagnosis also one that begins a parallel region of OpenMP."""

    call: Annotated[str, Keywords(pattern="^(MPIX?_.*)?$"), '"" for a parallel region']
    count: Count
    time_s: NonNegative
    bytes: Count
    ranks: Annotated[Count, "how many of them called here"]
    module: Annotated[str | None, From(lambda site: site.module or None)]
    offset: Annotated[
        int | None, From(lambda site: site.offset if site.module else None), "of the return address in the file"
    ]
    function: Annotated[str | None, From(lambda site: site.frames[0].function if site.frames else None)]
    file: Annotated[str | None, From(lambda site: _innermost(site).file or None)]
    line: Annotated[int | None, From(lambda site: _innermost(site).line or None)]
    inlined_in: Annotated[list[str], From(lambda site: [frame.function for frame in site.frames[1:]])]
    path: NotRequired[Annotated[list[CallerJson], "the calls that led here, innermost first; empty if not recorded"]]


@shape(OverTime)
class OverTimeJson(TypedDict):
    """MPI time in bins of equal width since the first rank was started."""

    width_s: NonNegative
    mpi_s: list[NonNegative]
    wall_s: list[NonNegative]
    least_share: Annotated[list[NonNegative | None], From("least")]
    most_share: Annotated[list[NonNegative | None], From("most")]


@shape(Trust)
class TrustJson(TypedDict):
    """What the numbers can be relied on for."""

    missing_ranks: Annotated[list[Count], From("missing")]
    unfinished_ranks: Annotated[list[Count], From("unfinished")]
    calls_without_site: Annotated[Count, From("without_site")]
    calls_without_path: NotRequired[Annotated[Count, From("without_path"), "or without their line of Python"]]
    lost_calls: Count
    untold_receives: Annotated[Count, From("unknown_length")]
    unmatched_bytes: Annotated[Count, From("unmatched_B")]
    families: list[str]
    libraries: list[str]
    has_sizes: bool
    damaged_tables: NotRequired[Annotated[Count, From("damaged")]]


@shape(Evidence)
class EvidenceJson(TypedDict):
    """The value of one signal that a diagnosis was made from."""

    signal: Signal
    value: Finite
    is_against: Annotated[bool, "speaks against the cause"]


@shape(Diagnosis)
class DiagnosisJson(TypedDict):
    """A cause of lost time and its evidence."""

    cause: Cause
    share: Annotated[Probability, "of the time of the program that the cause explains"]
    sureness: Sureness
    evidence: list[EvidenceJson]
    rank: int | None
    host: str
    call: str
    size: Annotated[Count | None, From("size_B"), "bytes"]
    site: Annotated[CallSiteJson | None, "with most of the time: of these calls, or where ranks wait"]
    late_at: NotRequired[Annotated[CallSiteJson | None, "the calls that are late, or that the late rank is in"]]
    then: NotRequired[Annotated[CallSiteJson | None, "where others wait as a consequence, for `then_rank`"]]
    then_rank: NotRequired[int | None]
    source: NotRequired[Annotated[str, "the measurement or the constants that it was judged against"]]
    said: Annotated[Text, From(sentence)]
    remedy: Annotated[Text, From(remedy)]


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


@shape(Profile)
class ProfileJson(TypedDict):
    """What the ranks of an MPI program spent their time on; sums go over ranks."""

    schema: Literal["seatrial.profile/1"]
    program: NotRequired[str]
    headline: NotRequired[Annotated[Text, From(headline)]]
    ranks: Annotated[Count, "0: no process began MPI"]
    wall_s: Annotated[NonNegative, "sum over ranks"]
    elapsed_s: NotRequired[Annotated[NonNegative, "of the rank that ran longest"]]
    mpi_s: Annotated[NonNegative, "sum over ranks"]
    cpu_spread: NotRequired[Annotated[CpuSpreadJson | None, "null: not reported by the kernel"]]
    diagnoses: NotRequired[Annotated[list[DiagnosisJson], "missing CPUs first, then the largest share first"]]
    calls: list[CallJson]
    sizes: list[SizeJson]
    per_rank: list[RankJson]
    callsites: list[CallSiteJson]
    over_time: NotRequired[OverTimeJson | None]
    regions: NotRequired[Annotated[list[RegionJson], "that the program names; longest first"]]
    region_faults: NotRequired[Annotated[RegionFaultsJson, From("faults")]]
    parallel: NotRequired[Annotated[list[ParallelJson], "OpenMP; the place with most lost time first"]]
    limits: NotRequired[NodeLimitsJson | None]
    io: NotRequired[IoJson | None]
    overhead_s: Annotated[NonNegative, "what the profiler itself took, over all ranks"]
    overflow: Annotated[Count, From("trust.overflow"), "calls of which not everything is known, for want of room"]
    complete: Annotated[bool, From("trust.is_complete")]
    trust: NotRequired[TrustJson]
    other_programs: NotRequired[Annotated[Count, From("others")]]
    exit_status: Annotated[int | None, GIVEN]
    folder: NotRequired[Annotated[str | None, GIVEN, "where the profile and its tables lie"]]
    command: NotRequired[Annotated[list[str], GIVEN]]
    started_s: NotRequired[Annotated[float, GIVEN, "since the epoch"]]
    command_wall_s: NotRequired[Annotated[NonNegative, GIVEN, "of the whole command, its launcher included"]]
    outcome: NotRequired[Annotated[OutcomeJson, GIVEN]]
    trace: NotRequired[Annotated[TraceJson | None, GIVEN, "where --trace asked for one; null where there is none"]]
    others: NotRequired[Annotated[list[ProfileJson], GIVEN, "the further MPI programs of the command"]]
    matrix: list[PairJson]


def profile_document(profile: Profile, exit_status: int | None, more: Mapping[str, Any] | None = None) -> ProfileJson:
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
