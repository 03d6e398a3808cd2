"""Profiles of MPI programs: of a command that is run now, or of the tables that an earlier run left."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.analysis.network_tables import network_tables
from seatrial.analysis.results import results_without_limits
from seatrial.errors import ParseError, StoreError, UsageError
from seatrial.interface.profile_folder import profiles_of_tables
from seatrial.launch.attached import Ended
from seatrial.model.json_shape import filled
from seatrial.profiler.capture.run import ProbeSettings, profile_name, run_profiled, why_nothing
from seatrial.profiler.merge.merge import empty_profile
from seatrial.profiler.parquet import write_parquet
from seatrial.profiler.profile import Profile
from seatrial.report.profile.document import TraceJson, profile_document, profile_json
from seatrial.report.profile.trace_export import TraceExport, write_trace
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

LEAST_TRACE_B = 64 << 10
"""A thousand calls, with the header."""
IO_EVERY_S = 0.2

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProfileResult:
    """The profiles of a command, and how it ended.

    `profiles` has one for each program, the one that took most time first; where no rank left a table, an empty one.
    `state` is ok, failed or unsupported, `reason` says why it is not ok: a program that fails has a profile as well, up
    to its end. `folder` keeps it all (profile.json, Parquet, tables); None where nothing is kept. `exit_status` is the
    command's, None where none was run.
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
        """Whether the command succeeded and there is a profile of it."""
        return self.state == "ok"

    def json(self) -> Iterator[str]:
        """`seatrial.profile/1` as text, in pieces: the matrix of thousands of ranks has millions of rows."""
        return profile_json(self.profiles[0], self.exit_status, self.circumstances)


def profile(
    command: Sequence[str],
    *,
    results: str | Path = "seatrial-results",
    io_s: float = IO_EVERY_S,
    wait_every: int = 0,
    trace_B: int = 0,
    stdout: int | None = None,
) -> ProfileResult:
    """Run a command, such as `["mpirun", "-n", "8", "./app"]`, and measure where its MPI ranks spend their time.

    It runs unchanged, with our terminal and input; `stdout` is a descriptor for its output instead of ours. Its profile
    is kept in the results folder. `io_s`: seconds between two looks at each rank's input and output (0: none).
    `wait_every`: every so many collectives one has a barrier before it, which measures waiting apart (0: none).
    `trace_B`: keep each call, at most so many bytes for each rank, for a replay with SimGrid (0: none).

    Signals are passed on to the command, so it is for the main thread. Raises UsageError where the command cannot be
    started, BuildError where the profiler cannot be built, StoreError.
    """
    if 0 < trace_B < LEAST_TRACE_B:
        raise UsageError(f"--trace leaves {trace_B} B for a rank", "give 64KiB or more, such as 64MiB")
    if not command:
        raise UsageError("there is no command to profile", "for example: seatrial profile -- mpirun -n 8 ./app")
    started_s = time.time()
    folder = ResultsFolder.create(Path(results)).path / "profiles" / profile_name(started_s)
    tables = folder / "tables"
    try:
        tables.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{tables} cannot be made: {error.strerror}", "name another folder with --results") from error
    try:
        ended = run_profiled(command, tables, ProbeSettings(io_s, wait_every, trace_B), stdout)
    except BaseException:
        _remove_if_empty(tables, folder)
        raise
    return _result(command, tables, folder, ended, Path(results) if trace_B else None)


def profile_of_tables(tables: Path) -> ProfileResult:
    """The profile of tables that are there: of a run that was killed, or that preloaded the library by itself. Raises
    UsageError where there are none."""
    if not tables.is_dir():
        raise UsageError(f"{tables} is no folder", "give the folder `tables` of a profile")
    if not any(tables.glob("*.mpi")):
        raise UsageError(f"{tables} holds no table (*.mpi)", "give the folder `tables` of a profile")
    return _result((), tables, None, None, None)


def _remove_if_empty(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _result(
    command: Sequence[str], tables: Path, folder: Path | None, ended: Ended | None, traced: Path | None
) -> ProfileResult:
    """Read the tables, export the traces (`traced`: the results folder of which the network is), keep it all."""
    made, damaged = profiles_of_tables(tables)
    status = None if ended is None else ended.exit_status
    state, reason = _outcome(command, made, damaged, status)
    if folder is not None and not made and not damaged:
        _remove_if_empty(tables, folder)
        folder = None
    more: dict[str, Any] = {"folder": None if folder is None else str(folder)}
    if ended is not None:
        more |= {"command": list(command), "started_s": ended.started_s, "command_wall_s": ended.wall_s}
    more["outcome"] = {"state": state, "reason": reason}
    exported = None if traced is None or folder is None else _trace(tables, folder, traced)
    if traced is not None:
        more["trace"] = None if exported is None else filled(TraceJson, exported)
    more["others"] = [profile_document(other, status) for other in made[1:]]
    profiles = tuple(made) or (empty_profile(command[0] if command else str(tables), damaged),)
    result = ProfileResult(profiles, state, reason, folder, status, exported, more)
    if folder is not None:
        _keep(result, folder, tables)
    return result


def _trace(tables: Path, folder: Path, results: Path) -> TraceExport | None:
    """The traces, written for SimGrid's replay; with the platform, where the results hold what it is made from. None
    where there are none: what is missing is logged."""
    try:
        figures = network_tables(results_without_limits(read_contents(ResultsFolder.existing(results))))
    except UsageError as problem:
        _log.warning("no platform to replay on: %s", problem)
        figures = None
    try:
        return write_trace(tables, folder / "trace", figures)
    except (UsageError, ParseError) as problem:
        _log.warning("no trace is exported: %s", problem)
    except OSError as error:
        _log.warning("no trace is exported: %s cannot be written: %s", folder / "trace", error.strerror or error)
    return None


def _outcome(command: Sequence[str], made: Sequence[Profile], damaged: int, status: int | None) -> tuple[str, str]:
    """(state, reason) of what the command came to."""
    if status:
        return "failed", f"the command ended with exit status {status}"
    if made:
        return "ok", ""
    if damaged:
        return "failed", "no table could be read"
    return "unsupported", why_nothing(command, os.environ)


def _keep(result: ProfileResult, folder: Path, tables: Path) -> None:
    """Write the profile beside its tables: as JSON, and its rows as Parquet."""
    private = folder / ".profile.json"
    try:
        with private.open("w", encoding="utf-8") as stream:
            stream.writelines(result.json())
        private.replace(folder / "profile.json")
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror or error}", f"the tables lie in {tables}"
        ) from error
    if result.profiles[0].ranks:
        write_parquet(result.profiles[0], folder)
