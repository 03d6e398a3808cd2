"""The container runtimes of this machine, each tried once for each version of its program, user and start of the
machine."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from seatrial.engine.shared_folders import shared_folder
from seatrial.environments.cache import make_folder, own_cache
from seatrial.errors import SeatrialError
from seatrial.launch.containers.runtime import Runtime
from seatrial.launch.containers.runtimes import RUNTIMES
from seatrial.launch.containers.trial import Trial, absent, tried
from seatrial.model.experiment import content_key
from seatrial.version import __version__

_FOLDER = "containers"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def container_trials() -> list[Trial]:
    """All runtimes, in order of preference."""
    return [_trial(runtime) for runtime in RUNTIMES.values()]


def _trial(runtime: Runtime) -> Trial:
    if runtime.path() is None:
        return absent(runtime)
    name = f"{_key(runtime)}.json"
    with suppress(SeatrialError, OSError, ValueError, TypeError):
        if (known := own_cache().read(_FOLDER, name)) is not None:
            return Trial(**json.loads(known))
    try:
        with shared_folder("seatrial-root-") as folder:
            found = tried(runtime, folder)
    except OSError as error:
        return Trial(runtime.name, runtime.title, "fails", f"no folder for a trial can be made: {error}")
    with suppress(SeatrialError, OSError):
        folder = own_cache().path / _FOLDER
        make_folder(folder)
        fresh = folder / f".{name}.{secrets.token_hex(4)}"
        fresh.write_text(json.dumps(asdict(found)), encoding="utf-8")
        fresh.chmod(0o644)
        fresh.replace(folder / name)
    return found


def _key(runtime: Runtime) -> str:
    path = Path(str(runtime.path())).resolve()
    info = path.stat()
    boot = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else ""
    file = [info.st_ino, info.st_size, info.st_mtime_ns]
    return content_key({"path": str(path), "file": file, "user": os.geteuid(), "boot": boot, "version": __version__})
