"""How the program of a repeat is started: directly, or by a launcher of ranks."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.engine.probing import probe_variables
from seatrial.engine.rank_helpers import rank_helpers
from seatrial.engine.ranks import rank_layout
from seatrial.engine.ready import Ready
from seatrial.environments.variables import variables_with
from seatrial.launch.mpi import rank_command, rank_variables
from seatrial.launch.place import kept, placed


@dataclass(frozen=True, slots=True)
class Start:
    """`before` precedes the program's own command; `variables` is its whole environment. `launcher` starts the ranks;
    empty for a single process."""

    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    launcher: str = ""


def start_of(ready: Ready, directory: Path) -> Start:
    """How a repeat is started.

    Raises BuildError if the helper programs for ranks are missing, and NoLauncherError.
    """
    added = probe_variables(ready, directory)
    if ready.mpi is None:
        return Start(variables=variables_with((*ready.variables, *added.items())))
    wanted = rank_layout(ready.point)
    set_names = [name for name, value in ready.variables if value is not None]
    starter = rank_command(ready.mpi, wanted, [*set_names, *added])
    changes = (
        *((name, None) for name in rank_variables(os.environ)),
        *starter.variables.items(),
        *ready.variables,
        *added.items(),
    )
    helpers = rank_helpers()
    before = (
        *kept(helpers, os.getpid()),
        *starter.argv,
        *placed(helpers, starter, wanted, None if ready.program.writes_record else directory),
    )
    return Start(before, variables_with(changes), starter.argv[0])
