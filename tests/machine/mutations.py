"""Damaged dumps: every sample of every kind, mutated in the ways in which text is damaged or means harm.

`mutant(kind, number)` gives the same bytes each time, so that a failing one can be looked at again.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType

from shared_samples import DUMPS, TOPOLOGY

from seatrial.machine.dumps import READERS
from seatrial.machine.survey import Survey

OWN = Path(__file__).resolve().parents[1] / "data" / "machine"

Reader = Callable[[bytes, int | None], Survey]

KINDS: dict[str, tuple[str, ...]] = {
    "hwloc-xml": ("hwloc*",),
    "nccl-xml": ("nccl*", "rccl*"),
    "lspci-vv": ("lspci-vv*", "*_vv_*", "lspci-tv-vvv*", "*-vv.*", "*-v.*"),
    "lspci-tree": ("lspci-tv*", "*-tree.*"),
    "dmidecode": ("dmi*", "dmi/*.txt"),
    "nvidia-smi-topo": ("smi-topo_*", "topo-*", "lspci-tv-vvv_and_topo*"),
    "nvidia-smi-p2p": ("smi-topo-p2p*", "p2p-*"),
    "rocm-smi-topo": ("rocm*",),
    "nvidia-smi-q": ("nvidia-smi-q/*",),
    "amd-smi": ("amd-smi/*",),
    "lscpu": ("lscpu/*",),
    "likwid-topology": ("likwid/*",),
    "ibstat": ("ibstat*",),
    "opainfo": ("network/opainfo*",),
    "cxi-stat": ("network/cxi_stat*",),
    "ethtool": ("network/ethtool.txt",),
    "ethtool-s": ("network/ethtool-S*",),
}
"""Kind -> the names of its samples below our own folder; those of the shared one are listed."""


def reader(kind: str) -> Reader:
    """The reader of a kind."""
    return READERS[kind]


@cache
def samples(kind: str) -> tuple[tuple[str, bytes], ...]:
    """Name and content of each sample of a kind that is here, in a fixed order."""
    own = sorted({path for pattern in KINDS[kind] for path in OWN.rglob(pattern)})
    shared = [TOPOLOGY / name for name in DUMPS[kind]]
    return tuple((path.name, path.read_bytes()) for path in (*own, *shared) if path.is_file())


def missing(kind: str) -> list[str]:
    """The shared samples of a kind that are not here."""
    return [name for name in DUMPS[kind] if not (TOPOLOGY / name).is_file()]


def mutant(kind: str, number: int) -> tuple[str, bytes]:
    """The sample's name and the damaged bytes of one mutant; samples take turns."""
    rng = Random(f"{kind} {number}")
    name, data = samples(kind)[number % len(samples(kind))]
    return name, damaged(data, rng, kind)


def damaged(data: bytes, rng: Random, kind: str) -> bytes:
    """The bytes after some damage; `kind` is one of KINDS, a sample of which may be glued to them."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        data = rng.choice(_MUTATIONS)(data, rng, kind)
    return data


class TooSlowError(Exception):
    """A reader used more processor time than any dump can need."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooSlowError in what runs inside once it has used so much processor time: a guard against hangs."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"over {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _at(data: bytes, rng: Random) -> int:
    return rng.randrange(len(data) + 1)


def _span(data: bytes, rng: Random) -> tuple[int, int]:
    start = _at(data, rng)
    return start, min(len(data), start + rng.choice((1, 2, 10, 100, 3000)))


def _flip(data: bytes, rng: Random, kind: str) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 5, 50)) if data else 0):
        changed[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(changed)


def _cut_end(data: bytes, rng: Random, kind: str) -> bytes:
    return data[: _at(data, rng)]


def _cut_start(data: bytes, rng: Random, kind: str) -> bytes:
    return data[_at(data, rng) :]


def _cut_out(data: bytes, rng: Random, kind: str) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _repeat(data: bytes, rng: Random, kind: str) -> bytes:
    start, end = _span(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 2, 50)) + data[end:]


def _drop_lines(data: bytes, rng: Random, kind: str) -> bytes:
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines) + 1)
    return b"".join(lines[:at] + lines[at + rng.choice((1, 1, 3, 20)) :])


def _repeat_line(data: bytes, rng: Random, kind: str) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"".join(lines)


def _swap_lines(data: bytes, rng: Random, kind: str) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def _join_lines(data: bytes, rng: Random, kind: str) -> bytes:
    ends = [match.start() for match in re.finditer(rb"\n", data)]
    if not ends:
        return data
    at = rng.choice(ends)
    return data[:at] + data[at + 1 :]


def _glue(data: bytes, rng: Random, kind: str) -> bytes:
    other = rng.choice(samples(rng.choice((kind, kind, *(k for k in KINDS if samples(k))))))[1]
    return data + other if rng.random() < 0.5 else other[: _at(other, rng)] + data


_INSERTS = (
    b"9" * 5000, b"A" * 100_000, b" " * 20_000, b"\t" * 3000, b"(" * 3000, b"<a>" * 400, b"-+-" * 2000, b"| " * 3000,
    b"0," * 3000, b"1-" * 2000, b"GPU0 " * 3000, b"GPU0\tGPU1\tGPU2\n" * 300, b"\x00", b"\x1b[4m", b"\x1b]0;", b"\r",
    b"&amp;", b"&lol;", b"<!DOCTYPE a>", b"\xff\xfe", b"\xe2\x80\xa8", "\u0663\u0664".encode(), "\u00b2".encode(),
    "\u202e".encode(), b"4294967296", b"-1", b"1e999", b"nan", b"0x", b"[]", b"{}", b'"', b"'", b"\x85", b"\x0b", b"%s",
    b"99999999999999999999", b"0000:ff:1f.7", b"X", b"N/A", b"Handle 0x0011, DMI type 17, 40 bytes\n", b"# ", b"> ",
    b"```\n",
)  # fmt: skip


def _insert(data: bytes, rng: Random, kind: str) -> bytes:
    at = _at(data, rng)
    return data[:at] + rng.choice(_INSERTS) + data[at:]


def _replace_word(data: bytes, rng: Random, kind: str) -> bytes:
    words = list(re.finditer(rb"[\w.:-]+", data))
    if not words:
        return data
    word, other = rng.choice(words), rng.choice(words)
    new = rng.choice((other[0], b"", rng.choice(_INSERTS)))
    return data[: word.start()] + new + data[word.end() :]


def _change_number(data: bytes, rng: Random, kind: str) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return data
    number = rng.choice(numbers)
    digits = "\u0661\u0662".encode()
    new = rng.choice((b"0", b"-1", b"65536", b"4294967295", b"9" * 30, digits, b"\xc2\xb3", b"07", b"1.5"))
    return data[: number.start()] + new + data[number.end() :]


def _foreign_digits(data: bytes, rng: Random, kind: str) -> bytes:
    start, end = _span(data, rng)
    shown = {str(digit).encode(): chr(0x0660 + digit).encode() for digit in range(10)}
    return data[:start] + re.sub(rb"\d", lambda match: shown[match[0]], data[start:end]) + data[end:]


def _tabs_to_spaces(data: bytes, rng: Random, kind: str) -> bytes:
    return data.expandtabs(rng.choice((1, 4, 8))) if rng.random() < 0.5 else data.replace(b"\t", b"")


def _spaces_to_one(data: bytes, rng: Random, kind: str) -> bytes:
    return re.sub(rb"[ \t]+", rng.choice((b" ", b"\t", b"")), data)


def _other_breaks(data: bytes, rng: Random, kind: str) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b" ")))


def _other_encoding(data: bytes, rng: Random, kind: str) -> bytes:
    return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig")))


def _prefixed(data: bytes, rng: Random, kind: str) -> bytes:
    prefix = rng.choice((b"# ", b"> ", b"    ", b"| ", b"+ "))
    return b"".join(prefix + line for line in data.splitlines(keepends=True))


_MUTATIONS = (
    _flip, _flip, _cut_end, _cut_start, _cut_out, _cut_out, _repeat, _drop_lines, _drop_lines, _repeat_line,
    _swap_lines, _join_lines, _glue, _insert, _insert, _replace_word, _replace_word, _change_number, _change_number,
    _foreign_digits, _tabs_to_spaces, _spaces_to_one, _other_breaks, _other_encoding, _prefixed,
)  # fmt: skip
