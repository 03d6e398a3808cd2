"""Findings of a machine, and how to bind to its devices."""

from __future__ import annotations

from pathlib import Path

from seatrial.analysis.bindings import Binding, bindings
from seatrial.analysis.folder import trial_of
from seatrial.analysis.rank_layout import Layout, rank_layout
from seatrial.analysis.rules import findings
from seatrial.model.finding import Finding
from seatrial.model.frozen import Frozen
from seatrial.model.machine import Machine


class Checked(Frozen):
    """The findings, most severe first, the binding of each GPU and adapter, and the requested layout of ranks."""

    findings: tuple[Finding, ...]
    bindings: tuple[Binding, ...]
    layout: Layout | None = None


def check(machine: Machine, results: Path | None = None, ranks: int | None = None) -> Checked:
    """Check a machine; with `results` also its measurements (see `trial_of`); with `ranks` lay out that many ranks.

    Raises UsageError for ranks that do not fit, and for a folder without results of this machine.
    """
    trial = None if results is None else trial_of(machine, results)
    found = findings(machine, trial.results if trial else (), trial.seen if trial else None)
    return Checked(found, bindings(machine), None if ranks is None else rank_layout(machine, ranks))
