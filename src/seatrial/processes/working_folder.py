"""Keeps the working folder out of what seatrial builds, asks and looks up: its files are the user's, or of somebody
else who may write there, and may have the names of headers, libraries and programs.

Compilers, probes and helper programs run in the root folder, and search only the folders that variables name in full:
an empty or relative entry of such a list means the working folder. What the user measures keeps both.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

NEUTRAL = Path("/")
"""The folder that tools run in: every node has it, and only root writes there."""

_LISTS = frozenset(
    {
        "PATH",
        *("LD_LIBRARY_PATH", "LD_RUN_PATH", "LIBRARY_PATH", "COMPILER_PATH"),  # ld.so(8), ld(1), gcc(1)
        *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH"),
        *("PYTHONPATH", "PERL5LIB", "MODULEPATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "HWLOC_PLUGINS_PATH"),
    }
)
_PRELOADED = frozenset({"LD_PRELOAD", "LD_AUDIT"})
_IN_FULL = ("/", "$ORIGIN", "${ORIGIN}")


def without_working_folder(variables: Mapping[str, str]) -> dict[str, str]:
    """These variables, with only the entries of lists of folders and libraries that do not depend on the working
    folder; a list of which nothing is left is unset."""
    kept: dict[str, str] = {}
    for name, value in variables.items():
        if name in _LISTS:
            entries = re.split("[:;]" if name == "LD_LIBRARY_PATH" else ":", value)
            named = [entry for entry in entries if entry.startswith(_IN_FULL)]
        elif name in _PRELOADED:  # a name without a slash is searched for as a library
            entries = re.split("[: ]", value)
            named = [entry for entry in entries if entry.startswith(_IN_FULL) or "/" not in entry]
        else:
            kept[name] = value
            continue
        if any(named):
            kept[name] = value if len(named) == len(entries) else ":".join(named)
    return kept


def on_path(name: str, path: str | None = None) -> str | None:
    """The program of this name on PATH (`path`: on this list instead), without the entries that depend on the working
    folder; a name with a slash is a path. Absolute; None: not found."""
    if "/" in name:
        found = shutil.which(name)
        return None if found is None else str(Path(found).absolute())
    listed = os.environ.get("PATH", os.defpath) if path is None else path
    return shutil.which(name, path=":".join(entry for entry in listed.split(":") if entry.startswith("/")))
