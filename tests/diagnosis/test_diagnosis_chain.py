"""Diagnoses of ranks that are late because of their own time in MPI or at changing times, of data with gaps, and of
ranks that were killed, on made-up profiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnosis.test_diagnosis import first, profile, rank
from profiler.made_up_extensions import extension
from profiler.made_up_tables import Call, Table, Thread
from profiler.test_node import S
from published_schemas import check

from seatrial.diagnosis.diagnose import diagnose
from seatrial.profiler.cause import CallSite, Cause, Diagnosis, Frame, Signal
from seatrial.profiler.profile import Profile
from seatrial.report.profile.diagnosis_words import sentence, short_words
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.text import profile_text
from seatrial.report.profile.words import headline, trust_lines

IS_SENT = [{1: (1000, 64_000, 0, 0)}, {0: (0, 0, 1000, 64_000)}]


def with_lines(made: Profile) -> Profile:
    """The same with a line for each function, as with debug information."""
    calls = [CallSite(one.call, "", 0, one.count, one.time_s, one.bytes, 1) for one in made.calls]
    sites = tuple(replace(one, frames=(Frame("main", "app.c", k),)) for k, one in enumerate(calls, 1))
    made = replace(made, callsites=sites)
    return replace(made, diagnoses=diagnose(made))


def line_of(made: Profile, call: str) -> str:
    return next(f"{one.call} at main app.c:{one.frames[0].line}" for one in made.callsites if one.call == call)


def named(made: Profile, cause: Cause) -> Diagnosis | None:
    return next((one for one in made.diagnoses if one.cause is cause), None)


def test_a_rank_that_is_late_because_its_calls_take_long() -> None:
    """Rank 0 waits at a barrier for 8 of 10 s, while rank 1 receives what rank 0 sent before."""
    waits = [Call("MPI_Barrier", 10, 0, 0.8, 1e-6), Call("MPI_Send", 1000, 64, 4e-7)]
    works = [Call("MPI_Barrier", 10, 0, 2e-6, 1e-6), Call("MPI_Recv", 1000, 64, 8e-3, 4e-8)]
    made = with_lines(profile(rank(0, 2, waits, peers=IS_SENT[0]), rank(1, 2, works, peers=IS_SENT[1])))
    found = made.diagnoses[0]
    assert found.cause is Cause.LATE_IN_CALL and found.rank == 1 and found.share == pytest.approx(0.8, abs=0.01)
    said = sentence(found)
    assert (
        "MPI_Recv (64 B) at main app.c" in said
        and line_of(made, "MPI_Barrier") in said
        and "the cause is unknown" in said
    )
    assert headline(made).endswith("waiting for rank 1 on node1, which is in MPI_Recv") and "MPI_Irecv" in remedy(found)
    document = profile_document(made, 0)
    check(document, "profile-1")
    assert document["diagnoses"][0]["late_at"]["call"] == "MPI_Recv"
    # The partner has the time to be late for these messages: it computes meanwhile, and waits elsewhere.
    waits = [Call("MPI_Barrier", 10, 0, 0.5, 1e-6), Call("MPI_Send", 1000, 64, 4e-7)]
    works = [Call("MPI_Barrier", 10, 0, 2e-6, 1e-6), Call("MPI_Recv", 1000, 64, 5e-3, 4e-8)]
    control = profile(rank(0, 2, waits, peers=IS_SENT[0]), rank(1, 2, works, peers=IS_SENT[1]))
    assert named(control, Cause.LATE_IN_CALL) is None


@pytest.mark.parametrize("is_at_once", [True, False])
def test_a_rank_is_late_in_its_calls_if_its_partner_is_in_mpi_at_the_same_time(is_at_once: bool) -> None:
    """Both compute for half of the time. Rank 1 receives what rank 0 sent before, while that waits at a barrier; or it
    waits for rank 0 while that computes."""
    waits = [Call("MPI_Barrier", 10, 0, 0.5, 1e-6), Call("MPI_Send", 1000, 64, 4e-7)]
    works = [Call("MPI_Barrier", 10, 0, 2e-6, 1e-6), Call("MPI_Recv", 1000, 64, 5e-3, 4e-8)]
    calls = [waits, works]
    in_mpi = [[float(k % 2 == (0 if is_at_once else n)) for k in range(10)] for n in range(2)]
    threads = [Thread(calls[n], IS_SENT[n], over_time=in_mpi[n]) for n in range(2)]
    found = first(*(replace(rank(n, 2, []), threads=[threads[n]]) for n in range(2)))
    assert found.cause is (Cause.LATE_IN_CALL if is_at_once else Cause.LATE_SENDER)
    if is_at_once:
        assert found.rank == 1 and "in the order of sending" in remedy(found)


def test_access_to_a_window_that_takes_long_itself() -> None:
    """Rank 1 locks and unlocks again and again, while rank 0 has done its part and waits."""
    waits = [Call("MPI_Barrier", 2, 0, 4.0, 1e-6), Call("MPI_Win_unlock", 1_000_000, 0, 4e-8)]
    works = [Call("MPI_Barrier", 2, 0, 2e-6, 1e-6), Call("MPI_Win_unlock", 1_000_000, 0, 8e-6, 8e-7)]
    found = first(rank(0, 2, waits), rank(1, 2, works))
    assert found.cause is Cause.LATE_IN_CALL and found.rank == 1 and "fewer epochs" in remedy(found)


def test_a_late_receiver_and_what_follows_from_it() -> None:
    """Rank 0 is held in MPI_Send until rank 1 receives; then rank 1 waits for it in MPI_Allreduce."""
    sent = [{1: (1000, 800_000_000, 0, 0)}, {0: (0, 0, 1000, 800_000_000)}]
    held = [Call("MPI_Send", 1000, 800_000, 4e-3, 3.9e-3), Call("MPI_Allreduce", 1000, 8, 2e-6, 1e-6)]
    late = [Call("MPI_Recv", 1000, 800_000, 1e-4, 8e-5), Call("MPI_Allreduce", 1000, 8, 4e-3, 3.9e-3)]
    made = with_lines(profile(rank(0, 2, held, peers=sent[0]), rank(1, 2, late, peers=sent[1])))
    found = made.diagnoses[0]
    assert found.cause is Cause.LATE_RECEIVER and found.rank == 1 and found.then_rank == 0
    assert named(made, Cause.LATE_AT_COLLECTIVE) is None and found.share == pytest.approx(0.396, abs=0.005)
    said = sentence(found)
    assert said.startswith("Rank 1 on node1 receives messages late")
    assert line_of(made, "MPI_Recv") in said and line_of(made, "MPI_Allreduce") in said
    assert "receives messages late" in short_words(found)
    # The sender waits much less than the others do at the collective: two causes.
    held[0] = Call("MPI_Send", 1000, 800_000, 3e-3, 2.9e-3)
    late[1] = Call("MPI_Allreduce", 1000, 8, 7e-3, 6.9e-3)
    apart = profile(rank(0, 2, held, peers=sent[0]), rank(1, 2, late, peers=sent[1]))
    assert all(one.then is None for one in apart.diagnoses)


@pytest.mark.parametrize(("delay_s", "is_named"), [(1.5, True), (3.0, False)])
def test_a_missing_cpu_does_not_hide_late_messages(delay_s: float, is_named: bool) -> None:
    """Two ranks send in turn, and wait for half of the time; other processes use their CPUs besides."""
    sent = [{1 - n: (100, 1_600_000, 100, 1_600_000)} for n in range(2)]
    calls = [Call("MPI_Recv", 100, 16_000, 50e-3, 5e-6), Call("MPI_Send", 100, 16_000, 5e-6)]
    tables = [rank(n, 2, calls, 10 - delay_s, delay_s, busy_s=20.0, peers=sent[n]) for n in range(2)]
    made = profile(*tables)
    assert named(made, Cause.OTHER_PROCESSES) is not None
    found = named(made, Cause.LATE_SENDER)
    assert (found is not None) == is_named
    if found is not None:
        assert found is made.diagnoses[0], "its share is larger"
        assert found.share == pytest.approx(0.5 - delay_s / 10, abs=0.01)


def turns(number: int, *, is_seen: bool) -> Table:
    """Two ranks that wait in turn for a second; `is_seen`: the slices of time are short enough to see it."""
    waited = [0.9 if k % 2 == number else 0.1 for k in range(10)] if is_seen else [0.5] * 10
    made = rank(number, 2, [Call("MPI_Allreduce", 1000, 8, 5e-3, 2e-6)])
    return replace(made, threads=[replace(made.threads[0], over_time=waited)])


def test_computing_that_varies_over_time() -> None:
    found = first(*(turns(n, is_seen=True) for n in range(2)))
    assert found.cause is Cause.LATE_AT_COLLECTIVE and found.rank is None
    assert found.value(Signal.EXPLAINED_IN_SLICES) == pytest.approx(0.8, abs=0.02)
    assert "within slices of 1.00 s, the differences explain 80 % of it. Another rank is late each time" in sentence(
        found
    )
    unseen = first(*(turns(n, is_seen=False) for n in range(2)))
    assert unseen.cause is Cause.LATE_AT_COLLECTIVE and "another rank may be late each time" in sentence(unseen)


def test_that_another_rank_is_late_each_time_is_sure_if_measured() -> None:
    calls = [
        Call("MPI_Allreduce", 1000, 8, 5e-3, 2e-6),
        Call("MPI_Allreduce", 100, 8, 4.9e-3, part=1),
        Call("MPI_Allreduce", 100, 8, 1e-5, part=2),
    ]
    found = first(*(rank(n, 2, calls) for n in range(2)))
    assert found.cause is Cause.LATE_AT_COLLECTIVE and "another rank is late each time" in sentence(found)


def test_data_with_gaps() -> None:
    """8 MiB in 28 ms, where a message on one node takes at most 8.4 ms by the constants, which are generous."""
    size, count = 8 << 20, 100
    sent = [{1 - n: (count, size * count, count, size * count)} for n in range(2)]
    tables = [rank(n, 2, [Call("MPI_Recv", count, size, 3.2e-2, 2.8e-2)], peers=sent[n]) for n in range(2)]
    contiguous = first(*tables)
    assert contiguous.cause is Cause.TRANSFER and "one node" not in remedy(contiguous)
    made = profile(*(one.but(noncontiguous_B=size * count) for one in tables))
    found = made.diagnoses[0]
    assert found.cause is Cause.PACKING and found.value(Signal.NONCONTIGUOUS) == 1
    assert "datatypes with gaps" in sentence(found) and "contiguous buffer" in remedy(found)
    assert headline(made).endswith("transfer of data that is not contiguous")
    often = 3 * count
    peers = [{1 - n: (often, size * often, often, size * often)} for n in range(2)]
    for best_s, cause in ((5e-3, Cause.PACKING), (4e-3, Cause.TRANSFER)):
        calls = [Call("MPI_Recv", often, size, 1.2 * best_s, best_s)]
        pair = [rank(n, 2, calls, peers=peers[n]).but(noncontiguous_B=size * often) for n in range(2)]
        assert first(*pair).cause is cause
    few = first(*(one.but(noncontiguous_B=size * count // 10) for one in tables))
    assert few.cause is Cause.TRANSFER
    far = first(*(one.but(host=f"node{k}", loaded_at_s=1.7e9) for k, one in enumerate(tables)))
    assert "place communicating ranks on one node" in remedy(far)


def test_communicators_that_are_made_again_and_again() -> None:
    often = profile(*(rank(n, 2, [Call("MPI_Comm_split", 100_000, 0, 2e-5, 1.8e-5)]) for n in range(2)))
    found = often.diagnoses[0]
    assert found.cause is Cause.COMMUNICATORS and "200000 calls of MPI_Comm_split, 20.0 µs each" in sentence(found)
    assert "before the steps" in remedy(found) and headline(often).endswith("made again and again")
    once = profile(*(rank(n, 2, [Call("MPI_Comm_split", 4, 0, 0.3, 0.3)]) for n in range(2)))
    assert named(once, Cause.COMMUNICATORS) is None


def test_accesses_of_files_are_no_messages_and_no_waiting() -> None:
    writes = [Call("MPI_File_write_at", 100_000, 32, 3e-5, 1e-6)]
    made = profile(*(rank(n, 2, writes) for n in range(2)))
    assert [one.cause for one in made.diagnoses] == [Cause.MPI_IO]
    found = made.diagnoses[0]
    assert found.share == pytest.approx(0.3) and "Access files in fewer, larger pieces" in remedy(found)
    assert "calls on files in MPI" in headline(made) and all(one.waits.all_s == 0 for one in made.per_rank)


def test_a_little_startup_comes_after_other_causes() -> None:
    calls = [Call("MPI_Init", 1, 0, 0.9), Call("MPI_Allreduce", 1000, 8, 5e-3, 2e-6)]
    less = [calls[0], Call("MPI_Allreduce", 1000, 8, 8e-4, 2e-6)]
    short = profile(*(rank(n, 2, calls) for n in range(2)))
    assert [one.cause for one in short.diagnoses] == [Cause.LATE_AT_COLLECTIVE, Cause.STARTUP]
    assert "note: MPI startup and shutdown take 9.0 % of the time" in profile_text(short)
    alone = profile(*(rank(n, 2, less) for n in range(2)))
    assert [one.cause for one in alone.diagnoses] == [Cause.COMPUTATION]


def test_time_in_calls_on_files_is_no_computing_where_a_rank_waits_for_a_cpu() -> None:
    """Rank 0 is outside MPI 2 s longer: 1.6 s in calls on files, and it waits 0.4 s for a CPU."""
    writes = rank(0, 2, [Call("MPI_Allreduce", 1000, 8, 3e-6, 2e-6)], cpu_s=8.0, delay_s=0.4)
    writes = writes.but(system_uses={"sync": (100, 1.6, 0)})
    waits = rank(1, 2, [Call("MPI_Allreduce", 1000, 8, 2e-3, 2e-6)], cpu_s=9.9, delay_s=0.1)
    found = profile(writes, waits.but(system_uses={})).diagnoses
    assert found[0].cause is Cause.SERIAL_IO and named(profile(writes, waits), Cause.IMBALANCE) is None


def test_a_rank_that_was_killed_has_cpu_time_up_to_its_last_sample() -> None:
    samples = [(10**6 + k * S, k * S // 2, k * S // 2, k * S, 0) for k in range(1, 10)]
    calls = [Call("MPI_Allreduce", 1000, 8, 1e-3, 2e-6)]
    tables = [rank(n, 2, calls).but(cpu_last=(), state=1, extension=extension(samples=samples)) for n in range(2)]
    made = profile(*tables)
    cpu = made.per_rank[0].cpu
    assert cpu is not None and cpu.wall_s == pytest.approx(8.0) and cpu.delay_share == pytest.approx(0.5)
    assert made.diagnoses[0].value(Signal.RUN_DELAY) == pytest.approx(0.5)
    check(profile_document(made, None), "profile-1")
    unknown = profile(*(one.but(extension=b"", version=2) for one in tables))
    (line,) = (one for one in trust_lines(unknown) if one.name == "CPU time")
    assert line.is_weak and "ranks 0, 1: they may have waited for a CPU" in line.text


def test_the_program_is_the_script_of_an_interpreter() -> None:
    table = Table(threads=[Thread([Call("MPI_Init", 1, 0, 0.1)])], program="/usr/bin/python3.11", script="app.py")
    assert profile(table).program == "app.py" and profile(table.but(script="")).program == "/usr/bin/python3.11"


def test_busy_threads_are_counted() -> None:
    calls = [Call("MPI_Allreduce", 1000, 8, 3e-6, 2e-6)]
    found = first(*(rank(n, 2, calls, 9.9, 10.0) for n in range(2)))
    assert (
        found.cause is Cause.MORE_RANKS_THAN_CPUS
        and "at least 4 busy threads of 2 ranks share 2 CPUs" in short_words(found)
    )
