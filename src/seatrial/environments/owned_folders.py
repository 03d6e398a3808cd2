"""Folders that belong to one process and are removed with it: by itself, or, if it was killed, by a later one.

The name says which process: host, kernel and process namespace, id, start.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from seatrial.store.claim import kernel_and_namespace, process_start

_OWNER = re.compile(r".*-([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-f]{8}")
_LEFTOVER_S = 30 * 86400.0


def own_name(prefix: str = "") -> str:
    """A new name for a folder of this process."""
    owner = f"{platform.node()}-{kernel_and_namespace()}-{os.getpid()}-{process_start(os.getpid())}"
    return f"{prefix}{owner}-{secrets.token_hex(4)}"


def sweep(top: Path, prefix: str = "", remove: Callable[[Path], None] | None = None) -> None:
    """Remove the folders in `top` whose names begin with `prefix` and whose processes are dead; of other hosts only
    what is very old. What cannot be removed stays."""
    remove = remove or (lambda path: shutil.rmtree(path, ignore_errors=True))
    with suppress(OSError):
        for path in top.iterdir():
            if not path.name.startswith(prefix):
                continue
            match = _OWNER.fullmatch(path.name)
            if match and match[1] == kernel_and_namespace():
                is_over = process_start(int(match[2])) != int(match[3])
            else:
                is_over = time.time() - path.lstat().st_mtime > _LEFTOVER_S
            if is_over:
                remove(path)


def remove_folder(path: Path) -> None:
    """Remove a folder whatever the permissions in it are, as far as its owner can."""

    def retry(function: Callable[[str], object], name: str, error: object) -> None:
        with suppress(OSError):
            above = os.path.dirname(name)  # noqa: PTH120 - rmtree gives text
            os.chmod(above, stat.S_IRWXU)  # noqa: PTH101
            if os.path.isdir(name) and not os.path.islink(name):  # noqa: PTH112, PTH114
                os.chmod(name, stat.S_IRWXU)  # noqa: PTH101
                shutil.rmtree(name, ignore_errors=True)
            else:
                os.unlink(name)  # noqa: PTH108

    shutil.rmtree(path, onerror=retry)
