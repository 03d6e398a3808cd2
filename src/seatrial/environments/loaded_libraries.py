"""The BLAS and FFT libraries that a program loads when it runs, and hashes of files that identify an experiment.

An FFT library is the FFTW of the machine, which has a library for each precision, or one with its interface in a file
that the user names. The search order is that of a BLAS (loader.py): the user's folders, modules, the system.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Generic, TypeVar

from seatrial.environments.asking import once_for_each_file
from seatrial.environments.blas import HOW_TO_GET_ONE, Blas, NoBlasError, better_than, choose_blas, why_chosen
from seatrial.environments.build import Built, describe_with
from seatrial.environments.elf import SharedObject, read_shared_object
from seatrial.environments.installed import NotInstalledError
from seatrial.environments.loader import libraries_of, library_files
from seatrial.errors import BuildError, ParseError, UnknownNameError, UsageError
from seatrial.model.benchmark.program import Hello
from seatrial.model.frozen import Frozen

AUTO, OWN, FFTW = "auto", "own", "fftw"
FFTW_FILES = {"fp64": "libfftw3.so.3", "fp32": "libfftw3f.so.3"}
_PREFIX = {"fp64": "fftw_", "fp32": "fftwf_"}
_NEEDED = ("plan_many_dft", "execute_dft", "destroy_plan")
_ROOTS = ("FFTW_ROOT", "FFTW_HOME", "FFTW_DIR", "EBROOTFFTW", "CONDA_PREFIX")
"""Variables that modules and package managers set."""

HOW_TO_GET_FFTW = (
    "install it (Debian: apt install libfftw3-double3 libfftw3-single3; RHEL: dnf install fftw-libs), load its module,"
    " give its path (--set fft=PATH), or use seatrial's own transform (--set fft=own)"
)


class NoFftwError(BuildError):
    """FFTW is missing, or has no library of this precision."""

    need = "fftw"


class FftLibrary(Frozen):
    """One library; `name` is its value for `fft=`, `found` where it was found."""

    name: str
    path: Path
    found: str


def choose_fft(choice: str, precision: str, variables: Mapping[str, str] | None = None) -> FftLibrary | None:
    """The library for `auto`, `fftw` or a path; None for seatrial's own transform.

    Raises NoFftwError if FFTW is missing, UnknownNameError for another name, UsageError for a file that is not a
    library with FFTW's interface.
    """
    if choice == OWN:
        return None
    if "/" not in choice and choice not in (AUTO, FFTW):
        raise UnknownNameError("FFT library", choice, (AUTO, FFTW, OWN))
    found = _found(precision, os.environ if variables is None else variables)
    if "/" in choice:
        return _at(Path(choice), precision, found)
    if found is None and choice == FFTW:
        raise NoFftwError(f"no FFTW for {precision} ({FFTW_FILES[precision]}) found on this machine", HOW_TO_GET_FFTW)
    return found


def _found(precision: str, variables: Mapping[str, str]) -> FftLibrary | None:
    for path, where in library_files((FFTW_FILES[precision],), _ROOTS, variables):
        try:
            if _fits(read_shared_object(path), precision):
                return FftLibrary(FFTW, path, f"found in {where}")
        except (OSError, ParseError):
            continue
    return None


def _fits(library: SharedObject, precision: str) -> bool:
    return library.runs_on(platform.machine()) and all(_PREFIX[precision] + name in library.defined for name in _NEEDED)


def _at(path: Path, precision: str, found: FftLibrary | None) -> FftLibrary:
    """The library in a given file; if it is the one that is found, under the name of that one."""
    try:
        fits = _fits(read_shared_object(path), precision)
    except (OSError, ParseError) as error:
        why = error.why if isinstance(error, ParseError) else error.strerror
        todo = "give the path of a shared library with FFTW's interface"
        raise UsageError(f"fft={path}: {why or error}", todo) from error
    if not fits:
        wanted = _PREFIX[precision] + _NEEDED[0]
        raise UsageError(
            f"fft={path}: it has no {wanted} for this processor",
            "give the path of a library with FFTW's interface in this precision, or use fft=auto",
        )
    if found is not None and found.path.resolve() == path.resolve():
        return found
    return FftLibrary(str(path.absolute()), path.absolute(), "given by its path")


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """The value for each key. A BuildError is cached too, and raised again."""

    def __init__(self) -> None:
        self._found: dict[K, V | BuildError] = {}

    def get(self, key: K, find: Callable[[], V]) -> V:
        """The value for this key, computed by `find` at the first call. Raises BuildError."""
        if key not in self._found:
            try:
                self._found[key] = find()
            except BuildError as problem:
                self._found[key] = problem
        found = self._found[key]
        if isinstance(found, BuildError):
            raise found
        return found


_LARGEST_HASHED_B = 64 << 20


def hashes_of(command: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Name -> hash, of the file of a command on PATH (name "") and of each library that the loader finds for it: with
    another library it is another experiment. Raises NotInstalledError if the command is not found."""
    found = shutil.which(command, path=variables.get("PATH"))
    if found is None:
        raise NotInstalledError(f"{command}: command not found", "give its path, or put it on PATH")
    libraries = libraries_of(Path(found), variables)
    return {"": digest(found), **{name: digest(path) for name, path in libraries.items()}}


def files_among(words: Sequence[str]) -> dict[str, str]:
    """Word -> content id, of the words that name a file: a hash, or size and modification time for large files, which
    take too long to read for each plan."""
    found: dict[str, str] = {}
    for word in words:
        try:
            stat = Path(word).stat()
        except (OSError, ValueError):
            continue
        if S_ISREG(stat.st_mode):
            is_large = stat.st_size > _LARGEST_HASHED_B
            found[word] = f"{stat.st_size} B of {stat.st_mtime_ns}" if is_large else digest(word)
    return found


def digest(path: str) -> str:
    """The hash of a file, for libraries without a build id; "" if it cannot be read."""
    try:
        return _hashed(Path(path))
    except OSError:
        return ""


@once_for_each_file
def _hashed(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class LoadedLibrary(Frozen):
    """A library that a program will load: its name as a parameter value, the program's arguments for it, what the
    program then reports about itself, the build ids, or hashes, of all loaded libraries, and notes on the choice:
    `blas_family`, `blas_own_core` (the kernels that it selects itself), and `blas_better`, a library here whose kernels
    suit this CPU better."""

    name: str
    arguments: tuple[str, ...]
    hello: Hello
    identity: Mapping[str, str]
    notes: Mapping[str, str] = {}


def loaded_blas(wanted: str, built: Built, variables: Mapping[str, str]) -> LoadedLibrary:
    """What the program will load for this choice. Another version, or another forced kernel, is another experiment.
    Raises NoBlasError if none of the candidates can be loaded."""
    refused: list[str] = []
    for blas in choose_blas(wanted):
        try:
            hello = describe_with(built.path, blas.path, variables)
        except BuildError as problem:
            refused.append(f"{blas.path}: {problem.message}")
            continue
        libraries = {name: build_id or digest(hello.lib_paths[name]) for name, build_id in hello.libs.items()}
        why = why_chosen(blas, wanted) + (f"; not loaded: {'; '.join(refused)}" if refused else "")
        return LoadedLibrary(blas.name, (*blas.arguments(), "--blas-why", why), hello, libraries, _notes(blas))
    raise NoBlasError(f"no BLAS can be loaded ({'; '.join(refused)})", HOW_TO_GET_ONE)


def _notes(blas: Blas) -> Mapping[str, str]:
    better = better_than(blas)
    notes = {"blas_family": blas.family, "blas_own_core": blas.kernels.core}
    if better is not None:
        core = f" ({better.kernels.core})" if better.kernels.core else ""
        notes["blas_better"] = f"{better.path}{core}"
    return {name: text for name, text in notes.items() if text}


def loaded_fft(wanted: str, precision: str, built: Built, variables: Mapping[str, str]) -> LoadedLibrary:
    """The same for an FFT; nothing for the program's own transform. Raises NoFftwError, and BuildError for a library
    that cannot be loaded."""
    chosen = choose_fft(wanted, precision, variables)
    if chosen is None:
        why = ("--fft-why", "no FFTW found") if wanted == AUTO else ()
        return LoadedLibrary(OWN, why, built.hello, {})
    hello = describe_with(built.path, chosen.path, variables)
    libraries = {name: build_id or digest(hello.lib_paths[name]) for name, build_id in hello.libs.items()}
    arguments = ("--fft", str(chosen.path), "--fft-why", chosen.found)
    return LoadedLibrary(chosen.name, arguments, hello, libraries)
