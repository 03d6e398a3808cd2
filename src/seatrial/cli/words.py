"""The words of a program after `--`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

WORDS = "seatrial.words"
"""The key of the words after `--` in the context of the command; missing without `--`."""


class WithWords(TyperCommand):
    """A command that takes the words of a program after `--`, as they are."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without those words."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)
