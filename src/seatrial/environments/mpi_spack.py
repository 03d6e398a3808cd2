"""The MPI libraries that Spack installed, read from its database; Spack is not run.

The database of an install tree is `.spack-db/index.json`: {"database": {"installs": {hash: {"spec": {"name",
"version"}, "path", "installed"}}}} (spack/database.py, versions 6 to 8; in 5 the package's name is the key in "spec").
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_TREE = Path("opt/spack/.spack-db/index.json")
_LARGEST_DATABASE_B = 128 << 20
_PACKAGES = (
    "openmpi",
    "hpcx-mpi",
    "mpich",
    "cray-mpich",
    "intel-oneapi-mpi",
    "intel-mpi",
    "mvapich-plus",
    "mvapich",
    "mvapich2",
)


def mpis_of_spack(variables: Mapping[str, str]) -> list[tuple[Path, str]]:
    """(prefix, how it was found) of each; [] without Spack, or if its database cannot be read."""
    root = variables.get("SPACK_ROOT", "")
    if not root.startswith("/"):
        program = shutil.which("spack", path=variables.get("PATH", ""))
        if program is None:
            return []
        root = str(Path(program).resolve().parent.parent)
    return list(_installed(_database(Path(root) / _TREE)))


def _database(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST_DATABASE_B:
            return None
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _installed(content: Any) -> Iterator[tuple[Path, str]]:
    installs = _at(_at(content, "database"), "installs")
    entries = list(installs.values()) if isinstance(installs, dict) else []
    found: list[tuple[int, Path, str]] = []
    for entry in entries:
        spec, path = _at(entry, "spec"), _at(entry, "path")
        name = _at(spec, "name") or (next(iter(spec), None) if isinstance(spec, dict) and len(spec) == 1 else None)
        is_installed = _at(entry, "installed") is True and isinstance(path, str) and path.startswith("/")
        if is_installed and name in _PACKAGES:
            version = _at(spec, "version") or _at(_at(spec, name), "version")
            label = f"Spack, {name}" + (f"@{version}" if isinstance(version, str) and version.isprintable() else "")
            found.append((_PACKAGES.index(name), Path(path), label))
    for _, prefix, label in sorted(found):
        below = [*sorted(prefix.glob("mpi/20*"), reverse=True)] if "oneapi" in label else []
        yield from ((each, label) for each in (*below, prefix))


def _at(content: Any, key: str) -> Any:
    return content.get(key) if isinstance(content, dict) else None
