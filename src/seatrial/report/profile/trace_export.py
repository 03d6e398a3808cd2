"""The traces of a profiled command, written for a replay with SimGrid: files, and in words what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.analysis.network_tables import NetworkTables
from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.model.role import Role
from seatrial.profiler.trace.world import trace_worlds
from seatrial.report.profile.simgrid_platform import host_file, platform_xml
from seatrial.report.profile.simgrid_ti import FILE_LIST, TiExport, export_ti

PLATFORM_FILE = "platform.xml"
HOST_FILE = "hosts.txt"
_NAMED = 5
"""So many calls that a replay does not have are named."""


@dataclass(frozen=True, slots=True)
class TraceExport:
    """`summary` in lines for people; `files` that were written; `command` replays them from their folder, None without
    a platform."""

    summary: tuple[str, ...]
    files: tuple[Path, ...]
    command: tuple[str, ...] | None
    ti: TiExport


def write_trace(tables: Path, folder: Path, figures: NetworkTables | None = None) -> TraceExport:
    """Export the traces beside the tables of a command into a folder, made where it is missing; with figures of the
    network the platform to replay them on. Of several programs the one that took most time is exported.

    Raises UsageError where there is no trace, or where a rank's is missing; ParseError for a damaged one; OSError where
    nothing can be written.
    """
    traces = sorted(tables.glob("*.trace"))
    if not traces:
        raise UsageError(
            f"no process left a trace in {tables}", "profile with `--trace`; a library of MPI must be one that is known"
        )
    traces, *others = trace_worlds(traces)
    ti = export_ti(traces, folder)
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
    if others:
        summary.insert(1, f"{len(others)} further programs of this command left traces, too: not exported")
    return TraceExport(tuple(summary), tuple(written), command, ti)


def replay_command(ranks: int, smpirun: str = "smpirun") -> tuple[str, ...]:
    """What replays an export in its folder. It ends by telling the simulated seconds."""
    return (smpirun, "-np", str(ranks), "-platform", PLATFORM_FILE, "-hostfile", HOST_FILE, "-replay", FILE_LIST)


def _summary(ti: TiExport, figures: NetworkTables | None, command: Sequence[str] | None) -> list[str]:
    plural = "" if ti.ranks == 1 else "s"
    lines = [
        f"trace of {ti.ranks} rank{plural}, {ti.wall_s:.3g} s from the first start to the last MPI_Finalize: "
        f"{ti.messages} messages, {ti.together} collectives of all ranks"
    ]
    if ti.lost:
        lines.append(f"cut: {ti.lost} records found no room; the replay ends where the first rank's trace does")
    if ti.unfinished:
        ranks = ", ".join(map(str, ti.unfinished[:_NAMED])) + (", ..." if len(ti.unfinished) > _NAMED else "")
        lines.append(f"without MPI_Finalize: rank {ranks}")
    if ti.dropped:
        lines.append(f"{ti.dropped} sends, receives and collectives have no partner in the traces: left out")
    if ti.left_out.calls:
        most = ti.left_out.calls.most_common()
        named = ", ".join(f"{n} {name}" for name, n in most[:_NAMED]) + (", ..." if len(most) > _NAMED else "")
        lines.append(f"not replayed, their time counts as computation: {named}")
    if ti.left_out.messages_outside:
        lines.append(f"{ti.left_out.messages_outside} messages with processes outside of MPI_COMM_WORLD: left out")
    if figures is not None:
        times, bandwidths = figures.experiments
        sources = f"{benchmark_of(Role.MESSAGE_TIME)} {times} and {benchmark_of(Role.MESSAGE_BANDWIDTH)} {bandwidths}"
        lines.append(f"platform from {sources}")
    lines.append(f"replay it there: {' '.join(command)}" if command else "no platform: no figures of the network")
    return lines
