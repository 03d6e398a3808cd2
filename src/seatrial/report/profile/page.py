"""The page of a profile: one self-contained file with the summary on top, then its reliability and details."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from seatrial.model.spelling import NO_VALUE, count, show
from seatrial.profiler.profile import Profile
from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.blocks import Cell, Cells, Table, headings, right
from seatrial.report.profile import words
from seatrial.report.profile.charts.calls import calls_chart, sizes_charts, wall_time_chart
from seatrial.report.profile.charts.over_time import io_charts, io_table, lanes_over_time, share_over_time
from seatrial.report.profile.charts.ranks import matrix_chart, rank_charts
from seatrial.report.profile.io_words import IO_RULE, io_lines
from seatrial.report.profile.node_words import node_sections
from seatrial.report.profile.place_words import path_words, site_module, site_words
from seatrial.report.studies.article import Article, Head, Section, article, chart_section, tables_section, whole_page

_TOP_CALLS = 5
_MOST_SITES = 40


def profile_page(profiles: Sequence[Profile]) -> str:
    """The whole file as text: an article for each MPI program of the command, longest first."""
    is_alone = len(profiles) == 1
    articles = [profile_article(profile, number, is_alone=is_alone) for number, profile in enumerate(profiles, start=1)]
    title = f"Profile of {_name(profiles[0])}" if is_alone else f"Profiles of {count(len(profiles), 'MPI program')}"
    return whole_page(title, articles)


def profile_article(profile: Profile, number: int, *, is_alone: bool) -> Article:
    """One program. `number` counts the profiles of the page from 1; `is_alone`: nothing else is on the page."""
    ident = f"p{number}"
    head = Head("Profile", _name(profile), [words.headline(profile)], about=_about(profile))
    return article(ident, head, _sections(profile, ident), is_alone=is_alone)


def _name(profile: Profile) -> str:
    return PurePosixPath(profile.program).name or "an MPI program"


def _about(profile: Profile) -> str:
    where = f"{count(profile.ranks, 'rank')} on {count(profile.hosts, 'host')}"
    return f"{where}, {show(profile.elapsed_s, 's')}. Times are sums over ranks."


def _sections(profile: Profile, ident: str) -> list[Section]:
    sections = [*_why(profile), _trust(profile), *_wall(profile, ident)]
    time = profile.over_time
    if time is not None:
        about = "The share of MPI over time. Look for growth, phases, and ranks that differ from the others."
        charts = [share_over_time(time, ident), lanes_over_time(time, ident)]
        sections += chart_section("time", "Over time", about, charts)
    if profile.io is not None:
        sections += _io(profile, profile.io, ident)
    about = "How large the messages are: many small ones are latency-bound, few large ones bandwidth-bound."
    sections += chart_section("sizes", "Message sizes", about, sizes_charts(profile, ident))
    about = "Whether the ranks share the work evenly."
    line = words.balance_line(profile)
    sections += chart_section("ranks", "Ranks", about, rank_charts(profile, ident), [f"{line}."] if line else [])
    sections += node_sections(profile)
    about = "Which ranks send to each other, and how much leaves the node."
    sections += chart_section("matrix", "Traffic between ranks", about, [matrix_chart(profile, ident)])
    sections += [_sites(profile)] if profile.callsites else []
    return [*sections, tables_section("next", "What to try next", words.next_experiment(profile).replace("`", ""))]


def _why(profile: Profile) -> list[Section]:
    lines = words.diagnosis_lines(profile)
    if lines and words.cpu_line(profile):
        lines = [*lines, f"{words.cpu_line(profile)}."]
    return [tables_section("why", "What takes the time", lines=lines)] if lines else []


def _trust(profile: Profile) -> Section:
    lines = words.trust_lines(profile)
    weak = [line for line in lines if line.is_weak]
    text = "No known limitations" if not weak else count(len(weak), "limitation")
    return Section("trust", "Reliability", "profile_trust", {"headline": text, "lines": lines, "is_weak": bool(weak)})


def _wall(profile: Profile, ident: str) -> list[Section]:
    if not profile.calls:
        return []
    about = "How the ranks spent their time. Better balance could save the MPI time above the best."
    charts = [wall_time_chart(profile, ident), calls_chart(profile, ident)]
    rule = f"{words.BOUND_RULE} {words.WAITING_RULE}" if profile.measured_calls[0] else words.BOUND_RULE
    calls, left_out = words.calls_table(profile, _TOP_CALLS), len(profile.calls) - _TOP_CALLS
    return [
        *chart_section("wall", "Where the wall time goes", about, charts),
        tables_section("calls", "Calls with the most time", rule, [calls], left_out=left_out),
    ]


def _io(profile: Profile, io: ProfileIo, ident: str) -> list[Section]:
    time = profile.over_time
    until_s = time.width_s * len(time.mpi_s) if time is not None else 0.0
    lines = [f"{line}." for line in io_lines(io)]
    charts = chart_section("io", "Input and output over time", IO_RULE, io_charts(io, until_s, ident), lines)
    about = "From MPI_Init to MPI_Finalize." if charts else " ".join([*lines, IO_RULE])
    return [*charts, tables_section("io-ranks", "Input and output by rank", about, [io_table(io)])]


def _sites(profile: Profile) -> Section:
    sites = profile.callsites[:_MOST_SITES]
    has_paths = any(one.path for one in sites)
    rows: list[Cells] = []
    for one in sites:
        rows.append(
            [
                site_words(one),
                one.call,
                words.share_cell(one.time_s, profile.wall_s),
                Cell.amount(one.time_s, "s"),
                Cell.number(one.count),
                Cell.amount(one.bytes, "B"),
                Cell.number(one.ranks),
                ", ".join(frame.function for frame in one.frames[1:]) or NO_VALUE,
                f"{site_module(one)}+{one.offset:#x}" if one.module else NO_VALUE,
                *[path_words(one) or NO_VALUE] * has_paths,
            ]
        )
    numbers = right("Of wall", "Time", "Calls", "Bytes", "Ranks")
    columns = headings("Called at", "Call", *numbers, "Inlined in", "Program or library", *["Path"] * has_paths)
    about = "The places that call MPI, by time. Line numbers require debug information (-g) in the program."
    made, left_out = Table.of("Call sites by time", columns, rows), len(profile.callsites) - len(rows)
    return tables_section("sites", "Call sites", about, [made], left_out=left_out)
