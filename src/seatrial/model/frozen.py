"""Immutable records: what each step of the tool hands to the next (docs/adr/0056)."""

from __future__ import annotations

from functools import cache
from typing import Any, dataclass_transform

from msgspec import Struct, field


class _Fields:
    """The fields of a class, where the functions of `dataclasses` look for them."""

    def __get__(self, record: object, kind: type[Struct]) -> Any:
        return _fields_of(kind)


@cache
def _fields_of(kind: type[Struct]) -> Any:
    from dataclasses import make_dataclass

    return make_dataclass(kind.__name__, kind.__struct_fields__).__dataclass_fields__  # type: ignore[attr-defined]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(Struct, frozen=True):
    """A record that cannot be changed; `msgspec.structs.replace` makes one that differs. `asdict`,
    `replace` and `fields` (names alone) of `dataclasses` work on it as well: scripts of users may call them on what
    `import seatrial` returns."""

    __dataclass_fields__ = _Fields()
