"""Output: the result on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from seatrial.errors import UsageError
from seatrial.report.text.terminal import PLAIN, Style
from seatrial.store.files import write_once


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(document, indent=1, allow_nan=False))


def style_of(stream: TextIO) -> Style:
    """The layout of text on a stream; on a terminal, with colours and in its width."""
    if not stream.isatty():
        return PLAIN
    from rich.console import Console

    from seatrial.report.text.on_terminal import TerminalStyle

    return TerminalStyle(Console(file=stream))


def message(text: str) -> None:
    """Print a message on stderr, without control characters: it may quote a file. It is dropped if stderr cannot be
    written."""
    print_painted("".join(letter if letter.isprintable() or letter in "\t\n" else "?" for letter in text))


def print_painted(text: str) -> None:
    """The same for text that was made for the terminal, with our colours; what it quotes is already clean."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):  # `output_error` reports it
        sys.stdout.flush()  # else its lines and ours run together where both go to one file
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # the interpreter must not fail to flush it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class _Messages(logging.Handler):
    """Prints log records as messages."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the text alone, without level, time and logger."""
        message(record.getMessage())


def show_messages() -> None:
    """Print what seatrial logs from now on."""
    log = logging.getLogger("seatrial")
    if not any(isinstance(handler, _Messages) for handler in log.handlers):
        log.addHandler(_Messages())


def hide_warnings() -> None:
    """Print nothing from now on of what seatrial logs as a warning; errors end the command and are printed."""
    logging.getLogger("seatrial").setLevel(logging.ERROR)


def write_file(path: Path, text: str) -> None:
    """Write a text file; see `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file completely or not at all. Links are followed; devices and pipes are written to directly.

    Raises UsageError if it cannot be written.
    """
    try:
        target = path.resolve()
        if path.name == "" or target.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        write_once(target.parent, target.name, data=data)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{str(path)!r} cannot be written: {why}", "give another file with -o") from error
