"""`seatrial check`."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.cli.output import print_json, style_of
from seatrial.interface.check import check
from seatrial.model.fabric import Fabric
from seatrial.model.finding import Finding, Severity
from seatrial.model.machine import Machine
from seatrial.report.documents.check import check_document
from seatrial.report.text.check import check_text
from seatrial.report.text.detail import Detail

_FAILS = {
    Severity.INFO: frozenset(Severity),
    Severity.WARNING: frozenset({Severity.WARNING, Severity.ERROR}),
    Severity.ERROR: frozenset({Severity.ERROR}),
}


def check_command(
    machine: Machine,
    results: Path | None,
    as_json: bool,
    fail_on: Severity | None,
    ranks: int | None,
    detail: Detail = Detail.USUAL,
) -> int:
    """Print the findings of a machine and how to bind to its devices; the exit status.

    `results` is a folder whose measurements are checked as well. The status is 1 if a finding has the severity
    `fail_on` or higher, else 0. Raises UsageError.
    """
    checked = check(machine, results, ranks)
    parts = checked.findings, checked.bindings, checked.layout
    if as_json:
        print_json(check_document(*parts))
    else:
        print(check_text(*parts, style=style_of(sys.stdout), detail=detail))
    return status(checked.findings, fail_on)


def check_fabric_command(fabric: Fabric, as_json: bool, fail_on: Severity | None, detail: Detail = Detail.USUAL) -> int:
    """The same for a fabric, which has no bindings."""
    if as_json:
        print_json(check_document(fabric.findings, ()))
    else:
        print(check_text(fabric.findings, (), style=style_of(sys.stdout), detail=detail))
    return status(fabric.findings, fail_on)


def status(found: tuple[Finding, ...], fail_on: Severity | None) -> int:
    """1 if a finding has the severity `fail_on` or higher, else 0."""
    return int(fail_on is not None and any(finding.severity in _FAILS[fail_on] for finding in found))
