"""All references: those shipped with seatrial, and those of the site's own file.

The own file is `$SEATRIAL_REFERENCES`, else `~/.config/seatrial/references.toml` if it exists. It has the format of the
shipped files and is used in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.results.history import Reference
from seatrial.references.document import read, read_file

_VARIABLE = "SEATRIAL_REFERENCES"


@cache
def shipped_references() -> tuple[Reference, ...]:
    """The references of the package, in the order of its files."""
    folder = resources.files(__package__).joinpath("data")
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return checked(reference for file in files for reference in read(file.read_bytes(), file.name))


def all_references() -> tuple[Reference, ...]:
    """The shipped references, then those of the site's own file.

    Raises UsageError if the own file cannot be read, has a wrong entry, or reuses the id of a shipped value.
    """
    own = own_file()
    return shipped_references() if own is None else _with_own(own, _state(own))


def reference_named(reference_id: str) -> Reference:
    """The reference with this id. Raises UnknownNameError, which names the nearest."""
    known = {reference.id: reference for reference in all_references()}
    if reference_id not in known:
        raise UnknownNameError("reference", reference_id, known)
    return known[reference_id]


def own_file() -> Path | None:
    """The site's own file, or None if there is none. Raises UsageError if `$SEATRIAL_REFERENCES` names no file."""
    named = os.environ.get(_VARIABLE)
    if named:
        path = Path(named)
        if not path.is_file():
            raise UsageError(f"{_VARIABLE} names {named!r}, which is not a file", "set it to a TOML file, or unset it")
        return path
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        path = (Path(base) if base else Path.home() / ".config") / "seatrial" / "references.toml"
    except RuntimeError:  # no home folder
        return None
    return path if path.is_file() else None


def checked(references: Iterable[Reference]) -> tuple[Reference, ...]:
    """The references, if they are consistent: unique ids, and each contradiction stated on both sides.

    Raises UsageError.
    """
    known: dict[str, Reference] = {}
    for reference in references:
        if reference.id in known:
            raise UsageError(f"two references have the id {reference.id!r}", "change one of the ids")
        known[reference.id] = reference
    for reference in known.values():
        for other in reference.contradicts:
            if other not in known:
                raise UnknownNameError(f"reference (`contradicts` of {reference.id})", other, known)
            if reference.id not in known[other].contradicts or other == reference.id:
                raise UsageError(
                    f"{reference.id} contradicts {other}, but {other} does not contradict it", "name each in the other"
                )
    return tuple(known.values())


@cache
def _with_own(path: Path, state: tuple[int, int]) -> tuple[Reference, ...]:
    """`state` is the state of the file: an edited file is read again."""
    return checked((*shipped_references(), *read_file(path)))


def _state(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "check its permissions") from error
    return status.st_mtime_ns, status.st_size
