"""Builds a shared library of C that other programs load: one compiler call, kept under the hash of what went into it.

It runs wherever those programs run, so it is built for any machine of this kind, without the processor's own
instructions and without the C++ library.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from seatrial.environments.build import cache_folder
from seatrial.environments.compiler import Compiler, ask
from seatrial.errors import BuildError
from seatrial.model.experiment import content_key

_COMPILE_LIMIT_S = 600.0
_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec")
_C_NAMES = (("clang++", "clang"), ("g++", "gcc"), ("c++", "cc"), ("icpx", "icx"))


def c_compiler(compiler: Compiler) -> tuple[str, ...]:
    """The command of the C compiler that comes with a C++ compiler. Raises BuildError where there is none."""
    path = Path(shutil.which(compiler.command[-1]) or compiler.command[-1])
    for plus, plain in _C_NAMES:
        if plus in path.name:
            beside = path.with_name(path.name.replace(plus, plain))
            if beside.exists():
                return (*compiler.command[:-1], str(beside))
            break
    found = shutil.which("cc")
    if found is None:
        raise BuildError(
            f"there is no C compiler beside {path}, and no cc on PATH", "install one (Debian: apt install gcc)"
        )
    return (found,)


def build_library(
    name: str, compiler: Compiler, sources: Sequence[Path], text: str, link_flags: Sequence[str] = ()
) -> Path:
    """`lib<name>.so` of the files and of one more source with `text`, from the cache or built now. The folders of the
    files are searched for headers.

    Raises BuildError with the compiler's words.
    """
    command = c_compiler(compiler)
    folders = sorted({source.parent for source in sources})
    headers = [path for folder in folders for path in sorted(folder.glob("*.h"))]
    key = content_key(
        {
            "compiler": [Path(word).name for word in command] + [compiler.version],
            "flags": [*_FLAGS, *link_flags],
            "machine": platform.machine(),
            "sources": {path.name: _digest(path.read_bytes()) for path in (*sources, *headers)},
            "text": _digest(text.encode()),
        }
    )
    library = cache_folder() / "libraries" / key / f"lib{name}.so"
    if not library.exists():
        _compile((*command, *_FLAGS, *(f"-I{folder}" for folder in folders)), sources, text, link_flags, library)
    return library


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _compile(
    command: Sequence[str], sources: Sequence[Path], text: str, link_flags: Sequence[str], library: Path
) -> None:
    """Built beside where it is kept and renamed into place: nobody loads half a library."""
    private = library.with_name(f".{platform.node()}-{os.getpid()}.so")
    generated = private.with_suffix(".c")
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        generated.write_text(text, encoding="ascii")
        files = [str(path) for path in (generated, *sources)]
        ask([*command, *files, "-o", str(private), *link_flags], limit_s=_COMPILE_LIMIT_S)
        private.replace(library)
    except OSError as error:
        raise BuildError(
            f"libraries cannot be kept in {library.parent}: {error.strerror or error}",
            "name a writable folder in SEATRIAL_CACHE",
        ) from error
    finally:
        generated.unlink(missing_ok=True)
        private.unlink(missing_ok=True)
