"""What the loader finds for a program: asked before anything runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.environments.loader import interpreter_of, libraries_of


def test_a_file_that_is_not_a_program_has_no_libraries(tmp_path: Path) -> None:
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200):
        file = tmp_path / "f"
        file.write_bytes(content)
        assert interpreter_of(file) is None and libraries_of(file, os.environ) == {}
    assert libraries_of(tmp_path / "none", os.environ) == {}


@pytest.mark.real
def test_the_search_path_decides_which_library_it_is(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "p.c").write_text("int f(void); int main(void) { return f(); }")
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        (tmp_path / "l.c").write_text(f"int f(void) {{ return {number}; }}")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-o", tmp_path / number / "libf.so", tmp_path / "l.c"], check=True
        )
    subprocess.run([compiler, "-o", tmp_path / "p", tmp_path / "p.c", f"-L{tmp_path}/1", "-lf"], check=True)
    for number in ("1", "2"):
        found = libraries_of(tmp_path / "p", {**os.environ, "LD_LIBRARY_PATH": f"{tmp_path}/{number}"})
        assert found["libf.so"] == f"{tmp_path}/{number}/libf.so"
    assert Path(interpreter_of(Path(sys.executable).resolve()) or "/none").name.startswith("ld-")
