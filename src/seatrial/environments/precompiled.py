"""The standard library's headers as GCC has read them, once for all programs: reading them takes a third to a half of
the time of most compilations.

They change nothing in the code that is generated: each source includes what it needs, and is compiled without them if
the compiler does not take them (GCC manual, "Using Precompiled Headers": flags and macros must match).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.environments.cache import cache_folder
from seatrial.environments.cached_files import KeptFile, kept_file, make_file, needed_file
from seatrial.model.experiment import content_key

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
