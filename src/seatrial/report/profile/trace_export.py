"""Exports the traces of a profiled command for replay with SimGrid, with a summary for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import field

from seatrial.analysis.network_tables import NetworkTables
from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.role import Role
from seatrial.model.frozen import Frozen
from seatrial.profiler.profile import Profile
from seatrial.profiler.trace.trace_file import trace_worlds
from seatrial.report.profile.simgrid import FILE_LIST, TiExport, export_ti, host_file, platform_xml
from seatrial.report.profile.trace_load import TraceLoad, load_lines, trace_load

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


def replay_command(ranks: int, smpirun: str = "smpirun") -> tuple[str, ...]:
    """The command that replays an export in its folder. It prints the simulated seconds at the end."""
    return (smpirun, "-np", str(ranks), "-platform", PLATFORM_FILE, "-hostfile", HOST_FILE, "-replay", FILE_LIST)


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
