"""Whether a container runtime starts anything here: tried once, with a static program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from seatrial.model.frozen import Frozen
from seatrial.places.containers.faults import fault_in, last_words
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime
from seatrial.places.containers.tiny_root import PROGRAM, STATUS, write_root
from seatrial.processes.output import OutOfTimeError, output_of

_LIMIT_S = 30.0


class Trial(Frozen):
    """A runtime on this machine. `need` is why it does not start programs, in its own words, with the remedy; "" if
    it does. A runtime that only starts images of its own store is not tried: `unverified`."""

    name: str
    title: str
    state: Literal["ready", "unverified", "fails", "absent"]
    need: str = ""


def absent(runtime: Runtime) -> Trial:
    """A runtime that is not installed."""
    return Trial(runtime.name, runtime.title, "absent", f"install {runtime.package}")


def tried(runtime: Runtime, folder: Path) -> Trial:
    """Try a runtime: it is started once, with a root that is written into this empty folder."""
    if runtime.path() is None:
        return absent(runtime)
    if ImageKind.FOLDER not in runtime.kinds:
        return Trial(runtime.name, runtime.title, "unverified")
    try:
        folder.chmod(0o755)
        if not write_root(folder):
            return Trial(runtime.name, runtime.title, "unverified")
        need = _why_not_started(runtime, folder)
    except OSError as error:
        need = f"{runtime.command} cannot be started: {error}"
    if need:
        return Trial(runtime.name, runtime.title, "fails", need)
    return Trial(runtime.name, runtime.title, "ready" if runtime.is_verified else "unverified")


def _why_not_started(runtime: Runtime, root: Path) -> str:
    image = Image(str(root), ImageKind.FOLDER, "")
    command = [*runtime.prefix(Inside(image)), PROGRAM]
    try:
        done = output_of(command, {**os.environ, **runtime.variables(), "TMPDIR": str(SHARED), "LC_ALL": "C"}, _LIMIT_S)
    except OutOfTimeError:
        return f"{runtime.command} did not end within {_LIMIT_S:.0f} s"
    if done.returncode == STATUS:
        return ""
    output = (done.stderr + b"\n" + done.stdout).decode("utf-8", "replace")
    known = fault_in(output)
    remedy = f"; {known.remedy}" if known is not None else ""
    return f"{last_words(output).rstrip('.')}{remedy}"
