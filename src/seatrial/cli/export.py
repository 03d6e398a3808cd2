"""`seatrial export`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from seatrial.analysis.cost import tariff_in_force
from seatrial.analysis.folder import contents_in, tell_of_folder
from seatrial.analysis.index.index import damaged_lines, opened_index
from seatrial.analysis.index.views import exported_rows, identifiers
from seatrial.analysis.results import all_results
from seatrial.analysis.study_results import study_results
from seatrial.cli.command import command
from seatrial.cli.output import (
    RESULTS,
    Amount,
    OutputOption,
    hide_warnings,
    message,
    write_bytes,
    write_data,
    write_file,
)
from seatrial.errors import UsageError
from seatrial.model.results.exported import REMARKS, Exported, ExportedVerdict
from seatrial.model.spelling import count
from seatrial.report.export.anonymous import Anonymizer
from seatrial.report.export.costs import with_costs
from seatrial.report.export.junit import junit_text
from seatrial.report.export.remarks import with_remarks
from seatrial.report.export.tables import csv_text, markdown_text, openmetrics_text, parquet_bytes
from seatrial.report.studies.verdicts import verdict_rows
from seatrial.store.folder import ResultsFolder


class ExportFormat(StrEnum):
    """Output format of `export`."""

    CSV = "csv"
    MARKDOWN = "markdown"
    PARQUET = "parquet"
    JUNIT = "junit"
    OPENMETRICS = "openmetrics"


class Columns(StrEnum):
    """Further columns of a CSV export; the remarks also of Parquet."""

    PARAMETERS = "parameters"
    REMARKS = REMARKS


_TEXTS = {"csv": csv_text, "markdown": markdown_text, "junit": junit_text, "openmetrics": openmetrics_text}


@command("export")
def _export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the results folder")] = RESULTS,
    output_format: Annotated[ExportFormat, typer.Option("--format", help="what to write")] = ExportFormat.CSV,
    output: OutputOption = None,
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="without hosts, users, serial numbers and paths")
    ] = False,
    columns: Annotated[
        list[Columns] | None,
        typer.Option(
            "--columns",
            help="of csv: parameters adds a column parameter.NAME for each, remarks why there is no interval or CPU",
        ),
    ] = None,
    *,
    amount: Annotated[
        Amount,
        {"quiet": "no warnings of damaged records", "verbose": "the number of experiments and figures, on stderr"},
    ],
) -> None:
    if amount.quiet:
        hide_warnings()
    is_parquet = output_format is ExportFormat.PARQUET
    if is_parquet and output is None:
        raise UsageError("Parquet is not text", "name a file: -o FILE.parquet")
    wanted = frozenset(columns or ())
    if wanted and not (output_format is ExportFormat.CSV or (is_parquet and wanted == {Columns.REMARKS})):
        raise UsageError(
            f"--columns is for CSV (`remarks` also for Parquet), not for {output_format}",
            "leave it out, or give --format csv",
        )
    found = _exported(
        folder,
        anonymous=anonymous,
        verdicts=output_format is ExportFormat.JUNIT,
        remarks=Columns.REMARKS in wanted or output_format in (ExportFormat.MARKDOWN, ExportFormat.JUNIT),
    )
    to_text: Callable[[Exported], str] | None = _TEXTS.get(output_format)
    if output_format is ExportFormat.CSV:
        has_parameters, has_remarks = Columns.PARAMETERS in wanted, Columns.REMARKS in wanted
        to_text = partial(csv_text, with_parameters=has_parameters, with_remarks=has_remarks)
    if output is not None and to_text is None:
        write_bytes(output, parquet_bytes(found, with_remarks=bool(wanted)))
    elif output is not None and to_text is not None:
        write_file(output, to_text(found))
    elif to_text is not None:
        write_data(to_text(found))
    if output_format is ExportFormat.CSV and Columns.REMARKS not in wanted and not amount.quiet:
        _announce_missing(found)
    if amount.verbose:
        message(_contents(found))


def _announce_missing(found: Exported) -> None:
    """How many intervals a CSV table does not have, whose usual columns cannot say why."""
    missing = sum(bool(row.figure) and row.ci95_low is None for row in found.rows)
    if missing:
        message(f"{count(missing, 'figure')} without an interval: --columns remarks says why")


def _exported(folder: Path, *, anonymous: bool, verdicts: bool, remarks: bool) -> Exported:
    """What an export of a folder contains; with `verdicts`, also those of its studies; with `remarks`, also what
    qualifies each figure. Raises UsageError if there is no results folder or it is empty, StoreError."""
    opened = ResultsFolder.existing(folder)
    with opened_index(opened) as connection:
        rows, damaged = exported_rows(connection), damaged_lines(connection)
        known = identifiers(connection) if anonymous else {}
    tell_of_folder(folder, damaged, is_empty=not rows)
    named: list[ExportedVerdict] = []
    if verdicts and opened.keys("studies"):
        named = [
            ExportedVerdict(study.study.name, *row)
            for study in study_results(contents_in(folder))
            for compared in study.compared
            for row in verdict_rows(compared)
        ]
    if tariff_in_force() is not None:
        rows = with_costs(rows, all_results(contents_in(folder)))
    found = Exported(rows, tuple(named))
    if remarks:
        found = with_remarks(found, all_results(contents_in(folder)))
    return Anonymizer(known).exported(found) if anonymous else found


def _contents(found: Exported) -> str:
    """How many experiments an export has by outcome, and how many figures and verdicts."""
    outcomes = Counter({row.experiment: row.outcome for row in found.rows}.values())
    figures = sum(bool(row.figure) for row in found.rows)
    texts = [f"{number} {outcome}" for outcome, number in outcomes.most_common()]
    experiments = f"{count(outcomes.total(), 'experiment')} ({', '.join(texts)})"
    verdicts = [count(len(found.verdicts), "verdict")] if found.verdicts else []
    return f"exported: {', '.join([experiments, count(figures, 'figure'), *verdicts])}"
