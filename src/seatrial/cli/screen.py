"""`seatrial screen`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.compare import share_of
from seatrial.cli.output import (
    RESULTS,
    Output,
    PageOption,
    ResultsOption,
    SiteOption,
    SystemOption,
    message,
    write_file,
)
from seatrial.errors import UsageError
from seatrial.fabric.dumps import TOPOLOGIES
from seatrial.interface.machines import discover_fabric
from seatrial.jobs.queue import where_jobs_go
from seatrial.jobs.request import Submission
from seatrial.jobs.screen import jobs_of, screen, screen_system
from seatrial.model.study.screen import MARGIN
from seatrial.model.units import parse_seconds
from seatrial.report.documents.history import screen_document
from seatrial.report.text.history import screen_text


class ScreenFailing(StrEnum):
    """What counts as a failure."""

    ODD = "odd"


@command("screen")
def _screen(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BENCHMARK...]", help="with --system: what to measure on each node (default: a short trial)"
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="DIR|KIND=FILE",
            help="a results folder of the nodes, or a fabric: slurm-topology=FILE, ibnetdiscover=FILE, iblinkinfo=FILE",
        ),
    ] = None,
    system: SystemOption = None,
    site: SiteOption = None,
    results: ResultsOption = RESULTS,
    again: Annotated[bool, typer.Option("--again", help="with --system: measure finished experiments again")] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="with --system: of the trial of a node (default: 60s), and of the messages (2min)",
        ),
    ] = None,
    no_links: Annotated[
        bool, typer.Option("--no-links", help="with --system: measure the nodes alone, no messages between them")
    ] = False,
    margin: Annotated[
        str | None,
        typer.Option("--margin", metavar="PERCENT", help="nodes that differ by up to this are not named (default: 5%)"),
    ] = None,
    fail_on: Annotated[ScreenFailing | None, typer.Option("--fail-on", help="exit 1 if anything is odd")] = None,
    output: PageOption = None,
    *,
    out: Annotated[Output, {"quiet": "the odd ones alone", "verbose": "every figure and every fact that differs"}],
) -> int:
    given = share_of("--margin", margin)
    share = MARGIN if given is None else given
    where = None if sources else where_jobs_go(site, system)
    if where is not None:
        budget_s = None if budget is None else parse_seconds(budget)
        asked = Submission(tuple(targets or ()), {}, results, budget_s, again=again, site=site, tell=message)
        found = screen_system(where, asked, share, with_links=not no_links)
        folders = [str(results)]
    else:
        is_asked = bool(targets) or again or budget is not None or no_links
        _refuse_measuring(sources or (), system, is_asked=is_asked)
        folders, dumps = _parted(sources or ())
        found = screen(folders, discover_fabric(dumps) if dumps else None, share)
    if output is not None:
        from seatrial.report.screen.article import cluster_page

        write_file(output, cluster_page(found, jobs=jobs_of(folders)))
    out.show(lambda: screen_document(found), lambda style: screen_text(found, style, out.detail))
    if fail_on is ScreenFailing.ODD and found.odd:
        return 1
    return 3 if not found.figures and not found.facts_that_differ else 0


def _refuse_measuring(sources: Sequence[str], system: str | None, *, is_asked: bool) -> None:
    """Raise UsageError for options of a measurement where nothing is measured."""
    if sources and (system is not None or is_asked):
        raise UsageError(
            "--from screens results that are there, and --system measures",
            "give one of the two, and targets to --system",
        )
    if system is not None:
        raise UsageError(
            f"{system} has no batch system that this command can submit jobs to",
            "state it in the site file (batch: slurm), and run this on a login node, not in a job",
        )
    if is_asked:
        raise UsageError("nothing says where to measure", "seatrial screen --system NAME")


def _parted(sources: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The results folders, and (kind, file) of the dumps of a fabric."""
    folders: list[str] = []
    dumps: list[tuple[str, str]] = []
    for source in sources:
        kind, equals, name = source.partition("=")
        if equals and kind in TOPOLOGIES:
            dumps.append((kind, name))
        elif equals and not Path(source).exists():
            kinds = ", ".join(sorted(TOPOLOGIES))
            raise UsageError(
                f"--from {source!r} is neither a results folder nor a dump of a fabric",
                f"give a folder, or KIND=FILE with one of the kinds {kinds}",
            )
        else:
            folders.append(source)
    return folders, dumps
