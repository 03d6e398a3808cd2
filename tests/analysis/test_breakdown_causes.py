"""Why two sides differ: each planted change is named with its share, its control is not, and what cannot be told is not
known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from seatrial.analysis.breakdown_causes import change_diagnoses
from seatrial.analysis.breakdown_rows import Moving, repeat_of, split
from seatrial.diagnosis.disturbance.cause import RepeatCause
from seatrial.model.results.record_shape import check_record
from seatrial.model.study.comparison import Change, ChangeDiagnosis
from seatrial.profiler.cause import Cause
from seatrial.report.studies.change_words import change_sentence

NOISE = (0.0, 0.004, -0.003, 0.001, 0.002, -0.001, 0.003, -0.002)
Rows = Mapping[tuple[str, int], tuple[int, float, float]]
"""(function, size) -> calls of a rank, mean and shortest call in seconds."""


@dataclass(frozen=True)
class Made:
    """A made-up repeat of two ranks. `cpu_s`, `delay_s` per rank; the rest of the time is blocked."""

    computing_s: Sequence[float] = (1.0, 1.0)
    rows: Rows = field(default_factory=lambda: {("MPI_Allreduce", 8): (1000, 2e-6, 1e-6)})
    delay_s: float = 0.0
    blocked_s: float = 0.0
    others: float = 0.0
    quota: float | None = None
    throttled_share: float | None = None
    is_old: bool = False

    def summary(self, noise: float = 0.0) -> dict[str, Any]:
        ranks = len(self.computing_s)
        rows = [(name, size, n, mean, least) for (name, size), (n, mean, least) in self.rows.items()]
        calls = [[name, size, n * ranks, n * size * ranks, n * mean * ranks] for name, size, n, mean, _ in rows]
        calls.append(["MPI_Init", 0, ranks, 0, 0.05 * ranks])
        mpi_s = sum(row[4] for row in calls)
        times = [one * (1 + noise) for one in self.computing_s]
        wall_s = max(times) + mpi_s / ranks + self.delay_s
        made = {"ranks": ranks, "tables": ranks, "complete": True, "wall_s": wall_s * ranks, "mpi_s": mpi_s}
        made |= {"overhead_s": 1e-6, "calls": calls}
        if self.is_old:
            return made
        own = {
            "rank": list(range(ranks)),
            "node": [0] * ranks,
            "computing_s": times,
            "cpu_wall_s": [wall_s] * ranks,
            "cpu_s": [wall_s - self.delay_s - self.blocked_s] * ranks,
            "delay_s": [self.delay_s * (1 + noise)] * ranks,
            "throttled_share": [self.throttled_share] * ranks,
            "throttled_s": [None] * ranks,
            "quota": [self.quota] * ranks,
            "mask": [0] * ranks,
        }
        busy = sum(own["cpu_s"]) + self.others * wall_s
        node = {"host": "n1", "online": 2, "wall_s": wall_s, "busy_s": busy, "steal_s": 0.0}
        node["ranks_s"] = sum(own["cpu_s"])
        least = [row[4] for row in rows] + [0.05]
        return {**made, "least_s": least, "per_rank": own, "masks": [[0, 1]], "nodes": [node]}


def why(baseline: Made, candidate: Made, blocks: int = 8) -> tuple[ChangeDiagnosis, ...]:
    sides = [
        [repeat_of(one.summary(sign * x)) for x in NOISE[:blocks]] for sign, one in ((1, baseline), (-1, candidate))
    ]
    return change_diagnoses(sides[0], sides[1])


def changes(baseline: Made, candidate: Made) -> list[Change]:
    return [one.change for one in why(baseline, candidate)]


EVEN = Made()
EXCHANGE: Rows = {("MPI_Sendrecv", 1 << 20): (100, 1e-3, 8e-4), ("MPI_Send", 8): (100, 3e-7, 2e-7)}


def exchange(mean_s: float, least_s: float) -> Made:
    return replace(EVEN, rows={**EXCHANGE, ("MPI_Sendrecv", 1 << 20): (100, mean_s, least_s)})


def receive(mean_s: float, least_s: float, send_s: float = 2e-7) -> Made:
    return replace(EVEN, rows={("MPI_Recv", 8): (1000, mean_s, least_s), ("MPI_Send", 8): (1000, send_s, send_s)})


def collective(count: int, mean_s: float, least_s: float = 1e-6) -> Rows:
    return {("MPI_Allreduce", 8): (count, mean_s, least_s)}


SPUN = Made(delay_s=0.8, others=1.0)
PLANTED = {
    "computes longer": (EVEN, replace(EVEN, computing_s=(1.3, 1.3)), [Change.COMPUTATION]),
    "is blocked for longer": (EVEN, replace(EVEN, computing_s=(1.3, 1.3), blocked_s=0.3), [Change.BLOCKED]),
    "one rank computes longer": (
        EVEN,
        replace(EVEN, computing_s=(1.0, 1.6), rows=collective(1000, 3e-4)),
        [Change.IMBALANCE],
    ),
    "every message takes longer": (exchange(1e-3, 8e-4), exchange(5e-3, 4e-3), [Change.TRANSFER]),
    "a slower path": (receive(1e-6, 5e-7), receive(3e-4, 2e-4, send_s=8e-6), [Change.LATENCY]),
    "ten times the calls": (EVEN, replace(EVEN, rows=collective(100_000, 2e-6)), [Change.CALLS]),
    "larger messages": (
        replace(EVEN, rows={("MPI_Sendrecv", 8): (100, 1e-6, 1e-6)}),
        replace(EVEN, rows={("MPI_Sendrecv", 1 << 22): (100, 5e-3, 4e-3)}),
        [Change.SIZES],
    ),
    "other processes": (EVEN, SPUN, [Change.OTHER_PROCESSES]),
    "a quota": (EVEN, Made(delay_s=0.8, quota=0.6, throttled_share=0.9), [Change.CPU_QUOTA]),
    "another rank is late each time": (EVEN, replace(EVEN, rows=collective(1000, 5e-4)), [Change.LATE_AT_COLLECTIVE]),
    "late senders": (receive(1e-6, 5e-7), receive(5e-4, 5e-7), [Change.LATE_SENDER]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_change_is_named(name: str) -> None:
    baseline, candidate, expected = PLANTED[name]
    for sides in ((baseline, candidate), (candidate, baseline)):
        found = why(*sides)
        assert [one.change for one in found if one.change is not Change.LATENCY or one.share > 0.2] == expected, found
        assert found[0].share > 0.6 and (found[0].p_value or 0.0) < 0.05
        said = change_sentence(found[0])
        assert "unknown" not in said and said[0].isupper() and "->" in said


def test_the_slowest_rank_and_the_calls_are_named() -> None:
    (found,) = why(*PLANTED["one rank computes longer"][:2])
    assert found.rank == 1 and "wait for rank 1" in change_sentence(found)
    (found,) = why(*PLANTED["every message takes longer"][:2])
    assert (found.call, found.size_B) == ("MPI_Sendrecv", 1 << 20)
    assert "800 µs -> 4.00 ms for the shortest" in change_sentence(found).replace("\N{NO-BREAK SPACE}", " ")
    (found,) = why(*PLANTED["a quota"][:2])
    assert "none -> 0.6 CPUs" in change_sentence(found)


def test_two_changes_are_both_said_by_their_share() -> None:
    both = replace(EVEN, computing_s=(1.3, 1.3), rows=collective(100_000, 2e-6))
    found = why(EVEN, both)
    assert [one.change for one in found] == [Change.COMPUTATION, Change.CALLS]
    assert [round(one.share, 1) for one in found] == [0.6, 0.4]


CONTROLS = {
    "equal sides": (EVEN, EVEN),
    "both disturbed": (SPUN, SPUN),
    "within the noise": (EVEN, replace(EVEN, computing_s=(1.0005, 1.0005))),
    "records of an earlier version without a difference": (replace(EVEN, is_old=True), replace(EVEN, is_old=True)),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_has_no_cause(name: str) -> None:
    assert why(*CONTROLS[name]) == ()


def test_few_blocks_have_no_cause() -> None:
    assert why(EVEN, replace(EVEN, computing_s=(2.0, 2.0)), blocks=5) == ()


NOT_KNOWN = {
    # the shortest receive is longer too, but no other call says that the path is slower
    "every receive waits": (receive(1e-6, 5e-7), receive(5e-4, 4e-4)),
    # waiting that is not far beyond what a call may take
    "some waiting": (EVEN, replace(EVEN, rows=collective(200_000, 1.2e-5, 1e-6))),
    "polls take longer": (
        replace(EVEN, rows={("MPI_Test", 0): (1000, 1e-6, 1e-7)}),
        replace(EVEN, rows={("MPI_Test", 0): (900_000, 1e-6, 1e-7)}),
    ),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_what_the_signals_do_not_explain_is_not_known(name: str) -> None:
    baseline, candidate = NOT_KNOWN[name]
    if name == "some waiting":
        baseline = replace(baseline, rows=collective(200_000, 2e-6))
    (found,) = why(baseline, candidate)
    assert found.change is Change.NOT_KNOWN and found.share > 0.9 and found.p_value is None
    assert "is unknown" in change_sentence(found) and "--wait 10" in change_sentence(found)


def test_nothing_about_waiting_where_ranks_had_no_cpu() -> None:
    """Who waits depends on who had a CPU: the imbalance of the candidate is not claimed."""
    busy = replace(SPUN, computing_s=(1.0, 2.5), rows=collective(1000, 7e-4))
    found = changes(SPUN, busy)
    assert Change.IMBALANCE not in found and found[-1] is Change.NOT_KNOWN


def test_computing_longer_beside_others_is_not_their_fault() -> None:
    """Both sides have a CPU for half of the time: who computes longer also waits longer for one."""
    light, heavy = (Made((1.0 * n, 1.0 * n), delay_s=0.8 * n, others=1.0) for n in (1.0, 1.5))
    (found,) = why(light, heavy)
    assert found.change is Change.COMPUTATION and "CPU time" in change_sentence(found)


def test_old_records_have_the_causes_that_their_sums_tell() -> None:
    old = replace(EVEN, is_old=True)
    assert changes(old, replace(old, computing_s=(1.5, 1.5))) == [Change.COMPUTATION]
    (found,) = why(old, replace(old, rows=collective(1000, 5e-4)))
    assert found.change is Change.NOT_KNOWN


def test_the_parts_of_calls_add_up_and_turn_with_the_sides() -> None:
    one, two = (repeat_of(made.summary()) for made in PLANTED["every message takes longer"][:2])
    there, back = split(one, two).parts, split(two, one).parts
    mpi = [Moving.STARTUP, Moving.CALLS, Moving.LATENCY, Moving.TRANSFER, Moving.WAITING]
    assert sum(there[part] for part in mpi) == pytest.approx(two.mpi_s - one.mpi_s)
    assert {part: -seconds for part, seconds in there.items()} == pytest.approx(back)


def test_a_change_has_the_name_that_a_profile_gives_it() -> None:
    others = {"blocked", "number-of-calls", "message-sizes", "user-code", "files"}
    assert {one.value for one in Change} - others <= {one.value for one in (*Cause, *RepeatCause)}


def test_damaged_summaries_are_refused_or_ignored() -> None:
    line: dict[str, Any] = {"v": 1, "experiment": "a", "repeat": 0, "order": 0, "t0": 0.0, "wall_s": 1.0}
    line |= {"outcome": "ok", "reason": "", "evidence": "", "stage": None, "check": "", "samples": [], "checks": {}}
    good = EVEN.summary()
    check_record({**line, "seen": {"mpi": good}})
    check_record({**line, "seen": {"mpi": None}})
    bad: list[dict[str, Any]] = [
        {**good, "calls": [["MPI_Send", 8, 1, 8]]},
        {**good, "calls": [["MPI_Send", 8, 1, 8, -1.0]]},
        {**good, "calls": [[3, 8, 1, 8, 1.0]]},
        {**good, "wall_s": "1"},
        {**good, "per_rank": {**good["per_rank"], "rank": [-1, 0]}},
        {},
    ]
    for summary in bad:
        with pytest.raises(ValueError):
            check_record({**line, "seen": {"mpi": summary}})
    torn = {**good, "per_rank": {**good["per_rank"], "rank": [0]}}
    assert repeat_of(torn).profile is None
    lost = {**good, "masks": [], "nodes": [], "least_s": []}
    check_record({**line, "seen": {"mpi": lost}})
    assert repeat_of(lost).profile is not None
