"""`seatrial compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import EquivalenceOption, FailOn, MarginOption, Output, PageOption, message, write_file
from seatrial.errors import UsageError

if TYPE_CHECKING:
    from seatrial.analysis.reference_check import ReferenceCheck
    from seatrial.model.study.result import Compared
    from seatrial.report.text.terminal import Style


FAIL_ON_HELP = (
    "exit 1 if any comparison has this verdict; ambiguous includes slower; reference: if a figure of the candidate is "
    "beyond its stored reference"
)


@command("compare")
def _compare(
    sides: Annotated[
        list[str], typer.Argument(metavar="A B | DIR", help="baseline and candidate: results folders or reference:ID")
    ],
    along: Annotated[
        str | None,
        typer.Option(
            "--along",
            metavar="AXIS",
            help="within one folder: a parameter, node, repeat, rank or pair; SCREEN AGAIN: two screens of nodes",
        ),
    ] = None,
    margin: MarginOption = None,
    equivalence: EquivalenceOption = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help=FAIL_ON_HELP),
    ] = None,
    output: PageOption = None,
    *,
    out: Annotated[Output, {"quiet": "the answer alone", "verbose": "every difference between the sides"}],
) -> int:
    """Measures nothing; `run STUDY` measures side by side."""
    from seatrial.interface.results import compare
    from seatrial.report.documents.compare import compare_document
    from seatrial.report.text.compare import compare_text

    found = compare(
        *sides, along=along, margin=share_of("--margin", margin), equivalence=share_of("--equivalence", equivalence)
    )
    if output is not None:
        from seatrial.report.pages.page import compare_page

        write_file(output, compare_page(found.compared, found.screen))
    checks = _references(sides, share_of("--margin", margin)) if fail_on is FailOn.REFERENCE else None

    def shown(style: Style) -> str:
        text = compare_text(found.compared, found.screen, style=style, detail=out.detail)
        if not checks:
            return text
        from seatrial.report.text.references import references_text

        return f"{references_text(checks, style)}\n\n{text}"

    out.show(lambda: compare_document(found.compared, found.screen, references=checks), shown)
    for text in (text for compared in found.compared for text in compared.lost):
        message(f"not compared: {text}")
    if checks:
        return reference_status(checks)
    if found.screen is None and not any(compared.comparisons for compared in found.compared):
        message("nothing was compared")
        return 3
    if checks is not None:
        return reference_status(checks)
    return verdict_status(found.compared, fail_on)


def _references(sides: Sequence[str], margin: float | None) -> tuple[ReferenceCheck, ...]:
    """The figures of the candidate beside stored references, or beside those that are a side. Raises UsageError."""
    from pathlib import Path

    from seatrial.analysis.compare_folders import PREFIX
    from seatrial.analysis.reference_check import checked_references, stored_references
    from seatrial.interface.results import results
    from seatrial.model.study.study import DEFAULT_MARGIN
    from seatrial.references.loader import reference_named

    named = [reference_named(side.removeprefix(PREFIX)) for side in sides if side.startswith(PREFIX)]
    folders = [side for side in sides if not side.startswith(PREFIX)]
    found = results(Path(folders[-1]))
    share = DEFAULT_MARGIN if margin is None else margin
    return checked_references(named or stored_references(), found.experiments, share)


def reference_status(checks: Sequence[ReferenceCheck]) -> int:
    """1 if a figure is beyond its stored reference; 3 if no reference matches any; else 0."""
    if not checks:
        message("no stored reference matches a figure; `seatrial list --references` shows the figure of each")
        return 3
    undecided = sum(one.verdict == "undecided" for one in checks)
    if undecided:
        message(f"--fail-on reference: {undecided} of {len(checks)} undecided, which does not fail")
    return 1 if any(one.verdict == "fail" for one in checks) else 0


def share_of(option: str, text: str | None) -> float | None:
    """The share that the option gives; None: it is not given. Raises UsageError."""
    if text is None:
        return None
    from seatrial.model.units import parse_share

    try:
        return parse_share(text)
    except UsageError as error:
        raise UsageError(f"{option} {text!r} is not a percentage between 0 and 100", error.todo) from None


def verdict_status(found: Sequence[Compared], fail_on: FailOn | None) -> int:
    """1 if a verdict fails; `--fail-on ambiguous` includes slower. Secondary figures do not count. A side without
    results fails as well: a gate must not pass a program that died. Sides that were measured apart have no verdict:
    these fail if their sessions differ by more than the margin in the wrong direction."""
    if fail_on is None:
        return 0
    from seatrial.analysis.stretches import is_apart
    from seatrial.model.spelling import count
    from seatrial.model.study.comparison import Verdict
    from seatrial.report.studies.verdicts import session_verdict

    comparisons = [one for compared in found for one in compared.comparisons if not one.is_secondary]
    apart = [comparison for comparison in comparisons if is_apart(comparison)]
    if apart:
        message(
            f"--fail-on: {len(apart)} of {count(len(comparisons), 'comparison')} without a verdict, because the sides "
            "were measured apart; `seatrial run STUDY` with a `compare` section measures both side by side"
        )
    if any(compared.lost or not compared.comparisons for compared in found):
        return 1
    if any(session_verdict(comparison) is Verdict.SLOWER for comparison in apart):
        return 1
    wrong = {FailOn.SLOWER: {Verdict.SLOWER}, FailOn.AMBIGUOUS: {Verdict.SLOWER, Verdict.AMBIGUOUS}}
    return 1 if {comparison.verdict for comparison in comparisons} & wrong[fail_on] else 0
