"""Claims: which process runs which repeat, so that no repeat runs twice and no finished one is lost.

A repeat is claimed by renaming a prepared folder to `artefacts/<experiment>/<repeat>`, which only one process can do.
The program writes its record inside. The claim ends when the record is on the server: whoever claims the same number
later, and then reads the records, finds it (docs/adr/0019). A process that dies leaves its claims behind; another
process of its host takes them over: if the program finished, the repeat is recorded, else the claim is dropped.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_json
from seatrial.model.json_object import json_of
from seatrial.model.machine.host_list import host_in_names
from seatrial.processes.file_lock import lock
from seatrial.processes.own_folder import boot_id, kernel_and_namespace, machine_id, process_namespace, process_start
from seatrial.store.files import make_folder, opened_file, opened_folder, write_once
from seatrial.store.folder import IN_JOB, ResultsFolder, is_dead_in_job

_CLAIM_FILE = "claim.json"
_LARGEST_CLAIM_B = 1 << 20
_LEFTOVER_S = 86400.0
_CLOCKS_DIFFER_S = 120.0
"""The most by which the clocks of two hosts may differ, and a process may take around its program."""
_USUAL_LIMIT_S = 600.0
"""The time limit of a claim that does not state its own (`limit_s`)."""


class Claim(Frozen):
    """A claimed repeat: the folder for the program's output, and the notes made before it started. `claim_s`: what
    making the folder took, None if another process made it."""

    experiment: str
    repeat: int
    path: Path
    noted: Mapping[str, Any]
    host: str
    claim_s: float | None = None

    def noting(self, added: Mapping[str, Any]) -> Claim:
        """The claim with these notes too, in its file as well; and, not in its file, with what the folder did
        meanwhile, as `folder`. Raises StoreError."""
        noted = {**self.noted, **added}
        before_s, began_s = time.time(), time.monotonic()
        _write_owner(self.path, {**_owner(self.host), "noted": noted})
        write_s, after_s = time.monotonic() - began_s, time.time()
        seen = {"write_s": write_s} | ({} if self.claim_s is None else {"claim_s": self.claim_s})
        with suppress(OSError):
            seen |= clock_seen(before_s, after_s, (self.path / _CLAIM_FILE).lstat().st_mtime_ns)
        return replace(self, noted={**noted, "folder": seen})

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
    """Claim a repeat for this process; None if another process has it, or its output is kept. `noted` is stored with
    the claim."""
    target = folder.artefacts(experiment, repeat)
    prepared = target.with_name(_private(".new", host, str(repeat)))
    owner = {**_owner(host), "noted": dict(noted)}
    began_s = time.monotonic()
    try:
        make_folder(folder.path, "artefacts", experiment)
        prepared.mkdir()
        (prepared / _CLAIM_FILE).write_text(json_of(owner), encoding="utf-8")
        try:
            prepared.rename(target)  # fails if the target exists, which is never empty
        except OSError:
            if not os.path.lexists(target):
                raise
            shutil.rmtree(prepared, ignore_errors=True)
            return None
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror or error}",
            "free some space or give another folder with --results; finished repeats are kept",
        ) from error
    return Claim(experiment, repeat, target, noted, host, time.monotonic() - began_s)


_TICK_S = 0.01
"""Kernels stamp files by a clock that advances 100 times a second or more often."""


def clock_seen(before_s: float, after_s: float, stamped_ns: int) -> dict[str, float]:
    """By how much the clock of this node is ahead of the one that stamped a file which was written between these two
    times, and the error of that: of a file on a server, the clock is the server's. In seconds."""
    step_s = _TICK_S if stamped_ns % 1_000_000_000 else 1.0
    offset_s = 0.5 * (before_s + after_s) - (stamped_ns / 1e9 + 0.5 * step_s)
    return {"clock_s": offset_s, "clock_error_s": 0.5 * (after_s - before_s + step_s)}


def claim_next(
    folder: ResultsFolder, host: str, experiment: str, recorded: Callable[[], Collection[int]], noted: Mapping[str, Any]
) -> Claim:
    """Claim the first free repeat after those that are recorded; `recorded` reads their numbers anew."""
    number = max(recorded(), default=-1) + 1
    while True:
        claimed = claim(folder, host, experiment, number, noted)
        if claimed is not None:
            # Its last owner released it after writing the record: only now is every record of this number visible.
            known = recorded()
            if number not in known:
                return claimed
            claimed.release()
            number = max(number, *known)
        number += 1


def claimed_elsewhere(folder: ResultsFolder, host: str, experiment: str, taken: Collection[int]) -> dict[int, str]:
    """Repeat -> host, of the repeats of this experiment that other processes are making now, as far as known: those
    whose time limit is over are left out. `taken` are the numbers that are recorded."""
    found = {}
    for path in _claims(folder, experiment):
        if int(path.name) in taken:
            continue
        owner, written_s = _read_owner(path)
        if not owner or all(owner.get(name) == value for name, value in _owner(host).items()):
            continue
        if is_dead_in_job(folder.path, owner.get("job")):
            continue
        noted = owner.get("noted")
        limit_s = noted.get("limit_s", _USUAL_LIMIT_S) if isinstance(noted, Mapping) else _USUAL_LIMIT_S
        limit_s = float(limit_s) if isinstance(limit_s, int | float) else _USUAL_LIMIT_S
        if time.time() - written_s <= limit_s + _CLOCKS_DIFFER_S:
            found[int(path.name)] = str(owner.get("host", "?"))
    return found


def abandoned(folder: ResultsFolder, host: str, experiment: str) -> list[Claim]:
    """The claims on an experiment whose process on this host is dead, in order of repeat; from now on they are claims
    of this process, so that no other one takes them too.

    A claim of another host, or of a container with other process ids, is kept, unless its job is over: whether its
    process is alive cannot be determined here.
    """
    for path in _entries(folder, experiment):
        if not path.name.isdecimal():
            _remove_leftover(path, host)
    found = [
        taken
        for path in _claims(folder, experiment)
        if (taken := _take_over(path, host, experiment)) is not None  # artefacts of a recorded repeat have no claim
    ]
    return sorted(found, key=lambda claim: claim.repeat)


def _take_over(path: Path, host: str, experiment: str) -> Claim | None:
    """The claim of a dead process of this host, now ours; None if it is not one, or another process takes it."""
    results = path.parents[2]
    if not _is_dead(_read_owner(path)[0], host, results):
        return None
    try:
        descriptor = os.open(path / _CLAIM_FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not lock(descriptor):  # without locks on the file system, two at the very same moment could both take it
            return None
        owner, _ = _read_owner(path)
        ours, theirs = os.fstat(descriptor), (path / _CLAIM_FILE).lstat()
        if (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino) or not _is_dead(owner, host, results):
            return None
        _write_owner(path, {**_owner(host), "noted": owner["noted"]})
        return Claim(experiment, int(path.name), path, owner["noted"], host)
    except OSError:  # another process has taken and released it
        return None
    finally:
        os.close(descriptor)


def settle(claimed: Claim) -> None:
    """Keep the folder as plain artefacts: its repeat is recorded, so the claim ends.

    Nobody else may read them: they have what programs printed, and the arguments that records mask.
    """
    try:
        claimed.path.chmod(0o700)
        (claimed.path / _CLAIM_FILE).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{claimed.path} cannot be written: {error.strerror or error}") from error


def _entries(folder: ResultsFolder, experiment: str) -> list[Path]:
    top = folder.path / "artefacts" / experiment
    try:
        with opened_folder(folder.path, "artefacts", experiment) as opened, os.scandir(opened) as entries:
            return [top / entry.name for entry in entries if not entry.is_symlink()]
    except OSError:
        return []


def _claims(folder: ResultsFolder, experiment: str) -> list[Path]:
    return [path for path in _entries(folder, experiment) if re.fullmatch("[0-9]{1,9}", path.name)]


def _private(prefix: str, host: str, name: str) -> str:
    """A name unique among the processes of all hosts: hosts may have the same name, and containers the same ids."""
    return f"{prefix}-{name}-{host_in_names(host)}-{kernel_and_namespace()}-{os.getpid()}-{secrets.token_hex(4)}"


def _remove_leftover(path: Path, host: str) -> None:
    """Remove a folder that a dead process of this host was preparing or removing."""
    match = re.fullmatch(rf"\.(?:new|gone)-\d+-{re.escape(host)}-([0-9a-f]+)-(\d+)-[0-9a-f]+", path.name)
    if not match:
        return
    is_ours = match[1] == kernel_and_namespace()
    if process_start(int(match[2])) is None if is_ours else _age_s(path) > _LEFTOVER_S:
        shutil.rmtree(path, ignore_errors=True)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return 0.0


def _read_owner(path: Path) -> tuple[Mapping[str, Any], float]:
    """The owner of a claim and the time when it was written; nothing if there is no claim, or its file is damaged."""
    try:
        with opened_file(path, _CLAIM_FILE) as file:
            data, written_s = file.read(_LARGEST_CLAIM_B + 1), os.fstat(file.fileno()).st_mtime
        owner = parse_json(data) if len(data) <= _LARGEST_CLAIM_B else {}
    except (OSError, ValueError, RecursionError):
        return {}, 0.0
    return (owner if isinstance(owner, dict) else {}), written_s


def _write_owner(path: Path, owner: Mapping[str, Any]) -> None:
    """Replace the file of a claim. Raises StoreError."""
    try:
        write_once(path, _CLAIM_FILE, data=json_of(owner).encode())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def _owner(host: str) -> dict[str, Any]:
    """The identity of this process; a process id alone may be reused."""
    job = os.environ.get(IN_JOB)
    return {
        **({} if job is None else {"job": job}),
        "host": host,
        "machine": machine_id(),
        "boot": boot_id(),
        "namespace": process_namespace(),
        "pid": os.getpid(),
        "started": process_start(os.getpid()),
    }


def _is_dead(owner: Mapping[str, Any], host: str, results: Path) -> bool:
    """Whether an owner is certainly dead: a process of this host that is gone, or of an earlier start of this host, or
    of a job that is over. Two hosts may have the same name: only the machine id tells an earlier start from another
    host."""
    pid = owner.get("pid")
    if isinstance(owner.get("noted"), Mapping) and is_dead_in_job(results, owner.get("job")):
        return True
    if owner.get("host") != host or not isinstance(pid, int) or not isinstance(owner.get("noted"), Mapping):
        return False
    if owner.get("boot") != boot_id():
        return bool(machine_id()) and owner.get("machine") == machine_id()
    return bool(owner.get("namespace") == process_namespace() and process_start(pid) != owner.get("started"))
