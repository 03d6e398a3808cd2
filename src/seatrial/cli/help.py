"""The help of `seatrial` itself: the overview of its commands, wherever Typer prints it."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from seatrial.cli.commands import GROUPS, overview


class Commands(TyperGroup):
    """The commands of seatrial, in the order of the overview."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The overview."""
        formatter.write(overview() + "\n")

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return [name for commands in GROUPS.values() for name in commands]
