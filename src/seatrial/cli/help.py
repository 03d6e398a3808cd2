"""`seatrial --help`: the commands, grouped by what one wants to do, on one screen of 80 columns and 24 lines."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

_OTHER = "Other"
_LEAST_TEXT = 20
_MOST_AFTER_BLANK = 19
"""The number of commands that leaves a line free on the screen."""


class Commands(TyperGroup):
    """The commands of seatrial. The group of a command is its `rich_help_panel`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The few options in one line, then the commands."""
        options = [" or ".join(param.opts) for param in self.get_params(ctx) if param.param_type_name == "option"]
        formatter.write(f"Options: {', '.join(options)}\n")
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A line for each command: its group where that begins, its name, its purpose."""
        groups: dict[str, list[Any]] = {}
        for command in self.commands.values():
            if not command.hidden:
                groups.setdefault(getattr(command, "rich_help_panel", None) or _OTHER, []).append(command)
        of_groups = max(map(len, groups), default=0)
        of_names = max((len(str(command.name)) for commands in groups.values() for command in commands), default=0)
        text = max(_LEAST_TEXT, formatter.width + 2 - of_groups - of_names - 6)  # the formatter leaves two columns free
        if sum(map(len, groups.values())) <= _MOST_AFTER_BLANK:
            formatter.write("\n")
        for group, commands in groups.items():
            for position, command in enumerate(commands):
                lead = "" if position else group
                purpose = command.get_short_help_str(text)
                formatter.write(f"  {lead:{of_groups}}  {command.name:{of_names}}  {purpose}\n")
