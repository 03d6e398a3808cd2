"""The BLAS libraries of a machine, those first whose kernels suit its CPU.

A library is recognised by its symbols, and a separate process asks it which kernels it selects here. Search order:

1. folders of LD_LIBRARY_PATH, then those set by a module or a package manager (MKLROOT and the like): the user's
   choice; then the loader's cache, in which `libblas.so.3` is the administrator's choice, and the usual folders;
2. the wheel `scipy-openblas64` (or 32), which comes with seatrial.

Libraries whose kernels use narrower vectors than this CPU has come after all others, and last those known to be slow on
any CPU: builds without threads, ATLAS, and the reference BLAS of Netlib.

A library selects its kernels when it is loaded, by a list of the processors that it knew when it was made: on a later
CPU it may fall back to those of a processor 20 years older, with an eighth of the rate. So each library is loaded in a
separate process and asked. Names and instruction sets of the kernels: OpenBLAS, TargetList.txt and dynamic*.c; BLIS,
config_registry and frame/base/bli_arch.c; MKL names the instruction set itself.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.benchmarks.cpu.gemm import KERNEL_VARIABLES
from seatrial.environments.asking import ask_once, last_object, remembered
from seatrial.environments.elf import SharedObject, read_shared_object
from seatrial.environments.loader import library_files
from seatrial.errors import BuildError, ParseError, UnknownNameError, UsageError
from seatrial.machine.readers.procfs import read_cpuinfo
from seatrial.model.frozen import Frozen

_SCRIPT = Path(__file__).with_name("ask_blas.py")
_ASK_LIMIT_S = 30.0
_CPUINFO = Path("/proc/cpuinfo")
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

_SETS = ("SSE", "AVX", "AVX2 and FMA", "AVX-512")
_KERNELS = (
    "generic katmai coppermine northwood prescott banias yonah core2 penryn dunnington nehalem athlon opteron"
    " opteron_sse3 barcelona bobcat atom nano viac3",
    "sandybridge bulldozer piledriver steamroller",
    "excavator haswell zen zen2 zen3",
    "knl skx skylakex cooperlake sapphirerapids zen4 zen5",
)
"""Kernels for x86-64 by the vectors that they use: `_SETS`, in its order."""
_MKL = (("avx-?512", 3), ("avx2|vector extensions 2", 2), ("avx|vector extensions", 1), ("sse|streaming simd", 0))


class Kernels(Frozen):
    """What a library reports: its version, and the processor whose kernels it selected; "" if it does not say."""

    version: str = ""
    core: str = ""


NO_KERNELS = Kernels()
"""Of a library that was not asked, or did not answer."""


class Vectors(Frozen):
    """The vectors of a processor or of kernels: `rank` orders the sets of one architecture, `name` is for people."""

    rank: int
    name: str


def kernels_of(path: Path, prefix: str, suffix: str) -> Kernels:
    """What the library selects on this CPU, with the variables that `cpu.gemm` leaves out of the environment left out.

    Nothing if it cannot be loaded, or does not report it.
    """
    loader = tuple((name, os.environ[name]) for name in ("LD_LIBRARY_PATH", "FLEXIBLAS") if name in os.environ)
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return NO_KERNELS
    return _kernels_asked(path, prefix, suffix, changed, loader)


@cache
def _kernels_asked(path: Path, prefix: str, suffix: str, changed: int, loader: tuple[tuple[str, str], ...]) -> Kernels:
    """`changed` and `loader` are only keys."""
    variables: Mapping[str, str] = {
        **{name: value for name, value in os.environ.items() if name not in KERNEL_VARIABLES},
        **dict.fromkeys(_THREAD_VARIABLES, "1"),
    }
    words = [sys.executable, "-I", str(_SCRIPT), str(path), prefix, suffix]
    try:
        document = last_object(ask_once(words, variables, _ASK_LIMIT_S, (_SCRIPT, path)).stdout)
        return Kernels(_printable(document["version"]), _printable(document["core"]))
    except (BuildError, ValueError, KeyError, TypeError):
        return NO_KERNELS


def _printable(text: object) -> str:
    return "".join(c for c in str(text) if c.isprintable())[:200]


def vectors_of_kernels(core: str) -> Vectors | None:
    """The vectors that the kernels for an x86-64 processor use; None for names that are not known here.

    Arm's names do not say it: the length of SVE vectors depends on the processor, and is often that of NEON.
    """
    name = core.lower()
    ranks = [rank for rank, names in enumerate(_KERNELS) if name in names.split()]
    ranks += [rank for words, rank in _MKL if " " in name and re.search(words, name)]
    return Vectors(ranks[0], _SETS[ranks[0]]) if ranks else None


def vectors_of_cpu(flags: Collection[str]) -> Vectors | None:
    """The widest vectors of an x86-64 CPU with these features (names of /proc/cpuinfo); None for others."""
    if "sse2" not in flags:
        return None
    rank = 3 if "avx512f" in flags else 2 if {"avx2", "fma"} <= set(flags) else 1 if "avx" in flags else 0
    return Vectors(rank, _SETS[rank])


@cache
def flags_of_this_cpu() -> frozenset[str]:
    """The features that every CPU of this machine has; empty if unknown."""
    try:
        records = read_cpuinfo(_CPUINFO.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ParseError):
        return frozenset()
    return frozenset.intersection(*(record.flags for record in records))


AUTO = "auto"
FAMILIES = ("openblas", "mkl", "blis", "flexiblas", "armpl", "nvpl", "atlas", "reference", "other")
WHEELS = ("scipy-openblas64", "scipy-openblas32")
_WHY_SLOW = {"atlas": "ATLAS: tuned for the CPU that built it", "reference": "the reference BLAS: not tuned"}
_SLOW = frozenset(_WHY_SLOW)

_FILES = (
    *("libblas.so.3", "libflexiblas.so.3", "libmkl_rt.so*", "libopenblas*.so.0", "libopenblas.so"),
    *("libblis*.so.[0-9]", "libblis-mt.so*", "libarmpl_mp.so*", "libarmpl_lp64_mp.so*", "libnvpl_blas_lp64_gomp.so*"),
    *("libblas64.so.3", "libtatlas.so.3", "libsatlas.so.3"),
)
"""File names, in order of preference within one folder."""

_ROOTS = ("MKLROOT", "AOCL_ROOT", "ARMPL_DIR", "OPENBLAS_ROOT", "EBROOTOPENBLAS", "EBROOTIMKL", "CONDA_PREFIX")
_ALTERNATIVES = ("openblas*", "blis*", "flexiblas", "atlas", "blas")
"""Folders in which distributions keep the candidates for `libblas.so.3`."""

_MARKS = (
    ("flexiblas", "flexiblas_"),
    ("mkl", "MKL_Get_Version"),
    ("blis", "bli_info_get_version_str"),
    ("openblas", "openblas_get_config"),
    ("armpl", "armpl"),
    ("nvpl", "nvpl_"),
    ("atlas", "ATL_"),
)
"""Family -> a prefix of symbols that only its libraries have."""

BEHIND = re.compile(r"lib(openblas|blis|mkl|flexiblas|armpl|nvpl|atlas)")
"""A needed library that does the work: Debian's libblas.so.3 of OpenBLAS forwards to libopenblas.so.0."""

_THREADS = ("pthread_create", "GOMP_parallel", "__kmpc_fork_call")
_SPELLINGS = (("", ""), ("", "64_"), ("scipy_", ""), ("scipy_", "64_"))


class NoBlasError(BuildError):
    """There is no BLAS, or not the requested one."""

    need = "blas"


class Blas(Frozen):
    """One library. `name` is its value for `blas=`: its family for the first of each, else its path.

    `prefix` and `suffix` enclose its symbols (`scipy_dgemm_64_`). `is_slow`: known to be slow on any CPU. `found`:
    where it was found. `drawback`: why its kernels do not suit this CPU; "" if they do, or it is unknown.
    """

    name: str
    family: str
    path: Path
    prefix: str = ""
    suffix: str = ""
    is_slow: bool = False
    found: str = ""
    kernels: Kernels = NO_KERNELS
    drawback: str = ""

    @property
    def remark(self) -> str:
        """What is known of its speed on this CPU, in a few words."""
        if self.is_slow:
            return _WHY_SLOW.get(self.family, "built without threads")
        if self.drawback:
            return self.drawback
        vectors = vectors_of_kernels(self.kernels.core)
        return (
            "it does not report which vectors its kernels use" if vectors is None else f"its kernels use {vectors.name}"
        )

    def arguments(self) -> list[str]:
        """The arguments that select it in a measuring program."""
        arguments = ["--blas", str(self.path)]
        if self.prefix:
            arguments += ["--blas-prefix", self.prefix]
        if self.suffix:
            arguments += ["--blas-suffix", self.suffix]
        return arguments


HOW_TO_GET_ONE = (
    "install one (Debian: apt install libopenblas0-pthread; RHEL: dnf install openblas-threads; without root: "
    "pip install scipy-openblas64) or give its path: --set blas=PATH"
)


def find_blas(variables: Mapping[str, str] | None = None) -> tuple[Blas, ...]:
    """Every BLAS of this machine, the default first; each file once, links resolved."""
    asked = [_asked(blas) for blas in _searched(os.environ if variables is None else variables)]
    return _named(sorted(asked, key=lambda blas: (blas.is_slow, bool(blas.drawback))))


def why_chosen(chosen: Blas, choice: str, variables: Mapping[str, str] | None = None) -> str:
    """Why a library was taken, with those that come before it in the search and were passed over."""
    if choice != AUTO:
        return f"blas={choice}; {chosen.remark}"
    before: list[str] = []
    for blas in map(_asked, _searched(os.environ if variables is None else variables)):
        if blas.path == chosen.path:
            break
        core = f"{blas.kernels.core}: " if blas.kernels.core else ""
        before.append(f"{blas.path} ({core}{blas.remark})")
    over = f"; passed over: {', '.join(before)}" if before else ""
    return f"found in {chosen.found}; {chosen.remark}{over}"


def better_than(blas: Blas) -> Blas | None:
    """The first library here without a drawback on this CPU, if this one has one; else None."""
    if not (blas.is_slow or blas.drawback):
        return None
    others = (other for other in find_blas() if other.path.resolve() != blas.path.resolve())
    return next((other for other in others if not (other.is_slow or other.drawback)), None)


def _searched(variables: Mapping[str, str]) -> tuple[Blas, ...]:
    """The libraries in the order of the search."""
    found: dict[Path, Blas] = {}
    for path, where in library_files(_FILES, _ROOTS, variables, _ALTERNATIVES):
        blas = _examine(path)
        if blas is not None:
            found.setdefault(path.resolve(), replace(blas, found=where))
    for blas in _wheels():
        found.setdefault(blas.path.resolve(), replace(blas, found=f"the wheel {blas.name}"))
    return tuple(found.values())


def _asked(blas: Blas) -> Blas:
    """The library with the kernels that it selects; one that is slow in any case is not loaded."""
    if blas.family in _SLOW:
        return blas
    kernels = kernels_of(blas.path, blas.prefix, blas.suffix)
    return replace(blas, kernels=kernels, drawback=_drawback(kernels))


def _drawback(kernels: Kernels) -> str:
    own, best = vectors_of_kernels(kernels.core), vectors_of_cpu(flags_of_this_cpu())
    if own is None or best is None or own.rank == best.rank:
        return ""
    if own.rank < best.rank:
        return f"its kernels use {own.name}; this CPU has {best.name}"
    return f"its kernels need {own.name}; this CPU has only {best.name}"


def choose_blas(choice: str, variables: Mapping[str, str] | None = None) -> tuple[Blas, ...]:
    """The libraries to try for `auto`, a name or a path, best first.

    Raises NoBlasError if there is none, UnknownNameError for an unknown name, UsageError for a file that is not a
    BLAS.
    """
    if "/" in choice:
        return (_at(Path(choice), find_blas(variables)),)
    found = find_blas(variables)
    if choice == AUTO:
        if not found:
            raise NoBlasError("no BLAS found on this machine", HOW_TO_GET_ONE)
        return found
    if choice not in (*FAMILIES, *WHEELS):
        raise UnknownNameError("BLAS", choice, (AUTO, *FAMILIES, *WHEELS))
    wanted = tuple(blas for blas in found if blas.name == choice)
    if not wanted:
        there = ", ".join(blas.name for blas in found) or "none"
        raise NoBlasError(f"BLAS {choice} not found; found: {there}", HOW_TO_GET_ONE)
    return wanted


def _at(path: Path, found: Iterable[Blas]) -> Blas:
    """The library in a given file; if it is one of those found, under the name of that one."""
    try:
        blas = _recognise(path.absolute(), read_shared_object(path))
    except (OSError, ParseError) as error:
        why = error.why if isinstance(error, ParseError) else error.strerror
        raise UsageError(f"blas={path}: {why or error}", "give the path of a BLAS, a shared library") from error
    if blas is None:
        raise UsageError(
            f"blas={path}: it has no dgemm_ for this processor", "give the path of a BLAS, or use blas=auto"
        )
    known = next((other for other in found if other.path.resolve() == path.resolve()), None)
    return known or replace(_asked(blas), name=str(blas.path))


def _named(ordered: Iterable[Blas]) -> tuple[Blas, ...]:
    """The same libraries: the first of each family (or wheel) named by it, the others by their paths."""
    taken: set[str] = set()
    named: list[Blas] = []
    for blas in ordered:
        name = str(blas.path) if blas.name in taken else blas.name
        taken.add(name)
        named.append(replace(blas, name=name))
    return tuple(named)


def _wheels() -> Iterator[Blas]:
    """OpenBLAS as packaged by the SciPy project: one shared library in the folder of a Python package."""
    for wheel in WHEELS:
        spec = importlib.util.find_spec(wheel.replace("-", "_"))
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            for path in sorted(Path(folder).glob("lib/libscipy_openblas*.so")):
                blas = _examine(path)
                if blas is not None:
                    yield replace(blas, name=wheel)


def _examine(path: Path) -> Blas | None:
    """The BLAS in a file; None if it is not one, or cannot be read."""

    def recognised() -> list[Any] | None:
        try:
            blas = _recognise(path, read_shared_object(path))
        except (OSError, ParseError):
            return None
        return None if blas is None else [blas.family, blas.prefix, blas.suffix, blas.is_slow]

    found = remembered(["BLAS"], [path, Path(__file__)], recognised, lambda kept: kept is None or len(kept) == 4)
    return None if found is None else Blas(found[0], found[0], path, *found[1:])


def _recognise(path: Path, library: SharedObject) -> Blas | None:
    """Which BLAS a shared library is; None if it has no dgemm, or is for another architecture."""
    spelling = next(((p, s) for p, s in _SPELLINGS if f"{p}dgemm_{s}" in library.defined), None)
    if spelling is None or not library.runs_on(platform.machine()):
        return None
    prefix, suffix = spelling
    behind = [match[1] for needed in library.needed if (match := BEHIND.match(needed))]
    family = behind[0] if behind else _family(library, prefix)
    serial = family in ("openblas", "blis") and not behind and library.used.isdisjoint(_THREADS)
    return Blas(family, family, path, prefix, suffix, serial or family in _SLOW)


def _family(library: SharedObject, prefix: str) -> str:
    for family, mark in _MARKS:
        if any(name.startswith((mark, prefix + mark)) for name in library.defined):
            return family
    # BLIS as libblas.so.3 has no symbols with its name, but it uses threads, unlike the reference.
    is_plain = re.match(r"libblas(64)?\.so", library.soname) and library.used.isdisjoint(_THREADS)
    return "reference" if is_plain else "other"
