"""The C++20 compilers of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from seatrial.errors import BuildError, NoCompilerError

_NAMES = (
    "g++",
    "c++",
    "clang++",
    *(f"g++-{n}" for n in range(16, 9, -1)),
    *(f"clang++-{n}" for n in range(22, 12, -1)),
)
_CPLUSPLUS_20_DRAFT = 201709
"""What GCC 10 says of itself with -std=c++20; the finished standard is 202002."""
_ASK_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Compiler:
    """One compiler: `path`, `family` gcc or clang, `version` the first line of `--version`."""

    path: str
    family: str
    version: str

    @property
    def name(self) -> str:
        """Short name, such as "gcc 12.2.0"."""
        number = re.search(r"\d+\.\d+(\.\d+)?", re.sub(r"\([^)]*\)", "", self.version))
        return f"{self.family} {number[0] if number else self.version}"


def find_compilers() -> tuple[Compiler, ...]:
    """Every C++20 compiler on PATH, $CXX first, each once."""
    return tuple(answer for answer in map(_examine, _candidates()) if isinstance(answer, Compiler))


def first_compiler() -> Compiler:
    """The compiler that is used when nobody chooses. Raises NoCompilerError with the way to get one."""
    tried: list[str] = []
    for candidate in _candidates():
        answer = _examine(candidate)
        if isinstance(answer, Compiler):
            return answer
        tried.append(f"{candidate}: {answer.message}")
    raise NoCompilerError(
        f"no C++20 compiler was found ({'; '.join(tried) or 'there is no g++ or clang++ on PATH'})",
        "install one (Debian: apt install g++; RHEL: dnf install gcc-c++ or a gcc-toolset) or name it in CXX",
    )


def ask(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Stdout and stderr of a command, together. Raises BuildError where it fails, or does not end in two minutes."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_ASK_LIMIT_S,
            env={**(os.environ if environment is None else environment), "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} cannot be asked: {error}", command=tuple(command)) from error
    if done.returncode != 0:
        said = done.stdout.strip().splitlines() or [f"exit status {done.returncode}, without a word"]
        telling = next((line for line in said if "error:" in line), said[-1])
        raise BuildError(f"{Path(command[0]).name} failed: {telling}", command=tuple(command), output=done.stdout)
    return done.stdout


def _candidates() -> tuple[str, ...]:
    """Paths of everything that could be a compiler, in order of preference, each program once.

    The name is kept as found: clang++ is a link to clang and behaves by the name that it is called by.
    """
    names = [os.environ["CXX"]] if os.environ.get("CXX") else []
    paths = (shutil.which(name) for name in (*names, *_NAMES))
    return tuple({str(Path(path).resolve()): path for path in reversed([p for p in paths if p])}.values())[::-1]


@cache
def _examine(path: str) -> Compiler | BuildError:
    """What a compiler says of itself, from the macros it defines (one short call); an error where it cannot be used."""
    try:
        printed = ask([path, "-std=c++20", "-dM", "-E", "-x", "c++", "-"])
        version = ask([path, "--version"]).splitlines()[0]
    except BuildError as error:
        return error
    macros = dict(re.findall(r"^#define (\w+) (.*)$", printed, re.MULTILINE))
    if int(macros.get("__cplusplus", "0").rstrip("L")) < _CPLUSPLUS_20_DRAFT:
        return BuildError(f"{version} knows no C++20")
    return Compiler(path, "clang" if "__clang__" in macros else "gcc", version)
