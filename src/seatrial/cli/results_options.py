"""The options of `seatrial results`; the commands are loaded when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

results_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Folder = Annotated[Path, typer.Argument(metavar="DIR", help="the results folder")]


@results_app.command("list")
def list_(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR", help="results folders, or folders with some inside")
    ] = None,
    output_format: Annotated[str, typer.Option("--format", metavar="text|json", help="json: one JSON object")] = "text",
) -> None:
    """Show what results folders hold."""
    from seatrial.cli.results import list_command
    from seatrial.errors import UnknownNameError

    if output_format not in ("text", "json"):
        raise UnknownNameError("format", output_format, ("text", "json"))
    list_command(folders or [Path()], as_json=output_format == "json")


@results_app.command()
def name(folder: _Folder, text: Annotated[str, typer.Argument(metavar="NAME", help="a short name")]) -> None:
    """Name a folder."""
    from seatrial.cli.results import name_command

    name_command(folder, text)


@results_app.command()
def tag(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="results folders")],
    add: Annotated[list[str] | None, typer.Option("--add", metavar="TAG,...", help="tags to add")] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="TAG,...", help="tags to remove")] = None,
) -> None:
    """Add or remove tags."""
    from seatrial.cli.results import label_command

    label_command(folders, add=add or [], remove=remove or [])


@results_app.command()
def note(folder: _Folder, text: Annotated[str, typer.Argument(metavar="TEXT", help="the note")]) -> None:
    """Add a note to a folder."""
    from seatrial.cli.results import note_command

    note_command(folder, text)


@results_app.command()
def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="results folders, which stay as they are")],
    output: Annotated[Path, typer.Option("-o", metavar="FOLDER", help="a new folder, or one to add to")],
    only_list: Annotated[bool, typer.Option("--list", help="only show what would be added and what collides")] = False,
) -> None:
    """Merge folders of several nodes or months into one."""
    from seatrial.cli.results import merge_command

    raise typer.Exit(merge_command(folders, output, only_list=only_list))


@results_app.command()
def drop(
    folder: _Folder,
    what: Annotated[
        list[str], typer.Argument(metavar="WHAT", help="benchmarks, or experiments by the start of the id")
    ],
) -> None:
    """Move experiments to the trash of their folder."""
    from seatrial.cli.results import drop_command

    drop_command(folder, what)


@results_app.command()
def restore(
    folder: _Folder,
    trashed: Annotated[
        str | None, typer.Argument(metavar="NAME", help="folder in the trash (default: the latest)")
    ] = None,
) -> None:
    """Bring dropped experiments back."""
    from seatrial.cli.results import restore_command

    restore_command(folder, trashed)
