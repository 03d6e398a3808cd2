"""Environment variables in a file: a mapping of names to values, which records and pages show."""

from __future__ import annotations

import re

from seatrial.model.secrets import sounds_like_a_secret
from seatrial.plan.file_model import Kind, Spot, named, scalar

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_LONGEST_VALUE = 4096

Variables = tuple[tuple[str, str], ...]
SCALAR: Kind[bool | int | float | str] = scalar(bool, int, float, str)


def variables(file: str, most: int | None = None) -> Kind[Variables]:
    """Variables with their values as written; `file` is what the file is, for messages. Names that suggest a secret are
    refused."""

    def checked(spot: Spot, name: str) -> None:
        line = spot.node.key_lines[name]
        if not _VARIABLE.fullmatch(name):
            raise spot.refuse(f"{name[:60]!r} is not a valid variable name", "write it in upper case", line)
        if sounds_like_a_secret(name):
            seen = f"{name} suggests a secret, and variables appear in records and on pages"
            raise spot.refuse(seen, f"set it outside the {file}", line)

    value = SCALAR.then(_written).accepting("text, a number, true or false")
    pattern = {"pattern": f"^{_VARIABLE.pattern}$"}
    return named(value, checked, most=most, propertyNames=pattern).then(lambda _, found: tuple(found.items()))


def _written(spot: Spot, value: object) -> str:
    text = spot.node.written
    if not text.isprintable() or len(text) > _LONGEST_VALUE:
        raise spot.refuse(f"{spot.node.shown()} is not a valid value of a variable", "it takes text")
    return text
