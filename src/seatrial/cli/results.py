"""`seatrial results`: list, name, tag, note, merge, drop, restore."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from seatrial.analysis.folder import FolderSummary
from seatrial.analysis.index.folders import drop, label_folders, list_folders, merge_folders, restore, write_merge
from seatrial.cli.command import command
from seatrial.cli.output import message, print_json, style_of
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.spelling import count
from seatrial.report.documents.history import folders_document
from seatrial.report.text.terminal import clean
from seatrial.store.merging import Merged

_MOST_LISTED = 20
_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="the results folder")]


@command("results list")
def _list(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="results folders, or folders with some inside")
    ] = None,
    output_format: Annotated[str, typer.Option("--format", metavar="text|json", help="json: one JSON object")] = "text",
) -> None:
    """Show what results folders hold."""
    if output_format not in ("text", "json"):
        raise UnknownNameError("format", output_format, ("text", "json"))
    found = list_folders(folders or [Path()])
    if output_format == "json":
        print_json(folders_document(found))
        return
    head = ("folder", "name", "tags", "experiments", "ok", "repeats", "from", "to", "hosts")
    print(style_of(sys.stdout).table([head, *map(_row, found)], indent="", has_head=True))
    for one in found:
        for note in one.notes:
            print(f"{clean(one.path)}: {clean(note)}")
        if one.trash:
            print(f"{clean(one.path)}: in the trash: {', '.join(one.trash)} (seatrial results restore)")
        if one.damaged:
            print(f"{clean(one.path)}: {count(one.damaged, 'damaged line or file', 'damaged lines or files')} ignored")


def _row(one: FolderSummary) -> tuple[str, ...]:
    hosts = ", ".join(one.hosts[:3]) + (f" and {len(one.hosts) - 3} more" if len(one.hosts) > 3 else "")
    cells = (one.path, one.name or "-", ", ".join(one.tags) or "-")
    numbers = (str(one.experiments), str(one.ok), str(one.repeats), _day(one.first_t0), _day(one.last_t0))
    return tuple(map(clean, (*cells, *numbers, hosts or "-")))


def _day(seconds: float | None) -> str:
    try:
        return "-" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "?"


@command("results name")
def _name(folder: _Folder, text: Annotated[str, typer.Argument(metavar="NAME", help="a short name")]) -> None:
    """Name a folder."""
    label_folders([folder], name=text)


@command("results tag")
def _tag(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="results folders")],
    add: Annotated[list[str] | None, typer.Option("--add", metavar="TAG,...", help="tags to add")] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="TAG,...", help="tags to remove")] = None,
) -> None:
    """Add or remove tags."""
    added, removed = ([tag for text in texts or () for tag in text.split(",")] for texts in (add, remove))
    if not added and not removed:
        raise UsageError("no tag is given", "--add TAG or --remove TAG")
    label_folders(folders, add=added, remove=removed)


@command("results note")
def _note(folder: _Folder, text: Annotated[str, typer.Argument(metavar="TEXT", help="the note")]) -> None:
    """Add a note to a folder."""
    label_folders([folder], note=text)


@command("results merge")
def _merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="results folders, which stay as they are")],
    output: Annotated[Path, typer.Option("-o", metavar="FOLDER", help="a new folder, or one to add to")],
    only_list: Annotated[bool, typer.Option("--list", help="only show what would be added and what collides")] = False,
) -> None:
    """Merge folders of several nodes or months into one."""
    merge = merge_folders(folders, output)
    found = merge.found
    print(
        f"{count(found.added, 'repeat')} to add to {clean(str(output))}; {count(found.equal, 'repeat')} there already"
    )
    _print_collisions(found)
    if not only_list:
        write_merge(merge, output)
        message(f"merged into {output}: {count(found.added, 'repeat')} added")


def _print_collisions(found: Merged) -> None:
    for one in found.collisions[:_MOST_LISTED]:
        print(
            f"experiment {one.experiment}: {count(one.renumbered, 'repeat')} of {clean(one.folder)} get new numbers, "
            "because another repeat has theirs; nothing else of them changes"
        )
    if len(found.collisions) > _MOST_LISTED:
        print(f"and {count(len(found.collisions) - _MOST_LISTED, 'more experiment')} with new numbers")
    for text in found.documents[:_MOST_LISTED]:
        print(f"{clean(text)} differs from that of the target, which counts")
    if found.damaged:
        print(f"{count(found.damaged, 'damaged line')} not copied; they stay where they are")


@command("results drop")
def _drop(
    folder: _Folder,
    what: Annotated[
        list[str], typer.Argument(metavar="WHAT", help="benchmarks, or experiments by the start of the id")
    ],
) -> None:
    """Move experiments to the trash of their folder."""
    trash, experiments, repeats = drop(folder, what)
    print(f"{count(len(experiments), 'experiment')} with {count(repeats, 'repeat')} moved to {trash}")
    message(f"to bring them back: seatrial results restore {shlex.quote(str(folder))} {trash.name}")


@command("results restore")
def _restore(
    folder: _Folder,
    trashed: Annotated[
        str | None, typer.Argument(metavar="NAME", help="folder in the trash (default: the latest)")
    ] = None,
) -> None:
    """Bring dropped experiments back."""
    found = restore(folder, trashed)
    print(
        f"{count(found.added, 'repeat')} restored to {clean(str(folder))}; {count(found.equal, 'repeat')} there already"
    )
    _print_collisions(found)
