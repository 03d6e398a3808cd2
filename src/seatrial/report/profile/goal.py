"""A traced program as a GOAL schedule, the input of LogGOPSim: operations of each rank and what they wait for.

The format is that of src/LogGOPSim/txt2bin.re of LogGOPSim (T. Hoefler, T. Schneider, A. Lumsdaine, "LogGOPSim:
Simulating Large-Scale Applications in the LogGOPS Model", HPDC 2010): times in nanoseconds, sizes in bytes. Collectives
are made of messages (`collective_messages`). A posted message begins when it is posted, and what follows its wait
begins after it is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from seatrial.profiler.trace.actions import Action, Compute, Receive, Send, Wait
from seatrial.profiler.trace.matching import program_of
from seatrial.profiler.trace.world import TraceWorld


def export_goal(traces: Sequence[Path], file: Path) -> int:
    """Write the schedule of all ranks of a program into one file, line after line; how many operations it has.

    Raises ParseError, UsageError for traces that are damaged or not those of one whole world, OSError.
    """
    operations = 0
    with TraceWorld(traces) as world, file.open("w", encoding="ascii", newline="\n") as out:
        out.write(f"num_ranks {world.size}\n")
        for rank, actions in enumerate(program_of(world, has_collectives=False).ranks):
            out.write(f"\nrank {rank} {{\n")
            for line in goal_lines(rank, actions):
                operations += ": " in line
                out.write(f"{line}\n")
            out.write("}\n")
    return operations


def goal_lines(rank: int, actions: Iterable[Action]) -> Iterator[str]:
    """The operations of a rank, each followed by what it requires. Waits are no operations: what comes next requires
    what they wait for. Nothing for a computation below a nanosecond."""
    posted: dict[tuple[int, int, int], deque[int]] = {}
    required: list[int] = []
    number = 0
    for action in actions:
        if isinstance(action, Wait):
            waiting = posted.get(action)
            if waiting:
                required.append(waiting.popleft())
            continue
        text = _operation(action)
        if not text:
            continue
        number += 1
        yield f"l{number}: {text}"
        yield from (f"l{number} requires l{before}" for before in required)
        if isinstance(action, Send | Receive) and action.is_posted:
            posted.setdefault(_message(rank, action), deque()).append(number)
        else:
            required = [number]


def _operation(action: Action) -> str:
    match action:
        case Compute(seconds):
            nanoseconds = round(seconds * 1e9)
            return f"calc {nanoseconds}" if nanoseconds > 0 else ""
        case Send(dest, tag, size_B, _):
            return f"send {max(1, size_B)}b to {dest} tag {tag}"  # the model's gap per byte begins with the second
        case Receive(source, tag, size_B, _):
            return f"recv {max(1, size_B)}b from {source} tag {tag}"
        case _:
            return ""


def _message(rank: int, action: Send | Receive) -> tuple[int, int, int]:
    """Source, destination and tag: what the wait for it has."""
    if isinstance(action, Send):
        return (rank, action.dest, action.tag)
    return (action.source, rank, action.tag)
