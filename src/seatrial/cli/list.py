"""`seatrial list`."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.cli.output import print_json, style_of
from seatrial.interface.list import list_benchmarks
from seatrial.report.documents.list import list_document
from seatrial.report.text.detail import Detail
from seatrial.report.text.list import details_text, list_text, names_text, tools_text


def list_command(
    name: str | None = None,
    *,
    as_json: bool,
    references: bool = False,
    site: Path | None = None,
    system: str | None = None,
    detail: Detail = Detail.USUAL,
) -> None:
    """Print every benchmark with its state on this machine, and the compilers and MPI libraries; with `references` the
    published values instead (JSON: both). `name` is a benchmark, or an area such as `mpi`: only these, in full. With
    `detail`, all in full, or only the names of those that are ready."""
    if references and not as_json:
        from seatrial.cli.references import print_references

        print_references()
        return
    found = list_benchmarks(name, site=site, system=system)
    document = list_document(found.benchmarks, found.tools, found.missing)
    if references:
        from seatrial.cli.references import with_references

        document = with_references(document)
    if as_json:
        print_json(document)
        return
    style = style_of(sys.stdout)
    if detail is Detail.BRIEF:
        text = names_text(document)
    elif name is not None:
        text = details_text(document, style)
    elif detail is Detail.FULL:
        text = f"{details_text(document, style)}\n\n{tools_text(document, style)}"
    else:
        text = list_text(document, style)
    if text:
        print(text)
