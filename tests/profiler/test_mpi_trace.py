"""The reader of traces: the content of a file, and clear errors for a damaged one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from profiler.made_up_traces import (
    LOADED,
    WORLD_ID,
    Made,
    collective,
    communicator,
    counts,
    done,
    receive,
    send,
    trace_file,
)

from seatrial.errors import ParseError
from seatrial.profiler.trace.trace_file import (
    HEADER_B,
    RECORD_B,
    Collective,
    Communicator,
    Flag,
    RecordKind,
    Trace,
    TraceMessages,
)
from seatrial.report.profile.trace_export import write_trace


def test_records_as_they_are(tmp_path: Path) -> None:
    made = [
        send("MPI_Isend", 0.1, 0.2, 1, 7, 300),
        receive("MPI_Recv", 0.3, 0.4, 1, 8, 40),
        done("MPI_Waitall", 0.4, 0.5, 2, 9),
        collective("MPI_Alltoallv", 0.5, 0.6, 0, counts=5),
        *counts([1, 2, 3, 4, 1 << 40], Flag.OF_RECEIVES),
    ]
    trace = Trace(trace_file(tmp_path, 0, 2, made, ended_s=2.0))
    assert (trace.rank, trace.size, trace.host, trace.kept, trace.lost) == (0, 2, "node", 8, 0)
    assert trace.length_s == 2.0 and trace.ended == LOADED + 2_000_000_000
    isend, recv, waitall, alltoallv, first, last = list(trace.records())[2:]
    assert isend.messages() == TraceMessages(300, 0, 1, 7, 0, 0) and isend.kind is RecordKind.POST and isend.place == 2
    assert recv.messages().received_B == 40 and recv.flags == Flag.RECEIVES | Flag.COMPLETED
    assert waitall.numbers() == (2, 9) and not waitall.is_part
    assert alltoallv.collective() == Collective(0, -1, 5, 0)
    assert first.counts() + last.counts() == (1, 2, 3, 4, 1 << 40) and last.is_part
    assert trace.communicators() == {1: Communicator(WORLD_ID, 0, 2), 2: Communicator(88, 0, 1)}
    assert not trace.has_open_receives()
    trace.close()


def test_a_trace_that_was_cut_or_killed(tmp_path: Path) -> None:
    made = [send("MPI_Send", 0.1, 0.25, 1, 7, 3), receive("MPI_Irecv", 0.3, 0.4, 1, 8, 0, flags=0)]
    trace = Trace(trace_file(tmp_path, 0, 2, made, ended_s=None, room=4, lost=12))
    assert trace.lost == 12 and trace.kept == 4 and trace.ended is None
    assert abs(trace.length_s - 0.4) < 1e-9, "to the end of the last call"
    assert trace.has_open_receives()


def test_a_place_that_was_not_written(tmp_path: Path) -> None:
    trace = Trace(trace_file(tmp_path, 0, 1, [Made(RecordKind.NOTHING), send("MPI_Send", 0.1, 0.2, 0, 1, 1)]))
    assert [record.place for record in trace.records()] == [0, 1, 3]


def damaged(change: Callable[[bytearray], None], folder: Path) -> str:
    path = trace_file(folder, 0, 2, [send("MPI_Send", 0.1, 0.2, 1, 7, 3)])
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    with pytest.raises(ParseError) as raised:
        list(Trace(path).records())
    assert str(path) in str(raised.value)
    return str(raised.value)


def at(offset: int, value: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        data[offset] = value

    return change


def test_damage_is_reported(tmp_path: Path) -> None:
    third = HEADER_B + 2 * RECORD_B
    assert "not a trace of the MPI profiler" in damaged(at(0, 0), tmp_path)
    assert "version 9" in damaged(at(8, 9), tmp_path)
    assert "records have 65 bytes" in damaged(at(12, 65), tmp_path)
    assert "rank 5 of 2" in damaged(at(16, 5), tmp_path)
    assert "ticks per second" in damaged(lambda data: data.__setitem__(slice(48, 56), b"\0" * 8), tmp_path)
    assert "truncated" in damaged(lambda data: data.__delitem__(slice(-10, None)), tmp_path)
    assert "truncated in the header" in damaged(lambda data: data.__delitem__(slice(30, None)), tmp_path)
    assert "empty" in damaged(lambda data: data.clear(), tmp_path)
    assert "kind 200" in damaged(at(third + 28, 200), tmp_path)
    assert "3 numbers of at most 0" in damaged(at(third + 31, 3), tmp_path)


@pytest.mark.parametrize("kind", [RecordKind.COLLECTIVE, RecordKind.POSTED_COLLECTIVE])
def test_a_root_that_its_communicator_does_not_have_is_damage(kind: RecordKind, tmp_path: Path) -> None:
    name = "MPI_Bcast" if kind == RecordKind.COLLECTIVE else "MPI_Ibcast"
    for rank in (0, 1):
        trace_file(tmp_path, rank, 2, [collective(name, 0.1, 0.2, 8, 2, kind=kind)])
    with pytest.raises(ParseError, match="root 2 of a collective of 2 ranks"):
        write_trace(tmp_path, tmp_path / "export")


def test_communicators_beyond_the_first_two(tmp_path: Path) -> None:
    trace = Trace(trace_file(tmp_path, 1, 2, [communicator(3, 5, 1, 2)]))
    assert trace.communicators()[3] == Communicator(5, 1, 2)
