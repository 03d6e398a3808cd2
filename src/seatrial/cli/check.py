"""`seatrial check`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.analysis.folder import trial_of
from seatrial.analysis.rank_layout import Binding, RankLayout, bindings, rank_layout
from seatrial.analysis.rules import findings
from seatrial.cli.command import command
from seatrial.cli.output import FromOption, LiveOption, Output
from seatrial.cli.sources import parse_dumps, refuse_options
from seatrial.interface.machines import discover_fabric, is_fabric, machine_of
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Machine
from seatrial.report.documents.check import check_document
from seatrial.report.text.check import check_text


class Failing(StrEnum):
    """The lowest severity that counts as a failure."""

    WARNING = "warning"
    ERROR = "error"


_FAILS = {
    None: frozenset[Severity](),
    Failing.WARNING: frozenset({Severity.WARNING, Severity.ERROR}),
    Failing.ERROR: frozenset({Severity.ERROR}),
}


@command("check")
def _check(
    dumps: FromOption = None,
    live: LiveOption = False,
    results: Annotated[
        Path | None, typer.Option("--results", metavar="DIR", help="also check the results in this folder")
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", metavar="N", help="propose a layout for N ranks", min=1)
    ] = None,
    fail_on: Annotated[
        Failing | None, typer.Option("--fail-on", help="exit 1 if there is a finding of this severity or higher")
    ] = None,
    *,
    out: Annotated[Output, {"quiet": "a line for each error and warning", "verbose": "all of the evidence"}],
) -> int:
    sources = parse_dumps(dumps)
    if is_fabric(sources):
        refuse_options({"--live": live, "--results": results is not None, "--ranks": ranks is not None})
        return _print(discover_fabric(sources).findings, (), None, fail_on, out)
    return check_machine(machine_of(sources, live=live, results=results), results, ranks, fail_on, out)


def check_machine(
    machine: Machine, results: Path | None, ranks: int | None, fail_on: Failing | None, out: Output
) -> int:
    """Print the findings of a machine and how to bind to its devices; the exit status, see `status`.

    `results` is a folder whose measurements are checked as well. Raises UsageError for ranks that do not fit, and for a
    folder without results of this machine.
    """
    trial = None if results is None else trial_of(machine, results)
    found = findings(
        machine, trial.results if trial else (), trial.seen if trial else None, trial.environments if trial else {}
    )
    return _print(found, bindings(machine), None if ranks is None else rank_layout(machine, ranks), fail_on, out)


def _print(
    found: Sequence[Finding], bound: Sequence[Binding], layout: RankLayout | None, fail_on: Failing | None, out: Output
) -> int:
    out.show(
        lambda: check_document(found, bound, layout),
        lambda style: check_text(found, bound, layout, style=style, detail=out.detail),
    )
    return status(found, fail_on)


def status(found: Sequence[Finding], fail_on: Failing | None) -> int:
    """1 if a finding has that severity or a higher one, else 0."""
    return int(any(finding.severity in _FAILS[fail_on] for finding in found))
