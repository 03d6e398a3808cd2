"""The results folder: layout, version, and facts written once.

FORMAT                                      version of this layout
machines|environments|experiments|studies/<key>.json   content-addressed, written once
records/<host>-<pid>-<start>.jsonl          one writer each
artefacts/<experiment>/<repeat>/            a running repeat, or the output of a failed one
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from seatrial.errors import StoreError, UsageError

FORMAT_LINE = "seatrial-results 1\n"

FactFolder = Literal["machines", "environments", "experiments", "studies"]


class ResultsFolder:
    """A results folder of the right version. Use `create` for writing and `existing` for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> ResultsFolder:
        """Open the folder for writing; create it if it does not exist. Raises UsageError if it is not a results folder
        (before writing anything), or cannot be written."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / "FORMAT").exists():
                is_used = any(
                    not entry.name.startswith(".FORMAT.") for entry in path.iterdir()
                )  # left by a killed process
                if is_used and not (path / "FORMAT").exists():  # another process may just have created it
                    raise UsageError(
                        f"{path} is not empty and is not a results folder of seatrial",
                        "give another folder with --results",
                    )
                _write_once(path / "FORMAT", FORMAT_LINE.encode())
            for kind in ("machines", "environments", "experiments", "studies", "records", "artefacts"):
                (path / kind).mkdir(exist_ok=True)
                if not os.access(path / kind, os.W_OK | os.X_OK):
                    raise PermissionError(13, "Permission denied", str(path / kind))
        except OSError as error:
            raise UsageError(
                f"the results folder {path} cannot be written: {error.strerror or error}",
                "give a writable folder with --results",
            ) from error
        return cls.existing(path)

    @classmethod
    def existing(cls, path: Path) -> ResultsFolder:
        """Open the folder for reading. Raises UsageError if it is not a results folder, or has another version."""
        try:
            found = (path / "FORMAT").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(
                f"{path} is not a results folder of seatrial: {error.strerror or error}",
                "`seatrial run` creates one; --results selects it",
            ) from error
        if found != FORMAT_LINE:
            raise UsageError(
                f"{path} has the layout {found.strip()[:80]!r}; this seatrial reads {FORMAT_LINE.strip()!r}",
                "read it with the version that wrote it, or give another folder with --results",
            )
        return cls(path)

    def put(self, kind: FactFolder, key: str, document: Mapping[str, Any]) -> None:
        """Store a document under the key of its content. An existing document of that key is the same one."""
        target = self.path / kind / f"{key}.json"
        data = json.dumps(document, indent=1, allow_nan=False).encode() + b"\n"
        try:
            if target.exists() and _is_complete(target):
                return
            _write_once(target, data)
        except OSError as error:
            raise StoreError(
                f"{target} cannot be written: {error.strerror or error}", "earlier records are not lost"
            ) from error

    def get(self, kind: FactFolder, key: str) -> dict[str, Any]:
        """The document under a key. Raises StoreError if it is missing or damaged."""
        source = self.path / kind / f"{key}.json"
        try:
            document = json.loads(source.read_bytes())
        except (OSError, ValueError) as error:
            raise StoreError(f"{source} cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise StoreError(f"{source} is not a JSON object")
        return document

    def keys(self, kind: FactFolder) -> tuple[str, ...]:
        """The keys of all documents of one kind, sorted."""
        return tuple(sorted(path.stem for path in (self.path / kind).glob("*.json")))

    def artefacts(self, experiment: str, repeat: int) -> Path:
        """The absolute path of the files of one repeat: its program may run in another folder."""
        return self.path.absolute() / "artefacts" / experiment / str(repeat)


def _is_complete(path: Path) -> bool:
    """Whether a document is complete: a power cut can leave an empty file."""
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def _write_once(target: Path, data: bytes) -> None:
    """Write a file atomically: it is complete or missing after any kill. Two writers of the same content are fine."""
    private = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}")  # hosts share process ids
    try:
        private.write_bytes(data)
        private.replace(target)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
