"""Shared libraries of C: built once, found again, and without a compiler too."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from seatrial.environments.compiler import first_compiler
from seatrial.environments.shared_library import build_library, build_program
from seatrial.errors import BuildError, NoCompilerError

pytestmark = pytest.mark.real


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "answer.c"
    path.write_text('#include "answer.h"\n__attribute__((visibility("default"))) int answer(void) { return ANSWER; }\n')
    path.with_name("answer.h").write_text("#define ANSWER 42\n")
    return path


def test_a_library_is_built_once_and_again_when_a_header_changes(source: Path) -> None:
    compiler = first_compiler()
    built = build_library("answer", compiler, [source], "int other(void);\n")
    assert ctypes.CDLL(str(built)).answer() == 42
    time = built.stat().st_mtime_ns
    assert build_library("answer", compiler, [source], "int other(void);\n") == built
    assert built.stat().st_mtime_ns == time
    source.with_name("answer.h").write_text("#define ANSWER 43\n")
    assert build_library("answer", compiler, [source], "int other(void);\n") != built
    assert not list(built.parent.glob(".*"))


def test_without_a_compiler_what_another_machine_built_is_used(source: Path) -> None:
    with pytest.raises(NoCompilerError, match="seatrial build"):
        build_library("answer", None, [source], "")
    built = build_library("answer", first_compiler(), [source], "")
    assert build_library("answer", None, [source], "") == built
    source.write_text("int main(void) { return 0; }\n")
    with pytest.raises(NoCompilerError):
        build_program("program", None, [source])
    program = build_program("program", first_compiler(), [source])
    assert build_program("program", None, [source]) == program


def test_what_does_not_compile_says_why(source: Path) -> None:
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(BuildError, match="nothing"):
        build_program("program", first_compiler(), [source])
