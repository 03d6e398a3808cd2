"""The shared libraries that the loader finds for a program, without running the program, and those of this machine.

Whether the loader can preload our library into a program (ld.so(8), LD_PRELOAD): a statically linked program does not
use the loader, a setuid program ignores preloading, and a program for another architecture cannot load the library. The
attempt does no harm in any of these cases.

Builds a C shared library that other programs load, or a small C program: one compiler call for each source, as many
at a time as there are CPUs, cached under the hash of all inputs.

Both run wherever those programs run, so they are built for any machine of this architecture, without CPU-specific
instructions and without the C++ library.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import platform
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from seatrial.environments.asking import ask, ask_once, side_by_side
from seatrial.environments.cached_files import building_folder, private_copy
from seatrial.environments.compiler import Compiler
from seatrial.errors import BuildError, NoCompilerError, ParseError
from seatrial.machine.elf_head import ELF_IDENT, elf_head
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key
from seatrial.processes.working_folder import on_path
from seatrial.store.cache import cache_folder, caches, keep_others_from_writing

_COMPILE_LIMIT_S = 600.0
_PLAIN_FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2")
_FLAGS = (*_PLAIN_FLAGS, "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec")
_SHARED, _STATIC = ("-shared",), ("-static",)
_C_NAMES = (("clang++", "clang"), ("g++", "gcc"), ("c++", "cc"), ("icpx", "icx"))


def c_compiler(compiler: Compiler) -> tuple[str, ...]:
    """The command of the C compiler that belongs to a C++ compiler. Raises BuildError if there is none."""
    path = Path(on_path(compiler.command[-1]) or compiler.command[-1])
    for plus, plain in _C_NAMES:
        if plus in path.name:
            beside = path.with_name(path.name.replace(plus, plain))
            if beside.exists():
                return (*compiler.command[:-1], str(beside))
            break
    found = on_path("cc")
    if found is None:
        raise BuildError(
            f"no C compiler found beside {path}, and no cc on PATH", "install one (Debian: apt install gcc)"
        )
    return (found,)


class Texts(Frozen):
    """Sources that `make` generates (file name -> text), which is done only to compile them: they are what the files
    `of` make of them."""

    make: Callable[[], Mapping[str, str]] = dict
    of: tuple[Path, ...] = ()


def build_library(
    name: str,
    compiler: Compiler | None,
    sources: Sequence[Path],
    texts: Texts,
    link_flags: Sequence[str] = (),
) -> Path:
    """`lib<name>.so` of the files and of `texts`, from the cache or built now. The folders of the files are searched
    for headers. Without a compiler, one built by any compiler is used.

    Raises BuildError with the compiler's message, NoCompilerError if there is neither compiler nor library.
    """
    return _built(f"lib{name}.so", compiler, sources, texts, _FLAGS, (_SHARED,), link_flags)


def build_program(name: str, compiler: Compiler | None, sources: Sequence[Path]) -> Path:
    """A C program of the files, from the cache or built now. It is linked statically, so that it runs in containers of
    any age and loads no preloaded library; dynamically if the machine has no static C library. Without a compiler, one
    built by any compiler is used.

    Raises BuildError with the compiler's message, NoCompilerError if there is neither compiler nor program.
    """
    return _built(name, compiler, sources, Texts(), _PLAIN_FLAGS, (_STATIC, ()))


def _built(
    name: str,
    compiler: Compiler | None,
    sources: Sequence[Path],
    texts: Texts,
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
        _make(words, sources, texts.make(), [(*words, *link) for link in links], link_flags, product)
        found = _found(product)
    return found or product


def _folder(key: str, command: Sequence[str], compiler: Compiler) -> Path:
    words = [*(Path(word).name for word in command), compiler.version]
    return cache_folder() / "libraries" / f"{key}-{content_key({'compiler': words})[:8]}"


def _found(place: Path) -> Path | None:
    """A private copy of the file with this path in the own cache, from there or from the shared cache; None
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


def _key(flags: Sequence[str], sources: Sequence[Path], texts: Texts) -> str:
    folders = sorted({source.parent for source in sources})
    headers = [path for folder in folders for path in sorted(folder.glob("*.h"))]
    return content_key(
        {
            "flags": list(flags),
            "machine": platform.machine(),
            "sources": {path.name: _digest(path.read_bytes()) for path in (*sources, *headers)},
            "texts": {path.name: _digest(path.read_bytes()) for path in texts.of},
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


_INTERPRETER = 3  # PT_INTERP
_PROGRAM, _POSITION_INDEPENDENT = 2, 3
_MACHINES = {"x86_64": 62, "aarch64": 183}
_LISTED = re.compile(r"^\s*(\S+) => (\S.*?) \(0x[0-9a-f]+\)$", re.MULTILINE)


def libraries_of(program: Path, variables: Mapping[str, str], loader: str | None = None) -> dict[str, str]:
    """Name -> path of the libraries that the loader finds for a program with these environment variables, in the
    working folder (glibc and musl: `LOADER --list PROGRAM`). Empty for scripts, static programs, and if the loader
    cannot list them. `loader` is for libraries, which name none."""
    try:
        loader = interpreter_of(program) or loader
        if loader is None:
            return {}
        answer = ask([loader, "--list", str(program)], environment=variables, runs_in=None)
    except (OSError, BuildError):
        return {}
    return listed_libraries(answer.stdout)


def listed_libraries(text: str) -> dict[str, str]:
    """Name -> path of the libraries in what a loader lists."""
    return dict(_LISTED.findall(text))


def interpreter_of(program: Path) -> str | None:
    """The loader of a program; None also for other content. Raises OSError."""
    try:
        return interpreter(program)
    except ParseError:
        return None


def interpreter(path: Path) -> str | None:
    """The dynamic loader that a program names (System V ABI, "Program Interpreter"); None: it is linked statically, or
    a shared library.

    Raises ParseError for any other content, OSError if it cannot be read.
    """
    with path.open("rb") as stream:
        try:
            head = elf_head(stream)
        except ValueError as error:
            raise ParseError("ELF", None, str(path), f"not a program or shared library ({error})") from error
        for kind, offset, length in head.segments:
            if kind == _INTERPRETER and length > 1:
                stream.seek(offset)
                return stream.read(min(length, 4096)).rstrip(b"\0").decode("utf-8", "surrogateescape")
    return None


def programs_among(command: Sequence[str], variables: Mapping[str, str]) -> list[Path]:
    """The executable files among the words of a command, including the launcher, each once."""
    found = (shutil.which(word, path=variables.get("PATH")) for word in command)
    return [Path(path) for path in dict.fromkeys(found) if path is not None]


def why_not_preloaded(program: Path) -> str | None:
    """Why no library can be preloaded into this program; None if it can, or if its file does not show it."""
    try:
        mode = program.stat().st_mode
        with program.open("rb") as stream:
            ident = stream.read(len(ELF_IDENT))
            if ident[:4] == ELF_IDENT[:4] and ident != ELF_IDENT:
                return "it is not a 64-bit program"
            stream.seek(0)
            head = elf_head(stream)
    except (OSError, ValueError):
        return None
    if head.machine != _MACHINES.get(platform.machine(), head.machine):
        return "it is for another processor architecture"
    if mode & (stat.S_ISUID | stat.S_ISGID):
        return "it runs with another user's rights"
    kinds = {kind for kind, _, _ in head.segments}
    if head.kind in (_PROGRAM, _POSITION_INDEPENDENT) and kinds and _INTERPRETER not in kinds:
        return "it is linked statically"
    return None


_BELOW_ROOT = ("lib", "lib64", "lib/intel64")
_FOLDERS = ("/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/usr/lib", "/opt/intel/oneapi/mkl/latest/lib")
_CACHED = re.compile(r"^\s+\S+ \([^)]*\) => (/.*)$", re.MULTILINE)


def library_files(
    names: Sequence[str], roots: Sequence[str], variables: Mapping[str, str], alternatives: Sequence[str] = ()
) -> Iterator[tuple[Path, str]]:
    """(file that has one of the names, where it was found), best first; a file may appear more than once.

    First the folders of LD_LIBRARY_PATH, then those below the variables in `roots` (set by modules), then the loader's
    cache and the usual folders, with the folders in them that match `alternatives`. `names` may have wildcards; the
    first ones are preferred within a folder.
    """
    for folder in filter(os.path.isabs, variables.get("LD_LIBRARY_PATH", "").split(":")):
        yield from ((path, "LD_LIBRARY_PATH") for path in _in_folder(Path(folder), names))
    for root in filter(variables.get, roots):
        for below in _BELOW_ROOT:
            yield from ((path, root) for path in _in_folder(Path(variables[root]) / below, names))
    cached = _in_loader_cache()
    for name in names:
        matches = re.compile(f".*/{fnmatch.translate(name)}").match
        yield from ((Path(path), "the loader's cache") for path in cached if matches(path))
    for usual in _usual_folders():
        yield from ((path, str(usual)) for path in _in_folder(usual, names))
        for alternative in alternatives:
            for beside in sorted(usual.glob(alternative)):
                yield from ((path, str(beside)) for path in _in_folder(beside, names))


def _usual_folders() -> Iterator[Path]:
    """The default library folders, Debian's for this architecture first."""
    yield from map(Path, (f"/usr/lib/{platform.machine()}-linux-gnu", *_FOLDERS))


def _in_folder(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        yield from sorted(folder.absolute().glob(name))


def _in_loader_cache() -> list[str]:
    """The files that `ldconfig -p` lists (ldconfig(8)); none without such a cache."""
    ldconfig = on_path("ldconfig") or on_path("ldconfig", "/sbin:/usr/sbin")
    if ldconfig is None:
        return []
    try:
        return _CACHED.findall(ask_once([ldconfig, "-p"]).stdout)
    except BuildError:
        return []
