"""The source files of a measuring program, and the headers that GCC has read once for all.

A header of `native/` with a source of the same name beside it (`team.hpp`, `team.cpp`) is a part that is compiled once
and linked with every program that includes it, directly or through another header.

The standard library's headers as GCC has read them, once for all programs: reading them takes a third to a half of
the time of most compilations.

They change nothing in the code that is generated: each source includes what it needs, and is compiled without them if
the compiler does not take them (GCC manual, "Using Precompiled Headers": flags and macros must match).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.environments.cache import cache_folder
from seatrial.environments.cached_files import KeptFile, kept_file, make_file, needed_file
from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key

_INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_EMBEDDED = re.compile(r'^SEATRIAL_EMBEDDED_TEXT\(\w+,\s*"([^"]+)"\)', re.MULTILINE)
_UNTIMED = re.compile(r"^// untimed: (-O[0-3])$", re.MULTILINE)
_NEEDS_MPI = re.compile(r"^\s*#\s*include\s*<mpi\.h>", re.MULTILINE)


class Unit(Frozen):
    """A translation unit: a source with all of our files that it includes, directly or indirectly.

    `digests` holds the SHA-256 of each file by its path (`native/team.hpp`), or by its name if it is elsewhere.
    `embeds`: whether files are embedded in the program (native/device/embedded.hpp). `optimisation`: the flag that the
    source chooses because it is not timed, or an empty string.
    """

    source: Path
    digests: tuple[tuple[str, str], ...]
    parts: tuple[Path, ...]
    needs_mpi: bool
    embeds: bool
    optimisation: str = ""


@cache
def units_of(source: Path, headers: Path) -> tuple[Unit, ...]:
    """The unit of a program's source, then those of the parts that it is linked with, in the order of their names.
    `headers` is the folder of the shared headers.

    Raises BuildError if a file cannot be read. Missing includes are left to the compiler.
    """
    try:
        own = _unit(source, headers)
        parts: dict[Path, Unit] = {}
        waiting = list(own.parts)
        while waiting:
            path = waiting.pop()
            if path not in parts:
                parts[path] = _unit(path, headers)
                waiting += parts[path].parts
    except OSError as error:
        raise BuildError(
            f"the source {error.filename} cannot be read: {error.strerror}", "reinstall seatrial"
        ) from error
    return (own, *(parts[path] for path in sorted(parts)))


def _unit(source: Path, headers: Path) -> Unit:
    contents: dict[Path, bytes] = {}
    waiting = [source]
    needs_mpi = embeds = False
    while waiting:
        path = waiting.pop()
        if path in contents:
            continue
        contents[path] = path.read_bytes()
        text = contents[path].decode("utf-8", "replace")
        embedded = _EMBEDDED.findall(text)
        places = [(path.parent / name, headers / name) for name in (*_INCLUDED.findall(text), *embedded)]
        waiting += [place for both in places if (place := next(filter(Path.is_file, both), None)) is not None]
        needs_mpi |= _NEEDS_MPI.search(text) is not None
        embeds |= bool(embedded)
    beside = {path.with_suffix(".cpp") for path in contents if path.suffix == ".hpp"} - {source}
    digests = {_name(path, headers): hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    parts = tuple(sorted(path for path in beside if path.is_file()))
    chosen = _UNTIMED.search(contents[source].decode("utf-8", "replace"))
    optimisation = "" if chosen is None else chosen[1]
    return Unit(source, tuple(sorted(digests.items())), parts, needs_mpi, embeds, optimisation)


def _name(path: Path, headers: Path) -> str:
    return f"native/{path.relative_to(headers)}" if path.is_relative_to(headers) else path.name


SUFFIX = ".gch"
_PAYS_OFF = 4
"""The fewest compilations for which it pays off: with GCC 12, reading takes 4.9 s, and saves 1.2 s of each."""


def standard_headers(
    source: Path, compiler: Sequence[str], environment: Mapping[str, Any], compilations: int
) -> KeptFile | None:
    """The headers that `source` includes, as GCC reads them with these words; None if the cache has none and there are
    too few compilations to make them. `environment` is the document that identifies the words. Raises BuildError."""
    key = content_key({"environment": environment, "source": hashlib.sha256(source.read_bytes()).hexdigest()})
    place = cache_folder() / "headers" / key / f"{source.name}{SUFFIX}"
    kept = kept_file(place)
    if kept is None and compilations >= _PAYS_OFF:
        make_file((*compiler, "-x", "c++-header", str(source)), place, environment)
        kept = needed_file(place)
    return kept


def with_headers(command: Sequence[str], headers: KeptFile, words: int) -> tuple[str, ...]:
    """The command with these headers after its first `words` words, the compiler and its flags."""
    return (*command[:words], "-include", str(headers.path), *command[words:])
