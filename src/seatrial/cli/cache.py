"""`seatrial cache`: what is kept below the home folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import print_json, style_of
from seatrial.environments.cache_contents import Kept, kept, remove, running
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.spelling import show
from seatrial.model.units import duration, parse_seconds
from seatrial.report.documents.cache import cache_document
from seatrial.report.text.terminal import clean

_FormatOption = Annotated[str, typer.Option("--format", metavar="text|json", help="json: one JSON object")]


def _is_json(output_format: str) -> bool:
    if output_format not in ("text", "json"):
        raise UnknownNameError("format", output_format, ("text", "json"))
    return output_format == "json"


@command("cache list")
def _list(output_format: _FormatOption = "text") -> None:
    """Show what is kept, by kind, with its size and age."""
    as_json, found = _is_json(output_format), kept()
    if as_json:
        print_json(cache_document(found, running()))
        return
    print(_table(found))
    print(f"{show(sum(one.size_B for one in found), 'B')} in total; seatrial cache clean removes it")


@command("cache clean")
def _clean(
    chosen: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KIND", help="what to remove, as `cache list` names it (default: all that is made again)"
        ),
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="only what is at least this old, such as 30d")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only show what would be removed")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="remove without asking")] = False,
    output_format: _FormatOption = "text",
) -> None:
    """Remove what is kept: programs are built again, and tools are asked again, when a command needs them.

    Results folders stay. Your site file and completion scripts are removed only if their kind is named. What a running
    command may use stays as well.
    """
    as_json = _is_json(output_format)
    older_s = 0.0 if older_than is None else parse_seconds(older_than)
    found = remove(chosen or (), older_s, only_show=True)
    if not as_json and found.removed:
        print(_table(found.removed))
    if not dry_run and found.removed:
        if not yes:
            _ask(found.removed)
        found = remove(chosen or (), older_s)
    if as_json:
        print_json(cache_document(found.removed, running(), stays=found.stays, removed=not dry_run))
        return
    total = show(sum(one.size_B for one in found.removed), "B")
    print(f"{total} {'would be removed' if dry_run else 'removed'}" if found.removed else "nothing to remove")
    for text in found.stays:
        print(f"stays: {clean(text)}")


def _ask(found: Sequence[Kept]) -> None:
    """Raises UsageError where nobody can answer."""
    total = show(sum(one.size_B for one in found), "B")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("nothing was removed", f"add --yes to remove {total}, --dry-run to only list it")
    if not typer.confirm(f"Remove {total}?"):
        raise UsageError("nothing was removed", "")


def _table(found: Sequence[Kept]) -> str:
    head = ("kind", "entries", "size", "age", "what", "where")
    rows = [(one.kind, str(one.entries), show(one.size_B, "B"), _ages(one), one.what, clean(one.path)) for one in found]
    return style_of(sys.stdout).table([head, *rows], indent="", has_head=True)


def _ages(one: Kept) -> str:
    if one.newest_s is None or one.oldest_s is None:
        return "-"
    ends = dict.fromkeys((duration(one.newest_s), duration(one.oldest_s)))
    return " to ".join(ends)
