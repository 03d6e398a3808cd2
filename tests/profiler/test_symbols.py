"""Addresses of real programs as function, file and line: with addr2line, without it, inlined, position-independent."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from seatrial.profiler.cause import Frame
from seatrial.profiler.symbols.symbols import Symbols, parse_addr2line

SOURCE = """\
#include <stdio.h>
#include <stdlib.h>
#include <link.h>
#include <string.h>

static void* from[2];

__attribute__((noinline)) void called(int which) {
  from[which] = __builtin_return_address(0);
}

static inline __attribute__((always_inline)) void inner(void) {
  called(0);
  __asm__ volatile("");
}

__attribute__((noinline)) void outer(void) {
  inner();
  called(1);
  __asm__ volatile("");
}

static int tell(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  if (info->dlpi_name[0] == '\\0')
    for (int k = 0; k < info->dlpi_phnum; k++)
      if (info->dlpi_phdr[k].p_type == PT_LOAD && (info->dlpi_phdr[k].p_flags & PF_X))
        for (int n = 0; n < 2; n++)
          printf("%lu\\n", (unsigned long)from[n] - info->dlpi_addr - info->dlpi_phdr[k].p_vaddr
                             + info->dlpi_phdr[k].p_offset);
  (void)data;
  return 0;
}

int main(void) {
  outer();
  dl_iterate_phdr(tell, NULL);
  return 0;
}
"""


def build(folder, *flags: str) -> tuple[str, list[int]]:
    """The program, and two return addresses inside it as offsets in its file."""
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    source, program = folder / "sites.c", folder / "sites"
    source.write_text("#define _GNU_SOURCE\n" + SOURCE)
    subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-o", program, source], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True)
    return str(program), [int(line) for line in printed.stdout.split()]


@pytest.mark.real
@pytest.mark.parametrize("flags", [("-pie", "-fPIE"), ("-no-pie", "-fno-pie")])
def test_lines_and_inlined_functions(tmp_path, flags) -> None:
    if shutil.which("addr2line") is None:
        pytest.skip("addr2line is absent (Debian: apt install binutils)")
    program, (first, second) = build(tmp_path, "-g", *flags)
    found = Symbols.of_this_machine().frames(program, [first, second])
    assert [(frame.function, frame.line) for frame in found[first]] == [("inner", 14), ("outer", 19)]
    assert [(frame.function, frame.line) for frame in found[second]] == [("outer", 20)]
    assert found[first][0].file.endswith("sites.c")


@pytest.mark.real
@pytest.mark.parametrize("flags", [("-pie", "-fPIE"), ("-no-pie", "-fno-pie")])
def test_functions_are_named_without_addr2line(tmp_path, flags) -> None:
    program, offsets = build(tmp_path, *flags)
    found = Symbols(None).frames(program, offsets)
    assert [found[offset] for offset in offsets] == [(Frame("outer"),), (Frame("outer"),)]


@pytest.mark.real
def test_names_remain_if_addr2line_fails(tmp_path) -> None:
    program, offsets = build(tmp_path)
    found = Symbols(shutil.which("false")).frames(program, offsets)
    assert found[offsets[0]] == (Frame("outer"),)
    assert Symbols("/nowhere/addr2line").frames(program, offsets) == found


@pytest.mark.real
def test_each_address_is_resolved_once(tmp_path, monkeypatch) -> None:
    program, offsets = build(tmp_path)
    asked = []
    symbols = Symbols("addr2line")
    monkeypatch.setattr(symbols, "_by_addr2line", lambda module, addresses: asked.append(list(addresses)) or {})
    symbols.frames(program, offsets)
    symbols.frames(program, offsets)
    assert len(asked) == 1 and len(asked[0]) == 2


def test_addresses_in_other_files_stay_unresolved(tmp_path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    (tmp_path / "empty").touch()
    symbols = Symbols.of_this_machine()
    for module in (text, tmp_path / "empty", tmp_path / "missing", tmp_path):
        assert symbols.frames(str(module), [0x1100]) == {}


@pytest.mark.real
def test_a_damaged_program_raises_no_error(tmp_path) -> None:
    program, offsets = build(tmp_path)
    data = (tmp_path / "sites").read_bytes()
    for at in range(16, 64, 2):
        damaged = tmp_path / "damaged"
        damaged.write_bytes(data[:at] + b"\xff\xff" + data[at + 2 :])
        Symbols(None).frames(str(damaged), offsets)
    damaged.write_bytes(data[: len(data) // 2])
    assert Symbols(None).frames(str(damaged), offsets) in ({}, Symbols(None).frames(program, offsets))


def test_the_output_of_addr2line_is_parsed() -> None:
    text = (
        "0x0000000000001189\ninner\n/src/a file.c:14\nouter\n/src/a file.c:19 (discriminator 2)\n"
        "0x00000000000011a0\n??\n??:0\n0x00000000000011b0\nmain\n??:?\n"
    )
    assert parse_addr2line(text) == {
        0x1189: (Frame("inner", "/src/a file.c", 14), Frame("outer", "/src/a file.c", 19)),
        0x11A0: (),
        0x11B0: (Frame("main"),),
    }
    assert parse_addr2line("nonsense\nmore\n") == {}
