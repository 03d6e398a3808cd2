"""Reading ELF files: real and made-up libraries, and damaged or hostile ones, which end in one clear error."""

from __future__ import annotations

import _ctypes
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from environments.made_up_elf import shared_object

from seatrial.environments import elf
from seatrial.environments.elf import read_functions, read_shared_object
from seatrial.errors import ParseError

REAL = Path(_ctypes.__file__)
HEADER_B, PROGRAM_HEADER_B, SECTION_HEADER_B = 64, 56, 64


@pytest.fixture
def put(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(content: bytes) -> Path:
        path = tmp_path / "libx.so.1"
        path.write_bytes(content)
        return path

    return write


def test_a_shared_object_names_its_symbols(put: Callable[[bytes], Path]) -> None:
    library = read_shared_object(put(shared_object(("dgemm_", "one"), ("two",), ("libm.so.6", "libc.so.6"), "libx.so")))
    assert library.soname == "libx.so" and library.needed == ("libm.so.6", "libc.so.6")
    assert library.defined == {"dgemm_", "one"} and library.used == {"", "two"}
    assert library.runs_on("x86_64") and not library.runs_on("aarch64") and library.runs_on("sparc64")


def test_a_real_library_is_read() -> None:
    library = read_shared_object(REAL)
    assert "PyInit__ctypes" in library.defined and "PyErr_SetString" in library.used
    functions = read_functions(REAL)
    start = next(s for s, (_, strings, at) in zip(functions.starts, functions.symbols, strict=True)
                 if strings.startswith(b"PyInit__ctypes\0", at))  # fmt: skip
    assert functions.name(start) == functions.name(start + 1) == "PyInit__ctypes"


def test_a_name_that_is_used_and_defined_is_both(put: Callable[[bytes], Path]) -> None:
    library = read_shared_object(put(shared_object(("both",), ("both",))))
    assert "both" in library.defined and "both" in library.used


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """Cut off, or with bits and bytes changed in its headers or anywhere."""
    if chance.random() < 0.25:
        return whole[: chance.randrange(len(whole))]
    (sections,) = struct.unpack_from("<Q", whole, 40)
    (count,) = struct.unpack_from("<H", whole, 60)
    places = chance.choice(
        (
            range(HEADER_B + 4 * PROGRAM_HEADER_B),
            range(sections, sections + count * SECTION_HEADER_B),
            range(len(whole)),
        )
    )
    content = bytearray(whole)
    for _ in range(chance.randrange(1, 12)):
        at = chance.choice(places)
        content[at] = chance.choice((content[at] ^ 1 << chance.randrange(8), 0, 0xFF, chance.randrange(256)))
    return bytes(content)


def test_a_damaged_library_is_an_error_and_never_a_crash(put: Callable[[bytes], Path]) -> None:
    chance = random.Random(20240229)
    refused = 0
    for whole, times in ((REAL.read_bytes(), 210), (shared_object(("dgemm_",) * 3, ("x",), ("y",), "z"), 90)):
        for _ in range(times):
            path = put(damaged(whole, chance))
            for read in (read_shared_object, read_functions):
                try:
                    found = read(path)
                except ParseError as error:
                    assert error.tool == "ELF" and error.why.startswith("not a program or shared library")
                    refused += 1
                else:
                    if isinstance(found, elf.Functions):
                        assert all(isinstance(found.name(start), str | None) for start in found.starts[:20])
    assert 60 < refused < 540


@pytest.mark.parametrize(
    ("at", "form", "value", "why"),
    [
        (4, "<B", 1, "64-bit"),
        (5, "<B", 2, "little-endian"),
        (16, "<H", 4, "not that of a shared object"),
        (40, "<Q", 1 << 62, "cut off"),
        (60, "<H", 0xFFFF, "has 65535 entries"),
    ],
    ids=["32 bits", "big-endian", "a core file", "sections far outside", "too many sections"],
)
def test_an_invalid_file_is_refused_with_the_reason(
    put: Callable[[bytes], Path], at: int, form: str, value: int, why: str
) -> None:
    content = bytearray(shared_object(("one",)))
    struct.pack_into(form, content, at, value)
    with pytest.raises(ParseError, match=why):
        read_shared_object(put(bytes(content)))


def test_overlapping_tables_use_bounded_memory(put: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many symbols has the rest of one long string for its name: a small file, but gigabytes of names."""
    monkeypatch.setattr(elf, "_MOST_READ_B", 16 << 20)
    content = bytearray(shared_object(("s" * 60_000, *("",) * 60_000)))
    (sections,) = struct.unpack_from("<Q", content, 40)
    (symbols,) = struct.unpack_from("<Q", content, sections + SECTION_HEADER_B + 24)
    for k in range(60_000):
        struct.pack_into("<I", content, symbols + 24 * (k + 1), k + 1)
    path = put(bytes(content))
    tracemalloc.start()
    try:
        with pytest.raises(ParseError, match="more than"):
            read_shared_object(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
