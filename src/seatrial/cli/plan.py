"""`seatrial plan`."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.cli.output import print_json, style_of
from seatrial.interface.plan import plan
from seatrial.report.documents.plan import plan_document
from seatrial.report.text.plan import plan_text


def plan_command(
    study: Path | None, *, as_json: bool, site: Path | None = None, system: str | None = None, verbose: bool = False
) -> None:
    """Print the experiments of a study, or of the standard trial, on this machine; with `verbose`, each
    of a study's.

    Raises UsageError for an invalid study.
    """
    planned = plan(study, site=site, system=system)
    if as_json:
        print_json(plan_document(planned))
    else:
        print(plan_text(planned, style_of(sys.stdout), verbose=verbose))
