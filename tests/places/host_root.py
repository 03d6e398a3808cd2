"""An image made of this machine's own programs and libraries: seconds to make, no network, no package manager."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from seatrial.places.containers.tiny_root import write_root

_LISTED = re.compile(r"(/\S+) \(0x[0-9a-f]+\)")
_PLUGINS = ("lib/x86_64-linux-gnu/openmpi/lib", "lib/x86_64-linux-gnu/pmix2/lib/pmix", "lib/x86_64-linux-gnu/ucx")
_DATA = ("/usr/share/openmpi", "/usr/share/pmix", "/etc/openmpi", "/etc/pmix2")
_PROGRAMS = ("sleep", "bash", "mpirun.openmpi", "orted", "mpiexec.hydra", "hydra_pmi_proxy", "hydra_pmi_proxy.mpich")
_LIBRARIES = ("libmpi.so.40", "libmpich.so.12", "libstdc++.so.6", "libgcc_s.so.1", "libnss_files.so.2")


def make_host_root(root: Path) -> None:
    """Write the image into a new folder: the MPI libraries that are installed with their launchers and plugins."""
    root.mkdir()
    assert write_root(root)
    for name in ("lib", "lib64", "bin", "sbin"):
        (root / "usr" / name).mkdir()
    for name in ("lib", "lib64", "sbin"):
        (root / name).symlink_to(f"usr/{name}")
    for path in (root / "bin").iterdir():
        path.rename(root / "usr" / "bin" / path.name)
    (root / "bin").rmdir()
    (root / "bin").symlink_to("usr/bin")
    programs = [Path(found) for name in _PROGRAMS if (found := shutil.which(name)) is not None]
    libraries = [path for name in _LIBRARIES if (path := Path("/usr/lib/x86_64-linux-gnu") / name).exists()]
    plugins = [path for folder in _PLUGINS for path in Path("/usr", folder).rglob("*.so*") if path.exists()]
    for path in dict.fromkeys((*programs, *libraries, *plugins, *_needed((*programs, *libraries, *plugins)))):
        _bring(path, root)
    for folder in _DATA:
        if Path(folder).is_dir():
            shutil.copytree(folder, root / folder.lstrip("/"), dirs_exist_ok=True)


def _needed(files: Iterable[Path]) -> Iterator[Path]:
    """The libraries that files load, with the loader."""
    done = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False)
    yield from (Path(path) for path in dict.fromkeys(_LISTED.findall(done.stdout)))


def _bring(path: Path, root: Path) -> None:
    """A file under the name by which it is asked for, all folders merged into /usr; shared with the host's where it can
    be."""
    place = str(path.parent.resolve() / path.name)
    target = root / place.lstrip("/")
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    real = path.resolve()
    try:
        os.link(real, target)
    except OSError:
        shutil.copy2(real, target)


def make_small_root(root: Path, programs: Iterable[Path]) -> None:
    """Write an image into a new folder with only the libraries of these programs, copied: no running program uses its
    files."""
    root.mkdir()
    assert write_root(root)
    for path in _needed(programs):
        target = root / str(path).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path.resolve(), target)


_OF_COMPILER = ("g++-12", "gcc-12", "cpp-12", "libgcc-12-dev", "libstdc++-12-dev", "libc6-dev", "linux-libc-dev")
_OF_BINUTILS = ("binutils-x86-64-linux-gnu", "libopenmpi-dev")
_TOOLS = ("g++", "g++-12", "as", "ld", "mpicxx.openmpi")


def add_compiler(root: Path) -> None:
    """Add this machine's compiler, Debian 12's, and the headers of its Open MPI. Raises CalledProcessError if Debian's
    packages are not installed."""
    words = ["dpkg", "-L", *_OF_COMPILER, *_OF_BINUTILS]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    tools = [Path(found) for name in _TOOLS if (found := shutil.which(name)) is not None]
    files = [path for path in map(Path, listed) if path.is_file() and "/usr/share/" not in str(path)]
    of_linker = Path("/usr/lib/x86_64-linux-gnu/libmvec.so.1")  # named by the linker script libm.so
    for path in dict.fromkeys((*files, *tools, of_linker)):
        _bring(path, root)
    for path in _needed([*tools, *Path("/usr/lib/gcc/x86_64-linux-gnu/12").glob("cc1plus")]):
        _bring(path, root)


def without_mpi(root: Path) -> None:
    """Remove the MPI libraries from an image."""
    for path in list(root.rglob("lib*.so*")):
        if path.name.startswith(("libmpi", "libopen-", "libpmix", "libuc")):
            path.unlink()
    for path in list(root.glob("usr/lib/*/openmpi")):
        shutil.rmtree(path)
