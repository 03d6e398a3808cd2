"""The kernels that a BLAS selects on this CPU, and whether they use its vectors.

A library selects its kernels when it is loaded, by a list of the processors that it knew when it was made: on a later
CPU it may fall back to those of a processor 20 years older, with an eighth of the rate. So each library is loaded in a
separate process and asked.

Names and instruction sets of the kernels: OpenBLAS, TargetList.txt and dynamic*.c; BLIS, config_registry and
frame/base/bli_arch.c; MKL names the instruction set itself.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from seatrial.benchmarks.cpu.gemm import KERNEL_VARIABLES
from seatrial.environments.remembered import ask_once
from seatrial.errors import BuildError, ParseError
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
    return _asked(path, prefix, suffix, changed, loader)


@cache
def _asked(path: Path, prefix: str, suffix: str, changed: int, loader: tuple[tuple[str, str], ...]) -> Kernels:
    """`changed` and `loader` are only keys."""
    variables: Mapping[str, str] = {
        **{name: value for name, value in os.environ.items() if name not in KERNEL_VARIABLES},
        **dict.fromkeys(_THREAD_VARIABLES, "1"),
    }
    words = [sys.executable, "-I", str(_SCRIPT), str(path), prefix, suffix]
    try:
        answer = ask_once(words, variables, _ASK_LIMIT_S, (_SCRIPT, path))
        document = json.loads(answer.stdout.rpartition("\n{")[2] if "\n{" in answer.stdout else answer.stdout)
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
