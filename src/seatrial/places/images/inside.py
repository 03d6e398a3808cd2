"""Runs a command with a folder as its root, in namespaces of its own: no network, and nothing that it mounts stays."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from seatrial.errors import ImageError
from seatrial.places.images.private import tool_environment
from seatrial.places.images.tools import tool
from seatrial.processes.output import OutOfTimeError, output_of

_LIMIT_S = 60.0
_USER = ("--user", "--map-root-user")
_NAMESPACES = ("--mount", "--net", "--ipc")
_PATH = "/usr/local/bin:/usr/bin:/bin"


def inside(root: Path) -> tuple[str, ...]:
    """The words before a command that runs it inside `root`. Raises ImageError where neither a user namespace nor root
    allows that."""
    unshare = tool("unshare", "util-linux")
    why = ""
    for user in (_USER, ()):
        words = (unshare, *user, *_NAMESPACES)
        if not user and os.geteuid() != 0:
            break
        try:
            answer = output_of([*words, "true"], tool_environment(), _LIMIT_S)
        except (OSError, OutOfTimeError) as error:
            why = str(error)
            continue
        if answer.returncode == 0:
            return (*words, f"--root={root}", "--wd=/", "--")
        why = answer.stderr.decode("utf-8", "replace").strip()
    raise ImageError(
        f"programs cannot be compiled inside the image: {why[-300:]}",
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or run as root",
    )


def as_root() -> tuple[str, ...]:
    """The words before a command that let it see itself as root; none for root, and where there are no user
    namespaces."""
    if os.geteuid() == 0 or (unshare := shutil.which("unshare")) is None:
        return ()
    words = (unshare, *_USER)
    try:
        answer = output_of([*words, "true"], tool_environment(), _LIMIT_S)
    except (OSError, OutOfTimeError):
        return ()
    return words if answer.returncode == 0 else ()


def inside_environment() -> dict[str, str]:
    """The environment of commands inside: that of a system without our variables."""
    return {"PATH": _PATH, "HOME": "/", "LC_ALL": "C", "TMPDIR": "/tmp"}  # noqa: S108 - of the image
