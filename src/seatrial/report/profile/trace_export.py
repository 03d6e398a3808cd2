"""Exports the traces of a profiled command for replay with SimGrid, with a summary for people.


A trace has the time between calls. Where other processes take CPUs, that includes waiting for a CPU, which is not part
of the program: on another machine it would be missing. The kernel counts for each rank, from MPI_Init to the end of
MPI, its CPU time P, the time R in which its threads were ready to run without running, and so the time B = wall - P - R
in which it was blocked (input, output, sleep). With C seconds outside MPI, B of them blocked, the computation is

    (B + (C - B) P / (P + R)) / C

of the traced time: as if the rank waited for a CPU as often outside MPI as inside. Where R is unknown, it is the
traced time.


Writes a traced program as a time-independent trace for SimGrid, which `smpirun -replay` replays on a platform.

The format is that of src/smpi/internals/smpi_replay.cpp in SimGrid 3.32: rank, action, parameters. After `init` without
parameters sizes are in bytes; datatype 0 is the double of 8 bytes. Computation is given in flops: seconds times the
speed of a host, which is 1 Gflop/s on the platforms of `simgrid_platform`. A line that begins with # is a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import field

from seatrial.analysis.network_fit import EAGER_B, Affine, NetworkTables, fit_network
from seatrial.benchmarks import benchmark_of
from seatrial.diagnosis.cpu import LEAST_DELAY
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import show_percent
from seatrial.profiler.profile import Profile, RankTotals
from seatrial.profiler.trace.actions import (
    Action,
    CallsLeftOut,
    Compute,
    Receive,
    Send,
    Wait,
    WorldCollective,
    program_of,
)
from seatrial.profiler.trace.trace_file import TraceWorld, trace_worlds


class RankLoad(Frozen):
    """CPU time, run delay and wall time of a rank in seconds, and the part of its traced computation that is its own
    (0 to 1). All None, and 1, where the kernel did not report them."""

    wall_s: float | None = None
    cpu_s: float | None = None
    delay_s: float | None = None
    own_share: float = 1.0

    @property
    def delay_share(self) -> float | None:
        """The part of the wall time in which it waited for a CPU, at most 1."""
        if self.delay_s is None or not self.wall_s:
            return None
        return min(1.0, self.delay_s / self.wall_s)


class TraceLoad(Frozen):
    """The load of each rank, in order."""

    ranks: tuple[RankLoad, ...] = ()

    @property
    def cpu_share(self) -> float | None:
        """CPU seconds over wall seconds, the mean over ranks; None if unknown for a rank."""
        shares = [None if one.cpu_s is None or not one.wall_s else one.cpu_s / one.wall_s for one in self.ranks]
        known = [share for share in shares if share is not None]
        return fmean(known) if known and len(known) == len(shares) else None

    @property
    def delay_share(self) -> float | None:
        """The largest share of a rank's time without a CPU; None if unknown for a rank."""
        known = [share for one in self.ranks if (share := one.delay_share) is not None]
        return max(known) if known and len(known) == len(self.ranks) else None

    @property
    def is_disturbed(self) -> bool:
        """Whether a rank waited for a CPU for more than a tenth of its time."""
        return (self.delay_share or 0.0) > LEAST_DELAY


def trace_load(profile: Profile, ranks: int) -> TraceLoad:
    """The load of a world of this many ranks; empty if the profile is of another one, or misses a rank."""
    if profile.ranks != ranks or [one.rank for one in profile.per_rank] != list(range(ranks)):
        return TraceLoad()
    return TraceLoad(tuple(_load(one) for one in profile.per_rank))


def _load(rank: RankTotals) -> RankLoad:
    cpu = rank.cpu
    if cpu is None or cpu.cpu_s is None or cpu.delay_s is None or cpu.wall_s <= 0:
        return RankLoad()
    ready_s = cpu.cpu_s + cpu.delay_s
    had = cpu.cpu_s / ready_s if ready_s > 0 else 1.0
    blocked_s = min(rank.compute_s, max(0.0, cpu.wall_s - ready_s))
    own_s = blocked_s + (rank.compute_s - blocked_s) * had
    return RankLoad(cpu.wall_s, cpu.cpu_s, cpu.delay_s, own_s / rank.compute_s if rank.compute_s > 0 else 1.0)


def load_lines(load: TraceLoad) -> list[str]:
    """The share of a processor that the ranks had, for people; a warning if they waited for one."""
    if load.cpu_share is None or load.delay_share is None:
        return ["the share of a processor that the ranks had is unknown: computation is the time between calls"]
    lines = [
        f"each rank had {load.cpu_share:.2f} of a processor; without a CPU while ready to run: at most "
        f"{show_percent(load.delay_share)} of a rank's time. Computation is CPU and blocked time, without that"
    ]
    if load.is_disturbed:
        lines.append(
            "warning: ranks waited for a CPU for more than 10 % of the time. That is estimated and left out "
            "of their computation; trace on a quiet machine to be sure"
        )
    return lines


def header_line(load: TraceLoad, rank: int) -> str:
    """The comment at the start of a rank's trace, a whole line."""
    one = load.ranks[rank] if rank < len(load.ranks) else RankLoad()
    if one.cpu_s is None or one.delay_s is None or one.wall_s is None:
        return "# seatrial: CPU time of this rank unknown; computation is the time between calls\n"
    disturbed = "; WARNING: waited for a CPU for more than 10 % of the time" if load.is_disturbed else ""
    return (
        f"# seatrial: CPU time {one.cpu_s:.6f} s of {one.wall_s:.6f} s, ready to run without a CPU "
        f"{one.delay_s:.6f} s; computation is {one.own_share:.4f} of the time between calls{disturbed}\n"
    )


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
    left_out: CallsLeftOut
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
    one_way_s: Mapping[int, float], bandwidth_Bps: Mapping[int, float], hosts: int, eager_B: int = EAGER_B
) -> str:
    """The platform file. Tables map message sizes in bytes to one-way seconds of `mpi.latency` and to bytes per second
    of `mpi.bandwidth`. Sends of fewer than `eager_B` bytes do not wait for their receiver.

    Raises UsageError if a table is too small to be fitted.
    """
    from xml.sax.saxutils import quoteattr  # it loads urllib

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
    link = f'bw="{fit.bandwidth_Bps:.9g}Bps" lat="{fit.latency_s / 2:.9g}s"'
    loop = f'loopback_bw="{fit.bandwidth_Bps:.9g}Bps" loopback_lat="{fit.latency_s:.9g}s"'
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        "  <config>",
        *(f"    <prop id={quoteattr(name)} value={quoteattr(value)}/>" for name, value in settings.items()),
        "  </config>",
        f'  <cluster id="measured" prefix="{HOST_PREFIX}" suffix="" radical="0-{hosts - 1}"',
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


PLATFORM_FILE = "platform.xml"
HOST_FILE = "hosts.txt"
_NAMED = 5
"""Most calls or ranks listed by name."""


class TraceExport(Frozen):
    """`summary`: lines for people; `files`: those written; `command`: replays them from their folder, None without a
    platform. `load` is the share of a processor that the ranks had."""

    summary: tuple[str, ...]
    files: tuple[Path, ...]
    command: tuple[str, ...] | None
    ti: TiExport
    load: TraceLoad = field(default_factory=TraceLoad)


def write_trace(
    tables: Path, folder: Path, figures: NetworkTables | None = None, profiles: Sequence[Profile] = ()
) -> TraceExport:
    """Export the traces in a folder of tables to another folder, created if necessary; with network figures also the
    platform for the replay. Of several programs the one with the longest total time is exported. `profiles` are those
    of the tables, the longest total time first: they have the CPU time of the ranks.

    Raises UsageError if there is no trace, or that of a rank is missing; ParseError for a damaged one; OSError if
    nothing can be written.
    """
    traces = sorted(tables.glob("*.trace"))
    if not traces:
        raise UsageError(f"no process left a trace in {tables}", "profile with `--trace` and a supported MPI library")
    traces, *others = trace_worlds(traces)
    load = trace_load(profiles[0], len(traces)) if profiles else None
    ti = export_ti(traces, folder, load)
    written = [*ti.files]
    command = None
    if figures is not None:
        texts = {
            PLATFORM_FILE: platform_xml(figures.one_way_s, figures.bandwidth_Bps, ti.ranks),
            HOST_FILE: host_file(ti.ranks),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="ascii")
            written.append(folder / name)
        command = replay_command(ti.ranks)
    summary = _summary(ti, figures, command)
    summary[1:1] = load_lines(load) if load is not None else []
    if others:
        summary.insert(1, f"not exported: traces of {len(others)} other programs of this command")
    return TraceExport(tuple(summary), tuple(written), command, ti, load or TraceLoad())


def replay_command(ranks: int) -> tuple[str, ...]:
    """The command that replays an export in its folder. It prints the simulated seconds at the end."""
    return ("smpirun", "-np", str(ranks), "-platform", PLATFORM_FILE, "-hostfile", HOST_FILE, "-replay", FILE_LIST)


def _summary(ti: TiExport, figures: NetworkTables | None, command: Sequence[str] | None) -> list[str]:
    plural = "" if ti.ranks == 1 else "s"
    lines = [
        f"trace of {ti.ranks} rank{plural}, {ti.wall_s:.3g} s from the first start to the last MPI_Finalize: "
        f"{ti.messages} messages, {ti.collectives} collectives of all ranks"
    ]
    if ti.lost:
        lines.append(f"truncated: {ti.lost} records were dropped; the replay stops at the end of the shortest trace")
    if ti.unfinished:
        ranks = ", ".join(map(str, ti.unfinished[:_NAMED])) + (", ..." if len(ti.unfinished) > _NAMED else "")
        lines.append(f"without MPI_Finalize: rank {ranks}")
    if ti.dropped:
        lines.append(f"left out: {ti.dropped} sends, receives and collectives without a counterpart in the traces")
    if ti.left_out.calls:
        most = ti.left_out.calls.most_common()
        named = ", ".join(f"{n} {name}" for name, n in most[:_NAMED]) + (", ..." if len(most) > _NAMED else "")
        lines.append(f"not replayed (their time counts as computation): {named}")
    if ti.left_out.messages_outside:
        lines.append(f"left out: {ti.left_out.messages_outside} messages with processes outside MPI_COMM_WORLD")
    if figures is not None:
        times, bandwidths = figures.experiments
        sources = f"{benchmark_of(Role.MESSAGE_TIME)} {times} and {benchmark_of(Role.MESSAGE_BANDWIDTH)} {bandwidths}"
        lines.append(f"platform from {sources}")
    lines.append(f"replay in that folder: {' '.join(command)}" if command else "no platform file: no network figures")
    return lines
