"""The instruction set that a program is built for, and the variables that it runs with.

`-march=native` is not enough: a compiler older than the CPU silently falls back, and the figure is that of a lesser
CPU. So the flags behind `native` are read from the compiler. If they miss features of the CPU, the level of the x86-64
psABI is tried by name, then the features one by one, and the choice is recorded.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import shlex
from collections.abc import Callable, Iterable, Sequence

from seatrial.environments.asking import Answer
from seatrial.environments.compiler import Compiler
from seatrial.environments.remembered import ask_once
from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen

_MACROS = {
    "sse2": "__SSE2__",
    "avx": "__AVX__",
    "avx2": "__AVX2__",
    "fma": "__FMA__",
    "avx512f": "__AVX512F__",
    "asimd": "__ARM_NEON",
    "sve": "__ARM_FEATURE_SVE",
}
"""Features that determine vector width and FMA (names of /proc/cpuinfo) -> the macro that compilers define."""

DECISIVE_FEATURES = frozenset(_MACROS)

_PSABI_LEVELS = (
    ("x86-64-v4", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})),
    ("x86-64-v3", frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})),
)
"""x86-64 psABI, section 3.1.1: what each level adds to the one below (names of /proc/cpuinfo), highest first."""


class Target(Frozen):
    """`flags` for the compiler; `isa`: the decisive features that they enable; `resolution`: how they were found.

    `cpu` is the meaning of a flag such as `native` on this machine, so that a build for it has a separate key.
    """

    flags: tuple[str, ...]
    isa: frozenset[str]
    resolution: str
    cpu: str = ""


def resolve_target(
    compiler: Compiler, cpu_isa: Iterable[str], answer: Callable[[Sequence[str]], Answer] = ask_once
) -> Target:
    """The flags for a CPU with the features `cpu_isa` (names as in /proc/cpuinfo), which is the CPU of this machine.
    `answer` is what a command prints, where the compiler is.

    Raises BuildError if no choice covers the decisive features: a program for a lesser CPU would give the figure of
    that CPU.
    """
    offered = frozenset(cpu_isa)
    wanted = offered & DECISIVE_FEATURES
    tried: list[str] = []
    for flags, how, cpu in _choices(compiler, offered, answer):
        try:
            isa = _isa(compiler, flags, answer)
        except BuildError:
            tried.append(f"{how}: refused")
            continue
        if wanted <= isa and not (isa - offered if offered else ()):
            resolution = f"{how} ({'; '.join(tried)})" if tried else how
            return Target(flags, isa, resolution, cpu)
        tried.append(f"{how} lacks {' '.join(sorted(wanted - isa))}" if wanted - isa else f"{how} goes too far")
    raise BuildError(
        f"{compiler.name} cannot build for this CPU ({'; '.join(tried)})",
        "set CXX to a newer compiler",
    )


def _choices(
    compiler: Compiler, offered: frozenset[str], answer: Callable[[Sequence[str]], Answer]
) -> list[tuple[tuple[str, ...], str, str]]:
    """Flags to try, best first, with their origin and the meaning of `native` in them."""
    native = "-mcpu=native" if platform.machine() == "aarch64" else "-march=native"
    flags, cpu = _native(compiler, native, answer)
    choices = [(flags, f"{compiler.name} {native}", cpu)]
    choices += [((f"-march={level}",), f"-march={level}", "") for level, needs in _PSABI_LEVELS if needs <= offered]
    by_name = tuple(f"-m{feature}" for feature in sorted(offered & DECISIVE_FEATURES - {"asimd", "sve"}))
    if by_name:
        choices.append((by_name, "features by name", ""))
    return choices


def _native(compiler: Compiler, native: str, answer: Callable[[Sequence[str]], Answer]) -> tuple[tuple[str, ...], str]:
    """What `native` means to this compiler: (flags, meaning of `native` if it remains in them).

    GCC lists command-line flags, which mean the same on any machine. Clang does not, so `native` stays in the command
    and its meaning goes into the key.
    """
    try:
        lines = answer([*compiler.command, native, "-###", "-E", "-x", "c++", "-"]).stderr.splitlines()
    except BuildError:
        return (native,), platform.node()
    words = shlex.split(next((line for line in lines if re.search(r"cc1plus|/cc1|-cc1", line)), ""))
    if compiler.family == "gcc":
        # Features that a hypervisor hides come as -mno-...: they are kept too.
        flags = tuple(word for word in words if re.match(r"-m[a-z]", word))
        return (flags, "") if flags else ((native,), platform.node())
    pairs = itertools.pairwise(words)
    return (native,), " ".join(value for option, value in pairs if option in ("-target-cpu", "-target-feature"))


def _isa(compiler: Compiler, flags: tuple[str, ...], answer: Callable[[Sequence[str]], Answer]) -> frozenset[str]:
    """The decisive features that these flags enable, by the macros that the compiler defines."""
    macros = answer([*compiler.command, *flags, "-dM", "-E", "-x", "c++", "-"]).stdout
    return frozenset(feature for feature, macro in _MACROS.items() if f"#define {macro} " in macros)


def variables_with(changes: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Those of this process, with these set or (None) unset; the last one of a name counts."""
    variables = dict(os.environ)
    for name, value in changes:
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return variables
