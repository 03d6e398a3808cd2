"""The samples in a record's line: groups of columns, as `seatrial.model.sample.pack` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from seatrial.model.record_shape import MOST_SAMPLES
from seatrial.model.strict_json import LARGEST

KEY = b'":'
"""What ends a key, and is nowhere else in JSON without spaces but in a text with a quotation mark."""

_Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Whole = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
_Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Cell = (
    str | bool | _Int | _Number | list[str | bool | _Int | _Number | list[str | bool | _Int | _Number | None] | None]
)


class _SameNumber(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A column of equal numbers."""

    all: _Int | _Number | None


class _SameCell(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A column of equal values."""

    all: _Cell | None


class SampleGroup(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The samples of one series, point and rank (`seatrial.model.sample_columns.SampleColumns`)."""

    series: str
    point: dict[str, str | bool | _Int | _Number]
    rank: _Whole
    n: _Count
    i: list[_Whole]
    elapsed_s: list[_Int | _Number | None] | _SameNumber
    work: dict[str, list[_Int | _Number | None] | _SameNumber]
    extra: dict[str, list[_Cell | None] | _SameCell]


_N_KEYS = len(SampleGroup.__struct_fields__)
_decoder = msgspec.json.Decoder(list[SampleGroup])
_encoder = msgspec.json.Encoder()


def decoded_groups(packed: bytes) -> list[SampleGroup]:
    """The groups in the text of a line that is known to be valid; none is empty."""
    return [group for group in _decoder.decode(packed) if group.n]


def checked_groups(groups: Sequence[SampleGroup], packed: bytes) -> tuple[Sequence[SampleGroup], int]:
    """Those of the groups in a text that are not empty, and the number of their samples. Raises ValueError if a column
    has another length than stated, or the text is not as usual."""
    total, n_keys = 0, _N_KEYS * len(groups)
    for group in groups:
        n, work, extra = group.n, group.work, group.extra
        n_keys += len(group.point) + len(work) + len(extra)
        for column in (group.i, group.elapsed_s, *work.values(), *extra.values()):
            if type(column) is not list:
                n_keys += 1
            elif len(column) != n:
                raise ValueError("the length of a column is wrong")
        total += n
    if total > MOST_SAMPLES or not _has_each_key_once(packed, n_keys):
        raise ValueError("too many samples, or a key is there twice")
    return [group for group in groups if group.n], total


def _has_each_key_once(text: bytes, n_keys: int) -> bool:
    """Whether a JSON text with so many different keys has none of them twice; False if this is not seen at once."""
    if text.count(b":") == n_keys:  # no text in it has a colon
        return True
    return text.count(KEY) == n_keys and not has_spaces(text)


def has_spaces(text: bytes) -> bool:
    """Whether there may be spaces before a colon, which hide a key from being counted."""
    return b'" ' in text or b"\t" in text or b"\r" in text


def layout_text(groups: Sequence[SampleGroup]) -> bytes:
    """Equal for groups with the same series and points, of equal types, in the same order."""
    return _encoder.encode([(group.series, group.point) for group in groups])
