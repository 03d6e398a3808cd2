"""The page of a profile: one self-contained file with the summary on top, then its reliability and details."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from seatrial.diagnosis.diagnose import is_note
from seatrial.model.results.energy import PowerOverTime
from seatrial.model.spelling import NO_VALUE, count, show
from seatrial.profiler.profile import Profile
from seatrial.profiler.profile_io import ProfileIo
from seatrial.report.blocks import (
    About,
    Aspects,
    Block,
    Cell,
    Cells,
    Chart,
    Column,
    Detail,
    Lines,
    Section,
    Table,
    headings,
    right,
)
from seatrial.report.charts.energy_parts import energy_by_part
from seatrial.report.charts.power import power_chart
from seatrial.report.power_words import energy_words, mpi_energy_words
from seatrial.report.profile import words
from seatrial.report.profile.charts.calls import calls_chart, sizes_charts, wall_time_chart
from seatrial.report.profile.charts.over_time import io_charts, io_table, lanes_over_time, share_over_time
from seatrial.report.profile.charts.ranks import matrix_chart, rank_charts
from seatrial.report.profile.io_words import IO_RULE, io_lines
from seatrial.report.profile.node_words import node_sections
from seatrial.report.profile.place_words import path_words, site_module, site_words
from seatrial.report.studies.article import Article, Head, article, chart_section, tables_section, whole_page

_TOP_CALLS = 12
_MOST_SITES = 40


def profile_page(profiles: Sequence[Profile]) -> str:
    """The whole file as text: an article for each MPI program of the command, longest first."""
    is_alone = len(profiles) == 1
    articles = [profile_article(profile, number, is_alone=is_alone) for number, profile in enumerate(profiles, start=1)]
    title = f"Profile of {_name(profiles[0])}" if is_alone else f"Profiles of {count(len(profiles), 'MPI program')}"
    return whole_page(title, articles).__html__()


def profile_article(profile: Profile, number: int, *, is_alone: bool) -> Article:
    """One program. `number` counts the profiles of the page from 1; `is_alone`: nothing else is on the page."""
    ident = f"p{number}"
    head = Head("Profile", _name(profile), [words.headline(profile)], about=_about(profile))
    return article(ident, head, sections(profile, ident), is_alone=is_alone)


def _name(profile: Profile) -> str:
    return PurePosixPath(profile.program).name or "an MPI program"


def _about(profile: Profile) -> str:
    where = f"{count(profile.ranks, 'rank')} on {count(profile.hosts, 'host')}"
    return f"{where}, {show(profile.elapsed_s, 's')}. Times are sums over ranks."


def sections(profile: Profile, ident: str) -> list[Section]:
    """All of a profile, for its page and for a terminal."""
    found = [*_why(profile), _trust(profile), *_wall(profile, ident)]
    time = profile.over_time
    if time is not None:
        about = "The share of MPI over time. Look for growth, phases, and ranks that differ from the others."
        charts = [share_over_time(time, ident), lanes_over_time(time, ident)]
        found += chart_section("time", "Over time", about, charts)
    if profile.io is not None:
        found += _io(profile, profile.io, ident)
    if profile.power is not None:
        found += _power(profile, profile.power, ident)
    about = "How large the messages are: many small ones are latency-bound, few large ones bandwidth-bound."
    found += chart_section("sizes", "Message sizes", about, _first_listed(sizes_charts(profile, ident)))
    about = "Whether the ranks share the work evenly."
    line = words.balance_line(profile)
    found += chart_section(
        "ranks", "Ranks", about, _first_listed(rank_charts(profile, ident)), [f"{line}."] if line else []
    )
    found += node_sections(profile)
    about = "Which ranks send to each other, and how much leaves the node."
    found += chart_section("matrix", "Traffic between ranks", about, [matrix_chart(profile, ident)], _traffic(profile))
    found += [_sites(profile)] if profile.callsites else []
    to_do = [Lines([words.next_experiment(profile)], "next")]
    return [*found, Section("next", "What to try next", blocks=to_do, detail=Detail.USUAL)]


_POWER = "What the sensors of this node showed, on the same clock as MPI over time and input and output above."


def _power(profile: Profile, power: PowerOverTime, ident: str) -> list[Section]:
    """Energy of the whole command, and its power over time."""
    lines = [energy_words(one) for one in power.energies] or ["No usable sensor measures power here."]
    lines += [mpi_energy_words(one) for one in profile.mpi_energy]
    caption = "The band is the time from the first rank's start to the end of the longest one."
    blocks: list[Block] = [Lines(lines, look="list")]
    if power.curves:
        chart = power_chart(f"{ident}-power", "Power over time", caption, power, (0.0, profile.elapsed_s))
        by_part = energy_by_part(f"{ident}-energy-parts", "Energy by part", power.energies)
        blocks = [About(_POWER), chart, *([] if by_part is None else [by_part]), *blocks]
    return [Section("power", "Power", blocks=blocks, detail=Detail.USUAL)]


def _first_listed(charts: Sequence[Chart]) -> list[Chart]:
    """Charts of the same numbers, which a terminal shows once."""
    return [replace(chart, is_listed=number == 0) for number, chart in enumerate(charts)]


def _why(profile: Profile) -> list[Section]:
    lines = words.diagnosis_lines(profile)
    notes = [is_note(one) for one in profile.diagnoses]
    labels = ["note" if note and False in notes else "why" for note in notes]
    blocks = [Lines([line], label) for line, label in zip(lines, labels, strict=True)]
    if lines and words.cpu_line(profile):
        blocks.append(Lines([f"{words.cpu_line(profile)}."], "cpu"))
    return [Section("why", "What takes the time", blocks=blocks, detail=Detail.USUAL)] if lines else []


def _traffic(profile: Profile) -> list[str]:
    """How much was sent, if sizes are known."""
    sent = sum(one.sent_B for one in profile.per_rank)
    collective = sum(one.collective_B for one in profile.per_rank)
    if not profile.trust.has_sizes:
        return []
    pairs = count(len(profile.matrix), "pair")
    return [f"Point to point: {show(sent, 'B')} between {pairs} of ranks; collectives: {show(collective, 'B')}."]


def _trust(profile: Profile) -> Section:
    lines = words.trust_lines(profile)
    weak = [line for line in lines if line.is_weak]
    text = "No known limitations" if not weak else count(len(weak), "limitation")
    return Section("trust", "Reliability", blocks=[Aspects(text, lines, bool(weak))], detail=Detail.USUAL)


def _wall(profile: Profile, ident: str) -> list[Section]:
    if not profile.calls:
        return []
    about = "How the ranks spent their time. Better balance could save the MPI time above the best."
    wall = wall_time_chart(profile, ident)
    charts = [None if wall is None else replace(wall, is_listed=True), calls_chart(profile, ident)]
    rule = f"{words.BOUND_RULE} {words.WAITING_RULE}" if profile.measured_calls[0] else words.BOUND_RULE
    calls, left_out = words.calls_table(profile, _TOP_CALLS), len(profile.calls) - _TOP_CALLS
    return [
        *chart_section("wall", "Where the wall time goes", about, charts, detail=Detail.USUAL),
        tables_section("calls", "Calls with the most time", rule, [calls], left_out=left_out),
    ]


def _io(profile: Profile, io: ProfileIo, ident: str) -> list[Section]:
    time = profile.over_time
    until_s = time.width_s * len(time.mpi_s) if time is not None else 0.0
    lines = [f"{line}." for line in io_lines(io)]
    charts = chart_section("io", "Input and output over time", IO_RULE, io_charts(io, until_s, ident), lines)
    about = "From MPI_Init to MPI_Finalize." if charts else IO_RULE
    own = [] if charts else lines
    return [*charts, tables_section("io-ranks", "Input and output by rank", about, [io_table(io)], own)]


def _sites(profile: Profile) -> Section:
    sites = profile.callsites[:_MOST_SITES]
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
            ]
        )
    numbers = right("Of wall", "Time", "Calls", "Bytes", "Ranks")
    columns = headings("Called at", "Call", *numbers, "Inlined in", Column("Program or library", short=None))
    about = "The call sites of MPI, by time. Line numbers require debug information (-g) in the program."
    made, left_out = Table.of("Call sites by time", columns, rows), len(profile.callsites) - len(rows)
    paths = [f"{one.call} at {site_words(one)}: {path}" for one in sites if (path := path_words(one))]
    return tables_section("sites", "Call sites", about, [made], paths, left_out)
