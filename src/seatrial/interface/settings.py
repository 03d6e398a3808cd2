"""Settings of this machine (clocks, governors, limits) for the time of a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.environments.settings.change import guarded
from seatrial.environments.settings.knobs import KNOBS
from seatrial.errors import UnknownNameError, UsageError
from seatrial.interface.arguments import check_runnable
from seatrial.launch.local import Ended, run_attached
from seatrial.model.benchmark.parameter import Value
from seatrial.model.spelling import few_names
from seatrial.model.units import parse_quantity

_UNITS = {"cpu_frequency": "Hz", "uncore_frequency": "Hz", "power_limit": "W", "cpu_idle": "s"}
_FIRST_USER = 1000
"""Ids below are the system's (login.defs(5), UID_MIN)."""
_MOST_NAMES = 3
_NOBODY = 65534


def setting_of(name: str, text: str) -> Value:
    """The value of a setting, from text such as "2.5GHz". Raises UsageError."""
    if name not in KNOBS:
        raise UnknownNameError("setting", name, KNOBS)
    if name == "turbo":
        if text not in ("true", "false"):
            raise UsageError(f"turbo cannot be {text!r}", "it takes true or false")
        return text == "true"
    if name not in _UNITS:
        return text
    quantity = parse_quantity(text)
    if quantity.unit != _UNITS[name]:
        raise UsageError(f"{name} cannot be {text!r}", KNOBS[name].about)
    return quantity.value


def run_with_settings(
    command: Sequence[str], wanted: Mapping[str, Value], *, root: str | Path = "/", shared: bool = False
) -> Ended:
    """Run a command while these settings have these values; then, and if seatrial is killed, they are put back.

    `root` is a folder in place of /. Raises UsageError for a setting that this machine does not have or allow, that did
    not act, and on a node on which others run programs, unless `shared`.
    """
    check_runnable(command)
    if (others := users_here()) and not shared:
        names = few_names(others, _MOST_NAMES)
        todo = "they would have the settings as well: ask them, then give --shared"
        raise UsageError(f"others run programs on this node (users {names})", todo)
    try:
        with guarded(Path(root)) as settings:
            if failed := settings.change(wanted):
                path, why = next(iter(failed.items()))
                raise UsageError(f"{path}: {why}", "nothing was run, and all is put back; most settings need root")
            sys.stdout.flush()
            return run_attached(command, os.environ)
    except OSError as error:
        raise UsageError(f"settings: {error.strerror or error}", "`seatrial settings` shows what is changed") from error


def users_here() -> list[int]:
    """The ids of users other than this one and the system's who run programs here."""
    found: set[int] = set()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                found.add(process.stat().st_uid)
            except OSError:
                continue
    return sorted(one for one in found if one >= _FIRST_USER and one not in (os.geteuid(), _NOBODY))
