"""A folder with this machine's g++ and what it needs to compile one program: a root for tests, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from seatrial.environments.build import BASE_FLAGS, NATIVE_HEADERS
from seatrial.environments.compiled import units_of

_TOOLS = ("cc1plus", "as", "ld", "collect2")
_LINKED = (
    *("Scrt1.o", "crt1.o", "crti.o", "crtn.o", "crtbeginS.o", "crtendS.o", "crtbegin.o", "crtend.o"),
    *("libstdc++.so", "libstdc++.so.6", "libm.so", "libm.so.6", "libmvec.so.1", "libgcc.a", "libgcc_s.so"),
    *("libgcc_s.so.1", "libc.so", "libc.so.6", "libc_nonshared.a", "liblto_plugin.so", "libpthread.a"),
)


def make_compiler_root(root: Path, sources: Iterable[Path]) -> None:
    """Fill `root`. Raises FileNotFoundError without g++."""
    for name in ("bin", "sbin", "lib", "lib64"):  # as links where this system has them merged with /usr
        if (merged := Path("/", name)).is_symlink():
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(merged.readlink())
    compiler = shutil.which("g++")
    if compiler is None:
        raise FileNotFoundError("g++")
    tools = [_printed(compiler, f"-print-prog-name={name}") for name in _TOOLS]
    programs = [compiler, *(shutil.which(tool) or tool for tool in tools)]
    files = [*programs, *(_printed(compiler, f"-print-file-name={name}") for name in _LINKED)]
    for program in programs:
        shown = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        files += [word for word in shown.split() if word.startswith("/")]
    for source in sources:
        for unit in units_of(source, NATIVE_HEADERS):
            command = [compiler, *BASE_FLAGS, "-M", "-I", NATIVE_HEADERS, unit.source]
            made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            files += [
                word for word in made.split() if word.startswith("/") and not word.startswith(str(NATIVE_HEADERS))
            ]
    for file in files:
        path = Path(file)
        if path.is_absolute() and path.exists():
            _put(root, path)
    (root / "tmp").mkdir(exist_ok=True)


def _put(root: Path, path: Path) -> None:
    """A file under the name that the compiler uses, links resolved."""
    place = root / os.path.normpath(path).lstrip("/")
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.hardlink_to(path.resolve())
    except OSError:
        shutil.copy2(path.resolve(), place)


def _printed(compiler: str, option: str) -> str:
    return subprocess.run([compiler, option], capture_output=True, text=True, check=True).stdout.strip()
