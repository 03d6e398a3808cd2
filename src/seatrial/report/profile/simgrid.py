"""What SimGrid replays: the platform and the traces of the ranks.

Writes a traced program as a time-independent trace for SimGrid, which `smpirun -replay` replays on a platform.

The format is that of src/smpi/internals/smpi_replay.cpp in SimGrid 3.32: rank, action, parameters. After `init` without
parameters sizes are in bytes; datatype 0 is the double of 8 bytes. Computation is given in flops: seconds times the
speed of a host, which is 1 Gflop/s on the platforms of `simgrid_platform`. A line that begins with # is a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from seatrial.analysis.network_fit import EAGER_B, Affine, fit_network
from seatrial.model.frozen import Frozen
from seatrial.profiler.trace.actions import Action, Compute, LeftOut, Receive, Send, Wait, WorldCollective, program_of
from seatrial.profiler.trace.trace_file import TraceWorld
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


HOST_PREFIX = "core-"


def platform_xml(
    one_way_s: Mapping[int, float],
    bandwidth_Bps: Mapping[int, float],
    hosts: int,
    ranks_per_host: int = 1,
    eager_B: int = EAGER_B,
) -> str:
    """The platform file. Tables map message sizes in bytes to one-way seconds of `mpi.latency` and to bytes per second
    of `mpi.bandwidth`. Sends of fewer than `eager_B` bytes do not wait for their receiver.

    Raises UsageError if a table is too small to be fitted.
    """
    fit = fit_network(one_way_s, bandwidth_Bps, eager_B)
    settings = {
        "surf/precision": "1e-10",
        "network/crosstraffic": "0",  # each direction of a link has its own bandwidth here
        "network/TCP-gamma": "1e15",  # no TCP window limits a message
        "smpi/bw-factor": ";".join(f"{p.above_B}:{1 / (p.s_per_B * fit.bandwidth_Bps):.9g}" for p in fit.wire),
        "smpi/lat-factor": ";".join(f"{p.above_B}:{p.at_zero_s / fit.latency_s:.9g}" for p in fit.wire),
        **dict.fromkeys(("smpi/os", "smpi/ois"), _overheads(fit.sender)),
        "smpi/or": _overheads(fit.receiver),
        "smpi/async-small-thresh": str(fit.eager_B),
        "smpi/send-is-detached-thresh": str(fit.eager_B),
    }
    last = hosts * ranks_per_host - 1
    link = f'bw="{fit.bandwidth_Bps:.9g}Bps" lat="{fit.latency_s / 2:.9g}s"'
    loop = f'loopback_bw="{fit.bandwidth_Bps:.9g}Bps" loopback_lat="{fit.latency_s:.9g}s"'
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        "  <config>",
        *(f"    <prop id={quoteattr(name)} value={quoteattr(value)}/>" for name, value in settings.items()),
        "  </config>",
        f'  <cluster id="measured" prefix="{HOST_PREFIX}" suffix="" radical="0-{last}"',
        f'           speed="{FLOPS_PER_S / 1e9:g}Gf" {link}',
        f"           {loop}/>",
        "</platform>",
    ]
    return "\n".join(lines) + "\n"


def host_file(ranks: int) -> str:
    """The file for `smpirun -hostfile`: one host per rank."""
    return "".join(f"{HOST_PREFIX}{rank}\n" for rank in range(ranks))


def _overheads(parts: Sequence[Affine]) -> str:
    return ";".join(f"{part.above_B}:{part.at_zero_s:.9g}:{part.s_per_B:.9g}" for part in parts)
