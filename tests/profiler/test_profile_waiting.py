"""Waiting measured with barriers replaces the estimate, in the analysis and in every report."""

from __future__ import annotations

from dataclasses import replace

import pytest
from profiler.made_up_tables import NAMES, Call, Table, Thread
from published_schemas import check

from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.errors import ParseError
from seatrial.profiler.profile import Bound, Profile
from seatrial.profiler.tables.process_table import parse_table
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text


def late(waited_s: tuple[float, float] = (0.019, 0.001), *, sampled: int = 10, estimate_s: float = 0.02) -> Profile:
    """Two ranks reduce 8 B 100 times, each call 20 ms; of `sampled` calls waiting was measured, 1 ms was transfer.
    12 broadcasts of 1 MiB had no barrier."""
    tables = []
    for rank in range(2):
        calls = [
            Call("MPI_Allreduce", 100, 8, 0.02, estimate_s, site=0x10100),
            Call("MPI_Bcast", 12, 1 << 20, 0.001, 0.0009, site=0x10200),
        ]
        if sampled:
            calls += [
                Call("MPI_Allreduce", sampled, 8, waited_s[rank], part=1),
                Call("MPI_Allreduce", sampled, 8, 0.001, part=2),
            ]
        tables.append(Table(rank, 2, [Thread(calls, {}, [2.012])], pid=100 + rank))
    return profiles([parse_table(table.data(), len(NAMES)) for table in tables], NAMES)[0]


def test_the_share_in_sampled_calls_is_that_of_all() -> None:
    found = late()
    reduce, broadcast = found.calls
    assert reduce.call == "MPI_Allreduce" and reduce.count == 200 and reduce.time_s == pytest.approx(4.0)
    assert reduce.measured is not None and reduce.measured.calls == 20
    assert reduce.measured.waited_s == pytest.approx(0.2, rel=1e-3) and reduce.measured.transferred_s == pytest.approx(
        0.02
    )
    assert reduce.waiting_s == pytest.approx(4.0 * 0.2 / 0.22, rel=1e-3) and reduce.bound is Bound.WAITING
    assert broadcast.measured is None and broadcast.waiting_s == pytest.approx(2 * 12 * 0.0001)
    assert found.measured_calls == (20, 200)
    assert found.mpi_s == pytest.approx(4.024), "parts are in the whole already"
    assert sum(site.count for site in found.callsites) == 224


def test_it_takes_the_place_of_an_estimate_that_says_otherwise() -> None:
    alone = late(sampled=0, estimate_s=0.001)
    assert alone.calls[0].bound is Bound.WAITING and alone.measured_calls == (0, 0)
    measured = late((0.0001, 0.0001), estimate_s=0.001)
    assert measured.calls[0].bound is Bound.LATENCY and measured.calls[0].waiting_s < 0.1 * measured.calls[0].time_s


def test_document_text_and_page_say_that_it_was_sampled() -> None:
    found = late()
    document = profile_document(found, 0)
    check(document, "profile-1")
    measured = document["calls"][0]["waiting"]
    assert (measured["sampled"], measured["of"]) == (20, 200) and measured["share"] == pytest.approx(
        0.2 / 0.22, rel=1e-3
    )
    assert document["sizes"][0]["waiting"] == measured and document["calls"][1]["waiting"] is None
    text = profile_text(found)
    assert "measured with a barrier before 20 of 200 collective calls" in text and "91 %" in text
    page = profile_page([found])
    assert "Waiting, measured" in page and "20 of 200" in page
    plain = late(sampled=0)
    assert "measured" not in profile_text(plain) and "Waiting, measured" not in profile_page([plain])
    assert all(call["waiting"] is None for call in profile_document(plain, 0)["calls"])


def test_rows_of_parts_are_kept_apart_and_checked() -> None:
    table = Table(
        0, 1, [Thread([Call("MPI_Barrier", 4), Call("MPI_Barrier", 2, part=1), Call("MPI_Barrier", 2, part=2)])]
    )
    (thread,) = parse_table(table.data(), len(NAMES)).threads
    assert thread.slots["count"].tolist() == [4] and sorted(thread.parts["part"].tolist()) == [1, 2]
    wrong = replace(table, threads=[Thread([Call("MPI_Barrier", 2, part=4)])])
    with pytest.raises(ParseError, match="invalid part of a call"):
        parse_table(wrong.data(), len(NAMES))


def test_the_barrier_itself_is_no_waiting() -> None:
    """A barrier of 0.6 us before reductions of 0.5 us."""
    calls = [
        Call("MPI_Allreduce", 100_000, 8, 1.1e-6, 1e-6),
        Call("MPI_Allreduce", 10_000, 8, 0.6e-6, 0.6e-6, part=1),
        Call("MPI_Allreduce", 10_000, 8, 0.5e-6, 0.5e-6, part=2),
    ]
    tables = [Table(rank, 2, [Thread(calls)], pid=100 + rank) for rank in range(2)]
    (found,) = profiles([parse_table(table.data(), len(NAMES)) for table in tables], NAMES)
    measured = found.calls[0].measured
    assert measured is not None and measured.waited_s == pytest.approx(0.0, abs=1e-9)
    assert found.calls[0].bound is Bound.LATENCY
