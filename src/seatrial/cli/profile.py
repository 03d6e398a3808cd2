"""`seatrial profile`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.analysis.network_tables import network_tables
from seatrial.analysis.results import results_without_limits
from seatrial.cli.output import message, write_file
from seatrial.cli.profile_folder import profiles_of_tables
from seatrial.errors import ParseError, StoreError, UsageError
from seatrial.launch.attached import Ended
from seatrial.model.json_shape import filled
from seatrial.profiler.capture.run import ProbeSettings, profile_name, run_profiled, why_nothing
from seatrial.profiler.merge.merge import empty_profile
from seatrial.profiler.parquet import write_parquet
from seatrial.profiler.profile import Profile
from seatrial.report.profile.document import TraceJson, profile_document, profile_json
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text
from seatrial.report.profile.trace_export import TraceExport, write_trace
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

_STDERR = 2
LEAST_TRACE_B = 64 << 10
"""A thousand calls, with the header."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """What was asked for on the command line. `tables`: a folder whose tables are read, with no command run."""

    command: tuple[str, ...]
    results: Path
    settings: ProbeSettings
    page: Path | None = None
    tables: Path | None = None


def profile_command(request: ProfileRequest, *, as_json: bool) -> int:
    """Run a command under the profiler, or read what an earlier one left; the exit status of CONTRACT."""
    if request.tables is not None:
        return _read_again(request, request.tables, as_json=as_json)
    if 0 < request.settings.trace_B < LEAST_TRACE_B:
        raise UsageError(f"--trace leaves {request.settings.trace_B} B for a rank", "give 64KiB or more, such as 64MiB")
    if not request.command:
        raise UsageError("there is no command to profile", "for example: seatrial profile -- mpirun -n 8 ./app")
    started_s = time.time()
    folder = ResultsFolder.create(request.results).path / "profiles" / profile_name(started_s)
    tables = folder / "tables"
    try:
        tables.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"{tables} cannot be made: {error.strerror}", "name another folder with --results") from error
    try:
        ended = run_profiled(request.command, tables, request.settings, _STDERR if as_json else None)
    except BaseException:
        _remove_if_empty(tables, folder)
        raise
    return _answer(request, folder, tables, ended, as_json=as_json)


def _remove_if_empty(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _read_again(request: ProfileRequest, tables: Path, *, as_json: bool) -> int:
    """The profile of tables that are there: of a run that was killed, or that preloaded the library by itself."""
    if request.command:
        raise UsageError("--tables reads what an earlier run left, and a command was given too", "give one of them")
    if not tables.is_dir():
        raise UsageError(f"{tables} is no folder", "give the folder `tables` of a profile")
    if not any(tables.glob("*.mpi")):
        raise UsageError(f"{tables} holds no table (*.mpi)", "give the folder `tables` of a profile")
    return _answer(request, None, tables, None, as_json=as_json)


def _answer(request: ProfileRequest, folder: Path | None, tables: Path, ended: Ended | None, *, as_json: bool) -> int:
    made, damaged = profiles_of_tables(tables)
    first = made[0] if made else empty_profile(request.command[0] if request.command else str(tables), damaged)
    status = None if ended is None else ended.exit_status
    outcome = _outcome(request.command, made, damaged, status)
    if folder is not None and not made and not damaged:
        _remove_if_empty(tables, folder)
        folder = None
    more = {**_circumstances(request, folder, ended), "outcome": outcome}
    exported = _trace(request, folder, tables)
    if request.settings.trace_B:
        more["trace"] = None if exported is None else filled(TraceJson, exported)
    more["others"] = [profile_document(other, status) for other in made[1:]]
    _keep(folder, tables, first, status, more)
    if as_json:
        _print_pieces(profile_json(first, status, more))
    else:
        for profile in made or [first]:
            message(profile_text(profile, colour=sys.stderr.isatty()))
        for line in exported.summary if exported is not None else ():
            message(f"trace: {line}")
        _tell(outcome, folder)
    if request.page is not None:
        write_file(request.page, profile_page(made or [first]))
        message(f"the page: {request.page.resolve()}")
    return 0 if outcome["state"] == "ok" else 3


def _trace(request: ProfileRequest, folder: Path | None, tables: Path) -> TraceExport | None:
    """The traces, where they were asked for, written for SimGrid's replay; with the platform, where the results hold
    what it is made from. None where there are none: what lacks is said."""
    if not request.settings.trace_B or folder is None:
        return None
    try:
        figures = network_tables(results_without_limits(read_contents(ResultsFolder.existing(request.results))))
    except UsageError as lack:
        message(f"no platform to replay on: {lack}")
        figures = None
    try:
        return write_trace(tables, folder / "trace", figures)
    except (UsageError, ParseError) as problem:
        message(f"no trace is exported: {problem}")
    except OSError as error:
        message(f"no trace is exported: {folder / 'trace'} cannot be written: {error.strerror or error}")
    return None


def _outcome(command: Sequence[str], made: Sequence[Profile], damaged: int, status: int | None) -> dict[str, str]:
    """What the command came to: a program that fails has a profile as well, up to its end."""
    if status:
        return {"state": "failed", "reason": f"the command ended with exit status {status}"}
    if made:
        return {"state": "ok", "reason": ""}
    if damaged:
        return {"state": "failed", "reason": "no table could be read"}
    return {"state": "unsupported", "reason": why_nothing(command, os.environ)}


def _circumstances(request: ProfileRequest, folder: Path | None, ended: Ended | None) -> dict[str, Any]:
    known: dict[str, Any] = {"folder": None if folder is None else str(folder)}
    if ended is not None:
        known |= {"command": list(request.command), "started_s": ended.started_s, "command_wall_s": ended.wall_s}
    return known


def _keep(folder: Path | None, tables: Path, profile: Profile, status: int | None, more: Mapping[str, Any]) -> None:
    """Write the profile beside its tables: as JSON, and its rows as Parquet."""
    if folder is None:
        return
    private = folder / ".profile.json"
    try:
        with private.open("w", encoding="utf-8") as stream:
            stream.writelines(profile_json(profile, status, more))
        private.replace(folder / "profile.json")
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror or error}", f"the tables lie in {tables}"
        ) from error
    if profile.ranks:
        write_parquet(profile, folder)


def _tell(outcome: Mapping[str, str], folder: Path | None) -> None:
    if outcome["state"] != "ok":
        message(f"\n{outcome['state']}: {outcome['reason']}")
    if folder is not None:
        message(f"\nkept: {folder} (profile.json, Parquet, tables); -o FILE.html writes the page")


def _print_pieces(pieces: Iterable[str]) -> None:
    """One JSON object on stdout, as it is made."""
    for piece in pieces:
        sys.stdout.write(piece)
    sys.stdout.write("\n")
