"""The C++20 compilers of this machine, the instruction set that they build for, and the variables that programs run
with.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from seatrial.environments.asking import Reply, ask_once
from seatrial.errors import BuildError, NoCompilerError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.processes.working_folder import on_path

_NAMES = (
    "g++",
    "c++",
    "clang++",
    *(f"g++-{n}" for n in range(16, 10, -1)),
    *(f"clang++-{n}" for n in range(22, 12, -1)),
)
_TOOLSETS = Path("/opt/rh")
"""Red Hat's newer compilers, which are not on PATH (gcc-toolset-N/root/usr/bin)."""


class Compiler(Frozen):
    """One compiler: its command (several words with a launcher such as ccache), family and version. `image` is the
    digest of the container image that it belongs to; "" for a compiler of this machine."""

    command: tuple[str, ...]
    family: str
    version: str
    image: str = ""

    @property
    def identity(self) -> str:
        """Identifies the compiler, regardless of the name that it was found by."""
        return " ".join(self.command) if self.image else _program(self.command)

    @property
    def name(self) -> str:
        """Short name, such as "gcc 12.2.0"."""
        number = re.search(r"\d+\.\d+(\.\d+)?", re.sub(r"\([^)]*\)", "", self.version))
        return f"{self.family} {number[0] if number else self.version}"


def find_compilers() -> tuple[Compiler, ...]:
    """Every C++20 compiler, each once: $CXX first, then those on PATH, then Red Hat's toolsets."""
    return tuple(answer for answer in map(_examine, _candidates()) if isinstance(answer, Compiler))


def first_compiler() -> Compiler:
    """The default compiler. Raises NoCompilerError, which states how to install one."""
    tried: list[str] = []
    for candidate in _candidates():
        answer = _examine(candidate)
        if isinstance(answer, Compiler):
            return answer
        if os.environ.get("CXX") and not tried:
            raise UsageError(f"CXX={os.environ['CXX']} cannot be used: {answer.message}", "correct it, or unset CXX")
        tried.append(f"{' '.join(candidate)}: {answer.message}")
    raise NoCompilerError(
        f"no C++20 compiler was found ({'; '.join(tried) or 'no g++ or clang++ on PATH'})",
        "install one (Debian: apt install g++; RHEL: dnf install gcc-c++ or a gcc-toolset) or set CXX to one",
    )


def compiler_named(name: str) -> Compiler:
    """The compiler of this name on PATH. Raises NoCompilerError if there is none, or it cannot be used."""
    path = on_path(name)
    answer = BuildError(f"{name} is not on PATH") if path is None else _examine((path,))
    if isinstance(answer, Compiler):
        return answer
    known = ", ".join(Path(compiler.command[0]).name for compiler in find_compilers())
    raise NoCompilerError(f"{name} cannot be used: {answer.message}", f"compilers here: {known or 'none'}")


def _candidates() -> tuple[tuple[str, ...], ...]:
    """Everything that could be a compiler, in order of preference, each program once. Raises UsageError if $CXX is not
    found."""
    found: dict[str, tuple[str, ...]] = {}
    for command in _commands():
        found.setdefault(_program(command), command)
    return tuple(found.values())


def _commands() -> Iterator[tuple[str, ...]]:
    named = os.environ.get("CXX")
    if named:
        words = shlex.split(named)
        if not words or on_path(words[0]) is None:
            raise UsageError(f"CXX={named} is not an executable program", "correct it, or unset CXX")
        yield (on_path(words[0]) or words[0], *words[1:])
    for name in _NAMES:
        path = on_path(name)
        if path is not None:
            yield (path,)
    for toolset in sorted(_TOOLSETS.glob("gcc-toolset-*/root/usr/bin/g++"), key=_toolset_number, reverse=True):
        yield (str(toolset),)


def _toolset_number(path: Path) -> int:
    number = re.search(r"gcc-toolset-(\d+)", str(path))
    return int(number[1]) if number else 0


def _program(command: tuple[str, ...]) -> str:
    """Identifies a compiler: its file with links resolved, except for launchers, to which many names link and which
    depend on the name that they are called by."""
    real = Path(command[0]).resolve()
    is_compiler = "++" in real.name or "clang" in real.name
    return " ".join((str(real) if is_compiler else command[0], *command[1:]))


@cache
def _examine(command: tuple[str, ...]) -> Compiler | BuildError:
    programs = [Path(found) for word in command[1:] if (found := on_path(word)) is not None]  # behind a launcher
    return examined(command, lambda words, text: ask_once(words, files=programs, text=text).stdout)


def macros_in(printed: str) -> dict[str, str]:
    """Name -> value of the macros that a preprocessor prints (-dM)."""
    return dict(re.findall(r"^#define (\w+) (.*)$", printed, re.MULTILINE))


def examined(command: tuple[str, ...], answer: Callable[[Sequence[str], str], str]) -> Compiler | BuildError:
    """A compiler by its predefined macros (one short call) and version; an error if it cannot be used. `answer` is what
    a command prints for a text on its standard input, where the compiler is."""
    try:
        # Not `-include version`, for which GCC looks in the current folder first.
        printed = answer([*command, "-std=c++20", "-dM", "-E", "-x", "c++", "-"], "#include <version>\n")
        version = answer([*command, "--version"], "").strip().splitlines()[0]
    except BuildError as error:
        return error
    except IndexError:
        return BuildError("it does not report its version")
    macros = macros_in(printed)
    if "__cpp_lib_atomic_wait" not in macros:  # in GCC's library since 11, like everything else that we use
        return BuildError(f"{version}: its standard library is older than C++20 (GCC 11 or later has it)")
    return Compiler(command, "clang" if "__clang__" in macros else "gcc", version)


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
    compiler: Compiler, cpu_isa: Iterable[str], answer: Callable[[Sequence[str]], Reply] = ask_once
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
    raise BuildError(f"{compiler.name} cannot build for this CPU ({'; '.join(tried)})", "set CXX to a newer compiler")


def _choices(
    compiler: Compiler, offered: frozenset[str], answer: Callable[[Sequence[str]], Reply]
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


def _native(compiler: Compiler, native: str, answer: Callable[[Sequence[str]], Reply]) -> tuple[tuple[str, ...], str]:
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


def _isa(compiler: Compiler, flags: tuple[str, ...], answer: Callable[[Sequence[str]], Reply]) -> frozenset[str]:
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
