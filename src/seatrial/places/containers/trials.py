"""The container runtimes of this machine, each tried once for each version of its program, user and start of the
machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import to_builtins

from seatrial.environments.remembered import remembered
from seatrial.places.containers.runtime import Runtime
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.trial import Trial, absent, tried
from seatrial.places.shared_folders import shared_folder

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def container_trials() -> list[Trial]:
    """All runtimes, in order of preference."""
    return [_trial(runtime) for runtime in RUNTIMES.values()]


def _trial(runtime: Runtime) -> Trial:
    if runtime.path() is None:
        return absent(runtime)
    boot = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else ""

    def made() -> dict[str, Any]:
        with shared_folder("seatrial-root-") as folder:
            kept: dict[str, Any] = to_builtins(tried(runtime, folder))
        return kept

    try:
        return Trial(
            **remembered([runtime.name, boot], [Path(str(runtime.path()))], made, lambda kept: bool(Trial(**kept)))
        )
    except OSError as error:
        return Trial(runtime.name, runtime.title, "fails", f"no folder for a trial can be made: {error}")
