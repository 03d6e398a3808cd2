"""Which instruction set a program is built for: that of the CPU that will run it, spelled out.

`-march=native` is not enough. A compiler older than the CPU falls back without a word (clang 14 takes a Zen 5 for a
plain x86-64), and then the figure is that of another machine. So the compiler is asked what it makes of `native`; where
that lacks features that the CPU has, the level of the x86-64 psABI is asked for by name, and the choice is recorded.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from seatrial.environments.compiler import Compiler, ask
from seatrial.errors import BuildError

_MACROS = {
    "sse2": "__SSE2__",
    "avx": "__AVX__",
    "avx2": "__AVX2__",
    "fma": "__FMA__",
    "avx512f": "__AVX512F__",
    "neon": "__ARM_NEON",
    "sve": "__ARM_FEATURE_SVE",
}
"""The features that decide about vector width and FMA, by the macro that GCC and Clang define for them."""

_PSABI_LEVELS = (
    ("x86-64-v4", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})),
    ("x86-64-v3", frozenset({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"})),
)
"""x86-64 psABI, section 3.1.1: what each level needs beyond the one below; the highest first."""


@dataclass(frozen=True, slots=True)
class Target:
    """`flags` for the compiler; `isa` is what they allow it to use; `resolution` says how they were found."""

    flags: tuple[str, ...]
    isa: frozenset[str]
    resolution: str


def resolve_target(compiler: Compiler, cpu_isa: Iterable[str]) -> Target:
    """The flags for a CPU with the features `cpu_isa` (names as in /proc/cpuinfo), which is the CPU of this machine.

    Raises BuildError where no choice covers the features that matter: a program for a lesser CPU would give the figure
    of that lesser CPU.
    """
    offered = frozenset(cpu_isa)
    wanted = offered & _MACROS.keys()
    tried: list[str] = []
    for flags, how in _choices(compiler, offered):
        try:
            isa = _isa(compiler, flags)
        except BuildError:
            tried.append(f"{how}: refused")
            continue
        if wanted <= isa and not (isa - offered if offered else ()):
            resolution = f"{how} ({'; '.join(tried)})" if tried else how
            return Target(flags, isa, resolution)
        tried.append(f"{how} lacks {' '.join(sorted(wanted - isa))}" if wanted - isa else f"{how} goes too far")
    raise BuildError(
        f"{compiler.name} cannot build for this CPU ({'; '.join(tried)})",
        "use a newer compiler: name it in CXX",
    )


def _choices(compiler: Compiler, offered: frozenset[str]) -> list[tuple[tuple[str, ...], str]]:
    """Flags to try, best first, with how each came about."""
    choices = [(_native(compiler), f"{compiler.name} -march=native")]
    choices += [((f"-march={level}",), f"-march={level}") for level, needs in _PSABI_LEVELS if needs <= offered]
    explicit = tuple(f"-m{feature}" for feature in sorted(offered & _MACROS.keys() - {"neon", "sve"}))
    if explicit:
        choices.append((explicit, "features by name"))
    return choices


def _native(compiler: Compiler) -> tuple[str, ...]:
    """What `native` means to this compiler, as explicit flags where it is GCC.

    Clang's own list is not made of command-line flags, so `native` itself stands for it.
    """
    native = "-march=native"
    if compiler.family != "gcc":
        return (native,)
    try:
        lines = ask([compiler.path, native, "-###", "-E", "-x", "c++", "-"]).splitlines()
    except BuildError:
        return ("-mcpu=native",)  # AArch64 before GCC 14 and POWER spell it so
    stage = next((line for line in lines if re.search(r"cc1plus|/cc1", line)), "")
    # Features that a hypervisor hides come as -mno-...: they are kept too.
    flags = tuple(word for word in shlex.split(stage) if re.match(r"-m[a-z]", word))
    return flags or (native,)


def _isa(compiler: Compiler, flags: tuple[str, ...]) -> frozenset[str]:
    """The features that these flags allow, by the macros that the compiler then defines."""
    macros = ask([compiler.path, *flags, "-dM", "-E", "-x", "c++", "-"])
    return frozenset(feature for feature, macro in _MACROS.items() if f"#define {macro} " in macros)
