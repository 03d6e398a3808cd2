"""The C++20 compilers of this machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from seatrial.environments.remembered import ask_once
from seatrial.errors import BuildError, NoCompilerError, UsageError
from seatrial.model.frozen import Frozen

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
    path = shutil.which(name)
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
        if not words or shutil.which(words[0]) is None:
            raise UsageError(f"CXX={named} is not an executable program", "correct it, or unset CXX")
        yield (shutil.which(words[0]) or words[0], *words[1:])
    for name in _NAMES:
        path = shutil.which(name)
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
    programs = [Path(found) for word in command[1:] if (found := shutil.which(word)) is not None]  # behind a launcher
    return examined(command, lambda words: ask_once(words, files=programs).stdout)


def examined(command: tuple[str, ...], answer: Callable[[Sequence[str]], str]) -> Compiler | BuildError:
    """A compiler by its predefined macros (one short call) and version; an error if it cannot be used. `answer` is what
    a command prints, where the compiler is."""
    try:
        printed = answer([*command, "-std=c++20", "-include", "version", "-dM", "-E", "-x", "c++", "-"])
        version = answer([*command, "--version"]).strip().splitlines()[0]
    except BuildError as error:
        return error
    except IndexError:
        return BuildError("it does not report its version")
    macros = dict(re.findall(r"^#define (\w+) (.*)$", printed, re.MULTILINE))
    if "__cpp_lib_atomic_wait" not in macros:  # in GCC's library since 11, like everything else that we use
        return BuildError(f"{version}: its standard library is older than C++20 (GCC 11 or later has it)")
    return Compiler(command, "clang" if "__clang__" in macros else "gcc", version)
