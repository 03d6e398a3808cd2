"""The scripts that connect the shells with `seatrial --complete`, and where each shell looks for them."""

from __future__ import annotations

import os
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.errors import UsageError
from seatrial.store.files import write_once


class Shell(StrEnum):
    """A shell that completes our words."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command("completion")
def _completion(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish")],
    install: Annotated[
        bool, typer.Option("--install", help="write it to where the shell looks for it, instead of stdout")
    ] = False,
) -> None:
    print(_install(shell) if install else _script(shell), end="")


def _script(shell: Shell) -> str:
    return resources.files(__package__).joinpath(f"seatrial.{shell}").read_text(encoding="utf-8")


def _install(shell: Shell) -> str:
    """Write the script to where the shell looks for it; returns what was done, and what is left to do.

    Raises UsageError if it cannot be written.
    """
    path = _place(shell)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_once(path.parent, path.name, data=_script(shell).encode())
    except OSError as error:
        todo = f"write it yourself: seatrial completion {shell} > FILE"
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", todo) from error
    if shell is not Shell.ZSH:
        return f"{path}: written; it works in new shells\n"
    return f"{path}: written\nadd to ~/.zshrc, before compinit: fpath=({path.parent} $fpath)\n"


def _place(shell: Shell) -> Path:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    if shell is Shell.BASH:
        own = os.environ.get("BASH_COMPLETION_USER_DIR")
        return Path(own or data / "bash-completion", "completions", "seatrial")
    if shell is Shell.ZSH:
        return data / "zsh" / "site-functions" / "_seatrial"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "fish", "completions", "seatrial.fish")
