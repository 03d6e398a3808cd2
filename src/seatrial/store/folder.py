"""The results folder: its layout, its version, and facts that are written once.

FORMAT                                      version of this layout
machines|environments|experiments|studies/<key>.json   content-addressed, written once
records/<host>-<pid>-<start>.jsonl          one writer each
artefacts/<experiment>/<repeat>/            a repeat under way, or the output of one that did not succeed
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from seatrial.errors import StoreError, UsageError

FORMAT_LINE = "seatrial-results 1\n"

FactRoom = Literal["machines", "environments", "experiments", "studies"]


class ResultsFolder:
    """A results folder that exists and has the right version. Use `create` to write into it and `existing` to read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> ResultsFolder:
        """Open the folder for writing, making it if need be. Raises UsageError before anything is written into a
        folder that is not ours, and where it cannot be written."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "FORMAT").exists():
                is_used = any(not entry.name.startswith(".FORMAT.") for entry in path.iterdir())  # left by a kill here
                if is_used and not (path / "FORMAT").exists():  # another process may make it ours right now
                    raise UsageError(
                        f"{path} is not empty and is no results folder of seatrial",
                        "give another folder with --results",
                    )
                _write_once(path / "FORMAT", FORMAT_LINE.encode())
            for room in ("machines", "environments", "experiments", "studies", "records", "artefacts"):
                (path / room).mkdir(exist_ok=True)
                if not os.access(path / room, os.W_OK | os.X_OK):
                    raise PermissionError(13, "Permission denied", str(path / room))
        except OSError as error:
            raise UsageError(
                f"the results folder {path} cannot be written: {error.strerror or error}",
                "give a writable folder with --results",
            ) from error
        return cls.existing(path)

    @classmethod
    def existing(cls, path: Path) -> ResultsFolder:
        """Open the folder for reading. Raises UsageError if there is none or its version is another."""
        try:
            found = (path / "FORMAT").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(
                f"{path} is no results folder of seatrial: {error.strerror or error}",
                "`seatrial run` makes one; --results names it",
            ) from error
        if found != FORMAT_LINE:
            raise UsageError(
                f"{path} has the layout {found.strip()[:80]!r}; this seatrial reads {FORMAT_LINE.strip()!r}",
                "read it with the version that wrote it, or give another folder with --results",
            )
        return cls(path)

    def put(self, room: FactRoom, key: str, document: Mapping[str, Any]) -> None:
        """Keep a document under the key of its content. A document that is there already is the same one."""
        target = self.path / room / f"{key}.json"
        data = json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"
        try:
            if target.exists() and _is_whole(target):
                return
            _write_once(target, data)
        except OSError as error:
            raise StoreError(
                f"{target} cannot be written: {error.strerror or error}", "nothing that was recorded before is lost"
            ) from error

    def get(self, room: FactRoom, key: str) -> dict[str, Any]:
        """The document under a key. Raises StoreError if it is missing or damaged."""
        source = self.path / room / f"{key}.json"
        try:
            document = json.loads(source.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{source} cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise StoreError(f"{source} does not hold an object")
        return document

    def keys(self, room: FactRoom) -> tuple[str, ...]:
        """The keys of all documents in one room, sorted."""
        return tuple(sorted(path.stem for path in (self.path / room).glob("*.json")))

    def artefacts(self, experiment: str, repeat: int) -> Path:
        """Where the files of one repeat lie, whole: its program may run in another folder than we."""
        return self.path.absolute() / "artefacts" / experiment / str(repeat)


def _is_whole(path: Path) -> bool:
    """Whether a document is one: a power cut can leave an empty file under its name."""
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def _write_once(target: Path, data: bytes) -> None:
    """Write a file so that it is whole or not there, whoever is killed when; two writers of the same are fine."""
    private = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        private.write_bytes(data)
        private.replace(target)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
