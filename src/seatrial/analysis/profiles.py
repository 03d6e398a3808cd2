"""Profiles in a results folder, or in a folder of tables.

What reads measurements is loaded only for profiles that are judged against some: most of a short profile is loading."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from seatrial.diagnosis.diagnose import diagnosed_profiles
from seatrial.errors import ParseError, SeatrialError, StoreError
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.cause import Cause
from seatrial.profiler.symbols.symbols import Symbols
from seatrial.store.files import names, opened_folder, reason
from seatrial.store.folder import ResultsFolder

if TYPE_CHECKING:
    from seatrial.profiler.cpu import NodeLimits
    from seatrial.profiler.profile import Profile

_log = logging.getLogger(__name__)
_Read = TypeVar("_Read")


def profiles_of_tables(folder: Path, limits: NodeLimits | None = None) -> tuple[list[Profile], int]:
    """The profiles of the tables in a folder, and the number of tables that could not be read, which are logged.
    `limits` are those of the machine, if all ranks ran on one that was measured."""
    from msgspec.structs import replace

    from seatrial.profiler.mpi_energy import mpi_energies
    from seatrial.profiler.tables.io_samples import read_io_samples  # they load numpy
    from seatrial.profiler.tables.power import read_power
    from seatrial.profiler.tables.process_table import read_table

    names = function_names()
    tables, damaged = _read_all(folder.glob("*.mpi"), lambda path: read_table(path, len(names)))
    samples, _ = _read_all(folder.glob("*.io"), read_io_samples)
    resolve = Symbols.of_this_machine().frames
    made = diagnosed_profiles(tables, names, resolve, damaged, samples, limits)
    power = read_power(folder, min((table.loaded_at_s for table in tables), default=None))
    if power is None:
        return made, damaged
    divided = (mpi_energies(one.over_time, power, one.hosts) for one in made)
    return [replace(one, power=power, mpi_energy=own) for one, own in zip(made, divided, strict=True)], damaged


def profiles_in(results: Path) -> list[Profile]:
    """All profiles of a results folder, oldest first."""
    found: list[Profile] = []
    try:
        listed = names(results, "profiles", suffix="")
    except StoreError as error:
        _log.warning("ignored: %s", error.message)
        return []
    for name in listed:
        try:
            with opened_folder(results, "profiles", name, "tables"):
                pass
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            _log.warning("ignored: %s: %s", results / "profiles" / name, reason(error))
            continue
        found += profiles_of_tables(results / "profiles" / name / "tables")[0]
    return judged_profiles(found, results)


def _read_all(paths: Iterable[Path], read: Callable[[Path], _Read]) -> tuple[list[_Read], int]:
    """The files that can be read, and the number of others, which are logged."""
    found: list[_Read] = []
    damaged = 0
    for path in sorted(paths):
        try:
            found.append(read(path))
        except (ParseError, OSError) as error:
            damaged += 1
            _log.warning("not accepted: %s", error)
    return found, damaged


def judged_profiles(profiles: Sequence[Profile], results: Path) -> list[Profile]:
    """The same profiles; latency and transfer are judged against the measurements in `results`, as far as it has them
    for a profile's hosts and MPI library."""
    if not any(_wants(profile) for profile in profiles):
        return list(profiles)
    from seatrial.analysis.profile_reference import judged_profile
    from seatrial.store.contents import read_contents

    try:
        contents = read_contents(ResultsFolder.existing(results))
    except SeatrialError:
        return list(profiles)
    return [judged_profile(profile, contents) for profile in profiles]


def _wants(profile: Profile) -> bool:
    return any(one.cause in (Cause.LATENCY, Cause.TRANSFER, Cause.PACKING) for one in profile.diagnoses)
