"""`seatrial compare`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.analysis.compare_along import compare_along
from seatrial.analysis.compare_folders import NamedFolder, compare_folders
from seatrial.analysis.compare_reference import PREFIX, compare_with_reference
from seatrial.cli.folder import contents_in
from seatrial.cli.output import message, print_json, style_of, write_file
from seatrial.errors import UsageError
from seatrial.model.comparison import Verdict
from seatrial.model.outlier import Outlier
from seatrial.model.study import DEFAULT_MARGIN
from seatrial.model.study_result import Compared
from seatrial.model.units import parse_quantity
from seatrial.report.documents.compare import compare_document
from seatrial.report.studies.compare_page import compare_page
from seatrial.report.text.compare import compare_text


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What was asked for on the command line, as text."""

    sides: tuple[str, ...]
    along: str | None
    margin: str | None
    fail_on: Verdict | None
    output: Path | None


def compare_command(request: CompareRequest, *, as_json: bool) -> int:
    """Compare and print; 1 where a comparison is what `--fail-on` asks for, else 0."""
    margin = DEFAULT_MARGIN if request.margin is None else _margin(request.margin)
    found: Sequence[Compared]
    outliers: Sequence[Outlier] | None = None
    if request.along is not None:
        if len(request.sides) != 1:
            raise UsageError("--along takes one results folder", "seatrial compare DIR --along AXIS")
        along = compare_along(contents_in(Path(request.sides[0])), request.along, margin)
        found, outliers = along.compared, along.outliers
    elif len(request.sides) == 2:
        found = (_two_sides(*request.sides, margin),)
    else:
        raise UsageError(
            f"compare takes two sides, or one results folder with --along, not {len(request.sides)}",
            "seatrial compare A B, or seatrial compare DIR --along AXIS (node, repeat, rank, pair, or a parameter)",
        )
    if request.output is not None:
        write_file(request.output, compare_page(found, outliers))
    if as_json:
        print_json(compare_document(found, outliers))
    else:
        print(compare_text(found, outliers, style=style_of(sys.stdout)))
    for text in (text for compared in found for text in compared.lost):
        message(f"not compared: {text}")
    return _status(found, request.fail_on)


def _two_sides(baseline: str, candidate: str, margin: float) -> Compared:
    if baseline.startswith(PREFIX) or candidate.startswith(PREFIX):
        folders = {side: contents_in(Path(side)) for side in (baseline, candidate) if not side.startswith(PREFIX)}
        return compare_with_reference(baseline, candidate, folders, margin)
    return compare_folders(
        NamedFolder(baseline, contents_in(Path(baseline))), NamedFolder(candidate, contents_in(Path(candidate))), margin
    )


def _margin(text: str) -> float:
    quantity = parse_quantity(text)
    if quantity.unit != "1" or not 0 < quantity.value < 1:
        raise UsageError(f"--margin {text!r} is no share", "write a percentage between 0 and 100, such as 2%")
    return quantity.value


def _status(found: Sequence[Compared], fail_on: Verdict | None) -> int:
    """`--fail-on ambiguous` fails on slower, too: what may be slower is no better than what is. Where a side did not
    come out, or nothing could be compared, no question was answered: a gate must not open for a program that died."""
    if fail_on is None:
        return 0
    if any(compared.lost or not compared.comparisons for compared in found):
        return 1
    wrong = {Verdict.SLOWER: {Verdict.SLOWER}, Verdict.AMBIGUOUS: {Verdict.SLOWER, Verdict.AMBIGUOUS}}
    verdicts = {comparison.verdict for compared in found for comparison in compared.comparisons}
    return 1 if verdicts & wrong[fail_on] else 0
