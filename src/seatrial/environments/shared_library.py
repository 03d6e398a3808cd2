"""Builds a shared library of C that other programs load, or a small program beside it: one compiler call, kept under
the hash of what went into it.

Both run wherever those programs run, so they are built for any machine of this kind, without the processor's own
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
from seatrial.errors import BuildError, NoCompilerError
from seatrial.model.experiment import content_key

_COMPILE_LIMIT_S = 600.0
_PLAIN_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2")
_FLAGS = (*_PLAIN_FLAGS, "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec")
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
    name: str, compiler: Compiler | None, sources: Sequence[Path], text: str, link_flags: Sequence[str] = ()
) -> Path:
    """`lib<name>.so` of the files and of one more source with `text`, from the cache or built now. The folders of the
    files are searched for headers. Without a compiler, one that any compiler has built.

    Raises BuildError with the compiler's words, NoCompilerError where there is neither compiler nor library.
    """
    key = _key((*_FLAGS, *link_flags), sources, text)
    if compiler is None:
        return _kept(key, f"lib{name}.so")
    command = c_compiler(compiler)
    library = _folder(key, command, compiler) / f"lib{name}.so"
    if not library.exists():
        _compile((*command, *_FLAGS, *_search(sources)), sources, text, link_flags, library)
    return library


def build_program(name: str, compiler: Compiler | None, sources: Sequence[Path]) -> Path:
    """A program of C of the files, from the cache or built now. It is linked statically, so that it runs in containers
    of any age and takes no preloaded library; dynamically where the machine has no static C library. Without a
    compiler, one that any compiler has built.

    Raises BuildError with the compiler's words, NoCompilerError where there is neither compiler nor program.
    """
    key = _key((*_PLAIN_FLAGS, "-static"), sources, "")
    if compiler is None:
        return _kept(key, name)
    command = c_compiler(compiler)
    program = _folder(key, command, compiler) / name
    if not program.exists():
        words = (*command, *_PLAIN_FLAGS, *_search(sources))
        try:
            _compile((*words, "-static"), sources, "", (), program)
        except BuildError:
            _compile(words, sources, "", (), program)
    return program


def _search(sources: Sequence[Path]) -> list[str]:
    return [f"-I{folder}" for folder in sorted({source.parent for source in sources})]


def _folder(key: str, command: Sequence[str], compiler: Compiler) -> Path:
    words = [*(Path(word).name for word in command), compiler.version]
    return cache_folder() / "libraries" / f"{key}-{content_key({'compiler': words})[:8]}"


def _kept(key: str, name: str) -> Path:
    found = sorted((cache_folder() / "libraries").glob(f"{key}-*/{name}"))
    if not found:
        raise NoCompilerError(
            f"{name} is not built, and there is no compiler",
            "seatrial build makes it on a machine that has one; nodes may share its cache (SEATRIAL_CACHE)",
        )
    return found[0]


def _key(flags: Sequence[str], sources: Sequence[Path], text: str) -> str:
    folders = sorted({source.parent for source in sources})
    headers = [path for folder in folders for path in sorted(folder.glob("*.h"))]
    return content_key(
        {
            "flags": list(flags),
            "machine": platform.machine(),
            "sources": {path.name: _digest(path.read_bytes()) for path in (*sources, *headers)},
            "text": _digest(text.encode()),
        }
    )


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
