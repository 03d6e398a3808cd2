"""Settings of this machine (clocks, governors, limits) for the time of a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from seatrial.environments.settings.change import guarded
from seatrial.environments.settings.node import OTHERS_TOO, why_shared
from seatrial.errors import UsageError
from seatrial.interface.arguments import check_runnable
from seatrial.launch.local import Ended, run_attached
from seatrial.model.benchmark.parameter import Value


def run_with_settings(
    command: Sequence[str], wanted: Mapping[str, Value], *, root: str | Path = "/", shared: bool = False
) -> Ended:
    """Run a command while these settings have these values; then, and if seatrial is killed, they are put back.

    `root` is a folder in place of /. Raises UsageError for a setting that this machine does not have or allow, that did
    not act, and on a node on which others run programs, unless `shared`.
    """
    check_runnable(command)
    if not shared and (why := why_shared(os.environ)):
        raise UsageError(why, f"{OTHERS_TOO}, then give --shared")
    try:
        with guarded(Path(root)) as settings:
            if failed := settings.change(wanted):
                path, why = next(iter(failed.items()))
                raise UsageError(f"{path}: {why}", "nothing was run, and all is put back; most settings need root")
            sys.stdout.flush()
            return run_attached(command, os.environ)
    except OSError as error:
        raise UsageError(f"settings: {error.strerror or error}", "`seatrial settings` shows what is changed") from error
