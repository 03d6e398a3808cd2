"""The page of a profile: one self-contained file with the summary on top, then its reliability and details."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from seatrial.model.spelling import NO_VALUE, count, show
from seatrial.profiler.profile import Profile
from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.charts.vega import Chart
from seatrial.report.pages.templating import Cell, Column, Table, headings, right
from seatrial.report.profile.charts.calls import calls_chart, calls_table, sizes_charts, wall_time_chart
from seatrial.report.profile.charts.over_time import io_charts, io_table, lanes_over_time, share_over_time
from seatrial.report.profile.charts.ranks import matrix_chart, rank_charts
from seatrial.report.profile.io_words import IO_RULE, io_lines
from seatrial.report.profile.node_words import node_sections
from seatrial.report.profile.place_words import path_words, share_words, site_module, site_words
from seatrial.report.profile.words import (
    BOUND_RULE,
    WAITING_RULE,
    balance_line,
    cpu_line,
    diagnosis_lines,
    headline,
    next_experiment,
    trust_lines,
)
from seatrial.report.studies.article import Article, Head, Section, article, whole_page

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
    head = Head("Profile", _name(profile), [headline(profile)], about=_about(profile))
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
        sections += _charts("time", "Over time", about, [share_over_time(time, ident), lanes_over_time(time, ident)])
    if profile.io is not None:
        sections += _io(profile, profile.io, ident)
    about = "How large the messages are: many small ones are latency-bound, few large ones bandwidth-bound."
    sections += _charts("sizes", "Message sizes", about, sizes_charts(profile, ident))
    about = "Whether the ranks share the work evenly."
    line = balance_line(profile)
    sections += _charts("ranks", "Ranks", about, rank_charts(profile, ident), [f"{line}."] if line else [])
    sections += node_sections(profile)
    about = "Which ranks send to each other, and how much leaves the node."
    sections += _charts("matrix", "Traffic between ranks", about, [matrix_chart(profile, ident)])
    if profile.callsites:
        sections.append(_sites(profile))
    context = {"about": next_experiment(profile).replace("`", ""), "tables": [], "left_out": 0, "lines": []}
    sections.append(Section("next", "What to try next", "profile_tables", context))
    return sections


def _why(profile: Profile) -> list[Section]:
    lines = diagnosis_lines(profile)
    if lines and cpu_line(profile):
        lines = [*lines, f"{cpu_line(profile)}."]
    context = {"about": "", "tables": [], "left_out": 0, "lines": lines}
    return [Section("why", "What takes the time", "profile_tables", context)] if lines else []


def _trust(profile: Profile) -> Section:
    lines = trust_lines(profile)
    weak = [line for line in lines if line.is_weak]
    text = "No known limitations" if not weak else count(len(weak), "limitation")
    context = {"headline": text, "lines": lines, "is_weak": bool(weak)}
    return Section("trust", "Reliability", "profile_trust", context)


def _wall(profile: Profile, ident: str) -> list[Section]:
    if not profile.calls:
        return []
    about = "How the ranks spent their time. Better balance could save the MPI time above the best."
    sections = _charts(
        "wall", "Where the wall time goes", about, [wall_time_chart(profile, ident), calls_chart(profile, ident)]
    )
    table = calls_table(profile, _TOP_CALLS)
    rule = f"{BOUND_RULE} {WAITING_RULE}" if profile.measured_calls[0] else BOUND_RULE
    context = {"about": rule, "tables": [table], "left_out": max(0, len(profile.calls) - _TOP_CALLS), "lines": []}
    return [*sections, Section("calls", "Calls with the most time", "profile_tables", context)]


def _charts(
    name: str, title: str, about: str, charts: Sequence[Chart | None], lines: Sequence[str] = ()
) -> list[Section]:
    drawn = [chart for chart in charts if chart is not None]
    return [Section(name, title, "charts", {"about": about, "charts": drawn, "lines": list(lines)})] if drawn else []


def _io(profile: Profile, io: ProfileIo, ident: str) -> list[Section]:
    time = profile.over_time
    until_s = time.width_s * len(time.mpi_s) if time is not None else 0.0
    lines = [f"{line}." for line in io_lines(io)]
    sections = _charts("io", "Input and output over time", IO_RULE, io_charts(io, until_s, ident), lines)
    table = io_table(io)
    about = "From MPI_Init to MPI_Finalize." if sections else " ".join([*lines, IO_RULE])
    context = {"about": about, "tables": [] if table is None else [table], "left_out": 0, "lines": []}
    return [*sections, Section("io-ranks", "Input and output by rank", "profile_tables", context)]


def _sites(profile: Profile) -> Section:
    numeric = ("Of wall", "Time", "Calls", "Bytes", "Ranks")
    columns = headings("Called at", "Call", *map(right, numeric))
    sites = profile.callsites[:_MOST_SITES]
    has_paths = any(one.path for one in sites)
    columns += [Column("Inlined in"), Column("Program or library"), *[Column("Path")] * has_paths]
    rows = []
    for one in sites:
        share = one.time_s / profile.wall_s if profile.wall_s > 0 else 0.0
        rows.append(
            [
                Cell(site_words(one)),
                Cell(one.call),
                Cell(share_words(share), share),
                Cell(show(one.time_s, "s"), one.time_s),
                Cell(str(one.count), one.count),
                Cell(show(one.bytes, "B"), one.bytes),
                Cell(str(one.ranks), one.ranks),
                Cell(", ".join(frame.function for frame in one.frames[1:]) or NO_VALUE),
                Cell(f"{site_module(one)}+{one.offset:#x}" if one.module else NO_VALUE),
                *[Cell(path_words(one) or NO_VALUE)] * has_paths,
            ]
        )
    about = "The places that call MPI, by time. Line numbers require debug information (-g) in the program."
    left = max(0, len(profile.callsites) - len(rows))
    context = {"about": about, "tables": [Table("Call sites by time", columns, rows)], "left_out": left, "lines": []}
    return Section("sites", "Call sites", "profile_tables", context)
