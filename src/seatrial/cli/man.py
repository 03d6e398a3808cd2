"""The manual page, in roff, from the help of the commands: `python -m seatrial.cli.man > seatrial.1`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from seatrial.cli.command import app, commands_of
from seatrial.version import __version__


def manual_page() -> str:
    """seatrial(1)."""
    group: Any = typer.main.get_command(app)
    context = group.make_context("seatrial", [], resilient_parsing=True)
    lines = [
        f'.TH SEATRIAL 1 "" "seatrial {__version__}" "User Commands"',
        ".SH NAME",
        "seatrial \\- sea trials for HPC machines",
        ".SH SYNOPSIS",
        ".B seatrial",
        "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]",
        ".SH DESCRIPTION",
        _text(group.help or ""),
        ".SH OPTIONS",
        *_options(group, context),
        ".SH COMMANDS",
    ]
    for name, command in _commands(group, context):
        usage = " ".join(command.collect_usage_pieces(context))
        lines += [
            f".SS {_text(f'{name} {usage}')}",
            *(_text(part) for part in (command.help or "").split("\n") if part),
        ]
        lines += _options(command, context)
    lines += [
        ".SH EXIT STATUS",
        *_item("0", "Something was measured, and all of it succeeded, was skipped or is not supported here."),
        *_item("1", "What --fail-on asks for."),
        *_item("2", "Invalid usage or input; nothing was run."),
        *_item("3", "Something failed, timed out or is invalid, or nothing was measured or compared."),
        ".SH ENVIRONMENT",
        *_item("NO_COLOR", "No colours on a terminal."),
        *_item("SEATRIAL_CACHE", "The folder of the programs that were built."),
        *_item("SEATRIAL_CLUSTER", "The folder of the cluster on this machine; /run/seatrial/cluster by default."),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: Any, context: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its whole name; those of a group (`results list`) follow it."""
    for name, command in commands_of(group, context):
        yield f"{before}{name}", command
        if hasattr(command, "commands"):
            yield from _commands(command, context, f"{before}{name} ")


def _options(command: Any, context: Any) -> Iterator[str]:
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            yield from _item(*record)


def _item(name: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_text(name)}\\fR"
    yield _text(text)


def _text(text: str) -> str:
    """One line for roff: a backslash, a hyphen of an option, and a control character at the start are escaped."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    print(manual_page(), end="")
