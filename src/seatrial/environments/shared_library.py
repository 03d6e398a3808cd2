"""Builds a C shared library that other programs load, or a small C program: one compiler call for each source, as many
at a time as there are CPUs, cached under the hash of all inputs.

Both run wherever those programs run, so they are built for any machine of this architecture, without CPU-specific
instructions and without the C++ library.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from seatrial.environments.asking import ask, side_by_side
from seatrial.environments.cache import cache_folder, caches, keep_others_from_writing
from seatrial.environments.cached_files import building_folder, private_copy
from seatrial.environments.compiler import Compiler
from seatrial.errors import BuildError, NoCompilerError
from seatrial.model.results.record import content_key

_COMPILE_LIMIT_S = 600.0
_PLAIN_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2")
_FLAGS = (*_PLAIN_FLAGS, "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec")
_SHARED, _STATIC = ("-shared",), ("-static",)
_C_NAMES = (("clang++", "clang"), ("g++", "gcc"), ("c++", "cc"), ("icpx", "icx"))


def c_compiler(compiler: Compiler) -> tuple[str, ...]:
    """The command of the C compiler that belongs to a C++ compiler. Raises BuildError if there is none."""
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
            f"no C compiler found beside {path}, and no cc on PATH", "install one (Debian: apt install gcc)"
        )
    return (found,)


def build_library(
    name: str,
    compiler: Compiler | None,
    sources: Sequence[Path],
    texts: Mapping[str, str],
    link_flags: Sequence[str] = (),
) -> Path:
    """`lib<name>.so` of the files and of `texts` (file name -> source), from the cache or built now. The folders of the
    files are searched for headers. Without a compiler, one built by any compiler is used.

    Raises BuildError with the compiler's message, NoCompilerError if there is neither compiler nor library.
    """
    return _built(f"lib{name}.so", compiler, sources, texts, _FLAGS, (_SHARED,), link_flags)


def build_program(name: str, compiler: Compiler | None, sources: Sequence[Path]) -> Path:
    """A C program of the files, from the cache or built now. It is linked statically, so that it runs in containers of
    any age and loads no preloaded library; dynamically if the machine has no static C library. Without a compiler, one
    built by any compiler is used.

    Raises BuildError with the compiler's message, NoCompilerError if there is neither compiler nor program.
    """
    return _built(name, compiler, sources, {}, _PLAIN_FLAGS, (_STATIC, ()))


def _built(
    name: str,
    compiler: Compiler | None,
    sources: Sequence[Path],
    texts: Mapping[str, str],
    flags: Sequence[str],
    links: Sequence[Sequence[str]],
    link_flags: Sequence[str] = (),
) -> Path:
    """A file of this name, linked in the first of the ways `links` that succeeds."""
    key = _key((*flags, *links[0], *link_flags), sources, texts)
    if compiler is None:
        return _kept(key, name)
    command = c_compiler(compiler)
    product = _folder(key, command, compiler) / name
    if (found := _found(product)) is None:
        words = (*command, *flags)
        _make(words, sources, texts, [(*words, *link) for link in links], link_flags, product)
        found = _found(product)
    return found or product


def _folder(key: str, command: Sequence[str], compiler: Compiler) -> Path:
    words = [*(Path(word).name for word in command), compiler.version]
    return cache_folder() / "libraries" / f"{key}-{content_key({'compiler': words})[:8]}"


def _found(place: Path) -> Path | None:
    """A private copy of the file that belongs at this place of the own cache, from there or from the shared cache; None
    if it is in neither. Raises CacheError if others can change it."""
    where = place.relative_to(cache_folder()).parts
    for cache in caches():
        if (data := cache.read(*where)) is not None:
            return private_copy(data, cache.path.joinpath(*where))
    return None


def _kept(key: str, name: str) -> Path:
    """The same, made by any compiler."""
    for cache in caches():
        for folder in cache.names("libraries"):
            place = cache_folder() / "libraries" / folder / name
            if folder.startswith(f"{key}-") and (found := _found(place)) is not None:
                return found
    raise NoCompilerError(
        f"{name} is not built, and no compiler was found",
        "run seatrial build on a machine that has one; nodes can share its cache (SEATRIAL_CACHE)",
    )


def _key(flags: Sequence[str], sources: Sequence[Path], texts: Mapping[str, str]) -> str:
    folders = sorted({source.parent for source in sources})
    headers = [path for folder in folders for path in sorted(folder.glob("*.h"))]
    return content_key(
        {
            "flags": list(flags),
            "machine": platform.machine(),
            "sources": {path.name: _digest(path.read_bytes()) for path in (*sources, *headers)},
            "texts": {name: _digest(text.encode()) for name, text in texts.items()},
        }
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _make(
    command: Sequence[str],
    sources: Sequence[Path],
    texts: Mapping[str, str],
    links: Sequence[Sequence[str]],
    link_flags: Sequence[str],
    product: Path,
) -> None:
    """Build in a private folder and rename into place, so that no process loads half a library. Sources are compiled in
    parallel, and linked by the first of the commands `links` that succeeds."""
    home = product.parent
    with building_folder(home) as private:
        if _found(product) is not None:
            return
        for name, text in texts.items():
            (private / name).write_text(text, encoding="ascii")
        environment = {**os.environ, "TMPDIR": str(private)}  # killed compilers leave files there
        search = [f"-I{folder}" for folder in sorted({source.parent for source in sources})]
        words = (*command, "-pipe", *search, "-c")
        files = [*(private / name for name in texts), *sources]
        objects = [str(private / f"{number}.o") for number in range(len(files))]
        compiling = [[*words, str(path), "-o", made] for path, made in zip(files, objects, strict=True)]
        side_by_side(partial(ask, one, environment, _COMPILE_LIMIT_S) for one in compiling)
        made = private / product.name
        _link([[*link, *objects, "-o", str(made), *link_flags] for link in links], environment)
        keep_others_from_writing(private)
        home.mkdir(mode=0o755, exist_ok=True)
        made.replace(product)


def _link(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> None:
    for command in commands[:-1]:
        with suppress(BuildError):
            ask(command, environment, _COMPILE_LIMIT_S)
            return
    ask(commands[-1], environment, _COMPILE_LIMIT_S)
