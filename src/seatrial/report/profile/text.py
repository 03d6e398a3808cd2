"""A profile as text for a terminal: headline and reliability, then calls, sizes, call sites and ranks by time."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.diagnosis.diagnose import is_note
from seatrial.model.spelling import count, show, show_percent
from seatrial.profiler.profile import Profile
from seatrial.report.profile import place_words, words
from seatrial.report.profile.io_words import io_lines
from seatrial.report.profile.node_words import counter_lines, memory_lines, openmp_lines, places_table, regions_table
from seatrial.report.text.terminal import PLAIN, Style, clean, joined, rows_of

_CALLS = {
    "Calls": "count",
    "Range over ranks": "per rank",
    "Waiting, measured": "waiting",
    "Bound by": "",
    "Size": None,
}
_SIZES = {"Calls": "count", "Bytes": None, "Bound by": ""}
_MOST_CALLS = 12
_MOST_SIZES = 10
_MOST_SITES = 10
_MOST_RANKS = 8
_MOST_REGIONS = 12
_MOST_PLACES = 8


def profile_text(profile: Profile, style: Style = PLAIN) -> str:
    """The output of `seatrial profile`, without a trailing newline."""
    if not profile.ranks:
        return style.paint(f"{words.headline(profile)}.", "heading")
    blocks = [style.paint(f"{words.headline(profile)}.", "heading"), _share(profile, style), _why(profile, style)]
    blocks.append(_trust(profile, style))
    if profile.calls:
        blocks += [_calls(profile, style), _sizes(profile, style), _sites(profile, style)]
    blocks += [_regions(profile, style), _ranks(profile, style), _inside(profile, style), _openmp(profile, style)]
    blocks += [_traffic(profile), _io(profile, style)]
    blocks.append(_wrapped(style, f"next: {words.next_experiment(profile)}"))
    return joined(blocks)


def _share(profile: Profile, style: Style) -> str:
    compute, mpi = [one.compute_s for one in profile.per_rank], [one.mpi_s for one in profile.per_rank]
    rows = [
        ["computing", show_percent(1 - min(1.0, profile.mpi_share)), f"{words.spread_words(compute)} per rank"],
        *_files(profile),
        ["MPI", show_percent(profile.mpi_share), f"{words.spread_words(mpi)} per rank"],
        _waiting(profile),
        *([["CPU", "", words.cpu_line(profile)]] if words.cpu_line(profile) else []),
    ]
    where = f"{clean(profile.program)} on {count(profile.ranks, 'rank')}"
    return f"{where}, {show(profile.elapsed_s, 's')}\n{style.table(rows)}"


def _why(profile: Profile, style: Style) -> str:
    notes = [is_note(one) for one in profile.diagnoses]
    lines = zip(words.diagnosis_lines(profile), notes, strict=True)
    is_any = False in notes
    return "\n".join(_wrapped(style, clean(f"{'note' if note and is_any else 'why'}: {line}")) for line, note in lines)


def _files(profile: Profile) -> list[list[str]]:
    share = words.file_share(profile)
    if share is None:
        return []
    return [["  calls on files", place_words.share_words(share), "read, write, fsync, open and the like, outside MPI"]]


def _waiting(profile: Profile) -> list[str]:
    share = words.share_cell(profile.waiting_s, profile.wall_s).text
    if not profile.measured_calls[0]:
        return ["  above the best", share, "waiting or contention (estimated)"]
    return ["  waiting", share, "measured in collectives, estimated elsewhere"]


def _trust(profile: Profile, style: Style) -> str:
    lines = []
    for line in words.trust_lines(profile):
        text = _wrapped(style, clean(f"{line.name.lower()}: {line.text}"))
        lines.append(style.paint(text, "warning") if line.is_weak else text)
    return "\n".join(lines)


def _calls(profile: Profile, style: Style) -> str:
    rows = rows_of(words.calls_table(profile, _MOST_CALLS), _CALLS, missing="")
    return _block("time by call", rows, len(profile.calls) - _MOST_CALLS, style)


def _sizes(profile: Profile, style: Style) -> str:
    sizes = [one for one in profile.sizes if one.largest_B]
    rows = rows_of(words.sizes_table(profile, sizes, _MOST_SIZES), _SIZES)
    return _block("sizes by time", rows, len(sizes) - _MOST_SIZES, style) if sizes else ""


def _sites(profile: Profile, style: Style) -> str:
    rows = [["called at", "call", "of wall", "count", "ranks", ""]]
    for one in profile.callsites[:_MOST_SITES]:
        cells = [
            clean(place_words.site_words(one)),
            one.call,
            words.share_cell(one.time_s, profile.wall_s).text,
            str(one.count),
            str(one.ranks),
        ]
        rows.append([*cells, clean(place_words.inlined_words(one))])
    block = _block("call sites by time", rows, len(profile.callsites) - _MOST_SITES, style)
    paths = [(one, place_words.path_words(one)) for one in profile.callsites[:_MOST_SITES]]
    lines = [
        _wrapped(style, clean(f"  {one.call} at {place_words.site_words(one)}: {path}")) for one, path in paths if path
    ]
    return "\n".join([f"{block}\n", style.paint("paths", "heading"), *lines]) if lines else block


def _ranks(profile: Profile, style: Style) -> str:
    if len(profile.per_rank) < 2:
        return ""
    order = sorted(profile.per_rank, key=lambda one: -one.compute_s)
    shown = order if len(order) <= _MOST_RANKS else [*order[: _MOST_RANKS // 2], *order[-_MOST_RANKS // 2 :]]
    rows = [["rank", "host", "computing", "MPI", "sent", "received", ""]]
    for one in shown:
        times = [show(one.compute_s, "s"), show(one.mpi_s, "s")]
        traffic = [show(one.sent_B, "B"), show(one.received_B, "B")]
        rows.append([str(one.rank), clean(one.host), *times, *traffic, "" if one.state == "finalized" else one.state])
    line = words.balance_line(profile)
    block = _block("ranks by compute time", rows, len(order) - len(shown), style, "in between")
    return f"{block}\n{_wrapped(style, f'  {clean(line)}.')}" if line else block


def _regions(profile: Profile, style: Style) -> str:
    made = regions_table(profile, _MOST_REGIONS)
    if made is None:
        return ""
    block = _block("regions by time", rows_of(made), len(profile.regions) - _MOST_REGIONS, style)
    return "\n".join([block, *(_wrapped(style, f"  {clean(line)}.") for line in place_words.region_lines(profile))])


def _inside(profile: Profile, style: Style) -> str:
    """Memory and hardware counters of the ranks."""
    lines = [f"memory: {line}" for line in memory_lines(profile)]
    lines += [f"counters: {line}" for line in counter_lines(profile)]
    return "\n".join(_wrapped(style, line) for line in lines)


def _openmp(profile: Profile, style: Style) -> str:
    lines = "\n".join(_wrapped(style, f"openmp: {line}") for line in openmp_lines(profile))
    made = places_table(profile, _MOST_PLACES)
    if made is None:
        return lines
    rows = rows_of(made, {"Begins at": "parallel region at"})
    return f"{lines}\n{_block('parallel regions by lost time', rows, len(profile.parallel) - _MOST_PLACES, style)}"


def _traffic(profile: Profile) -> str:
    sent = sum(one.sent_B for one in profile.per_rank)
    collective = sum(one.collective_B for one in profile.per_rank)
    if not profile.trust.has_sizes:
        return ""
    return (
        f"point to point: {show(sent, 'B')} between {count(len(profile.matrix), 'pair')} of ranks; "
        f"collectives: {show(collective, 'B')}"
    )


def _io(profile: Profile, style: Style) -> str:
    if profile.io is None:
        return ""
    text = " ".join(f"{clean(line)}." for line in io_lines(profile.io))
    return f"{style.paint('input and output', 'heading')}\n{_wrapped(style, f'  {text}')}"


def _block(title: str, rows: Sequence[Sequence[str]], more: int, style: Style, where: str = "with less time") -> str:
    lines = [style.paint(title, "heading"), style.table(rows, has_head=True)]
    if more > 0:
        lines.append(f"  and {more} more {where}")
    return "\n".join(lines)


def _wrapped(style: Style, text: str) -> str:
    return "\n".join(style.wrapped(text, then="  "))
