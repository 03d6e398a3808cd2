"""`seatrial.profile/1`: a profile as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.profiler.profile import CallSite, CallTotals, OverTime, PairTable, Profile, SizeTotals, Trust
from seatrial.report.documents.number_rows import number_rows
from seatrial.report.profile.io_document import io_document
from seatrial.report.profile.words import headline

_HERE = "the pairs of ranks"


def profile_document(
    profile: Profile, exit_status: int | None, more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The document; times in seconds and sizes in bytes, summed over ranks. `exit_status` is that of the command, null
    if unknown; `more` are additional keys."""
    return {
        **_document(profile, exit_status),
        **(more or {}),
        "matrix": [{"src": p.src, "dst": p.dst, "count": p.count, "bytes": p.bytes} for p in profile.matrix],
    }


def profile_json(profile: Profile, exit_status: int | None, more: Mapping[str, Any] | None = None) -> Iterator[str]:
    """The document as text, in pieces: the matrix of thousands of ranks has millions of rows."""
    text = _text({**_document(profile, exit_status), **(more or {}), "matrix": [_HERE]})
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


def _document(profile: Profile, exit_status: int | None) -> dict[str, Any]:
    trust = profile.trust
    return {
        "schema": "seatrial.profile/1",
        "program": profile.program,
        "headline": headline(profile),
        "ranks": profile.ranks,
        "wall_s": profile.wall_s,
        "elapsed_s": profile.elapsed_s,
        "mpi_s": profile.mpi_s,
        "calls": [
            {
                "call": one.call,
                "count": one.count,
                "time_s": one.time_s,
                "bytes": one.bytes,
                "waiting_s": one.waiting_s,
                "bound": one.bound.value,
                "least_rank_s": one.least_rank_s,
                "most_rank_s": one.most_rank_s,
                "waiting": _measured(one),
            }
            for one in profile.calls
        ],
        "sizes": [
            {
                "call": one.call,
                "size_bin": one.size_B,
                "largest": one.largest_B,
                "count": one.count,
                "bytes": one.bytes,
                "time_s": one.time_s,
                "best_s": one.best_s,
                "waiting_s": one.waiting_s,
                "bound": one.bound.value,
                "waiting": _measured(one),
            }
            for one in profile.sizes
        ],
        "per_rank": _per_rank(profile),
        "callsites": [_site(site) for site in profile.callsites],
        "over_time": None if profile.over_time is None else _over_time(profile.over_time),
        "io": None if profile.io is None else io_document(profile.io),
        "overhead_s": profile.overhead_s,
        "overflow": trust.overflow,
        "complete": trust.is_complete,
        "trust": _trust(trust),
        "other_programs": profile.others,
        "exit_status": exit_status,
    }


def _per_rank(profile: Profile) -> list[dict[str, Any]]:
    return [
        {
            "rank": one.rank,
            "host": one.host,
            "wall_s": one.wall_s,
            "mpi_s": one.mpi_s,
            "calls": one.calls,
            "sent_bytes": one.sent_B,
            "recv_bytes": one.received_B,
            "collective_bytes": one.collective_B,
            "threads": one.threads,
            "state": one.state.value,
        }
        for one in profile.per_rank
    ]


def _measured(one: CallTotals | SizeTotals) -> dict[str, Any] | None:
    known = one.measured
    if known is None:
        return None
    return {
        "sampled": known.calls,
        "of": one.count,
        "waited_s": known.waited_s,
        "transferred_s": known.transferred_s,
        "share": known.share,
    }


def _site(site: CallSite) -> dict[str, Any]:
    first = site.frames[0] if site.frames else None
    return {
        "call": site.call,
        "count": site.count,
        "time_s": site.time_s,
        "bytes": site.bytes,
        "ranks": site.ranks,
        "module": site.module or None,
        "offset": site.offset if site.module else None,
        "function": first.function if first else None,
        "file": first.file or None if first else None,
        "line": first.line or None if first else None,
        "inlined_in": [frame.function for frame in site.frames[1:]],
    }


def _over_time(time: OverTime) -> dict[str, Any]:
    def listed(values: Sequence[float | None]) -> list[float | None]:
        return list(values)

    return {
        "width_s": time.width_s,
        "mpi_s": listed(time.mpi_s),
        "wall_s": listed(time.wall_s),
        "least_share": listed(time.least),
        "most_share": listed(time.most),
    }


def _trust(trust: Trust) -> dict[str, Any]:
    return {
        "missing_ranks": list(trust.missing),
        "unfinished_ranks": list(trust.unfinished),
        "calls_without_site": trust.without_site,
        "lost_calls": trust.lost_calls,
        "untold_receives": trust.unknown_length,
        "unmatched_bytes": trust.unmatched_B,
        "families": list(trust.families),
        "libraries": list(trust.libraries),
        "has_sizes": trust.has_sizes,
        "damaged_tables": trust.damaged,
    }
