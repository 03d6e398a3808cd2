"""Diagnoses of what ranks do outside MPI, of kinds of waiting, and of two causes at once, on made-up profiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from diagnosis.test_diagnosis import REDUCE, first, profile, rank
from profiler.made_up_tables import NAMES, Call, Table
from published_schemas import check

from seatrial.diagnosis.calls import MeasuredCall, MeasuredNetwork, judged
from seatrial.diagnosis.diagnose import weight
from seatrial.profiler.cause import WAITING_CAUSES, Cause, Diagnosis, Signal, Sureness
from seatrial.profiler.merge.bound import WaitKind, wait_kind
from seatrial.profiler.merge.rows import Rows, polling_calls
from seatrial.profiler.profile_io import SystemCall
from seatrial.profiler.tables.header import OLD_VERSION
from seatrial.profiler.tables.process_table import parse_table
from seatrial.report.profile.diagnosis_words import sentence, short_words
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.text import profile_text

PROMPT = [Call("MPI_Allreduce", 1000, 8, 3e-6, 2e-6)]
Uses = dict[str, tuple[int, float, int]]


def busy(number: int, ranks: int, calls: list[Call], uses: Uses | None = None, cpu_s: float = 10.0) -> Table:
    return rank(number, ranks, calls, cpu_s=cpu_s, cpus=range(ranks), online=ranks).but(system_uses=uses or {})


def test_calls_that_enter_the_kernel_are_read_and_old_tables_have_none() -> None:
    table = busy(0, 1, REDUCE, {"sync": (120, 2.5, 0), "write": (4, 0.5, 1 << 20)})
    read = parse_table(table.data(), len(NAMES)).system_uses
    assert read is not None and [use.kind for use in read] == list(SystemCall)
    assert {use.kind: (use.calls, use.time_s, use.bytes) for use in read if use.calls} == {
        "sync": (120, 2.5, 0),
        "write": (4, 0.5, 1 << 20),
    }
    old = replace(table, version=OLD_VERSION)
    assert parse_table(old.data(), len(NAMES)).system_uses is None
    assert parse_table(table.but(system_uses=None).data(), len(NAMES)).system_uses is None


def test_a_rank_that_writes_is_named_with_its_calls() -> None:
    made = profile(
        busy(0, 2, PROMPT, {"sync": (120, 2.5, 0), "write": (40, 0.5, 1 << 20)}, cpu_s=7.0), busy(1, 2, REDUCE)
    )
    found = made.diagnoses[0]
    assert found.cause is Cause.SERIAL_IO and found.rank == 0 and found.value(Signal.SYNC_CALLS) == 120
    assert "fsync and the like 2.50 s (120 calls)" in sentence(found) and "fsync less often" in remedy(found)
    control = first(busy(0, 2, PROMPT, {"sync": (120, 0.05, 0)}), busy(1, 2, REDUCE))
    assert control.cause is Cause.IMBALANCE


def test_input_and_output_of_all_ranks_is_no_waiting() -> None:
    storm: Uses = {"sync": (1000, 6.0, 0)}
    found = profile(*(busy(n, 2, PROMPT, storm, cpu_s=4.0) for n in range(2))).diagnoses
    assert [one.cause for one in found] == [Cause.IO] and found[0].share == pytest.approx(0.6)
    text = profile_text(profile(*(busy(n, 2, PROMPT, storm, cpu_s=4.0) for n in range(2))))
    assert text.startswith("60 % of the time is not computing: calls on files.") and "outside MPI     60 %" in text
    assert found[0].rank is None and "All ranks are in calls on files" in sentence(found[0])
    files: Uses = {"open": (9000, 2.0, 0), "metadata": (9000, 1.0, 0)}
    found = profile(*(busy(n, 2, PROMPT, files) for n in range(2))).diagnoses
    assert found[0].cause is Cause.METADATA and "36000 calls" in sentence(found[0])
    assert "Keep files open" in remedy(found[0])
    asks: Uses = {"open": (9, 0.1, 0), "metadata": (9000, 2.9, 0)}
    assert "Query and change files less often" in remedy(first(*(busy(n, 2, PROMPT, asks) for n in range(2))))
    little: Uses = {"write": (9000, 0.3, 0)}
    assert first(*(busy(n, 2, PROMPT, little) for n in range(2))).cause is Cause.COMPUTATION


@pytest.mark.parametrize(("calls", "is_small"), [(1_000_000, True), (100, False)])
def test_small_writes_are_counted_and_have_their_remedy(calls: int, is_small: bool) -> None:
    found = first(*(busy(n, 2, PROMPT, {"write": (calls, 4.0, 0)}) for n in range(2)))
    assert found.cause is Cause.IO and f"write 8.00 s ({2 * calls} calls)" in sentence(found)
    assert ("setvbuf" in remedy(found)) == is_small


def test_sleep_and_other_programs_are_named_and_unknown_blocking_is_not() -> None:
    sleeps = first(busy(0, 2, PROMPT, {"sleep": (10, 6.0, 0)}, cpu_s=4.0), busy(1, 2, REDUCE))
    assert sleeps.cause is Cause.BLOCKED_RANK and "sleeps" in sentence(sleeps) and "strace" not in remedy(sleeps)
    unknown = first(busy(0, 2, PROMPT, cpu_s=4.0), busy(1, 2, REDUCE))
    assert unknown.cause is Cause.BLOCKED_RANK and "is unknown" in sentence(unknown) and "strace" in remedy(unknown)
    together = first(*(busy(n, 2, PROMPT, {"child": (10, 6.0, 0)}, cpu_s=4.0) for n in range(2)))
    assert together.cause is Cause.BLOCKED and "child processes" in sentence(together)


def test_a_rank_with_little_to_do_waits_for_the_others() -> None:
    """Three workers compute for ten seconds, the first rank for three."""
    waits = [Call("MPI_Recv", 1000, 64, 7e-3, 2e-6)]
    found = first(busy(0, 4, waits), *(busy(n, 4, PROMPT) for n in range(1, 4)))
    assert found.cause is Cause.IDLE_RANK and found.rank == 0 and found.share == pytest.approx(0.175, abs=0.01)
    assert "rank 0" in short_words(found) and "waits for the others" in sentence(found)


def test_a_part_of_the_waiting_is_for_late_partners() -> None:
    """Rank 0 writes for two seconds longer; both wait three seconds for messages besides."""
    receive = Call("MPI_Recv", 1000, 1024, 3e-3, 2e-6)
    peers = [{1: (1000, 1024_000, 1000, 1024_000)}, {0: (1000, 1024_000, 1000, 1024_000)}]
    calls = [[receive], [receive, Call("MPI_Allreduce", 1000, 8, 2e-3, 2e-6)]]
    uses: list[Uses] = [{"write": (100, 2.0, 1 << 30)}, {}]
    made = profile(*(rank(n, 2, calls[n], peers=peers[n]).but(system_uses=uses[n]) for n in range(2)))
    assert [one.cause for one in made.diagnoses] == [Cause.LATE_SENDER, Cause.SERIAL_IO]
    assert made.diagnoses[0].share == pytest.approx(0.24, abs=0.02)


def test_nobody_is_late_while_no_rank_is_outside_mpi() -> None:
    """Small messages take all of the time on both ranks: it is no waiting for a late one."""
    calls = [Call("MPI_Recv", 1000, 8, 9.5e-3, 2e-6)]
    peers = [{1: (1000, 8000, 1000, 8000)}, {0: (1000, 8000, 1000, 8000)}]
    found = first(*(rank(n, 2, calls, peers=peers[n]) for n in range(2)))
    assert found.cause is Cause.NOT_KNOWN and "time in MPI itself" in sentence(found)
    large = [Call("MPI_Recv", 1000, 1 << 20, 9.5e-3, 2e-4)]
    found = first(*(rank(n, 2, large, peers=peers[n]) for n in range(2)))
    assert found.cause is Cause.TRANSFER


def test_the_last_rank_at_collectives() -> None:
    """Four ranks; the last one never waits, but computes as long as the others in total, which receive meanwhile."""
    waits = [Call("MPI_Barrier", 1000, 0, 2e-3, 2e-6)]
    last = [Call("MPI_Barrier", 1000, 0, 3e-6, 2e-6), Call("MPI_Bcast", 1000, 1 << 20, 2e-3, 1.9e-3)]
    found = profile(*(rank(n, 4, waits if n else last) for n in range(4))).diagnoses
    (late,) = (one for one in found if one.cause in WAITING_CAUSES)
    assert late.cause is Cause.LATE_AT_COLLECTIVE and late.rank == 0 and "arrives last" in sentence(late)


def test_the_time_of_short_delays_is_no_lateness() -> None:
    waits = [Call("MPI_Allreduce", 1000, 8, 0.9e-3, 2e-6)]
    delayed = [rank(n, 2, waits, cpu_s=9.2, delay_s=0.8) for n in range(2)]
    assert first(*delayed).cause is Cause.COMPUTATION
    assert first(*(rank(n, 2, waits) for n in range(2))).cause is Cause.LATE_AT_COLLECTIVE


def test_kinds_of_waiting() -> None:
    assert wait_kind("MPI_Win_lock") is WaitKind.WINDOW and wait_kind("MPI_Win_fence") is WaitKind.COLLECTIVE
    assert wait_kind("MPI_Test") is WaitKind.POLL and wait_kind("MPI_Iprobe") is WaitKind.POLL
    assert wait_kind("MPI_Isend") is None and wait_kind("MPI_Init") is None


def seconds(network: MeasuredNetwork, call: str, size_B: int) -> float | None:
    expected = network.expected(call, size_B)
    return None if expected is None else expected[0]


def test_reference_of_this_host() -> None:
    network = MeasuredNetwork({8: 1e-6, 1 << 20: 2e-4, 4 << 20: 1e-3}, {}, "mpi.latency of this results folder")
    assert seconds(network, "MPI_Recv", 8) == 1e-6 and seconds(network, "MPI_Recv", 0) == 1e-6
    assert seconds(network, "MPI_Recv", 2 << 20) == pytest.approx(4.47e-4, rel=0.01)
    assert seconds(network, "MPI_Recv", 8 << 20) is None and seconds(network, "MPI_Allreduce", 8) is None
    streamed = replace(network, bandwidth_Bps={8: 1e6, 4 << 20: 1e9})
    assert seconds(streamed, "MPI_Recv", 8 << 20) == pytest.approx(1e-3 + (4 << 20) / 1e9)
    send = [Call("MPI_Recv", 1000, 4 << 20, 2.1e-3, 2e-3)]
    found = [one for one in profile(*(rank(n, 2, send) for n in range(2))).diagnoses if one.cause is Cause.TRANSFER]
    (unmeasured,) = found
    assert "no measurement of such a call; by constants (a message on one node" in sentence(unmeasured)
    (slow,) = judged(found, network)
    assert "no measurement" not in sentence(slow)
    assert "2 times the 1.00 ms" in sentence(slow) and "the cause is unknown" in sentence(slow)
    (near,) = judged(found, replace(network, one_way_s={8: 1e-6, 4 << 20: 1.8e-3}))
    assert "the limit of this library and fabric" in sentence(near) and near.source == network.source


def test_collectives_are_judged_by_those_of_as_many_ranks() -> None:
    exchange = {64: 1e-5, 1 << 20: 1e-3}
    calls = {
        "MPI_Allreduce": MeasuredCall(exchange, "mpi.allreduce (ranks=2, nodes=1) of this results folder"),
        "MPI_Alltoall": MeasuredCall(exchange, "mpi.alltoall"),
        "MPI_Barrier": MeasuredCall({0: 2e-6}, "mpi.barrier"),
    }
    network = MeasuredNetwork({}, {}, "", calls, ranks=2)
    assert seconds(network, "MPI_Allreduce", 1 << 20) == 1e-3 and seconds(network, "MPI_Barrier", 0) == 2e-6
    assert seconds(network, "MPI_Alltoall", 2 << 20) == 1e-3, "half of the bytes are for each rank"
    assert seconds(network, "MPI_Allreduce", 2 << 20) is None and seconds(network, "MPI_Recv", 64) is None
    reduce = [Call("MPI_Allreduce", 1000, 1 << 20, 2.1e-3, 2e-3)]
    found = profile(*(rank(n, 2, reduce) for n in range(2))).diagnoses
    (transfer,) = (one for one in judged(found, network) if one.cause is Cause.TRANSFER)
    assert "2 times the 1.00 ms that such a call takes by mpi.allreduce (ranks=2" in sentence(transfer)


def test_what_ranks_had_of_a_cpu_stands_beside_the_verdict() -> None:
    made = profile(rank(0, 2, REDUCE, cpu_s=9.0, delay_s=0.5), rank(1, 2, PROMPT, cpu_s=10.0))
    document = profile_document(made, 0)
    check(document, "profile-1")
    assert document["cpu_spread"] is not None and document["cpu_spread"]["most_delay"] == pytest.approx(0.05)
    assert "0.90 to 1.00 CPUs used per rank, waited for a CPU at most 5" in profile_text(made)
    assert "0.90 to 1.00 CPUs used per rank" in profile_page([made])


def test_functions_that_are_called_instead_of_waiting() -> None:
    """More than three times as often as requests are started, or messages received."""
    names = ("MPI_Test", "MPI_Irecv", "MPI_Iprobe", "MPI_Recv")

    def polling(*counts: int, pause_s: float = 0.0) -> frozenset[int]:
        """Of calls that take 1 µs, with a pause before each."""
        count = np.array(counts)
        whole, sites = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.uint64)
        taken = (whole, np.arange(1, len(counts) + 1), whole, sites, count, whole, count * 1e-6, count * 1e-6, whole)
        return polling_calls(
            Rows(*taken, pause_s=count * pause_s, operated_s=0.0 * count, least_operated_s=0.0 * count), names
        )

    assert polling(10_000, 10, 30, 10) == {1} and polling(30, 10, 61, 10) == {3}
    assert polling(30, 10, 60, 10) == frozenset()
    assert polling(10_000, 10, pause_s=0.5e-6) == {1}
    assert polling(10_000, 10, pause_s=0.6e-6) == frozenset(), "it works between"


@pytest.mark.parametrize(
    ("late", "late_rank", "blocked", "first_is"),
    [
        (0.12, None, 0.05, Cause.BLOCKED),
        (0.18, None, 0.17, Cause.BLOCKED),  # nobody in particular is late, and all are blocked for as long
        (0.18, 1, 0.17, Cause.LATE_AT_COLLECTIVE),  # a rank is known
        (0.40, None, 0.15, Cause.LATE_AT_COLLECTIVE),  # that does not explain it
    ],
)
def test_blocked_ranks_come_before_what_they_explain(
    late: float, late_rank: int | None, blocked: float, first_is: Cause
) -> None:
    named = [
        Diagnosis(Cause.LATE_AT_COLLECTIVE, late, Sureness.INFERRED, rank=late_rank),
        Diagnosis(Cause.BLOCKED, blocked, Sureness.MEASURED),
    ]
    assert max(named, key=lambda one: weight(one, named)).cause is first_is
