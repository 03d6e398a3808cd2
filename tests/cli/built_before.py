"""Caches of programs that are new, but for the parts that all programs share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def cache_of_parts(cache: Path, shared: Path, *arguments: str, cwd: Path) -> str:
    """A cache without programs that has all the objects of what `seatrial build ARGUMENTS` builds, which is built in
    the shared cache first: other tests need it too."""
    subprocess.run([sys.executable, "-m", "seatrial", "build", *arguments], cwd=cwd, check=True, capture_output=True)
    shutil.copytree(shared / "objects", cache / "objects", ignore=shutil.ignore_patterns(".*"))
    return str(cache)
