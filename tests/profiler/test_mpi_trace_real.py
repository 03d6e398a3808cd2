"""Traces of real programs whose messages are known: what is in them, and that SimGrid replays them to the end."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.made_up_traces import receive, send, trace_file
from profiler.mpi_programs import Seen, built, run, traffic_program
from usual import usually, usually_first

from seatrial.analysis.network_fit import NetworkTables
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.trace.trace_file import Flag, RecordKind, Trace
from seatrial.report.profile.trace_export import TraceExport, write_trace

pytestmark = [pytest.mark.real, pytest.mark.parallel]

PROGRAM = Path(__file__).with_name("mpi_trace_program.c")
TWO = FOUR[:2]
TURNS, LARGE = 10, 100_000
NETWORK = NetworkTables(
    {size: 4e-7 + size / 1e10 for size in (1 << k for k in range(23))},
    {size: size / (1e-7 + size / 1e10) for size in (1 << k for k in range(23))},
    ("made up", "made up"),
    "",
)


def traced(
    name: str, tmp_path: Path, part: str, ranks: int, trace_B: int = 1 << 22, may_fail: bool = False
) -> list[Seen]:
    mpi = library(name)
    more = {"SEATRIAL_PROFILE_TRACE": str(trace_B)}
    return run(mpi, built(mpi, PROGRAM), tmp_path / part, ranks, part, may_fail=may_fail, more=more)


def messages_of(folder: Path) -> tuple[Counter[tuple[int, int, int]], Counter[tuple[int, int, int]]]:
    """(source, destination, bytes) of every message that was sent, and that was received."""
    sent: Counter[tuple[int, int, int]] = Counter()
    received: Counter[tuple[int, int, int]] = Counter()
    for path in folder.glob("*.trace"):
        trace = Trace(path)
        for record in trace.records():
            if record.kind in (RecordKind.MESSAGES, RecordKind.POST):
                messages = record.messages()
                if record.flags & Flag.SENDS:
                    sent[trace.rank, messages.dest, messages.sent_B] += 1
                if record.flags & Flag.RECEIVES and record.flags & Flag.COMPLETED:
                    received[messages.source, trace.rank, messages.received_B] += 1
        trace.close()
    return sent, received


def replayed(export: TraceExport, folder: Path) -> tuple[float, Counter[str]]:
    """Simulated seconds, and how many actions of each kind the replay carried out."""
    if shutil.which("smpirun") is None:
        pytest.skip("needs smpirun of SimGrid (apt install libsimgrid-dev)")
    assert export.command is not None
    command = [*export.command, "--log=smpi_replay.thres:verbose"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr[-3000:]
    actions = Counter(re.findall(r"smpi_replay/VERBOSE\] \d+ (\w+)", ended.stderr))
    found = re.search(r"Simulation time ([0-9.]+)", ended.stderr)
    assert found is not None, ended.stdout[-1000:] + ended.stderr[-3000:]
    return float(found[1]), actions


def replay(folder: Path) -> tuple[TraceExport, float, Counter[str]]:
    export = write_trace(folder, folder / "ti", NETWORK)
    return export, *replayed(export, folder / "ti")


@pytest.mark.parametrize(
    ("part", "name"),
    usually(
        product(["ping_pong", "ring", "persistent", "exchange"], FOUR),
        lambda case: case[1] == "openmpi" or case[0] == "exchange",
    ),
)
def test_every_message_is_in_the_trace(name: str, part: str, tmp_path: Path) -> None:
    ranks = 3
    tables = traced(name, tmp_path, part, ranks)
    sent, received = messages_of(tmp_path / part)
    assert sent == received
    around = [(rank, (rank + 1) % ranks) for rank in range(ranks)]
    if part == "ping_pong":
        assert sent == {(0, 1, 8): TURNS, (1, 0, LARGE): TURNS}
    elif part == "ring":
        assert sent == {(*pair, size): TURNS for pair in around for size in (16, LARGE - 16)}
    elif part == "persistent":
        assert sent == {(*pair, 500): TURNS for pair in around}
    else:
        assert sent == {**{(*pair, 300): TURNS for pair in around}, (0, 1, 10): 1, (1, 2, 10): 1}
    for one in tables:
        assert {peer: row[0] for peer, row in one.peers.items() if row[0]} == _by_peer(sent, one.rank)


def _by_peer(sent: Counter[tuple[int, int, int]], rank: int) -> Counter[int]:
    found: Counter[int] = Counter()
    for (source, dest, _), n in sent.items():
        if source == rank:
            found[dest] += n
    return found


@pytest.mark.quiet
@pytest.mark.parametrize("name", usually_first(TWO))
@pytest.mark.parametrize("part", ["ping_pong", "ring", "persistent", "exchange"])
def test_messages_are_replayed(name: str, part: str, tmp_path: Path) -> None:
    traced(name, tmp_path, part, 3)
    sent, _ = messages_of(tmp_path / part)
    export, time_s, actions = replay(tmp_path / part)
    assert export.ti.messages == sum(sent.values()) == actions["send"] + actions["isend"]
    assert actions["recv"] + actions["irecv"] == sum(sent.values()) and actions["wait"] >= actions["irecv"]
    assert 0 < time_s <= 1.05 * export.ti.wall_s, "on an empty machine nothing takes longer"
    assert (export.ti.dropped, export.ti.lost, export.ti.unfinished) == (0, 0, ())


@pytest.mark.parametrize("name", TWO)
def test_collectives_of_all_and_of_some(name: str, tmp_path: Path) -> None:
    traced(name, tmp_path, "halves", 4)
    export, time_s, actions = replay(tmp_path / "halves")
    # The split and the last Allreduce are of all; in each half of two the copy, and four collectives a turn. A tree of
    # two is one message, recursive doubling, ring and exchange of two are one each way.
    assert export.ti.collectives == 2 and actions["allreduce"] == 2 * 4
    assert export.ti.messages == 2 * (2 + TURNS * (2 + 1 + 2 + 2)) == actions["isend"] == actions["irecv"]
    assert time_s > 0 and not export.ti.left_out.calls


@pytest.mark.parametrize("name", TWO)
def test_every_kind_of_collective_is_replayed(name: str, tmp_path: Path) -> None:
    traced(name, tmp_path, "collectives", 3)
    export, time_s, actions = replay(tmp_path / "collectives")
    once = {"barrier", "reduce", "gather", "scatter", "scan", "exscan", "reducescatter"}
    assert {kind: actions[kind] for kind in once} == dict.fromkeys(once, 3)
    assert time_s > 0 and not export.ti.left_out.calls and export.ti.dropped == 0
    assert actions["isend"] == actions["irecv"] == export.ti.messages > 0


@pytest.mark.parametrize("name", TWO)
def test_a_trace_that_is_full_says_so_and_is_replayed_as_far_as_it_goes(name: str, tmp_path: Path) -> None:
    traced(name, tmp_path, "exchange", 3, trace_B=4096 + 7 * 64)
    export, time_s, actions = replay(tmp_path / "exchange")
    assert export.ti.lost == 3 * (TURNS + 1 + 2 - 7), "world, self, and a record for each call"
    assert 0 < export.ti.messages == actions["isend"] <= 3 * 5 and time_s > 0
    assert any(line.startswith("truncated: ") for line in export.summary)


@pytest.mark.parametrize("name", TWO)
def test_a_killed_program_is_replayed_as_far_as_it_came(name: str, tmp_path: Path) -> None:
    traced(name, tmp_path, "killed", 2, may_fail=True)
    export, time_s, _ = replay(tmp_path / "killed")
    assert export.ti.unfinished and export.ti.messages >= 2 * TURNS and time_s > 0


@pytest.mark.parametrize("name", TWO)
def test_threads_and_one_sided_calls(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    more = {"SEATRIAL_PROFILE_TRACE": str(1 << 22)}

    def of(part: str) -> tuple[TraceExport, float, Counter[str]]:
        run(mpi, traffic_program(mpi), tmp_path / part, 2, part, more=more)
        return replay(tmp_path / part)

    export, time_s, actions = of("threads")
    assert export.ti.messages == actions["send"] + actions["isend"] == 4000 and time_s > 0
    assert actions["irecv"] == 4000 and export.ti.dropped == 0
    export, time_s, _ = of("one_sided")
    assert export.ti.left_out.calls["MPI_Win_fence"] == 6 and export.ti.left_out.calls["MPI_Put"] == 2 and time_s > 0
    assert any(line.startswith("not replayed (their time counts as computation): 6 MPI_") for line in export.summary)


def test_threads_that_wait_while_others_send_are_replayed(tmp_path: Path) -> None:
    """In the order in which their calls began, both ranks would wait for ever."""
    for rank in (0, 1):
        waits = receive("MPI_Recv", 0.1, 0.4, 1 - rank, 1, 8, thread=1)
        trace_file(tmp_path, rank, 2, [waits, send("MPI_Send", 0.2, 0.3, 1 - rank, 1, 8, thread=2)])
    export, time_s, actions = replay(tmp_path)
    assert export.ti.messages == actions["send"] == actions["irecv"] == 2 and time_s > 0


def test_a_record_that_comes_too_early_is_replayed_where_its_call_began(tmp_path: Path) -> None:
    """Its thread had its place, but no CPU, until after the calls of the others."""
    for rank in (0, 1):
        early = receive("MPI_Recv", 0.6, 0.8, 1 - rank, 2, 8, thread=3)
        waits = receive("MPI_Recv", 0.1, 0.4, 1 - rank, 1, 8, thread=1)
        sends = [send("MPI_Send", at, at + 0.01, 1 - rank, tag, 8, thread=2) for at, tag in ((0.2, 1), (0.7, 2))]
        trace_file(tmp_path, rank, 2, [waits, early, *sends])
    export, time_s, actions = replay(tmp_path)
    assert export.ti.messages == actions["send"] == actions["irecv"] == 4 and time_s > 0


def test_without_a_bound_there_is_no_trace(tmp_path: Path) -> None:
    traced("openmpi", tmp_path, "ping_pong", 2, trace_B=0)
    assert not list((tmp_path / "ping_pong").glob("*.trace"))


def test_counts_of_the_table_are_those_without_a_trace(tmp_path: Path) -> None:
    with_trace = traced("openmpi", tmp_path, "collectives", 2)
    shutil.move(tmp_path / "collectives", tmp_path / "traced")
    without = traced("openmpi", tmp_path, "collectives", 2, trace_B=0)
    assert [one.calls for one in with_trace] == [one.calls for one in without]
    assert set(without[0].calls) <= set(function_names())
