"""Claims: which process runs which repeat, so that no repeat runs twice and no finished one is lost.

A repeat is claimed by renaming a prepared folder to `artefacts/<experiment>/<repeat>`, which only one process can do.
The program writes its record inside. A process that dies leaves its claims behind; the next run finds them: if the
program finished, the repeat is recorded, else the claim is dropped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import StoreError
from seatrial.store.folder import ResultsFolder

_CLAIM_FILE = "claim.json"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed repeat: the folder for the program's output, and the notes made before it started."""

    experiment: str
    repeat: int
    path: Path
    noted: Mapping[str, Any]
    host: str

    def release(self) -> None:
        """Remove the folder; its repeat is recorded or dropped."""
        try:
            # Rename it first: an interrupted removal must not look like a claim.
            doomed = self.path.with_name(_private(".gone", self.host, self.path.name))
            self.path.rename(doomed)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.path} cannot be removed: {error.strerror or error}") from error
        shutil.rmtree(doomed, ignore_errors=True)  # the next run removes the rest


def claim(folder: ResultsFolder, host: str, experiment: str, repeat: int, noted: Mapping[str, Any]) -> Claim | None:
    """Claim a repeat for this process; None if another process has it. `noted` is stored with the claim."""
    target = folder.artefacts(experiment, repeat)
    prepared = target.with_name(_private(".new", host, str(repeat)))
    owner = {**_owner(host), "noted": dict(noted)}
    try:
        prepared.mkdir(parents=True, exist_ok=True)
        (prepared / _CLAIM_FILE).write_text(json.dumps(owner, allow_nan=False), encoding="utf-8")
        try:
            prepared.rename(target)  # fails if the target exists, which is never empty
        except OSError:
            if not target.exists():
                raise
            shutil.rmtree(prepared, ignore_errors=True)
            return None
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror or error}",
            "free some space or give another folder with --results; finished repeats are kept",
        ) from error
    return Claim(experiment, repeat, target, noted, host)


def abandoned(folder: ResultsFolder, host: str, experiment: str) -> list[Claim]:
    """The claims on an experiment whose process on this host is dead, in order of repeat.

    A claim of another host, or of a container with other process ids, is kept: whether its process is alive cannot be
    determined here.
    """
    claims = folder.path / "artefacts" / experiment
    if not claims.is_dir():
        return []
    found: list[Claim] = []
    for path in claims.iterdir():
        if not path.name.isdigit():
            _remove_leftover(path, host)
            continue
        try:
            owner = json.loads((path / _CLAIM_FILE).read_bytes())
            if owner["host"] == host and _is_dead(owner):
                found.append(Claim(experiment, int(path.name), path, owner["noted"], host))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # artefacts of a recorded repeat have no claim
    return sorted(found, key=lambda claim: claim.repeat)


def settle(claimed: Claim) -> None:
    """Keep the folder as plain artefacts: its repeat is recorded, so the claim ends.

    Nobody else may read them: they have what programs printed, and the arguments that records mask.
    """
    try:
        claimed.path.chmod(0o700)
        (claimed.path / _CLAIM_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{claimed.path} cannot be written: {error.strerror or error}") from error


def _private(prefix: str, host: str, name: str) -> str:
    """A name unique among the processes of all hosts."""
    return f"{prefix}-{name}-{host}-{os.getpid()}"


def _remove_leftover(path: Path, host: str) -> None:
    """Remove a folder that a dead process of this host was preparing or removing."""
    match = re.fullmatch(rf"\.(?:new|gone)-\d+-{re.escape(host)}-(\d+)", path.name)
    if match and process_start(int(match[1])) is None:
        shutil.rmtree(path, ignore_errors=True)


def _owner(host: str) -> dict[str, Any]:
    """The identity of this process; a process id alone may be reused."""
    return {
        "host": host,
        "boot": _boot(),
        "namespace": _namespace(),
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
    }


def _is_dead(owner: Mapping[str, Any]) -> bool:
    """Whether an owner on this host is certainly dead."""
    if owner["boot"] != _boot():
        return True
    return bool(owner["namespace"] == _namespace() and process_start(owner["pid"]) != owner["started"])


def _boot() -> str:
    """The boot id of the kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    """The pid namespace; a container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def process_start(pid: int) -> int | None:
    """The start of a process in clock ticks since boot (field 22 of /proc/PID/stat); None if there is no such
    process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
