"""The export of traces: lines that SimGrid's replay reads, time outside of MPI as computation, matching tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from profiler.made_up_traces import Made, collective, communicator, counts, done, receive, send, trace_file

from seatrial.analysis.network_fit import NetworkTables
from seatrial.errors import UsageError
from seatrial.model.json_object import filled
from seatrial.profiler.profile import Profile, RankCpu, RankState, RankTotals, empty_profile
from seatrial.profiler.trace.actions import Receive, Send, WorldCollective
from seatrial.profiler.trace.trace_file import COMMUNICATOR, MESSAGES, Flag, RecordKind
from seatrial.report.profile.document import TraceJson
from seatrial.report.profile.trace_export import TiExport, export_ti, lines_of, trace_load, write_trace

FIRST_OF_OWN = 2
"""The place of a trace's first record behind those of world and self."""


def exported(folder: Path, ranks: Sequence[Sequence[Made]], **options: Any) -> tuple[TiExport, list[list[str]]]:
    """What was written for each rank, without its number in front."""
    traces = [trace_file(folder, rank, len(ranks), made, **options) for rank, made in enumerate(ranks)]
    export = export_ti(traces, folder / "ti")
    assert export.files[0].read_text().splitlines() == [file.name for file in export.files[1:]]
    lines = []
    for rank, file in enumerate(export.files[1:]):
        whole = file.read_text().splitlines()
        assert all(line.split()[0] == str(rank) for line in whole)
        lines.append([line.split(" ", 1)[1] for line in whole])
        assert lines[-1][0] == "init" and lines[-1][-1] == "finalize"
    return export, [rank[1:-1] for rank in lines]


def test_time_outside_of_mpi_is_computation(tmp_path: Path) -> None:
    zero = [send("MPI_Send", 0.25, 0.35, 1, 7, 100), receive("MPI_Recv", 0.4, 0.5, 1, 7, 8, waited_s=0.02)]
    one = [receive("MPI_Recv", 0.1, 0.4, 0, 7, 100), send("MPI_Ssend", 0.45, 0.5, 0, 7, 8)]
    export, (first, second) = exported(tmp_path, [zero, one])
    assert first == [
        "compute 250000000",
        "send 1 1 100",
        "compute 30000000",  # less what it waited for in calls without a record
        "recv 1 1 8",
        "compute 500000000",
    ]
    assert second == ["compute 100000000", "recv 0 1 100", "compute 50000000", "send 0 1 8", "compute 500000000"]
    assert (export.messages, export.collectives, export.dropped, export.wall_s) == (2, 0, 0, 1.0)


def with_load(own_share: float, delay_s: float) -> Profile:
    """One rank that ran for 2 s, half of it outside MPI."""
    cpu = RankCpu(2.0, 2.0 - delay_s, delay_s, None, None, None, None, None, None, None, (), None)
    rank = RankTotals(0, "n1", 2.0, 1.0, 1, 0, 0, 0, 1, RankState.FINALIZED, cpu)
    profile = replace(empty_profile("a"), ranks=1, per_rank=(rank,))
    assert trace_load(profile, 1).ranks[0].own_share == pytest.approx(own_share)
    return profile


def test_computation_is_without_the_time_that_a_rank_waited_for_a_cpu(tmp_path: Path) -> None:
    trace_file(tmp_path, 0, 1, [], ended_s=0.45)
    quiet = write_trace(tmp_path, tmp_path / "quiet", None, [with_load(0.99, 0.02)])
    assert quiet.load.cpu_share == pytest.approx(0.99) and not quiet.load.is_disturbed
    assert "had 0.99 of a processor" in quiet.summary[1] and "warning" not in " ".join(quiet.summary)
    assert (tmp_path / "quiet" / "rank-0.txt").read_text().splitlines() == [
        "# seatrial: CPU time 1.980000 s of 2.000000 s, ready to run without a CPU 0.020000 s; "
        "computation is 0.9900 of the time between calls",
        "0 init",
        "0 compute 445500000",
        "0 finalize",
    ]
    loaded = write_trace(tmp_path, tmp_path / "loaded", None, [with_load(0.5, 1.0)])
    assert loaded.load.is_disturbed and loaded.load.delay_share == 0.5
    assert "warning: ranks waited for a CPU for more than 10 %" in loaded.summary[2]
    text = (tmp_path / "loaded" / "rank-0.txt").read_text()
    assert "WARNING" in text and "0 compute 225000000\n" in text
    document = filled(TraceJson, loaded)
    assert (document["cpu_share"], document["delay_share"], document["disturbed"]) == (0.5, 0.5, True)


def test_blocked_time_stays_and_an_unknown_load_changes_nothing(tmp_path: Path) -> None:
    cpu = RankCpu(2.0, 0.5, 0.5, None, None, None, None, None, None, None, (), None)
    rank = RankTotals(0, "n1", 2.0, 0.5, 1, 0, 0, 0, 1, RankState.FINALIZED, cpu)
    blocked = trace_load(replace(empty_profile("a"), ranks=1, per_rank=(rank,)), 1)
    assert blocked.ranks[0].own_share == pytest.approx((1.0 + 0.5 * 0.5) / 1.5)
    unknown = replace(empty_profile("a"), ranks=1, per_rank=(replace(rank, cpu=None),))
    trace_file(tmp_path, 0, 1, [], ended_s=1.0)
    export = write_trace(tmp_path, tmp_path / "ti", None, [unknown])
    assert export.load.cpu_share is None and export.load.delay_share is None and not export.load.is_disturbed
    assert "unknown" in export.summary[1]
    assert (tmp_path / "ti" / "rank-0.txt").read_text().splitlines()[1:] == [
        "0 init",
        "0 compute 1000000000",
        "0 finalize",
    ]
    assert trace_load(unknown, 2).ranks == () and trace_load(replace(unknown, ranks=2), 2).ranks == ()


def test_a_rank_that_started_later_waits_for_its_start(tmp_path: Path) -> None:
    traces = [trace_file(tmp_path, 0, 2, []), trace_file(tmp_path, 1, 2, [], late_s=0.5)]
    export = export_ti(traces, tmp_path / "ti")
    assert export.files[2].read_text() == "1 init\n1 compute 500000000\n1 compute 1000000000\n1 finalize\n"
    assert export.wall_s == 1.5


def test_requests_are_waited_for_where_they_completed(tmp_path: Path) -> None:
    zero = [
        receive("MPI_Irecv", 0.1, 0.1, 1, 3, 50),
        send("MPI_Isend", 0.1, 0.1, 1, 4, 60),
        send("MPI_Isend", 0.1, 0.1, 1, 5, 70, flags=Flag.AT_ONCE),
        send("MPI_Isend", 0.1, 0.1, 1, 6, 9000, flags=Flag.AT_ONCE),
        done("MPI_Waitall", 0.1, 0.2, FIRST_OF_OWN + 1, FIRST_OF_OWN),
    ]
    one = [receive("MPI_Recv", 0.1, 0.1, 0, tag, 1) for tag in (4, 5, 6)] + [send("MPI_Bsend", 0.1, 0.2, 0, 3, 50)]
    _, (first, second) = exported(tmp_path, [zero, one], ended_s=0.2)
    assert first[1:] == [
        *("irecv 1 1 50", "isend 1 2 60", "send 1 3 70", "isend 1 4 9000"),
        *("wait 0 1 2", "wait 1 0 1"),
        "wait 0 1 4",  # it did not complete
    ]
    assert second[-2:] == ["isend 0 1 50", "wait 1 0 1"], "a buffered send does not wait"


def test_both_ways_at_once_and_a_request_of_both(tmp_path: Path) -> None:
    body = MESSAGES.pack(30, 40, 1, 1, 1, 2)
    both = Flag.SENDS | Flag.RECEIVES | Flag.COMPLETED
    zero = [
        Made(RecordKind.MESSAGES, "MPI_Sendrecv", 0.1, 0.2, body, flags=both),
        Made(RecordKind.POST, "MPI_Isendrecv", 0.2, 0.2, body, flags=both),
        done("MPI_Wait", 0.2, 0.3, FIRST_OF_OWN + 1),
    ]
    other = MESSAGES.pack(40, 30, 0, 2, 0, 1)
    one = [Made(RecordKind.MESSAGES, "MPI_Sendrecv", 0.1, 0.2, other, flags=both)] * 2
    _, (first, _) = exported(tmp_path, [zero, one], ended_s=0.3)
    exchange = ["isend 1 1 30", "irecv 1 2 40", "wait 0 1 1", "wait 1 0 2"]
    assert [line for line in first if "compute" not in line] == exchange * 2


def test_tags_of_communicators_are_kept_apart(tmp_path: Path) -> None:
    zero = [communicator(3, 5, 0, 2), send("MPI_Send", 0.1, 0.1, 1, 7, 1), send("MPI_Send", 0.1, 0.1, 1, 7, 2, comm=3)]
    one = [
        communicator(3, 6, 0, 1),
        communicator(4, 5, 1, 2),
        receive("MPI_Recv", 0.1, 0.1, 0, 7, 2, comm=4),
        receive("MPI_Recv", 0.1, 0.1, 0, 7, 1),
    ]
    _, (first, second) = exported(tmp_path, [zero, one], ended_s=0.1)
    assert first[1:] == ["send 1 1 1", "send 1 2 2"] and second[1:] == ["recv 0 2 2", "recv 0 1 1"]


def test_collectives_of_all_ranks_and_of_some(tmp_path: Path) -> None:
    def of(rank: int) -> list[Made]:
        pair = communicator(3, 10 + rank % 2, rank // 2, 2)
        return [
            collective("MPI_Comm_split", 0.1, 0.1, kind=RecordKind.CREATION),
            pair,
            collective("MPI_Bcast", 0.1, 0.1, 64, 2),
            collective("MPI_Allreduce", 0.1, 0.1, 8),
            collective("MPI_Reduce_scatter_block", 0.1, 0.1, 8),
            collective("MPI_Allreduce", 0.1, 0.2, 8, comm=3),
            collective("MPI_Barrier", 0.2, 0.3, comm=2),
            collective("MPI_Neighbor_alltoall", 0.3, 0.4, kind=RecordKind.CALL),
        ]

    export, ranks = exported(tmp_path, [of(rank) for rank in range(4)], ended_s=0.5)
    start = ["compute 100000000", "allreduce 4 0", "bcast 64 2", "allreduce 8 0", "reducescatter 8 8 8 8 0"]
    for rank, lines in enumerate(ranks):
        other, tag = (rank + 2) % 4, 1 + rank % 2
        swap = [f"irecv {other} {tag} 8", f"isend {other} {tag} 8", f"wait {other} {rank} {tag}"]
        end = ["compute 300000000"]  # alone it waits for no other rank, and neighbourhoods are not replayed
        assert lines == [*start, *swap, f"wait {rank} {other} {tag}", *end]
    assert export.collectives == 4 and export.left_out.calls == {"MPI_Neighbor_alltoall": 4}


def test_collectives_with_a_size_for_each_rank(tmp_path: Path) -> None:
    given = [[1, 2, 3], [10, 20, 30], [100, 200, 300]]

    def of(rank: int) -> list[Made]:
        head = collective("MPI_Alltoallv", 0.1, 0.1, counts=6)
        return [head, *counts(given[rank]), *counts([row[rank] for row in given], Flag.OF_RECEIVES)]

    _, ranks = exported(tmp_path, [of(rank) for rank in range(3)], ended_s=0.1)
    assert ranks[1][1:] == [
        *("irecv 0 1 2", "isend 2 1 30", "wait 0 1 1", "wait 1 2 1"),
        *("irecv 2 1 200", "isend 0 1 10", "wait 2 1 1", "wait 1 0 1"),
    ]
    export, ranks = exported(tmp_path, [of(rank)[:2] for rank in range(3)], ended_s=0.1)
    assert ranks == [["compute 100000000"]] * 3, "without sizes it is left out"
    assert export.left_out.calls == {"MPI_Alltoallv": 3}


def test_nonblocking_and_persistent_collectives_are_posted_at_once(tmp_path: Path) -> None:
    def of(rank: int) -> list[Made]:
        made = FIRST_OF_OWN + 2
        return [
            collective("MPI_Iallreduce", 0.1, 0.1, 8, kind=RecordKind.POSTED_COLLECTIVE),
            done("MPI_Wait", 0.1, 0.1, FIRST_OF_OWN),
            collective("MPI_Bcast_init", 0.1, 0.1, 16, 0, kind=RecordKind.TEMPLATE),
            collective("MPI_Start", 0.1, 0.1, 16, 0, kind=RecordKind.POSTED_COLLECTIVE, made_at=made + 1),
            done("MPI_Wait", 0.1, 0.1, made + 1),
        ]

    _, (first, second) = exported(tmp_path, [of(0), of(1)], ended_s=0.1)
    assert first[1:] == ["irecv 1 1 8", "isend 1 1 8", "wait 1 0 1", "wait 0 1 1", "isend 1 1 16", "wait 0 1 1"]
    assert second[-2:] == ["irecv 0 1 16", "wait 0 1 1"]


def test_threads_that_wait_at_the_same_time_do_not_block_each_other(tmp_path: Path) -> None:
    """In the order in which the calls began, each rank would wait for what the other sends after its own wait."""

    def rank(other: int) -> list[Made]:
        return [
            receive("MPI_Recv", 0.1, 0.4, other, 1, 8, thread=1),
            send("MPI_Send", 0.2, 0.3, other, 1, 8, thread=2),
            send("MPI_Send", 0.5, 0.6, other, 2, 8, thread=1),
            receive("MPI_Recv", 0.7, 0.8, other, 2, 8, thread=1),
        ]

    _, (first, _) = exported(tmp_path, [rank(1), rank(0)])
    assert [line for line in first if "compute" not in line] == [
        *("irecv 1 1 8", "send 1 1 8", "wait 1 0 1"),
        *("send 1 2 8", "recv 1 2 8"),  # one at a time again
    ]


def test_threads_wait_in_the_order_in_which_their_calls_ended(tmp_path: Path) -> None:
    zero = [
        receive("MPI_Recv", 0.1, 0.4, 1, 1, 8, thread=1),
        send("MPI_Send", 0.2, 0.5, 1, 2, 8, thread=2),
        collective("MPI_Barrier", 0.3, 0.35, thread=3),
    ]
    one = [
        send("MPI_Send", 0.3, 0.4, 0, 1, 8),
        receive("MPI_Recv", 0.4, 0.5, 0, 2, 8),
        collective("MPI_Barrier", 0.5, 0.6),
    ]
    _, (first, _) = exported(tmp_path, [zero, one])
    sequence = ["irecv 1 1 8", "isend 1 2 8", "barrier", "wait 1 0 1", "wait 0 1 2"]
    assert [line for line in first if "compute" not in line] == sequence


def test_parts_belong_to_the_call_of_their_thread(tmp_path: Path) -> None:
    started = Made(RecordKind.POST, body=MESSAGES.pack(5, 0, 1, 2, 0, 0), flags=Flag.SENDS | Flag.PART)
    zero = [
        _start(0.1, 0.3),
        send("MPI_Send", 0.15, 0.2, 1, 9, 6, thread=2),
        started,
        done("MPI_Waitall", 0.3, 0.3, FIRST_OF_OWN, FIRST_OF_OWN + 2),
    ]
    one = [receive("MPI_Recv", 0.1, 0.1, 0, tag, 1) for tag in (1, 2, 9)]
    _, (first, _) = exported(tmp_path, [zero, one], ended_s=0.3)
    assert first == [
        "compute 100000000",
        *("isend 1 1 4", "isend 1 2 5", "send 1 3 6"),
        *("wait 0 1 1", "wait 0 1 2"),
    ]


def _start(begin_s: float, end_s: float) -> Made:
    body = MESSAGES.pack(4, 0, 1, 1, 0, 0)
    return Made(RecordKind.POST, "MPI_Startall", begin_s, end_s, body, flags=Flag.SENDS)


def test_traces_that_are_not_whole_end_where_partners_do(tmp_path: Path) -> None:
    zero = [send("MPI_Send", 0.1 * i, 0.1 * i, 1, 1, 8) for i in range(1, 6)] + [collective("MPI_Barrier", 0.6, 0.6)]
    one = [receive("MPI_Recv", 0.1 * i, 0.1 * i, 0, 1, 8) for i in range(1, 4)]
    traces = [trace_file(tmp_path, 0, 2, zero), trace_file(tmp_path, 1, 2, one, ended_s=None)]
    export = write_trace(tmp_path, tmp_path / "ti").ti
    assert export.files[1].read_text().count(" send ") == 3 and "barrier" not in export.files[1].read_text()
    assert (export.dropped, export.unfinished, export.messages) == (3, (1,), 3)
    said = " ".join(write_trace(tmp_path, tmp_path / "ti").summary)
    assert "3 sends, receives and collectives without a counterpart" in said and "without MPI_Finalize: rank 1" in said
    assert len(traces) == 2


def test_no_rank_waits_for_a_dropped_action(tmp_path: Path) -> None:
    zero = [send("MPI_Isend", 0.1, 0.1, 1, 1, 8) for _ in range(3)]
    zero.append(done("MPI_Waitall", 0.1, 0.1, *range(FIRST_OF_OWN, FIRST_OF_OWN + 3)))
    one = [receive("MPI_Irecv", 0.1, 0.1, 0, 1, 8), receive("MPI_Irecv", 0.1, 0.1, 0, 1, 0, flags=0)]
    export, (first, second) = exported(tmp_path, [zero, one], ended_s=0.1)
    assert first[1:] == ["isend 1 1 8", "wait 0 1 1"] and export.dropped == 2
    assert second[1:] == ["irecv 0 1 8", "wait 0 1 1"], "one receive never completed"


def test_messages_larger_than_an_int_and_processes_elsewhere(tmp_path: Path) -> None:
    assert list(lines_of(Send(1, 2, 3 << 30, True), 2)) == [f"isend 1 2 {(3 << 30) // 8} 0"]
    assert list(lines_of(Receive(1, 2, 2**31 - 1, False), 2)) == [f"recv 1 2 {2**31 - 1}"]
    assert list(lines_of(WorldCollective("Alltoall", 5, -1), 2)) == ["alltoall 5 5"]
    assert list(lines_of(WorldCollective("Gather", 5, 1), 2)) == ["gather 5 5 1"]
    assert list(lines_of(WorldCollective("Reduce", 5, 1), 2)) == ["reduce 5 0 1"]
    assert list(lines_of(WorldCollective("Barrier", 0, -1), 2)) == ["barrier"]
    export, (lines,) = exported(tmp_path, [[send("MPI_Send", 0.1, 0.1, 1, 1, 8)]], ended_s=0.1)
    assert lines == ["compute 100000000"] and export.left_out.messages_outside == 1


def test_an_intercommunicators_collectives_are_left_out(tmp_path: Path) -> None:
    made = [
        Made(RecordKind.COMMUNICATOR, body=COMMUNICATOR.pack(9, 0, 1), comm=3, flags=Flag.PART | Flag.INTER),
        collective("MPI_Barrier", 0.1, 0.2, comm=3, flags=Flag.INTER),
        collective("MPI_Comm_dup", 0.2, 0.2, comm=3, kind=RecordKind.CREATION, flags=Flag.INTER),
    ]
    export, ranks = exported(tmp_path, [made, made], ended_s=0.2)
    assert export.left_out.calls == {"MPI_Barrier": 2, "MPI_Comm_dup": 2} and ranks == [["compute 200000000"]] * 2


def test_the_same_traces_give_the_same_bytes(tmp_path: Path) -> None:
    test_collectives_of_all_ranks_and_of_some(tmp_path)
    traces = sorted(tmp_path.glob("*.trace"))
    first = [file.read_bytes() for file in export_ti(traces, tmp_path / "a").files]
    assert first == [file.read_bytes() for file in export_ti(reversed_(traces), tmp_path / "b").files]


def reversed_(paths: list[Path]) -> list[Path]:
    return list(reversed(paths))


def test_a_failed_export_states_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="left a trace"):
        write_trace(tmp_path, tmp_path / "ti")
    trace_file(tmp_path, 1, 3, [])
    with pytest.raises(UsageError, match="2 of 3 ranks left no trace: 0, 2"):
        write_trace(tmp_path, tmp_path / "ti")
    trace_file(tmp_path, 0, 1, [])
    with pytest.raises(UsageError, match="more than one program"):
        export_ti(sorted(tmp_path.glob("*.trace")), tmp_path / "ti")


def test_of_several_programs_the_longest_is_exported(tmp_path: Path) -> None:
    for number, ended_s in enumerate((1.0, 5.0, 2.0)):
        for rank in range(2):
            path = trace_file(tmp_path, rank, 2, [], ended_s=ended_s, late_s=10.0 * number)
            path.rename(path.with_name(f"{number}-{rank}.trace"))
    export = write_trace(tmp_path, tmp_path / "ti")
    assert export.ti.wall_s == 5.0 and "2 other programs" in export.summary[1]


def test_the_platform_comes_with_figures(tmp_path: Path) -> None:
    trace_file(tmp_path, 0, 1, [])
    tables = NetworkTables({1: 1e-6, 1024: 2e-6}, {1: 1e6, 1024: 1e9}, ("a", "b"), "nodes=1")
    export = write_trace(tmp_path, tmp_path / "ti", tables)
    assert {path.name for path in export.files} == {"trace.txt", "rank-0.txt", "platform.xml", "hosts.txt"}
    assert export.command is not None and "-replay" in export.command
    assert "platform from mpi.latency a and mpi.bandwidth b" in export.summary
    without = write_trace(tmp_path, tmp_path / "ti2")
    assert without.command is None and without.summary[-1] == "no platform file: no network figures"
