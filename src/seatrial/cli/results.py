"""`seatrial results`: list, name, tag, note, merge, drop, restore."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from seatrial.cli.output import message, print_json, style_of
from seatrial.errors import UsageError
from seatrial.interface.folders import (
    FolderSummary,
    drop,
    label_folders,
    list_folders,
    merge_folders,
    restore,
    write_merge,
)
from seatrial.model.spelling import count
from seatrial.report.documents.folders import folders_document
from seatrial.report.text.terminal import clean
from seatrial.store.merging import Merged

_MOST_LISTED = 20


def list_command(folders: list[Path], *, as_json: bool) -> None:
    """Print what folders hold."""
    found = list_folders(folders)
    if as_json:
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


def label_command(folders: list[Path], *, add: list[str], remove: list[str]) -> None:
    """Change tags; without a change, print them."""
    words = [[tag for text in texts for tag in text.split(",")] for texts in (add, remove)]
    if not any(words):
        raise UsageError("no tag is given", "--add TAG or --remove TAG")
    label_folders(folders, add=words[0], remove=words[1])


def merge_command(folders: list[Path], output: Path, *, only_list: bool) -> int:
    """List what collides, then merge."""
    merge = merge_folders(folders, output)
    _print_plan(merge.found, output)
    if only_list:
        return 0
    write_merge(merge, output)
    message(f"merged into {output}: {count(merge.found.added, 'repeat')} added")
    return 0


def _print_plan(found: Merged, target: Path) -> None:
    print(
        f"{count(found.added, 'repeat')} to add to {clean(str(target))}; {count(found.equal, 'repeat')} there already"
    )
    _print_collisions(found)


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


def drop_command(folder: Path, what: list[str]) -> None:
    """Move experiments to the trash."""
    trash, experiments, repeats = drop(folder, what)
    print(f"{count(len(experiments), 'experiment')} with {count(repeats, 'repeat')} moved to {trash}")
    message(f"to bring them back: seatrial results restore {folder} {trash.name}")


def restore_command(folder: Path, name: str | None) -> None:
    """Bring dropped experiments back."""
    found = restore(folder, name)
    print(
        f"{count(found.added, 'repeat')} restored to {clean(str(folder))}; {count(found.equal, 'repeat')} there already"
    )
    _print_collisions(found)


def name_command(folder: Path, name: str) -> None:
    """Name a folder."""
    label_folders([folder], name=name)


def note_command(folder: Path, text: str) -> None:
    """Add a note."""
    label_folders([folder], note=text)
