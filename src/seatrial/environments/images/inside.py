"""Runs a command with a folder as its root, in namespaces of its own: no network, and nothing that it mounts stays."""

from __future__ import annotations

import os
from pathlib import Path

from seatrial.environments.images.private import tool_environment
from seatrial.environments.images.tools import tool
from seatrial.errors import ImageError
from seatrial.processes.output import OutOfTimeError, output_of

_LIMIT_S = 60.0
_NAMESPACES = ("--mount", "--net", "--ipc")
_PATH = "/usr/local/bin:/usr/bin:/bin"


def inside(root: Path) -> tuple[str, ...]:
    """The words before a command that runs it inside `root`. Raises ImageError where neither a user namespace nor root
    allows that."""
    unshare = tool("unshare", "util-linux")
    why = ""
    for user in (("--user", "--map-root-user"), ()):
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


def inside_environment() -> dict[str, str]:
    """The environment of commands inside: that of a system without our variables."""
    return {"PATH": _PATH, "HOME": "/", "LC_ALL": "C", "TMPDIR": "/tmp"}  # noqa: S108 - of the image
