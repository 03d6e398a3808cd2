"""A traced program as SimGrid's time-independent trace: what `smpirun -replay` plays on a platform.

The lines are those that src/smpi/internals/smpi_replay.cpp of SimGrid 3.32 reads: rank, action, parameters. After
`init` without parameters sizes are bytes; datatype 0 is the double of 8 bytes. Computation is told in flops: seconds
times the speed of a host, which is 1 Gflop/s on the platforms of `simgrid_platform`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.profiler.trace.actions import Action, Compute, LeftOut, Receive, Send, Together, Wait
from seatrial.profiler.trace.matching import program_of
from seatrial.profiler.trace.world import TraceWorld

FLOPS_PER_S = 1e9
"""The speed of each host."""
FILE_LIST = "trace.txt"
_MOST_COUNT = 2**31 - 1
"""A count is an int in SimGrid's replay."""
_DOUBLE_B = 8


@dataclass(frozen=True, slots=True)
class TiExport:
    """What was written: files (the list first, then one a rank), ranks, messages and collectives of all of them, what
    was left out; `dropped` counts sends, receives and collectives that had no partner in the traces."""

    files: tuple[Path, ...]
    ranks: int
    messages: int
    together: int
    left_out: LeftOut
    lost: int
    unfinished: tuple[int, ...]
    dropped: int
    wall_s: float


def export_ti(traces: Sequence[Path], folder: Path) -> TiExport:
    """Write the traces of all ranks of a program into a folder, made where it is missing: `trace.txt` names the others.

    Lines are written as they are made, so that memory does not grow with the traces; the same traces give the same
    bytes. Raises ParseError, UsageError for traces that are damaged or not those of one whole world, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TraceWorld(traces) as world:
        program = program_of(world)
        names = [f"rank-{rank}.txt" for rank in range(world.size)]
        messages = together = 0
        for rank, (name, actions) in enumerate(zip(names, program.ranks, strict=True)):
            sent, shared = _write(folder / name, rank, world.size, actions)
            messages += sent
            together = max(together, shared)
        listed = folder / FILE_LIST
        listed.write_text("".join(f"{name}\n" for name in names), encoding="ascii")
        return TiExport(
            (listed, *(folder / name for name in names)),
            world.size,
            messages,
            together,
            program.left_out,
            world.lost,
            world.unfinished,
            program.matching.dropped if program.matching else 0,
            world.wall_s,
        )


def _write(path: Path, rank: int, ranks: int, actions: Iterable[Action]) -> tuple[int, int]:
    """How many messages the rank sends, and how many collectives of all it takes part in."""
    sent = shared = 0
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(f"{rank} init\n")
        for action in actions:
            sent += isinstance(action, Send)
            shared += isinstance(action, Together)
            for line in lines_of(action, ranks):
                file.write(f"{rank} {line}\n")
        file.write(f"{rank} finalize\n")
    return sent, shared


def lines_of(action: Action, ranks: int) -> Iterator[str]:
    """An action without the rank in front. Nothing for a computation below a nanosecond."""
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
        case Together(name, block_B, root):
            yield _together(name, block_B, root, ranks)


def _size(size_B: int) -> str:
    """Bytes, or doubles where their number is no int."""
    return str(size_B) if size_B <= _MOST_COUNT else f"{-(-size_B // _DOUBLE_B)} 0"


def _together(name: str, block_B: int, root: int, ranks: int) -> str:
    """A collective. What it computes has no cost of its own; blocks beyond an int are told as the largest int."""
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
