"""The schedule for LogGOPSim: each operation after those that it needs, and nothing else before it."""

from __future__ import annotations

from pathlib import Path

from profiler.made_up_traces import Made, collective, done, receive, send, trace_file

from seatrial.profiler.trace.actions import Compute, Receive, Send, Wait
from seatrial.report.profile.goal import goal_lines
from seatrial.report.profile.trace_export import GOAL_FILE, write_trace


def test_what_follows_a_wait_requires_the_message() -> None:
    actions = [
        Compute(2e-6),
        Receive(1, 7, 50, is_posted=True),
        Send(1, 8, 60, is_posted=True),
        Compute(1e-6),
        Wait(1, 0, 7),
        Send(1, 9, 0, is_posted=False),
        Wait(0, 1, 8),
        Compute(1e-10),
        Receive(1, 9, 5, is_posted=False),
    ]
    assert list(goal_lines(0, actions)) == [
        "l1: calc 2000",
        *("l2: recv 50b from 1 tag 7", "l2 requires l1"),
        *("l3: send 60b to 1 tag 8", "l3 requires l1"),
        *("l4: calc 1000", "l4 requires l1"),
        *("l5: send 1b to 1 tag 9", "l5 requires l4", "l5 requires l2"),
        *("l6: recv 5b from 1 tag 9", "l6 requires l5", "l6 requires l3"),
    ]


def test_waits_are_for_the_oldest_message_of_their_kind() -> None:
    twice = [Receive(1, 7, 1, is_posted=True), Receive(1, 7, 2, is_posted=True), Wait(1, 0, 7), Compute(1e-6)]
    assert list(goal_lines(0, twice))[-2:] == ["l3: calc 1000", "l3 requires l1"]
    assert list(goal_lines(0, [Wait(1, 0, 7)])) == []


def test_a_program_in_one_file(tmp_path: Path) -> None:
    def of(rank: int) -> list[Made]:
        other = 1 - rank
        return [
            send("MPI_Isend", 0.1, 0.1, other, 3, 8),
            receive("MPI_Recv", 0.1, 0.1, other, 3, 8),
            done("MPI_Wait", 0.1, 0.2, 2),
            collective("MPI_Allreduce", 0.2, 0.3, 16),
        ]

    for rank in range(2):
        trace_file(tmp_path, rank, 2, of(rank), ended_s=0.3)
    told = write_trace(tmp_path, tmp_path / "out", has_goal=True)
    text = (tmp_path / "out" / GOAL_FILE).read_text()
    assert tmp_path / "out" / GOAL_FILE in told.files and text.startswith(
        "num_ranks 2\n\nrank 0 {\nl1: calc 100000000\n"
    )
    assert text.count("recv 16b from") == text.count("send 16b to") == 2, "collectives are messages here"
    assert text.count("{") == text.count("}") == 2
