"""Findings by loss: at most seven visible, the rest folded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.report.pages.view import TrialView
from seatrial.report.panels.panel import Panel

_IN_SIGHT = 7


def _context(view: TrialView) -> Mapping[str, Any]:
    """The order is that of `analysis.rules.findings`: known losses first, largest first."""
    findings = view.trial.findings
    return {"shown": findings[:_IN_SIGHT], "folded": findings[_IN_SIGHT:]}


FINDINGS_PANEL = Panel("findings", "Findings, largest loss first", _context)
