"""Whether container runtimes start anything here, and what a program needs that starts containers itself.

The container runtimes of this machine, each tried once for each version of its program, user and start of the
machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import to_builtins

from seatrial.environments.asking import remembered
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import OrNull, Text, published
from seatrial.places.contained import Contained, started
from seatrial.places.containers.faults import fault_in, last_words
from seatrial.places.containers.image import Image, ImageKind
from seatrial.places.containers.runtime import SHARED, Inside, Runtime, shared_folder
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import PROGRAM, STATUS, timed_program, write_root
from seatrial.processes.start import OutOfTimeError, output_of

_LIMIT_S = 30.0


@published("ContainerRuntime")
class RuntimeTrial(Frozen):
    """A container runtime.

    On this machine. `need` has the remedy, too; "" if it starts programs. A runtime that only starts its own images
    store is not tried: `unverified`.
    """

    name: Annotated[Text, "The value of environment.container_runtime that selects it"]
    title: str
    state: Annotated[
        Literal["ready", "unverified", "fails", "absent"],
        "ready: it started a program here; unverified: it is installed, but our tests only check its commands",
    ]
    need: Annotated[OrNull[str], "Why it starts no program, in its own words"] = ""


def tried(runtime: Runtime, folder: Path) -> RuntimeTrial:
    """Try a runtime: it is started once, with a root that is written into this empty folder."""
    if runtime.path() is None:
        return RuntimeTrial(runtime.name, runtime.title, "absent", f"install {runtime.package}")
    if ImageKind.FOLDER not in runtime.kinds:
        return RuntimeTrial(runtime.name, runtime.title, "unverified")
    try:
        folder.chmod(0o755)
        if not write_root(folder):
            return RuntimeTrial(runtime.name, runtime.title, "unverified")
        need = _why_not_started(runtime, folder)
    except OSError as error:
        need = f"{runtime.command} cannot be started: {error}"
    if need:
        return RuntimeTrial(runtime.name, runtime.title, "fails", need)
    return RuntimeTrial(runtime.name, runtime.title, "ready" if runtime.is_verified else "unverified")


def _why_not_started(runtime: Runtime, root: Path) -> str:
    command = [*runtime.prefix(Inside(Image(str(root), ImageKind.FOLDER, ""))), PROGRAM]
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


_BOOT = Path("/proc/sys/kernel/random/boot_id")


def container_trials() -> list[RuntimeTrial]:
    """All runtimes, in order of preference."""
    return [_trial(runtime) for runtime in RUNTIMES.values()]


def _trial(runtime: Runtime) -> RuntimeTrial:
    path = runtime.path()
    if path is None:
        return tried(runtime, Path())
    boot = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else ""

    def made() -> dict[str, Any]:
        with shared_folder("seatrial-root-") as folder:
            kept: dict[str, Any] = to_builtins(tried(runtime, folder))
        return kept

    try:
        return RuntimeTrial(
            **remembered([runtime.name, boot], [Path(path)], made, lambda kept: bool(RuntimeTrial(**kept)))
        )
    except OSError as error:
        return RuntimeTrial(runtime.name, runtime.title, "fails", f"no folder for a trial can be made: {error}")


_NAME = "started"


def start_arguments(
    container: Contained, variables: Sequence[tuple[str, str | None]], directory: Path
) -> tuple[str, ...]:
    """The arguments that state the command of the container, the same program outside, the status that both end with,
    and the image's files, in a repeat's folder. Raises ContainerError."""
    program = directory / _NAME
    start = started(None, None, container, variables, {}, [directory])
    words = [*start.before, *start.words([str(program)])]
    numbered = [argument for number, word in enumerate(words) for argument in (f"--word-{number}", word)]
    own = ["--words", str(len(words)), *numbered, "--bare", str(program), "--expect", str(STATUS)]
    has_files = container.image.kind is not ImageKind.NAME
    return (*own, *(["--image", container.image.given] if has_files else []))


def write_started(directory: Path) -> None:
    """Write the program to start into a repeat's folder. Raises OSError."""
    path = directory / _NAME
    path.write_bytes(timed_program() or b"")
    path.chmod(0o755)
