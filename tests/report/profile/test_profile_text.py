"""A profile on a terminal: the headline, its reliability, and names that cannot steer the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report.profile.profile_samples import SAMPLES, crash, hostile, nothing, one_rank
from report.terminals import COLOURED

from seatrial.profiler.cause import CallSite, Cause, Diagnosis, Evidence, Frame, Signal, Sureness
from seatrial.profiler.profile import Bound
from seatrial.report.blocks import Detail, Table
from seatrial.report.profile.diagnosis_words import sentence, short_words
from seatrial.report.profile.page import sections
from seatrial.report.profile.place_words import share_words, site_words
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.text import profile_text
from seatrial.report.profile.words import headline, imbalance, next_experiment, spread_words, trust_lines
from seatrial.report.text.terminal import plain


def test_the_headline() -> None:
    profile = crash()
    assert (
        headline(profile)
        == "MPI_Allreduce (4 B) takes 25 % of wall time: waiting for rank 5 on node1, which computes longest "
        "(more work or a slower CPU)"
    )
    assert headline(nothing()) == "No MPI call was recorded"
    assert next_experiment(nothing()).startswith("`seatrial run command -- PROGRAM ARGUMENTS`")
    assert headline(one_rank()) == "MPI takes 1.0 % of wall time: most of it is computation"
    main = replace(one_rank(), mpi_s=one_rank().wall_s / 8)
    assert headline(main).startswith("99 % of wall time is outside MPI; MPI_")
    assert headline(hostile()) == "MPI_Send (100 B) takes 12 % of wall time"


@pytest.mark.parametrize(
    ("bound", "cause", "said", "todo"),
    [
        (Bound.LATENCY, Cause.LATENCY, "latency-bound", "mpi.latency"),
        (Bound.BANDWIDTH, Cause.TRANSFER, "bandwidth-bound", "mpi.bandwidth"),
        (Bound.LATENCY, Cause.MESSAGE_RATE, "many short calls", "Combine calls"),
        (Bound.WAITING, Cause.NOT_KNOWN, "waiting for other ranks; the cause is unknown", "--wait 10"),
        (Bound.WAITING, Cause.LATE_SENDER, "waiting for messages that are sent late", "Send earlier"),
    ],
)
def test_the_headline_states_what_bounds_the_time(bound: Bound, cause: Cause, said: str, todo: str) -> None:
    profile = crash()
    first = replace(profile.calls[0], bound=bound)
    why = Diagnosis(cause, 0.25, Sureness.INFERRED, call="MPI_Allreduce")
    changed = replace(profile, calls=(first, *profile.calls[1:]), diagnoses=(why,))
    assert headline(changed) == f"MPI_Allreduce (4 B) takes 25 % of wall time: {said}"
    assert todo in next_experiment(changed)


def test_the_place_where_ranks_wait() -> None:
    (why,) = (one for one in crash().diagnoses if one.cause is Cause.IMBALANCE)
    assert why.site is not None and "Ranks wait mostly in MPI_Allreduce at reduce_energy energy.f90:212." in sentence(
        why
    )


def test_a_missing_cpu_comes_first() -> None:
    found = Diagnosis(
        Cause.MORE_RANKS_THAN_CPUS,
        0.69,
        Sureness.MEASURED,
        (Evidence(Signal.RUN_DELAY, 0.69), Evidence(Signal.RANKS_ON_NODE, 4), Evidence(Signal.CPUS, 2)),
        rank=3,
        host="node1",
    )
    changed = replace(crash(), diagnoses=(found, *crash().diagnoses))
    assert headline(changed) == "Rank 3 waited for a CPU 69 % of the time: 4 ranks share 2 CPUs"
    assert "as many ranks and threads on node1 as it has CPUs (2)" in next_experiment(changed)
    text = " ".join(profile_text(changed).split())
    assert "why: Rank 3 on node1 was ready to run, but had no CPU, for 69 % of its time: 4 ranks share 2 CPUs." in text


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_has_its_sentences(cause: Cause) -> None:
    values = [Evidence(signal, 0.5) for signal in Signal if signal is not Signal.CALL_SHARE]
    for one in (
        Diagnosis(cause, 0.5, Sureness.INFERRED, call="MPI_Recv"),
        Diagnosis(cause, 0.5, Sureness.MEASURED, tuple(values), 1, "node1", "MPI_Recv", 1024),
    ):
        assert sentence(one).endswith(".") and sentence(one)[0].isupper() and remedy(one).endswith(".")
        assert not short_words(one).endswith(".") and "None" not in sentence(one) + remedy(one) + short_words(one)


def test_startup_is_in_the_headline_only_if_no_other_call_takes_a_relevant_share() -> None:
    profile = crash()
    start = replace(profile.calls[0], call="MPI_Init", bound=Bound.START)
    assert headline(replace(profile, calls=(start, *profile.calls[1:]))).startswith("MPI_Wait")
    short = replace(profile, calls=(start, replace(profile.calls[1], time_s=0.01 * profile.wall_s)))
    assert headline(short) == "MPI_Init takes 25 % of wall time: MPI startup and shutdown"
    why = Diagnosis(Cause.STARTUP, 0.25, Sureness.INFERRED, call="MPI_Init")
    assert "longer run" in next_experiment(replace(short, diagnoses=(why,)))


def test_sizes_of_which_none_has_most_of_the_time() -> None:
    profile = crash()
    own = [one for one in profile.sizes if one.call == "MPI_Allreduce"]
    even = [replace(one, time_s=own[0].time_s) for one in own]
    third = replace(own[0], size_B=1024, largest_B=1024, bytes=1024 * own[0].count)
    assert "MPI_Allreduce (mostly 4 B) takes" in headline(replace(profile, sizes=tuple(even)))
    assert "MPI_Allreduce (4 B to 1 KiB) takes" in headline(replace(profile, sizes=(*even, third)))


def test_everything_is_reported() -> None:
    text = profile_text(crash())
    for words in (
        "complete: all 32 ranks reached MPI_Finalize",
        "overhead:",
        "reduce_energy energy.f90:212",
        "inlined in",
        "libpart.so+0x900",
        "Rank 5 on node1 computes longest",
        "Point to point: 153 GB between 110 pairs of ranks",
        "next: Run again with ranks on other CPUs",
    ):
        assert words in text


def test_by_default_a_profile_is_its_answer_and_with_verbose_its_page() -> None:
    """A profile printed 50 lines."""
    usual, full = (profile_text(crash(), detail=detail) for detail in (Detail.USUAL, Detail.FULL))
    assert len(usual.splitlines()) <= 20 and usual.startswith(headline(crash()))
    assert "cpu time: not known" in usual and "overhead:" not in usual and "Call sites" not in usual
    assert usual.splitlines()[-1].startswith("next: ") and all(line in full for line in usual.splitlines())
    tables = [block for one in sections(crash(), "p") for block in one.blocks if isinstance(block, Table)]
    assert len(tables) >= 2 and all(plain(row[0].text) in full for table in tables for row in table.rows)


def test_limitations_come_first() -> None:
    lines = trust_lines(SAMPLES["incomplete"]())
    weak = [line for line in lines if line.is_weak]
    assert lines[: len(weak)] == weak and {"Incomplete", "Overflow", "Receives"} <= {line.name for line in weak}
    assert "no table from rank 3; rank 7 ended without MPI_Finalize" in weak[0].text
    assert [line.name for line in trust_lines(crash()) if line.is_weak] == ["CPU time"]  # its ranks recorded none


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
    assert site_words(replace(site, module="", offset=0)) == "unknown"
    assert site_words(replace(site, frames=(Frame("f"),))) == "f in app"
    assert site_words(replace(site, frames=(Frame("f", "/a/b.c", 3),))) == "f b.c:3"
    assert site_words(replace(site, frames=(Frame("f", "/a/b.c"),))) == "f b.c"


def test_small_things() -> None:
    assert imbalance([1, 1, 4]) == pytest.approx(1.0) and imbalance([]) is None and imbalance([0, 0]) is None
    assert share_words(0.0) == "0.0 %" and share_words(1e-5) == "< 0.1 %" and share_words(0.25) == "25 %"
    assert spread_words([0.01, 0.01]) == "10.0 ms" and spread_words([]) == ""
