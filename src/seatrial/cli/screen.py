"""`seatrial screen`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from seatrial.cli.options import RESULTS
from seatrial.cli.output import message, print_json, style_of, write_file
from seatrial.errors import UsageError
from seatrial.fabric.dumps import FABRIC_READERS
from seatrial.interface.fabric import discover_fabric
from seatrial.jobs.screen import jobs_of, screen
from seatrial.jobs.screening import screen_system
from seatrial.jobs.where import where_jobs_go
from seatrial.model.screen import MARGIN
from seatrial.model.units import parse_seconds, parse_share
from seatrial.report.documents.screen import screen_document
from seatrial.report.text.detail import Detail
from seatrial.report.text.screen import screen_text


def screen_command(
    sources: Sequence[str],
    *,
    targets: Sequence[str] = (),
    system: str | None = None,
    site: Path | None = None,
    results: Path = RESULTS,
    again: bool = False,
    budget: str | None = None,
    with_links: bool = True,
    margin: str | None = None,
    output: Path | None = None,
    detail: Detail = Detail.USUAL,
    as_json: bool,
) -> int:
    """Screen and print; 0 also if something is odd, and 3 if nothing could be screened."""
    share = _margin(margin)
    where = None if sources else where_jobs_go(site, system)
    if where is not None:
        found = screen_system(
            where,
            results,
            targets,
            budget_s=None if budget is None else parse_seconds(budget),
            with_links=with_links,
            again=again,
            site=site,
            margin=share,
            tell=message,
        )
        folders = [str(results)]
    else:
        _refuse_measuring(sources, system, is_asked=bool(targets) or again or budget is not None or not with_links)
        folders, dumps = _parted(sources)
        found = screen(folders, discover_fabric(dumps) if dumps else None, share)
    if output is not None:
        from seatrial.report.cluster.page import cluster_page

        write_file(output, cluster_page(found, jobs=jobs_of(folders)))
    if as_json:
        print_json(screen_document(found))
    else:
        print(screen_text(found, style_of(sys.stdout), detail))
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
        if equals and kind in FABRIC_READERS:
            dumps.append((kind, name))
        elif equals and not Path(source).exists():
            kinds = ", ".join(sorted(FABRIC_READERS))
            raise UsageError(
                f"--from {source!r} is neither a results folder nor a dump of a fabric",
                f"give a folder, or KIND=FILE with one of the kinds {kinds}",
            )
        else:
            folders.append(source)
    return folders, dumps


def _margin(text: str | None) -> float:
    if text is None:
        return MARGIN
    try:
        return parse_share(text)
    except UsageError as error:
        raise UsageError(f"--margin {text!r} is not a percentage between 0 and 100", error.todo) from None
