"""Writing answers: stdout holds the answer and nothing else."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from seatrial.errors import UsageError
from seatrial.report.text.terminal import PLAIN, Style


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(document, indent=1, allow_nan=False))


def style_of(stream: TextIO) -> Style:
    """How text is laid out on a stream: with colours, and as wide as it is, on a terminal."""
    if not stream.isatty():
        return PLAIN
    from rich.console import Console

    from seatrial.report.text.on_terminal import TerminalStyle

    return TerminalStyle(Console(file=stream))


def message(text: str) -> None:
    """A message for people, on stderr; where that cannot be written there is nobody to tell."""
    if sys.stderr is None:
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        abandon(2)


class _Messages(logging.Handler):
    """Shows what is logged as messages."""

    def emit(self, record: logging.LogRecord) -> None:
        """Without level, time and name: it is written for people."""
        message(record.getMessage())


def show_messages() -> None:
    """From now on, what seatrial logs is a message."""
    log = logging.getLogger("seatrial")
    if not any(isinstance(handler, _Messages) for handler in log.handlers):
        log.addHandler(_Messages())


def abandon(descriptor: int) -> None:
    """Let go of a standard stream that cannot be written, so that the end of the interpreter does not try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def write_file(path: Path, text: str) -> None:
    """Write a file so that it is whole or not there; a device, a pipe or the end of a link is written to as it is.

    Raises UsageError where it cannot be written.
    """
    try:
        target = path.resolve()
        if path.name == "" or target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        private = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            private.write_text(text, encoding="utf-8")
            private.replace(target)
        finally:
            private.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{str(path)!r} cannot be written: {why}", "give another file with -o") from error
