"""Writing answers: stdout holds the answer and nothing else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial.errors import UsageError


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(document, indent=1, allow_nan=False))


def message(text: str) -> None:
    """A message for people, on stderr."""
    print(text, file=sys.stderr, flush=True)


def write_file(path: Path, text: str) -> None:
    """Write a file so that it is whole or not there. Raises UsageError where it cannot be written."""
    private = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        private.write_text(text, encoding="utf-8")
        private.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", "give another file with -o") from error
    finally:
        private.unlink(missing_ok=True)
