"""A profile on a terminal: the sentence on top, what it rests on, and names that cannot steer it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report.profile.profile_samples import SAMPLES, crash, hostile, nothing, one_rank
from report.terminals import COLOURED

from seatrial.profiler.profile import Bound, CallSite, Frame
from seatrial.report.profile.text import profile_text
from seatrial.report.profile.words import (
    headline,
    imbalance,
    next_experiment,
    share_words,
    site_words,
    spread_words,
    trust_lines,
)


def test_the_sentence_on_top() -> None:
    profile = crash()
    assert headline(profile) == "25 % of wall time is MPI_Allreduce of 4 B: waiting for others"
    assert headline(nothing()) == "No MPI call was recorded"
    assert headline(one_rank()) == "MPI takes 1.0 % of wall time: the program computes"
    assert headline(hostile()) == "12 % of wall time is MPI_Send of 100 B"


@pytest.mark.parametrize(
    ("bound", "said", "todo"),
    [
        (Bound.LATENCY, "latency-bound", "mpi.latency"),
        (Bound.BANDWIDTH, "bandwidth-bound", "mpi.bandwidth"),
        (Bound.WAITING, "waiting for others", "rank 5 on node1"),
    ],
)
def test_the_sentence_says_what_the_time_is_bound_by(bound, said, todo) -> None:
    profile = crash()
    first = replace(profile.calls[0], bound=bound)
    changed = replace(profile, calls=(first, *profile.calls[1:]))
    assert headline(changed) == f"25 % of wall time is MPI_Allreduce of 4 B: {said}"
    assert todo in next_experiment(changed)


def test_starting_mpi_comes_first_only_where_nothing_else_takes_its_share() -> None:
    profile = crash()
    start = replace(profile.calls[0], call="MPI_Init", bound=Bound.START)
    assert headline(replace(profile, calls=(start, *profile.calls[1:]))).split(" is ")[1].startswith("MPI_Wait")
    short = replace(profile, calls=(start, replace(profile.calls[1], time_s=0.01 * profile.wall_s)))
    assert headline(short) == "25 % of wall time is MPI_Init: starting and ending MPI"
    assert "longer run" in next_experiment(short)


def test_sizes_of_which_none_has_most_of_the_time() -> None:
    profile = crash()
    own = [one for one in profile.sizes if one.call == "MPI_Allreduce"]
    even = [replace(one, time_s=own[0].time_s) for one in own]
    third = replace(own[0], size_B=1024, largest_B=1024, bytes=1024 * own[0].count)
    assert "MPI_Allreduce, mostly of 4 B:" in headline(replace(profile, sizes=tuple(even)))
    assert "MPI_Allreduce of 4 B to 1 KiB:" in headline(replace(profile, sizes=(*even, third)))


def test_everything_is_told() -> None:
    text = profile_text(crash())
    for words in (
        "complete: all 32 ranks reached MPI_Finalize",
        "own cost:",
        "reduce_energy energy.f90:212",
        "inlined in exchange",
        "libpart.so+0x900",
        "Rank 5 on node1 computes longest",
        "point to point: 153 GB between 110 pairs of ranks",
        "next: Share the work out more evenly",
    ):
        assert words in text


def test_what_weakens_the_numbers_comes_first() -> None:
    lines = trust_lines(SAMPLES["incomplete"]())
    weak = [line for line in lines if line.is_weak]
    assert lines[: len(weak)] == weak and {"Incomplete", "Overflow", "Receives"} <= {line.name for line in weak}
    assert "no table of rank 3; rank 7 ended without MPI_Finalize" in weak[0].text
    assert not any(line.is_weak for line in trust_lines(crash()))


@pytest.mark.parametrize("name", SAMPLES)
def test_names_cannot_steer_the_terminal_and_lines_stay_short(name) -> None:
    text = profile_text(SAMPLES[name]())
    assert all(letter.isprintable() for letter in text.replace("\n", ""))
    assert max(map(len, text.splitlines())) <= 132
    coloured = profile_text(SAMPLES[name](), style=COLOURED)
    assert coloured.startswith("\x1b[1m") and "\x1b[2J" not in coloured


def test_places() -> None:
    site = CallSite("MPI_Send", "/opt/app", 0x30, 1, 1.0, 1, 1)
    assert site_words(site) == "app+0x30"
    assert site_words(replace(site, module="", offset=0)) == "not known"
    assert site_words(replace(site, frames=(Frame("f"),))) == "f in app"
    assert site_words(replace(site, frames=(Frame("f", "/a/b.c", 3),))) == "f b.c:3"


def test_small_things() -> None:
    assert imbalance([1, 1, 4]) == pytest.approx(1.0) and imbalance([]) is None and imbalance([0, 0]) is None
    assert share_words(0.0) == "0.0 %" and share_words(1e-5) == "< 0.1 %" and share_words(0.25) == "25 %"
    assert spread_words([0.01, 0.01]) == "10.0 ms" and spread_words([]) == ""
