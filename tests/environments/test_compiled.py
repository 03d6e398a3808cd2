"""The compiler and flags that a program states, by real compilers, and damaged files."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from seatrial.environments.compiled import Compilation, compilation_of

pytestmark = pytest.mark.real
SOURCE = "int main(void) { return 0; }\n"


def built(folder: Path, compiler: str, *flags: str) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    source = folder / "main.c"
    source.write_text(SOURCE)
    program = folder / "program"
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True, capture_output=True)
    return program


@pytest.mark.parametrize(
    "flags",
    [
        ("-g", "-O0"),
        ("-g", "-O3", "-gdwarf-4"),
        ("-g", "-O2", "-gz"),
        ("-O3", "-frecord-gcc-switches"),
        ("-g", "-Os", "-ffile-prefix-map=/a=/b"),
    ],
)
def test_gcc_states_its_flags_with_debug_information_or_recorded_switches(tmp_path: Path, flags: tuple[str, ...]):
    found = compilation_of(built(tmp_path, "gcc", *flags))
    assert found.compiler.startswith("GNU C")
    level = next(flag for flag in flags if flag.startswith("-O"))
    assert level in found.flags.split()
    assert not {"-g", "-frecord-gcc-switches"} & set(found.flags.split()) and "/b" not in found.flags


def test_without_either_only_the_compiler_is_known(tmp_path: Path):
    found = compilation_of(built(tmp_path, "gcc", "-O2"))
    assert found.flags == "" and "GCC" in found.compiler


def test_clang_states_its_flags_on_request(tmp_path: Path):
    assert "-O1" in compilation_of(built(tmp_path, "clang", "-g", "-O1", "-grecord-command-line")).flags.split()
    plain = compilation_of(built(tmp_path, "clang", "-g", "-O1"))
    assert plain.flags == "" and "clang" in plain.compiler


def test_other_files_state_nothing(tmp_path: Path):
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\n")
    for path in (text, tmp_path, tmp_path / "missing"):
        assert compilation_of(path) == Compilation()


def test_damaged_files_state_nothing_or_a_part_and_cost_little(tmp_path: Path):
    whole = built(tmp_path, "gcc", "-g", "-O2", "-gz").read_bytes()
    draw = random.Random(0)
    damaged = tmp_path / "damaged"
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 20)):
            at = draw.randrange(len(data)) if draw.random() < 0.5 else len(data) - 1 - draw.randrange(4096)
            data[at] = draw.randrange(256)
        damaged.write_bytes(bytes(data[: draw.randrange(1, len(data) + 1)] if draw.random() < 0.3 else data))
        found = compilation_of(damaged)
        assert len(found.flags) <= 4000 and found.flags.isprintable() and found.compiler.isprintable()


def test_a_section_that_would_unfold_to_gigabytes_is_read_in_part(tmp_path: Path):
    import zlib

    program = built(tmp_path, "gcc", "-g", "-O2", "-gz")
    data = bytearray(program.read_bytes())
    bomb = struct.pack("<IIQQ", 1, 0, 1 << 40, 1) + zlib.compress(bytes(64 << 20), 9)
    (header_at,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    names = _section(data, header_at, struct.unpack_from("<H", data, 62)[0])
    for number in range(count):
        name_at = names[0] + struct.unpack_from("<I", data, header_at + 64 * number)[0]
        if data[name_at : name_at + 11] == b".debug_info":
            struct.pack_into("<QQ", data, header_at + 64 * number + 24, len(data), len(bomb))
    program.write_bytes(bytes(data) + bomb)
    assert compilation_of(program).flags == ""


def _section(data: bytes, header_at: int, number: int) -> tuple[int, int]:
    offset, size = struct.unpack_from("<QQ", data, header_at + 64 * number + 24)
    return offset, size
