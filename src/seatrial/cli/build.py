"""`seatrial build`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.chosen import choice_text
from seatrial.cli.options import RESULTS
from seatrial.cli.output import message
from seatrial.engine.building import BuiltAhead
from seatrial.environments.build import Built, Environment
from seatrial.errors import BuildError
from seatrial.interface.build import NotBuilt, build
from seatrial.jobs.planned import known_machine
from seatrial.jobs.where import where_jobs_go
from seatrial.model.mpi import Mpi
from seatrial.plan.points import parse_settings
from seatrial.report.units import show


def build_command(
    targets: Sequence[str],
    settings: Sequence[str],
    mpi_wheels: Sequence[str],
    *,
    site: Path | None,
    system: str | None,
    quiet: bool = False,
    verbose: bool = False,
) -> int:
    """Build the programs of a study or of benchmarks (default: all benchmarks) and print their paths; with `verbose`
    also the commands that compile them, with `quiet` no progress.

    Returns 3 if a program could not be built; the others are built first.
    """
    failed, title = False, ""
    announce = (lambda text: None) if quiet else message
    machine = None
    if (where := where_jobs_go(site, system)) is not None:
        machine, system = known_machine(RESULTS, where), where.in_site_file
        nodes = (
            "for its nodes, as a job found them"
            if machine
            else f"for this machine: no job into {RESULTS} found its nodes"
        )
        announce(f"{where.text}: building {nodes}")
    built = build(
        targets,
        parse_settings(settings),
        announce,
        mpi_wheels=mpi_wheels,
        site=site,
        system=system,
        machine=machine,
    )
    for item in built:
        match item:
            case Mpi():
                print(f"{item.name}: {item.title}, {item.library}")
            case NotBuilt():
                failed = True
                message(f"seatrial: {f'{item.what} could not be built: ' if item.what else ''}{item.problem}")
            case BuiltAhead():
                failed |= isinstance(item.result, BuildError)
                if title != (title := _title(item)):
                    print(title)
                print(_line(item), flush=True)
                if verbose and isinstance(item.result, Built):
                    print(f"  {shlex.join(item.result.command)}", flush=True)
    return 3 if failed else 0


def _title(item: BuiltAhead) -> str:
    where = "" if item.container is None else f" {item.container.title}"
    if isinstance(item.environment, Environment):
        return f"{item.environment.document()['name']}{where} ({item.environment.target.resolution})"
    return choice_text(item.choice) or "no environment"


def _line(item: BuiltAhead) -> str:
    names = ", ".join(item.benchmarks)
    if isinstance(item.result, Built):
        how = "from the cache" if item.result.from_cache else f"built in {show(item.result.seconds, 's')}"
        return f"{names}: {item.result.path} ({how})"
    output = f"\n{item.result.output.rstrip()}" if item.result.output else ""
    return f"{names}: not built: {item.result}{output}"
