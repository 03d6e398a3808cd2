"""`seatrial`: the overview of its commands, and `--version`. The module of a command is loaded when it is chosen."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from seatrial.cli.command import command_named
from seatrial.cli.commands import ABOUT, HELP, PURPOSES, overview
from seatrial.version import __version__


class Commands(TyperGroup):
    """The commands of seatrial, in the order of the overview."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The overview."""
        formatter.write(overview() + "\n")

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(PURPOSES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The one of that name, if there is one."""
        return command_named(cmd_name) if cmd_name in PURPOSES else None


app = typer.Typer(
    name="seatrial",
    help=ABOUT,
    add_completion=False,
    rich_markup_mode=None,
    cls=Commands,
    context_settings={"help_option_names": list(HELP)},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"seatrial {__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    pass
