"""The FFTW of a machine, or a library with its interface in a file that the user names.

The search order is that of a BLAS (library_files.py): the user's folders, modules, the system. FFTW has a library for
each precision.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from seatrial.environments.elf import SharedObject, read_shared_object
from seatrial.environments.library_files import library_files
from seatrial.errors import BuildError, ParseError, UnknownNameError, UsageError
from seatrial.model.frozen import Frozen

AUTO, OWN, FFTW = "auto", "own", "fftw"
_FILES = {"fp64": "libfftw3.so.3", "fp32": "libfftw3f.so.3"}
_PREFIX = {"fp64": "fftw_", "fp32": "fftwf_"}
_NEEDED = ("plan_many_dft", "execute_dft", "destroy_plan")
_ROOTS = ("FFTW_ROOT", "FFTW_HOME", "FFTW_DIR", "EBROOTFFTW", "CONDA_PREFIX")
"""Variables that modules and package managers set."""

HOW_TO_GET_ONE = (
    "install it (Debian: apt install libfftw3-double3 libfftw3-single3; RHEL: dnf install fftw-libs), load its module,"
    " give its path (--set fft=PATH), or use seatrial's own transform (--set fft=own)"
)


class NoFftwError(BuildError):
    """There is no FFTW, or none of this precision."""

    need = "fftw"


class FftLibrary(Frozen):
    """One library; `name` is its value for `fft=`, `found` where it was found."""

    name: str
    path: Path
    found: str


def choose_fft(choice: str, precision: str, variables: Mapping[str, str] | None = None) -> FftLibrary | None:
    """The library for `auto`, `fftw` or a path; None for seatrial's own transform.

    Raises NoFftwError if there is no FFTW, UnknownNameError for another name, UsageError for a file that is not a
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
        raise NoFftwError(f"no FFTW for {precision} ({_FILES[precision]}) found on this machine", HOW_TO_GET_ONE)
    return found


def _found(precision: str, variables: Mapping[str, str]) -> FftLibrary | None:
    for path, where in library_files((_FILES[precision],), _ROOTS, variables):
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
