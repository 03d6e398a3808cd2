"""Profiles of MPI programs: of a command, or of the tables of an earlier run.

What reads tables and makes profiles is loaded after the command has ended: it takes longer to load than the command to
start."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.errors import ParseError, StoreError, UnknownNameError, UsageError
from seatrial.interface.arguments import Size, Time, once_named, seconds, size_B
from seatrial.launch.local import Ended
from seatrial.model.frozen import Frozen
from seatrial.model.study.study import POWER
from seatrial.profiler.capture.run import ProbeSettings, profile_name, run_profiled, why_nothing
from seatrial.profiler.tables.header import MOST_PATH_FRAMES, MOST_SLOTS, SLOTS
from seatrial.store.files import make_folder, reason
from seatrial.store.folder import ResultsFolder

if TYPE_CHECKING:
    from seatrial.profiler.cpu import NodeLimits
    from seatrial.profiler.profile import Profile
    from seatrial.report.profile.trace_export import TraceExport

LEAST_TRACE_B = 64 << 10
"""Enough for the header and a thousand calls."""
IO_EVERY_S = 0.2

_log = logging.getLogger(__name__)


class ProfileResult(Frozen):
    """The profiles of a command, and how it ended.

    `profiles` has one profile per program, the longest-running first, or an empty one if no rank wrote a table.
    `state` is ok, failed or unsupported, and `reason` explains it; a program that fails has a profile up to its end.
    `folder` contains profile.json and the tables; None if nothing is kept. `exit_status` is that of the
    command; None if none was run.
    """

    profiles: tuple[Profile, ...]
    state: str
    reason: str = ""
    folder: Path | None = None
    exit_status: int | None = None
    trace: TraceExport | None = None
    circumstances: Mapping[str, Any] | None = None

    @property
    def is_ok(self) -> bool:
        """Whether the command succeeded and was profiled."""
        return self.state == "ok"

    def json(self) -> Iterator[str]:
        """`seatrial.profile/1` as text, in pieces, since the matrix of thousands of ranks has millions of rows."""
        from seatrial.report.profile.document import profile_json

        return profile_json(self.profiles[0], self.exit_status, self.circumstances)


@once_named(
    io_s="io",
    wait_every="wait",
    trace_B="trace",
    has_counters="counters",
    has_openmp="openmp",
    wait_quiet_s="wait_quiet",
)
def profile(
    command: Sequence[str],
    *,
    results: str | Path = "seatrial-results",
    io: Time = IO_EVERY_S,
    wait: int = 0,
    trace: Size = 0,
    paths: int = 0,
    rows: int = SLOTS,
    counters: bool = False,
    openmp: bool = False,
    stdout: int | None = None,
    wait_quiet: Time | None = None,
    parquet: str | Path | None = None,
    probes: Sequence[str] = (),
) -> ProfileResult:
    """Run a command, such as `["mpirun", "-n", "8", "./app"]`, and measure where its MPI ranks spend their time.

    The command runs unmodified, with our terminal and standard input; `stdout` is a file descriptor for its output
    instead of ours. Its profile is kept in the results folder. `io`: sampling interval of each rank's I/O (0: off).
    `wait`: insert a barrier before every N-th collective, to measure waiting separately (0: off).
    `trace`: record every call, up to this size per rank, for replay with SimGrid (0: off). `paths`: calls of
    the call path that is recorded with each call site (0: the call site alone). `rows`: of the table of each thread, a
    power of two. `counters`: count cycles, instructions, cache misses and floating-point operations of each rank;
    `openmp`: record OpenMP regions, if the runtime has OMPT. `wait_quiet`: the longest wait until nothing else
    uses the CPUs; the command is then run anyway. `parquet`: a folder for the rows of the profile as Parquet files.
    `probes`: what else is measured beside it (power: the energy of the command, by the sensors of this node).

    Call it from the main thread, since it passes signals on to the command. Raises UsageError if the command cannot be
    started, BuildError if the profiler cannot be built, and StoreError.
    """
    trace_B = size_B(trace)
    if unknown := next((probe for probe in probes if probe != POWER), None):
        raise UnknownNameError("probe of a profile", unknown, (POWER,))
    if 0 < trace_B < LEAST_TRACE_B:
        raise UsageError(f"--trace allows only {trace_B} B per rank", "give 64KiB or more, such as 64MiB")
    if not 0 <= paths <= MOST_PATH_FRAMES:
        raise UsageError(f"--paths cannot record {paths} calls", f"give 0 (off) to {MOST_PATH_FRAMES}")
    if not SLOTS <= rows <= MOST_SLOTS or rows & rows - 1:
        raise UsageError(f"--rows cannot be {rows}", f"give a power of two from {SLOTS} to {MOST_SLOTS}")
    if not command:
        raise UsageError("no command given", "for example: seatrial profile -- mpirun -n 8 ./app")
    name = profile_name(time.time())
    folder = ResultsFolder.create(Path(results)).path / "profiles" / name
    tables = folder / "tables"
    try:
        make_folder(Path(results), "profiles", name, "tables")
    except OSError as error:
        raise UsageError(
            f"{tables} cannot be created: {reason(error)}", "name another folder with --results"
        ) from error
    try:
        settings = ProbeSettings(seconds(io), wait, trace_B, paths, rows, counters, openmp)
        if (longest_s := seconds(wait_quiet)) is not None:
            from seatrial.probes.quiet import wait_until_quiet

            wait_until_quiet(longest_s)
        with _power_kept(tables, POWER in probes) as keep_power:
            ended = run_profiled(command, tables, settings, stdout)
            keep_power(ended)
    except BaseException:
        _remove_if_empty(tables, folder)
        raise
    limits = None
    if counters:
        from seatrial.analysis.profile_reference import node_limits

        limits = node_limits(Path(results))
    made = _result(command, tables, folder, ended, Path(results), limits, is_traced=bool(trace_B))
    return _as_parquet(made, parquet)


@contextmanager
def _power_kept(tables: Path, is_asked: bool) -> Iterator[Callable[[Ended], None]]:
    """A function that adds the energy and power of a command to its tables; the sensors are read within the block."""
    if not is_asked:
        yield lambda ended: None
        return
    from seatrial.probes.power.node_meter import power_meter_here
    from seatrial.profiler.tables.power import write_power

    with power_meter_here() as meter:
        if meter.why_not:
            _log.warning("%s", meter.why_not)
        meter.wait_idle()

        def keep(ended: Ended) -> None:
            meter.busy_until_now()
            meter.wait_idle()
            end_s = ended.clock_s + ended.wall_s
            write_power(tables, meter.of_phase(ended.clock_s, ended.clock_s, end_s), ended.started_s)

        yield keep


def profile_of_tables(tables: Path, parquet: str | Path | None = None) -> ProfileResult:
    """The profile of existing tables, such as those of a run that was killed or that preloaded the library itself.
    `parquet` as for `profile`.

    Raises UsageError if there are none.
    """
    if not tables.is_dir():
        raise UsageError(f"{tables} is not a folder", "give the folder `tables` of a profile")
    if not any(tables.glob("*.mpi")):
        raise UsageError(f"{tables} contains no table (*.mpi)", "give the folder `tables` of a profile")
    return _as_parquet(_result((), tables, None, None, None), parquet)


def _remove_if_empty(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _result(
    command: Sequence[str],
    tables: Path,
    folder: Path | None,
    ended: Ended | None,
    results: Path | None,
    limits: NodeLimits | None = None,
    *,
    is_traced: bool = False,
) -> ProfileResult:
    """Read the tables, export the traces, store everything. `results`: the results folder with the network figures;
    `limits` are those of this machine."""
    from seatrial.analysis.profiles import judged_profiles, profiles_of_tables
    from seatrial.model.json_object import filled
    from seatrial.model.secrets import masked_words
    from seatrial.profiler.profile import empty_profile
    from seatrial.report.profile.document import TraceJson, profile_document

    made, damaged = profiles_of_tables(tables, limits)
    traced = results if is_traced else None
    if results is not None:
        made = judged_profiles(made, results)
    status = None if ended is None else ended.exit_status
    state, reason = _outcome(command, made, damaged, status, tables)
    if folder is not None and not made and not damaged:
        for note in tables.glob("*.note"):
            note.unlink(missing_ok=True)
        _remove_if_empty(tables, folder)
        folder = None
    more: dict[str, Any] = {"folder": None if folder is None else str(folder)}
    if ended is not None:
        more |= {"command": list(masked_words(command)), "started_s": ended.started_s, "command_wall_s": ended.wall_s}
    more["outcome"] = {"state": state, "reason": reason}
    exported = None if traced is None or folder is None else _trace(tables, folder, traced, made)
    if traced is not None:
        more["trace"] = None if exported is None else filled(TraceJson, exported)
    more["others"] = [profile_document(other, status) for other in made[1:]]
    profiles = tuple(made) or (empty_profile(command[0] if command else str(tables), damaged),)
    result = ProfileResult(profiles, state, reason, folder, status, exported, more)
    if folder is not None:
        _keep(result, folder, tables)
    return result


def _trace(tables: Path, folder: Path, results: Path, made: Sequence[Profile]) -> TraceExport | None:
    """Write the traces for replay with SimGrid, and a platform file if the results have the figures for it.

    None if there are no traces; what is missing is logged.
    """
    from seatrial.analysis.network_fit import network_tables
    from seatrial.analysis.results import results_without_limits
    from seatrial.report.profile.trace_export import write_trace
    from seatrial.store.contents import read_contents

    try:
        figures = network_tables(results_without_limits(read_contents(ResultsFolder.existing(results))))
    except UsageError as problem:
        _log.warning("no platform file written: %s", problem)
        figures = None
    try:
        return write_trace(tables, folder / "trace", figures, made)
    except (UsageError, ParseError) as problem:
        _log.warning("no trace is exported: %s", problem)
    except OSError as error:
        _log.warning("no trace is exported: %s cannot be written: %s", folder / "trace", error.strerror or error)
    return None


def _outcome(
    command: Sequence[str], made: Sequence[Profile], damaged: int, status: int | None, tables: Path
) -> tuple[str, str]:
    """(state, reason) of the command."""
    if status:
        return "failed", f"the command ended with exit status {status}"
    if made:
        return "ok", ""
    if damaged:
        return "failed", "no table could be read"
    return "unsupported", why_nothing(command, os.environ, tables)


def _keep(result: ProfileResult, folder: Path, tables: Path) -> None:
    """Write the profile next to its tables, as JSON."""
    private = folder / ".profile.json"
    try:
        with private.open("w", encoding="utf-8") as stream:
            stream.writelines(result.json())
        private.replace(folder / "profile.json")
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror or error}", f"the tables are in {tables}"
        ) from error


def _as_parquet(result: ProfileResult, folder: str | Path | None) -> ProfileResult:
    """The same, also written as Parquet files if a folder for them is given."""
    if folder is not None and result.profiles[0].ranks:
        from seatrial.profiler.parquet import write_parquet

        write_parquet(result.profiles[0], Path(folder))
    return result
