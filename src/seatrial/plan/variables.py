"""Environment variables in a file: a mapping of names to values, which records and pages show."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.model.secrets import sounds_like_a_secret
from seatrial.plan.study_yaml import Document, Path

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_LONGEST_VALUE = 4096


def variables_at(document: Document, place: Path, kind: str = "site file") -> Iterator[tuple[str, str]]:
    """The variables of a mapping; `kind` is what the file is, for messages.

    Raises UsageError for what is not a name or value of a variable, and for names that suggest a secret.
    """
    mapping = document.node(place)
    for name, node in (mapping.entries if mapping is not None else {}).items():
        line = mapping.key_lines[name] if mapping is not None else None
        if not _VARIABLE.fullmatch(name):
            raise document.refuse(place, f"{name[:60]!r} is not a valid variable name", "write it in upper case", line)
        if sounds_like_a_secret(name):
            todo = f"set it outside the {kind}"
            raise document.refuse(
                place, f"{name} suggests a secret, and variables appear in records and on pages", todo, line
            )
        if not node.written.isprintable() or len(node.written) > _LONGEST_VALUE:
            raise document.refuse((*place, name), f"{node.shown()} is not a valid value of a variable", "it takes text")
        yield name, node.written
