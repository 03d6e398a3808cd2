"""Commands that run as a user without rights, for tests that run as root."""

from __future__ import annotations

import os
import sys
from pathlib import Path

NOBODY = 65534
_SCRIPT = """\
blocked=$1 shown=$2 aside=$3 cache=$4 shared=$5; shift 5
mkdir -p "$shared" && mount --bind "$cache" "$shared" || exit 125
if [ -n "$blocked" ]; then
  mkdir -p "$aside" && mount --bind "$shown" "$aside" && mount -t tmpfs -o mode=755 tmpfs "$blocked" &&
  mkdir -p "$shown" && mount --move "$aside" "$shown" || exit 125
fi
exec "$@"
"""
"""In a mount namespace of its own, a folder that only root may enter is replaced by one with `shown` alone, and root's
cache of programs is there for the user."""


def user_command(words: list[str], home: Path) -> list[str]:
    """The command that runs `words` as a user who owns the folder `home`, with this process's interpreter. Others can
    enter the folder above it."""
    for path in (home, home / "run", home / "tmp"):
        path.mkdir(mode=0o700, exist_ok=True)
        os.chown(path, NOBODY, NOBODY)
    blocked, shown = _blocked(Path(sys.executable).resolve())
    own = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    variables = [f"HOME={home}", f"XDG_RUNTIME_DIR={home}/run", f"TMPDIR={home}/tmp", "USER=nobody", "LC_ALL=C"]
    kept = [f"{name}={os.environ[name]}" for name in ("PATH", "PYTHONPATH") if name in os.environ]
    cache = Path(os.environ["SEATRIAL_CACHE"])
    if cache.stat().st_mode & 0o005 == 0o005:  # else the user builds the programs
        kept.append(f"SEATRIAL_SHARED_CACHE=root:{home.with_name('shared')}")
    own_folders = [str(home.with_name("aside")), str(cache), str(home.with_name("shared"))]
    return [
        *("unshare", "--mount", "--propagation", "private", "sh", "-c", _SCRIPT, "sh", blocked, shown, *own_folders),
        *(*own, "env", "-i", *variables, *kept, *words),
    ]


def _blocked(path: Path) -> tuple[str, str]:
    """The first folder above a file that others may not enter, and the one below it; "" for none."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & 0o001:
            return str(folder), str(folder / path.relative_to(folder).parts[0])
    return "", ""


def give_away(folder: Path) -> None:
    """Make the user the owner of all files in a folder."""
    for path in (folder, *folder.rglob("*")):
        os.lchown(path, NOBODY, NOBODY)
