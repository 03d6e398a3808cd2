"""Profiles in a results folder, or in a folder of tables."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.analysis.profile_reference import judged_profiles
from seatrial.diagnosis.diagnose import diagnosed_profiles
from seatrial.errors import ParseError, StoreError
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.cpu import NodeLimits
from seatrial.profiler.profile import Profile
from seatrial.profiler.symbols.symbols import Symbols
from seatrial.store.files import names, opened_folder, reason

if TYPE_CHECKING:
    from seatrial.profiler.tables.io_samples import IoSamples
    from seatrial.profiler.tables.process_table import ProcessTable

_log = logging.getLogger(__name__)


def profiles_of_tables(folder: Path, limits: NodeLimits | None = None) -> tuple[list[Profile], int]:
    """The profiles of the tables in a folder, and the number of tables that could not be read, which are logged.
    `limits` are those of the machine, if all ranks ran on one that was measured."""
    tables, damaged = _tables(folder)
    resolve = Symbols.of_this_machine().frames
    return diagnosed_profiles(tables, function_names(), resolve, damaged, _samples(folder), limits), damaged


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


def _tables(folder: Path) -> tuple[list[ProcessTable], int]:
    from seatrial.profiler.tables.process_table import read_table  # it loads numpy

    found: list[ProcessTable] = []
    damaged = 0
    functions = len(function_names())
    for path in sorted(folder.glob("*.mpi")):
        try:
            found.append(read_table(path, functions))
        except (ParseError, OSError) as error:
            damaged += 1
            _log.warning("not accepted: %s", error)
    return found, damaged


def _samples(folder: Path) -> list[IoSamples]:
    """The I/O samples of all nodes; a file that cannot be read is logged."""
    from seatrial.profiler.tables.io_samples import read_io_samples  # it loads numpy

    found: list[IoSamples] = []
    for path in sorted(folder.glob("*.io")):
        try:
            found.append(read_io_samples(path))
        except (ParseError, OSError) as error:
            _log.warning("not accepted: %s", error)
    return found
