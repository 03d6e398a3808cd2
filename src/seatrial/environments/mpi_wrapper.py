"""What an MPI compiler wrapper adds to a compiler's command line, as the wrapper prints it; nothing is compiled.

`-show` is MPICH's option, which the wrappers of Intel MPI, MVAPICH and Open MPI accept too; Open MPI's own is
`--showme`, Cray's `--cray-print-opts=all` (mpicc(1) of MPICH and of Open MPI, cc(1) of the Cray Programming
Environment). Only folders and libraries are used: we choose compiler, optimisation and language standard.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from seatrial.environments.remembered import ask_once
from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen

_QUESTIONS = (("-show",), ("--showme",))
_CRAY_QUESTION = ("--cray-print-opts=all",)
_CRAY_NAMES = ("cc", "CC")
_LARGEST_ANSWER = 1 << 16
_LIBRARY = re.compile(r"-l[A-Za-z0-9_.+-]{1,100}")
_BINDINGS = re.compile(
    r"-l(?:mpi(?:fort|cxx|_cxx|_mpifh|_usempif?[a-z0-9_]*|_usempi_ignore_tkr|_java|cpp|_f77|_f90)|mpich(?:cxx|fort|f90)"
    r"|mpig[cfi]4?|gfortran|quadmath|ifcore[a-z]*|stdc\+\+)"
)
"""Libraries for languages other than C, which our programs must not load."""

_OF_CRAY_MPI = re.compile(r"-l(?:mpi(?:ch)?(?:_[a-z0-9_]+)?|xpmem|pmi2?)")
"""Cray's wrapper adds the libraries of all loaded modules; an MPI program needs only these."""


class WrapperWords(Frozen):
    """A wrapper's output: header folders, library folders, run-time search folders, -l options."""

    includes: tuple[Path, ...]
    folders: tuple[Path, ...]
    run_folders: tuple[Path, ...]
    libraries: tuple[str, ...]


def ask_wrapper(wrapper: Path, variables: Mapping[str, str] | None = None) -> WrapperWords:
    """What a wrapper adds. Raises BuildError if it fails, or lists no MPI library."""
    is_cray = wrapper.name in _CRAY_NAMES
    refusal: BuildError | None = None
    for question in (_CRAY_QUESTION,) if is_cray else _QUESTIONS:
        try:
            words = parse_answer(ask_once([str(wrapper), *question], variables, limit_s=10).stdout)
        except BuildError as error:
            refusal = refusal or error
            continue
        if is_cray:
            libraries = tuple(word for word in words.libraries if _OF_CRAY_MPI.fullmatch(word))
            words = WrapperWords(words.includes, words.folders, words.run_folders, libraries)
        if words.libraries:
            return words
    raise refusal or BuildError(f"{wrapper} lists no libraries to link")


def parse_answer(text: str) -> WrapperWords:
    """Parse a wrapper's output: a command line, possibly among other lines. Raises BuildError for anything else."""
    lines = [line for line in text[:_LARGEST_ANSWER].splitlines() if re.search(r"(?:^|\s)-[lLI]", line)]
    words: list[str] = []
    for line in lines:
        try:
            words += shlex.split(line)
        except ValueError as error:
            raise BuildError(f"its output is not a command line ({error})") from error
    return WrapperWords(
        _unique(_values(words, ("-I", "-isystem", "-idirafter"))),
        _unique(_values(words, ("-L",))),
        _unique(_run_paths(list(_for_linker(words)))),
        tuple(word for word in dict.fromkeys(words) if _LIBRARY.fullmatch(word) and not _BINDINGS.fullmatch(word)),
    )


def _values(words: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """The values of options, joined to them or as the next word."""
    for position, word in enumerate(words):
        for option in options:
            if word == option and position + 1 < len(words):
                yield words[position + 1]
            elif word.startswith(option) and word != option:
                yield word[len(option) :]


def _for_linker(words: Sequence[str]) -> Iterator[str]:
    """The words that the compiler passes to the linker (-Wl,A,B and -Xlinker A)."""
    for position, word in enumerate(words):
        if word.startswith("-Wl,"):
            yield from word.split(",")[1:]
        elif word == "-Xlinker" and position + 1 < len(words):
            yield words[position + 1]


def _run_paths(words: Sequence[str]) -> Iterator[str]:
    """The folders of -rpath DIR and -rpath=DIR; one option may list several."""
    for position, word in enumerate(words):
        name, is_joined, value = word.partition("=")
        if name in ("-rpath", "--rpath", "-R"):
            following = words[position + 1] if position + 1 < len(words) else ""
            yield from (value if is_joined else following).split(":")


def _unique(texts: Iterator[str]) -> tuple[Path, ...]:
    """Absolute folders, each once; relative ones depend on the current folder."""
    return tuple(dict.fromkeys(Path(text) for text in texts if text.startswith("/") and text.isprintable()))
