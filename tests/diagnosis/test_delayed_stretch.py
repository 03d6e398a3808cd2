"""A rank that waited for a CPU for a part of the run, from made-up samples: when it was, why, and what is not said."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest
from diagnosis.test_diagnosis import REDUCE, WALL_S, S, profile, rank
from profiler.made_up_extensions import extension
from profiler.made_up_tables import Call
from published_schemas import check

from seatrial.profiler.cause import Cause, Signal
from seatrial.profiler.parquet import write_parquet
from seatrial.profiler.profile import Profile
from seatrial.report.profile.diagnosis_words import sentence
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.remedy_words import remedy
from seatrial.report.profile.text import profile_text
from seatrial.report.profile.words import balance_line, headline

NONE = 2**64 - 1
LOADED = 1_000_000
EVERY_S = 0.25


def samples(delayed: Callable[[float], float], busy: float = 2.0, steal: float = 0.0) -> list[tuple[int, ...]]:
    """Of 10 s on a node with `busy` CPUs in use; `delayed` gives the share of its time that the rank has no CPU."""
    rows, cpu, delay = [], 0.0, 0.0
    for k in range(int(WALL_S / EVERY_S)):
        at_s = k * EVERY_S
        rows.append(
            (LOADED + 1 + round(at_s * S), *(round(one * S) for one in (cpu, delay, busy * at_s, steal * at_s)))
        )
        delay += EVERY_S * delayed(at_s)
        cpu += EVERY_S * (1 - delayed(at_s))
    return rows


def made(delayed: Callable[[float], float], **node: float) -> Profile:
    """Two ranks, of which the second is delayed."""
    lost_s = sum(EVERY_S * delayed(k * EVERY_S) for k in range(int(WALL_S / EVERY_S)))
    calm = rank(0, 2, REDUCE, busy_s=20.0).but(extension=extension(samples=samples(lambda _: 0.0, **node)))
    slow = rank(1, 2, REDUCE, cpu_s=10.0 - lost_s, delay_s=lost_s, busy_s=20.0)
    return profile(calm, slow.but(extension=extension(samples=samples(delayed, **node))))


def for_a_while(at_s: float) -> float:
    return 0.5 if 3 <= at_s < 5 else 0.0


def shortly(at_s: float) -> float:
    return 0.5 if 3 <= at_s < 4.5 else 0.0


def test_a_neighbour_for_a_part_of_the_run_is_named_with_the_time() -> None:
    found = made(for_a_while)
    first = found.diagnoses[0]
    assert (first.cause, first.rank) == (Cause.OTHER_PROCESSES, 1) and first.share == pytest.approx(0.1)
    assert (first.value(Signal.FROM), first.value(Signal.UNTIL)) == (pytest.approx(3.0), pytest.approx(5.0))
    assert first.value(Signal.OTHERS_CPUS) == pytest.approx(0.5) and first.value(Signal.RUN_DELAY) == pytest.approx(0.5)
    assert "for 50 % of the time from 3.00 to 5.00 s after the start (10 % of all its time)" in sentence(first)
    assert "mostly from 3.00 to 5.00 s: other processes used 0.50 of 2 CPUs" in headline(found)
    assert len(found.diagnoses) == 1, "who is late depends on who had a CPU"
    check(profile_document(found, 0), "profile-1")


def test_a_neighbour_that_comes_again_and_again_is_periodic() -> None:
    """It runs for half a second of every 2.5 s: a fifth of the time, half of which it takes."""
    found = made(lambda at_s: 0.6 if at_s % 2.5 < 0.5 else 0.0)
    (first,) = (one for one in found.diagnoses if one.rank == 1 and one.cause is Cause.OTHER_PROCESSES)
    assert (first.value(Signal.BURSTS), first.value(Signal.PERIOD)) == (4, pytest.approx(2.5, rel=0.1))
    assert "4 times, about 2.5" in sentence(first) and "4 times, about 2.5" in headline(found)
    assert "every 2.5" in remedy(first)
    check(profile_document(found, 0), "profile-1")
    steady = made(lambda at_s: 0.3)
    assert steady.diagnoses[0].value(Signal.PERIOD) is None
    unsteady = made(lambda at_s: 0.9 if at_s in (1.0, 1.75, 5.0, 9.0) else 0.0)
    assert all(one.value(Signal.PERIOD) is None for one in unsteady.diagnoses)


def test_other_causes_stay_beside_a_short_disturbance() -> None:
    causes = [one.cause for one in made(shortly).diagnoses]
    assert causes == [Cause.LATE_AT_COLLECTIVE, Cause.OTHER_PROCESSES]


def test_steal_for_a_part_of_the_run() -> None:
    first = made(for_a_while, busy=1.5, steal=0.5).diagnoses[0]
    assert first.cause is Cause.STEAL and first.value(Signal.FROM) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("delayed", "is_named"),
    [
        (lambda _: 0.3, True),  # all the time
        (lambda at_s: 0.3 if int(at_s) % 2 else 0.1, True),  # again and again
        (lambda _: 0.05, False),
        (lambda at_s: 1.0 if at_s == 3.0 else 0.0, False),  # a quarter of a second
    ],
)
def test_no_time_is_named_of_what_lasts_or_is_little(delayed: Callable[[float], float], is_named: bool) -> None:
    found = [one for one in made(delayed).diagnoses if one.value(Signal.RUN_DELAY) and one.rank is not None]
    assert bool(found) == is_named and all(one.value(Signal.FROM) is None for one in found)


def test_the_table_of_ranks_names_no_rank_as_the_cause_where_cpus_were_missing() -> None:
    assert "computes longest" not in profile_text(made(for_a_while))
    assert balance_line(made(for_a_while)).startswith("Rank 0 on node1 used most CPU time: 10.0 s")
    uneven = (rank(0, 2, REDUCE), rank(1, 2, [Call("MPI_Allreduce", 1000, 8, 1e-3, 2e-6)]))
    assert balance_line(profile(*uneven)).startswith("Rank 1 on node1 computes longest")
    assert balance_line(profile(*(rank(n, 2, REDUCE) for n in range(2)))).startswith("All ranks compute about equally")


def test_unreported_and_doubled_samples_are_left_out() -> None:
    rows = samples(for_a_while)
    rows[10] = (rows[10][0], NONE, NONE, NONE, NONE)  # in a container without /proc
    doubled = [*rows[:20], rows[12], *rows[20:]]
    slow = rank(1, 2, REDUCE, cpu_s=9.0, delay_s=1.0, busy_s=20.0).but(extension=extension(samples=doubled))
    (cpu,) = (one.cpu for one in profile(rank(0, 2, REDUCE, busy_s=20.0), slow).per_rank if one.rank == 1)
    assert cpu is not None and cpu.slices is not None and len(cpu.slices.at_s) == len(rows) - 1
    assert list(cpu.slices.at_s) == sorted(cpu.slices.at_s) and cpu.slices.delay_s[-1] == pytest.approx(1.0)


def test_slices_of_every_rank_are_in_parquet(tmp_path) -> None:
    write_parquet(made(for_a_while), tmp_path)
    table = str(tmp_path / "cpu_slices.parquet")
    read = "SELECT rank, sum(run_delay_s), sum(to_s - from_s) FROM read_parquet(?) GROUP BY rank ORDER BY rank"
    rows = duckdb.execute(read, [table]).fetchall()
    assert [(one, round(delay, 6), round(span, 6)) for one, delay, span in rows] == [(0, 0.0, 9.75), (1, 1.0, 9.75)]
