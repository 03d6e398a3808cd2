"""Texts of other tools damaged where it matters: digits, signs, units, columns and rows, headers, and two in one.

`damaged(kind, number, texts)` gives the same bytes each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from hostile.file_damage import _OF_ANY_TEXT as ANY_DAMAGE

_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_UNITS = (
    (b"MB/s", b"GB/s"), (b"MBytes/sec", b"MiBytes/sec"), (b"GB/s", b"MB/s"), (b"(us)", b"(ms)"), (b"usec", b"sec"),
    (b"MiB", b"MB"),
    (b"Gflops", b"Tflops"), (b"KiB", b"MiB"), (b"ns/day", b"hours/ns"), (b"GiB", b"GB"), (b" s ", b" ms "),
    (b"kiops", b"iops"),
)  # fmt: skip
_ODD = (
    b"nan",
    b"inf",
    b"-1",
    b"-0.0",
    b"0",
    b"0.00",
    b"9" * 18,
    b"1e308",
    b"1e-300",
    b"1,5",
    b"***",
    b"1.2.3",
    b"",
    b"N/A",
)


def _digit(data: bytes, other: bytes, rng: Random) -> bytes:
    """One digit of a number changed."""
    at = [match.start() for match in re.finditer(rb"[0-9]", data)]
    if not at:
        return data
    place = rng.choice(at)
    return data[:place] + rng.choice(b"0123456789").to_bytes(1, "big") + data[place + 1 :]


def _number(data: bytes, other: bytes, rng: Random) -> bytes:
    """A number replaced by another of the text, by ten times itself, or by what is not a number."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    one, another = rng.choice(found), rng.choice(found)
    new = rng.choice((another[0], one[0].replace(b".", b"", 1), b"1" + one[0], b"-" + one[0], rng.choice(_ODD)))
    return data[: one.start()] + new + data[one.end() :]


def _unit(data: bytes, other: bytes, rng: Random) -> bytes:
    """A unit exchanged, once or everywhere."""
    there = [(old, new) for old, new in _UNITS if old in data]
    if not there:
        return data
    old, new = rng.choice(there)
    return data.replace(old, new, rng.choice((1, -1)))


def _columns(data: bytes, other: bytes, rng: Random) -> bytes:
    """Two cells of a line exchanged, one lost or one doubled: of one line, or of all that have as many."""
    lines = data.split(b"\n")
    rows = [k for k, line in enumerate(lines) if len(line.split()) > 2]
    if not rows:
        return data
    width = len(lines[rng.choice(rows)].split())
    a, b, how = rng.randrange(width), rng.randrange(width), rng.randrange(3)
    chosen = [k for k in rows if len(lines[k].split()) == width]
    for k in chosen if rng.random() < 0.3 else [rng.choice(chosen)]:
        parts = re.split(rb"(\s+)", lines[k].strip())
        cells = parts[::2]
        if how == 0:
            cells[a], cells[b] = cells[b], cells[a]
        elif how == 1:
            cells[a] = b""
        else:
            cells[a] = cells[a] + b" " + cells[a]
        lines[k] = b" " * (len(lines[k]) - len(lines[k].lstrip())) + b"".join(
            cell + gap for cell, gap in zip(cells, [*parts[1::2], b""], strict=True)
        )
    return b"\n".join(lines)


def _header(data: bytes, other: bytes, rng: Random) -> bytes:
    """Lines without numbers in the first half lost."""
    lines = data.split(b"\n")
    heads = [k for k in range(len(lines) // 2 + 1) if re.search(rb"[A-Za-z]", lines[k])]
    gone = set(rng.sample(heads, min(len(heads), rng.choice((1, 2, 5)))))
    return b"\n".join(line for k, line in enumerate(lines) if k not in gone)


def _interleaved(data: bytes, other: bytes, rng: Random) -> bytes:
    """Lines of two texts mixed, each in its order; or a row of the other put in."""
    one, two = data.split(b"\n"), other.split(b"\n")
    if rng.random() < 0.5:
        at = rng.randrange(len(one) + 1)
        return b"\n".join([*one[:at], rng.choice(two), *one[at:]])
    mixed: list[bytes] = []
    while one or two:
        source = one if one and (not two or rng.random() < len(one) / (len(one) + len(two))) else two
        stretch = rng.choice((1, 1, 3, 10))
        mixed += source[:stretch]
        del source[:stretch]
    return b"\n".join(mixed)


def _spliced(data: bytes, other: bytes, rng: Random) -> bytes:
    """The beginning of one text and the end of another, cut in the middle of lines."""
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _any(data: bytes, other: bytes, rng: Random) -> bytes:
    return rng.choice(ANY_DAMAGE)(data, rng, "")


_DAMAGE: tuple[Callable[[bytes, bytes, Random], bytes], ...] = (
    _digit, _digit, _digit, _number, _number, _unit, _columns, _columns, _header, _interleaved, _spliced, _any, _any,
)  # fmt: skip


def damaged(kind: str, number: int, texts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """A text, and what became of it."""
    rng = Random(f"{kind} {number} text")
    whole = texts[number % len(texts)]
    data = whole
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_DAMAGE)(data, rng.choice(texts), rng)
    return whole, data
