"""Writes a traced program as a time-independent trace for SimGrid, which `smpirun -replay` replays on a platform.

The format is that of src/smpi/internals/smpi_replay.cpp in SimGrid 3.32: rank, action, parameters. After `init` without
parameters sizes are in bytes; datatype 0 is the double of 8 bytes. Computation is given in flops: seconds times the
speed of a host, which is 1 Gflop/s on the platforms of `simgrid_platform`. A line that begins with # is a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from seatrial.model.frozen import Frozen
from seatrial.profiler.trace.actions import Action, Compute, LeftOut, Receive, Send, Wait, WorldCollective
from seatrial.profiler.trace.matching import program_of
from seatrial.profiler.trace.world import TraceWorld
from seatrial.report.profile.trace_load import RankLoad, TraceLoad, header_line

FLOPS_PER_S = 1e9
"""The speed of each host."""
FILE_LIST = "trace.txt"
_MOST_COUNT = 2**31 - 1
"""A count is an int in SimGrid's replay."""
_DOUBLE_B = 8


class TiExport(Frozen):
    """What was written: files (the list first, then one for each rank), ranks, messages, collectives of all ranks, and
    what was left out; `dropped` counts sends, receives and collectives without a counterpart in the traces."""

    files: tuple[Path, ...]
    ranks: int
    messages: int
    collectives: int
    left_out: LeftOut
    lost: int
    unfinished: tuple[int, ...]
    dropped: int
    wall_s: float


def export_ti(traces: Sequence[Path], folder: Path, load: TraceLoad | None = None) -> TiExport:
    """Write the traces of all ranks of a program to a folder, created if necessary; `trace.txt` lists the other files.
    `load` is what the ranks had of a processor: their computation is without the time that they waited for one. None:
    it is the time between calls.

    Lines are written one by one, so that memory does not grow with the traces; the output is deterministic. Raises
    ParseError for damaged traces, UsageError unless they are those of all ranks of one world, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TraceWorld(traces) as world:
        program = program_of(world)
        names = [f"rank-{rank}.txt" for rank in range(world.size)]
        messages = collectives = 0
        for rank, (name, actions) in enumerate(zip(names, program.ranks, strict=True)):
            own = load.ranks[rank] if load is not None and rank < len(load.ranks) else RankLoad()
            header = header_line(load, rank) if load is not None else ""
            sent, shared = _write(folder / name, rank, world.size, _without_delay(actions, own), header)
            messages += sent
            collectives = max(collectives, shared)
        listed = folder / FILE_LIST
        listed.write_text("".join(f"{name}\n" for name in names), encoding="ascii")
        return TiExport(
            (listed, *(folder / name for name in names)),
            world.size,
            messages,
            collectives,
            program.left_out,
            world.lost,
            world.unfinished,
            program.matching.dropped if program.matching else 0,
            world.wall_s,
        )


def _without_delay(actions: Iterable[Action], own: RankLoad) -> Iterator[Action]:
    """The actions with the rank's own computation. The first one is when it starts, not computation."""
    for number, action in enumerate(actions):
        yield Compute(action.seconds * own.own_share) if number and isinstance(action, Compute) else action


def _write(path: Path, rank: int, ranks: int, actions: Iterable[Action], header: str) -> tuple[int, int]:
    """The number of messages that the rank sends, and of collectives of all ranks."""
    sent = shared = 0
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(f"{header}{rank} init\n")
        for action in actions:
            sent += isinstance(action, Send)
            shared += isinstance(action, WorldCollective)
            for line in lines_of(action, ranks):
                file.write(f"{rank} {line}\n")
        file.write(f"{rank} finalize\n")
    return sent, shared


def lines_of(action: Action, ranks: int) -> Iterator[str]:
    """The lines of an action, without the rank. None for a computation below a nanosecond."""
    match action:
        case Compute(seconds):
            flops = round(seconds * FLOPS_PER_S)
            if flops > 0:
                yield f"compute {flops}"
        case Send(dest, tag, size_B, is_posted):
            yield f"{'isend' if is_posted else 'send'} {dest} {tag} {_size(size_B)}"
        case Receive(source, tag, size_B, is_posted):
            yield f"{'irecv' if is_posted else 'recv'} {source} {tag} {_size(size_B)}"
        case Wait(source, dest, tag):
            yield f"wait {source} {dest} {tag}"
        case WorldCollective(name, block_B, root):
            yield _collective(name, block_B, root, ranks)


def _size(size_B: int) -> str:
    """A number of bytes, or of doubles if the bytes exceed an int."""
    return str(size_B) if size_B <= _MOST_COUNT else f"{-(-size_B // _DOUBLE_B)} 0"


def _collective(name: str, block_B: int, root: int, ranks: int) -> str:
    """The line of a collective. Its arithmetic costs nothing; blocks beyond an int are given as the largest int."""
    size = min(block_B, _MOST_COUNT)
    match name:
        case "Barrier":
            return "barrier"
        case "Bcast":
            return f"bcast {size} {root}"
        case "Reduce":
            return f"reduce {size} 0 {root}"
        case "Allreduce" | "Scan" | "Exscan":
            return f"{name.lower()} {size} 0"
        case "Gather" | "Scatter":
            return f"{name.lower()} {size} {size} {root}"
        case "Reduce_scatter_block":
            return f"reducescatter {' '.join([str(size)] * ranks)} 0"
        case _:
            return f"{name.lower()} {size} {size}"
