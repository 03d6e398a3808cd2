"""Files of this machine that programs need in a container whose image does not have them: an MPI library with its
plugins, or all libraries of a program with the C library and the loader.

They are copied into a folder of this process, laid out as on this machine, since a folder of libraries of the host
cannot be mounted: it also holds a C library, which must not meet that of the image.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.environments.cached_files import private_space
from seatrial.environments.elf import names_in
from seatrial.environments.loader import interpreter_of, libraries_of
from seatrial.environments.mpi_identity import build_id_of
from seatrial.environments.mpi_library import LOADER_FOLDERS
from seatrial.errors import BuildError, ParseError
from seatrial.model.environment.mpi import Mpi
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key

_C_LIBRARY = re.compile(
    r"(?:ld-linux[\w.-]*|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libnsl|libanl|libnss_\w+"
    r"|libBrokenLocale|libthread_db|libc_malloc_debug)\.so\.\d+"
)
"""The files of glibc, which belong together: a program uses all of them from the image, or all from the host."""
_ALWAYS = ("libgcc_s.so.1",)
"""glibc loads it when a thread is cancelled or a backtrace is made; no file names it."""
_MOST_PLUGINS = 2000


class _Own(Frozen):
    """The files that a library looks for at run time: plugins beside it, data and configuration in its prefix.

    `plugins` are patterns, below the folder of the library's file: of a usual prefix, and of Debian. The variables name
    their folder, and those of `data` and of the file `configured_by`; without one, the library finds them beside it.
    `stems`: the variable lists plugins by path, up to this mark in their names.
    """

    library: str
    plugins: tuple[str, ...]
    variable: str = ""
    data: str = ""
    data_variable: str = ""
    configured_by: str = ""
    configured_variable: str = ""
    stems: str = ""


_OWN = (
    _Own(
        "libopen-pal.so",
        ("openmpi*/mca_*.so", "openmpi*/lib/openmpi*/mca_*.so"),
        "OPAL_PKGLIBDIR",
        "share/openmpi",
        "OPAL_PKGDATADIR",
        "openmpi-mca-params.conf",
        "OPAL_SYSCONFDIR",
    ),
    _Own(
        "libpmix.so",
        ("pmix*/*mca_*.so", "pmix*/lib/pmix*/*mca_*.so"),
        "PMIX_PKGLIBDIR",
        "share/pmix",
        "PMIX_PKGDATADIR",
        "pmix-mca-params.conf",
        "PMIX_SYSCONFDIR",
    ),
    _Own("libucs.so", ("ucx/*.so.[0-9]",)),
    _Own("libibverbs.so", ("libibverbs/*.so",), "RDMAV_DRIVERS", stems="-rdmav"),
)
"""Open MPI and PMIx (mca/installdirs), UCX (modules beside the library), rdma-core (drivers are named by files in /etc,
or by this variable: libibverbs, init.c). What needs others comes before them."""


class Brought(Frozen):
    """A folder of this process with copies of files of this machine.

    `search` are the folders of its libraries, `libraries` their names with their build ids. `variables` tell libraries
    where their own files are. `loader` starts programs if the C library is among them, else None. `prefers_image`: a
    program of the image uses the image's libraries where it has them.
    """

    folder: Path
    search: tuple[Path, ...]
    libraries: Mapping[str, str]
    variables: tuple[tuple[str, str], ...] = ()
    loader: Path | None = None
    prefers_image: bool = False

    @property
    def before(self) -> tuple[str, ...]:
        """The words before a program that start it with the loader (ld.so(8)); the image's cache of libraries is not
        read."""
        if self.loader is None:
            return ()
        return (str(self.loader), "--inhibit-cache", "--library-path", ":".join(map(str, self.search)))

    def set_for(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables of a program with those that these files need."""
        own = {**dict(self.variables), **variables}
        if self.loader is None:
            usual = map(str, LOADER_FOLDERS) if self.prefers_image else ()
            given = variables.get("LD_LIBRARY_PATH", "")
            own["LD_LIBRARY_PATH"] = ":".join(filter(None, (*usual, *map(str, self.search), given)))
        return own

    def document(self) -> dict[str, Any]:
        """What identifies it in an environment."""
        return {"libraries": len(self.libraries), "key": content_key(dict(self.libraries))}


def bring_mpi(mpi: Mpi, variables: Mapping[str, str], *, prefers_image: bool) -> Brought:
    """An MPI library with what it needs, without the C library. Raises BuildError."""
    return _bring([mpi.library], mpi, variables, with_c_library=False, prefers_image=prefers_image)


def bring_all(program: Path, loads: Sequence[Path], mpi: Mpi | None, variables: Mapping[str, str]) -> Brought:
    """All libraries of a program and of those that it loads when it runs (`loads`), with the C library and the loader.
    Raises BuildError."""
    return _bring([program, *loads], mpi, variables, with_c_library=True, prefers_image=False)


def _bring(
    files: Sequence[Path], mpi: Mpi | None, variables: Mapping[str, str], *, with_c_library: bool, prefers_image: bool
) -> Brought:
    own = {**variables, **{name: value for name, value in (mpi.variables if mpi is not None else ()) if value}}
    folder = private_space()
    copies: dict[str, Path] = {}
    try:
        libraries, plugins = _with_plugins(files, own)
        for name, path in libraries.items():
            if with_c_library or not _C_LIBRARY.fullmatch(name):
                copies[name] = _copy(path, _place(path) / name, folder)
        own_variables: dict[str, str] = {}
        for one, found in plugins.items():
            own_variables |= _bring_own(one, found, libraries, folder)
        loader = _loader() if with_c_library else None
        loader = _copy(loader, _place(loader) / loader.name, folder) if loader is not None else None
    except OSError as error:
        raise BuildError(
            f"the libraries of {files[0]} cannot be copied: {error.strerror or error}",
            "set SEATRIAL_CACHE to a folder with more free space",
        ) from error
    return Brought(
        folder,
        tuple(dict.fromkeys(path.parent for path in copies.values())),
        {name: build_id_of(path) for name, path in sorted(copies.items())},
        tuple(sorted(own_variables.items())),
        loader,
        prefers_image,
    )


@cache
def _loader() -> Path:
    """The loader of this machine's programs. Raises BuildError if they have none."""
    found = interpreter_of(Path(sys.executable).resolve())
    if found is None:
        raise BuildError("this Python has no loader, so the libraries of this machine cannot be listed")
    return Path(found)


def _libraries(files: Iterable[Path], variables: Mapping[str, str], *, are_plugins: bool = False) -> dict[str, Path]:
    """Name -> path of everything that the loader finds for programs and libraries, libraries that are not plugins
    included. What it does not find is missing on this machine too."""
    found: dict[str, Path] = {}
    always = filter(Path.is_file, (folder / name for name in _ALWAYS for folder in LOADER_FOLDERS))
    for file in (*files, *always):
        try:
            soname, needed = names_in(file)
        except (OSError, ParseError):
            continue
        if soname and not are_plugins:
            found.setdefault(soname, file)
        if not set(needed) <= found.keys():
            listed = libraries_of(file, variables, str(_loader()))
            found = {**{name: Path(text) for name, text in listed.items()}, **found}
    return found


def _with_plugins(
    files: Sequence[Path], variables: Mapping[str, str]
) -> tuple[dict[str, Path], dict[_Own, list[Path]]]:
    """The libraries of files, the plugins of these libraries, and the libraries of the plugins, whatever they need."""
    libraries, plugins = _libraries(files, variables), dict[_Own, list[Path]]()
    for one in _OWN:  # ordered: plugins of the first need libraries of the others
        plugins[one] = _plugins_of(one, libraries)
        libraries |= _libraries(plugins[one], variables, are_plugins=True)
    return libraries, plugins


def _plugins_of(one: _Own, libraries: Mapping[str, Path]) -> list[Path]:
    """The plugins beside a library, by the path of its file."""
    real = _real(one, libraries)
    if real is None:
        return []
    found = (path for pattern in one.plugins for path in sorted(real.parent.glob(pattern)))
    return [path for path in found if path.is_file()][:_MOST_PLUGINS]


def _real(one: _Own, libraries: Mapping[str, Path]) -> Path | None:
    return next((path.resolve() for name, path in libraries.items() if name.startswith(one.library)), None)


def _bring_own(one: _Own, plugins: Sequence[Path], libraries: Mapping[str, Path], folder: Path) -> dict[str, str]:
    """Copy a library's own files; the variables that name their paths."""
    variables: dict[str, str] = {}
    copied = [_copy(path, path, folder) for path in plugins]
    if copied and one.variable and one.stems:
        named = [str(path).partition(one.stems)[0] for path in copied if one.stems in path.name]
        variables[one.variable] = ":".join(named)
    elif copied and one.variable:
        variables[one.variable] = str(copied[0].parent)
    real = _real(one, libraries)
    if real is None or not one.data:
        return variables
    data = next(filter(Path.is_dir, (above / one.data for above in real.parents)), None)
    if data is not None:
        variables[one.data_variable] = str(folder / data.relative_to("/"))
        shutil.copytree(data, variables[one.data_variable], dirs_exist_ok=True, ignore_dangling_symlinks=True)
    if (configuration := _configuration(one, real)) is not None:
        variables[one.configured_variable] = str(_copy(configuration, configuration, folder).parent)
    return variables


def _configuration(one: _Own, real: Path) -> Path | None:
    """The file of a library's settings: in PREFIX/etc, or in its own folder in /etc."""
    own = one.data.rpartition("/")[2]
    folders = (folder for above in real.parents for folder in (above / "etc", *sorted(above.glob(f"etc/{own}*"))))
    return next(filter(Path.is_file, (folder / one.configured_by for folder in folders)), None)


def _place(path: Path) -> Path:
    """The folder of a library as it is asked for, without links."""
    return path.parent.resolve()


def _copy(path: Path, as_path: Path, folder: Path) -> Path:
    """A copy of a file, at the place of `as_path` below the folder. Raises OSError."""
    target = folder / as_path.relative_to("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o500)
    return target
