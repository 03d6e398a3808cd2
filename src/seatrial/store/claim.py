"""Claims: which repeat is being made by whom, so that none is made twice and none that finished is lost.

A repeat is claimed by renaming a prepared folder to `artefacts/<experiment>/<repeat>`, which only one process can do.
The program writes its record inside. A process that dies leaves its claims behind; the next run finds them: a claim
whose program reached its end is taken over as a finished repeat, any other is given up.
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
    """A claimed repeat: the folder that the program writes into, and what was noted before it started."""

    experiment: str
    repeat: int
    path: Path
    noted: Mapping[str, Any]
    host: str

    def release(self) -> None:
        """Remove the folder; its repeat is recorded, or given up."""
        try:
            # The claim is dissolved by a rename first: a removal that is cut short must not look like a claim.
            gone = self.path.with_name(_private(".gone", self.host, self.path.name))
            self.path.rename(gone)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.path} cannot be removed: {error.strerror or error}") from error
        shutil.rmtree(gone, ignore_errors=True)  # what is left is swept by the next run


def claim(folder: ResultsFolder, host: str, experiment: str, repeat: int, noted: Mapping[str, Any]) -> Claim | None:
    """Claim a repeat for this process; None when somebody else has it. `noted` comes back with the claim later."""
    target = folder.artefacts(experiment, repeat)
    prepared = target.with_name(_private(".new", host, str(repeat)))
    owner = {**_owner(host), "noted": dict(noted)}
    try:
        prepared.mkdir(parents=True, exist_ok=True)
        (prepared / _CLAIM_FILE).write_text(json.dumps(owner, allow_nan=False), encoding="utf-8")
        try:
            prepared.rename(target)  # fails where the target exists, since it is never empty
        except OSError:
            if not target.exists():
                raise
            shutil.rmtree(prepared, ignore_errors=True)
            return None
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror or error}",
            "make room or give another folder with --results; finished repeats are kept",
        ) from error
    return Claim(experiment, repeat, target, noted, host)


def abandoned(folder: ResultsFolder, host: str, experiment: str) -> list[Claim]:
    """The claims on an experiment whose process on this host is dead, in order of repeat.

    A claim of another host, or of a container with other process ids, is left alone: from here nobody can tell whether
    its process lives.
    """
    room = folder.path / "artefacts" / experiment
    if not room.is_dir():
        return []
    found: list[Claim] = []
    for path in room.iterdir():
        if not path.name.isdigit():
            _sweep(path, host)
            continue
        try:
            owner = json.loads((path / _CLAIM_FILE).read_bytes())
            if owner["host"] == host and _is_dead(owner):
                found.append(Claim(experiment, int(path.name), path, owner["noted"], host))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # kept artefacts of a recorded repeat carry no claim
    return sorted(found, key=lambda claim: claim.repeat)


def settle(claimed: Claim) -> None:
    """Keep the folder as plain artefacts: its repeat is recorded, so nobody may take it over."""
    try:
        (claimed.path / _CLAIM_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{claimed.path} cannot be written: {error.strerror or error}") from error


def _private(prefix: str, host: str, name: str) -> str:
    """A name that no other process of any host uses at the same time."""
    return f"{prefix}-{name}-{host}-{os.getpid()}"


def _sweep(path: Path, host: str) -> None:
    """Remove a folder that was being prepared or removed by a process of this host that is gone."""
    match = re.fullmatch(rf"\.(?:new|gone)-\d+-{re.escape(host)}-(\d+)", path.name)
    if match and process_start(int(match[1])) is None:
        shutil.rmtree(path, ignore_errors=True)


def _owner(host: str) -> dict[str, Any]:
    """What tells this process from every other: a process id alone can belong to somebody else by now."""
    return {
        "host": host,
        "boot": _boot(),
        "namespace": _namespace(),
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
    }


def _is_dead(owner: Mapping[str, Any]) -> bool:
    """Whether an owner on this host is surely gone."""
    if owner["boot"] != _boot():
        return True
    return bool(owner["namespace"] == _namespace() and process_start(owner["pid"]) != owner["started"])


def _boot() -> str:
    """An identity of this boot of the kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    """The namespace in which process ids count; a container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def process_start(pid: int) -> int | None:
    """The start of a process in clock ticks since boot (field 22 of /proc/PID/stat), or None: no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
