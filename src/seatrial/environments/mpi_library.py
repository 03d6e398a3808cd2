"""Finds libmpi and launchers, and what the wrapper of a compiler adds to its command line.

What an MPI compiler wrapper adds to a compiler's command line, as the wrapper prints it; nothing is compiled.

`-show` is MPICH's option, which the wrappers of Intel MPI, MVAPICH and Open MPI accept too; Open MPI's own is
`--showme`, Cray's `--cray-print-opts=all` (mpicc(1) of MPICH and of Open MPI, cc(1) of the Cray Programming
Environment). Only folders and libraries are used: we choose compiler, optimisation and language standard.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.environments.asking import ask_once
from seatrial.environments.mpi_identity import is_file, is_for_this_machine
from seatrial.errors import BuildError
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.frozen import Frozen
from seatrial.processes.working_folder import on_path

_MULTIARCH = f"{platform.machine()}-linux-gnu"
LOADER_FOLDERS = tuple(
    map(Path, (f"/lib/{_MULTIARCH}", f"/usr/lib/{_MULTIARCH}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"))
)
"""The loader's default folders (ld.so(8)), with Debian's."""

HEADER_FOLDERS = (Path("/usr/include"), Path(f"/usr/include/{_MULTIARCH}"))
LIBRARY_FOLDERS = ("lib", "lib64", "lib/release", "intel64/lib/release", "intel64/lib")
"""Below a prefix."""

_LINKED = re.compile(r"-l(mpi(?:ch)?(?:_(?!gtl)[a-z0-9_]{1,30})?)")
_FILE = re.compile(r"libmpi(?:ch)?(?:_(?:cray|gnu|intel|amd|aocc|nvidia|ibm)[a-z0-9_]{0,30})?\.so\.[0-9.]{1,30}")
_SCRIPT = re.compile(rb"(?:INPUT|GROUP)[ \t]{0,10}\([ \t]{0,10}([A-Za-z0-9_./+-]{1,255})")
_LARGEST_SCRIPT_B = 4096

_STARTERS = {
    MpiFamily.OPENMPI: ("mpirun", "mpiexec", "orterun", "prterun"),
    MpiFamily.CRAY: ("mpiexec", "srun", "aprun"),
}
_HYDRA = ("mpiexec.hydra", "mpirun", "mpiexec")
_OF_OPENMPI = frozenset({"orterun", "prterun", "prte", "prun", "ompirun_wrapper"})
_OF_HYDRA = frozenset({"mpiexec.hydra", "mpiexec.gforker", "hydra_pmi_proxy"})
"""Files that launchers link to, each of which starts only ranks of its own library."""


def linked_library(words: Iterable[str], folders: Sequence[Path]) -> Path | None:
    """The MPI library of the first -l option for one, searched in these and the default folders; links and linker
    scripts are followed. None if there is no shared library for this machine."""
    for word in words:
        if match := _LINKED.fullmatch(word):
            for folder in (*folders, *LOADER_FOLDERS):
                path = folder / f"lib{match[1]}.so"
                if is_file(path) and (library := _followed(path)) is not None:
                    return library
    return None


def is_mpi_library(name: str) -> bool:
    """Whether a file is an MPI library by its name: libmpi.so.40, libmpich.so.12, not libmpi_cxx.so.40."""
    return _FILE.fullmatch(name) is not None


def library_words(folder: Path) -> tuple[str, ...]:
    """The -l option for the MPI library in a folder, for prefixes without a wrapper; () if there is none."""
    for name in ("mpi", "mpich"):
        if is_file(folder / f"lib{name}.so"):
            return (f"-l{name}",)
    stems = (path.name.removeprefix("lib").removesuffix(".so") for path in sorted(_globbed(folder, "libmpi_*.so")))
    return next(((f"-l{stem}",) for stem in stems if _FILE.fullmatch(f"lib{stem}.so.0")), ())


def libraries_in(folder: Path) -> Iterator[Path]:
    """The files of MPI libraries in a folder, links resolved."""
    for path in sorted(_globbed(folder, "libmpi*.so.*")):
        if _FILE.fullmatch(path.name) and is_file(path) and is_for_this_machine(path):
            yield path.resolve()


def _globbed(folder: Path, pattern: str) -> list[Path]:
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def _followed(path: Path) -> Path | None:
    """The library that a link or a linker script (`INPUT(libmpi.so.40)`, as in wheels) refers to."""
    try:
        with path.open("rb") as stream:
            start = stream.read(_LARGEST_SCRIPT_B)
        if not start.startswith(b"\x7fELF"):
            script = _SCRIPT.search(start)
            if script is None:
                return None
            path = path.parent / os.fsdecode(script[1])
        return path.resolve() if is_for_this_machine(path) else None
    except (OSError, RuntimeError):
        return None


def launcher_of(family: MpiFamily, wrapper: Path | None, prefix: Path, variables: Mapping[str, str]) -> Path | None:
    """The launcher of a library: beside its wrapper with the same suffix, in its prefix, or (for libraries without
    their own, such as Cray's) on PATH. None if no suitable one is found."""
    names = _STARTERS.get(family, _HYDRA)
    suffix = wrapper_suffix(wrapper) if wrapper is not None else ""
    folders = [*([wrapper.parent] if wrapper is not None else []), *(prefix / below for below in ("bin", "bin64"))]
    if family is MpiFamily.CRAY or wrapper is None:
        folders += [Path(folder) for folder in variables.get("PATH", "").split(":") if folder.startswith("/")]
    suffixes = dict.fromkeys((suffix, f".{family}", ""))
    for folder in folders:
        for name in (f"{name}{suffix}" for suffix in suffixes for name in names):
            path = folder / name
            if os.access(path, os.X_OK) and is_file(path) and _can_be_of(family, path):
                return path
    return None


def wrapper_suffix(wrapper: Path) -> str:
    """Debian's suffix for a library's programs: ".openmpi" for mpicc.openmpi, and for mpicc if it links to that; else
    ""."""
    for _ in range(8):
        if wrapper.name.startswith(("mpicc.", "mpicxx.")):
            return wrapper.suffix
        if not wrapper.is_symlink():
            break
        wrapper = wrapper.parent / wrapper.readlink()
    return ""


def named_launcher(name: str, variables: Mapping[str, str]) -> Path | None:
    """The launcher that the site file states, a command or a path; None if it is not found."""
    found = on_path(name, variables.get("PATH", ""))
    return None if found is None else Path(found)


def _can_be_of(family: MpiFamily, launcher: Path) -> bool:
    real = {launcher.name, launcher.resolve().name}
    if family is MpiFamily.OPENMPI:
        return not real & _OF_HYDRA
    return not real & _OF_OPENMPI


_QUESTIONS = (("-show",), ("--showme",))
_CRAY_QUESTION = ("--cray-print-opts=all",)
_CRAY_NAMES = ("cc", "CC")
_LARGEST_ANSWER = 1 << 16
_LIBRARY = re.compile(r"-l[A-Za-z0-9_.+-]{1,100}")
_BINDINGS = re.compile(
    r"-l(?:mpi(?:fort|cxx|_cxx|_mpifh|_usempif?[a-z0-9_]*|_usempi_ignore_tkr|_java|cpp|_f77|_f90)|mpich(?:cxx|fort|f90)"
    r"|mpig[cfi]4?|gfortran|quadmath|ifcore[a-z]*|stdc\+\+)"
)
"""Libraries for languages other than C, which our programs must not load."""

_OF_CRAY_MPI = re.compile(r"-l(?:mpi(?:ch)?(?:_[a-z0-9_]+)?|xpmem|pmi2?)")
"""Cray's wrapper adds the libraries of all loaded modules; an MPI program needs only these."""


class WrapperWords(Frozen):
    """A wrapper's output: header folders, library folders, run-time search folders, -l options."""

    includes: tuple[Path, ...]
    folders: tuple[Path, ...]
    run_folders: tuple[Path, ...]
    libraries: tuple[str, ...]


def ask_wrapper(wrapper: Path, variables: Mapping[str, str] | None = None) -> WrapperWords:
    """What a wrapper adds. Raises BuildError if it fails, or lists no MPI library."""
    is_cray = wrapper.name in _CRAY_NAMES
    refusal: BuildError | None = None
    for question in (_CRAY_QUESTION,) if is_cray else _QUESTIONS:
        try:
            words = parse_answer(ask_once([str(wrapper), *question], variables, limit_s=10).stdout)
        except BuildError as error:
            refusal = refusal or error
            continue
        if is_cray:
            libraries = tuple(word for word in words.libraries if _OF_CRAY_MPI.fullmatch(word))
            words = WrapperWords(words.includes, words.folders, words.run_folders, libraries)
        if words.libraries:
            return words
    raise refusal or BuildError(f"{wrapper} lists no libraries to link")


def parse_answer(text: str) -> WrapperWords:
    """Parse a wrapper's output: a command line, possibly among other lines. Raises BuildError for anything else."""
    lines = [line for line in text[:_LARGEST_ANSWER].splitlines() if re.search(r"(?:^|\s)-[lLI]", line)]
    words: list[str] = []
    for line in lines:
        try:
            words += shlex.split(line)
        except ValueError as error:
            raise BuildError(f"its output is not a command line ({error})") from error
    return WrapperWords(
        _unique(_values(words, ("-I", "-isystem", "-idirafter"))),
        _unique(_values(words, ("-L",))),
        _unique(_run_paths(list(_for_linker(words)))),
        tuple(word for word in dict.fromkeys(words) if _LIBRARY.fullmatch(word) and not _BINDINGS.fullmatch(word)),
    )


def _values(words: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """The values of options, joined to them or as the next word."""
    for position, word in enumerate(words):
        for option in options:
            if word == option and position + 1 < len(words):
                yield words[position + 1]
            elif word.startswith(option) and word != option:
                yield word[len(option) :]


def _for_linker(words: Sequence[str]) -> Iterator[str]:
    """The words that the compiler passes to the linker (-Wl,A,B and -Xlinker A)."""
    for position, word in enumerate(words):
        if word.startswith("-Wl,"):
            yield from word.split(",")[1:]
        elif word == "-Xlinker" and position + 1 < len(words):
            yield words[position + 1]


def _run_paths(words: Sequence[str]) -> Iterator[str]:
    """The folders of -rpath DIR and -rpath=DIR; one option may list several."""
    for position, word in enumerate(words):
        name, is_joined, value = word.partition("=")
        if name in ("-rpath", "--rpath", "-R"):
            following = words[position + 1] if position + 1 < len(words) else ""
            yield from (value if is_joined else following).split(":")


def _unique(texts: Iterator[str]) -> tuple[Path, ...]:
    """Absolute folders, each once; relative ones depend on the current folder."""
    return tuple(dict.fromkeys(Path(text) for text in texts if text.startswith("/") and text.isprintable()))
